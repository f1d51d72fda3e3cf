/* Two halves: who logs fills one under a mutex that is held for a copy of a line, the thread writes the
 * other and then swaps them. After each write it rests, so that at many thousand lines a second a write
 * takes hundreds of them and nobody has to wake it for each; a line that comes alone is written at once. */
#include "server/log_writer.h"

#include "server/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* KEPT_BYTES is what a half takes at 25 MB of lines a second, and a multiple of each system's page. */
enum {
    HALF_BYTES = 4 << 20,
    KEPT_BYTES = 256 << 10,
    RESERVE_BYTES = 64 << 10,
    REST_MS = 10,
    LAST_LINES_S = 1
};

static struct {
    pthread_mutex_t mutex; /* guards all below but `dropped` */
    pthread_cond_t changed;
    bool idle; /* the thread waits for a line */
    bool stopping;
    unsigned filling; /* the half that takes lines */
    size_t filled_bytes;
    pthread_t thread;
    int running;      /* __atomic access only */
    uint64_t dropped; /* __atomic access only */
} writer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static alignas(KEPT_BYTES) char halves[2][HALF_BYTES];

static void drop(uint64_t lines) {
    __atomic_fetch_add(&writer.dropped, lines, __ATOMIC_RELAXED);
}

static uint64_t count_lines(const char *text, size_t bytes) {
    uint64_t count = 0;
    const char *end = text + bytes;
    while (text < end && (text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
        count++;
        text++;
    }
    return count;
}

/* A log that cannot be written is no reason to stop serving: false, and what is left is dropped. */
static bool write_all(const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written >= 0) {
            text += written;
            bytes -= (size_t)written;
        } else if (errno == EAGAIN) { /* someone else who has this stderr made it so */
            struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            drop(count_lines(text, bytes));
            return false;
        }
    }
    return true;
}

/* Pages that a burst took go back to the system once the half is filled by less again, else each would come
 * to hold the most that ever was. */
static void give_back(unsigned which, size_t bytes) {
    static bool is_grown[2];
    if (is_grown[which] && bytes <= KEPT_BYTES)
        (void)madvise(halves[which] + KEPT_BYTES, HALF_BYTES - KEPT_BYTES, MADV_DONTNEED);
    is_grown[which] = bytes > KEPT_BYTES;
}

/* With the mutex held: until the buffer is half full, the writer is stopped, or the time is over. */
static void rest(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += REST_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (!writer.stopping)
        pthread_cond_timedwait(&writer.changed, &writer.mutex, &until);
}

static void *run(void *argument) {
    uint64_t told = 0;
    (void)argument;
    pthread_mutex_lock(&writer.mutex);
    for (;;) {
        while (writer.filled_bytes == 0 && !writer.stopping) {
            writer.idle = true;
            pthread_cond_wait(&writer.changed, &writer.mutex);
        }
        writer.idle = false;
        if (writer.filled_bytes == 0)
            break;
        const unsigned which = writer.filling;
        size_t bytes = writer.filled_bytes;
        writer.filling ^= 1;
        writer.filled_bytes = 0;
        pthread_mutex_unlock(&writer.mutex);
        bool written = write_all(halves[which], bytes);
        give_back(which, bytes);
        uint64_t dropped = mm_log_writer_dropped();
        if (written && dropped != told)
            mm_log_error("%" PRIu64 " log lines were dropped: stderr does not take them fast enough",
                         dropped - told);
        if (written)
            told = dropped;
        pthread_mutex_lock(&writer.mutex);
        rest();
    }
    pthread_mutex_unlock(&writer.mutex);
    return NULL;
}

void mm_log_writer_start(void) {
    if (pthread_create(&writer.thread, NULL, run, NULL) != 0)
        return;
    pthread_setname_np(writer.thread, "mm-log");
    __atomic_store_n(&writer.running, 1, __ATOMIC_RELEASE);
}

void mm_log_writer_stop(void) {
    struct timespec until;
    if (__atomic_load_n(&writer.running, __ATOMIC_ACQUIRE) == 0)
        return;
    pthread_mutex_lock(&writer.mutex);
    writer.stopping = true;
    pthread_cond_signal(&writer.changed);
    pthread_mutex_unlock(&writer.mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_LINES_S;
    /* One that nobody reads from is left where it is: it holds nothing that the process's end needs. */
    if (pthread_timedjoin_np(writer.thread, NULL, &until) == 0)
        __atomic_store_n(&writer.running, 0, __ATOMIC_RELEASE);
}

void mm_log_writer_put(const char *line, size_t bytes, bool one_of_many) {
    if (__atomic_load_n(&writer.running, __ATOMIC_ACQUIRE) == 0) {
        (void)write_all(line, bytes);
        return;
    }
    size_t limit = one_of_many ? HALF_BYTES - RESERVE_BYTES : HALF_BYTES;
    pthread_mutex_lock(&writer.mutex);
    size_t before = writer.filled_bytes;
    size_t after = before + bytes;
    bool fits = after <= limit;
    if (fits) {
        memcpy(halves[writer.filling] + before, line, bytes);
        writer.filled_bytes = after;
    }
    bool wake = fits && (writer.idle || (before <= HALF_BYTES / 2 && after > HALF_BYTES / 2));
    writer.idle = writer.idle && !wake;
    pthread_mutex_unlock(&writer.mutex);
    if (wake)
        pthread_cond_signal(&writer.changed);
    if (!fits)
        drop(1);
}

uint64_t mm_log_writer_dropped(void) {
    return __atomic_load_n(&writer.dropped, __ATOMIC_RELAXED);
}
