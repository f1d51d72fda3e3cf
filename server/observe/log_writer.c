/* The writer of log lines. The buffer has two halves. Threads copy their lines into one half, with the mutex
 * held, while the writer's thread writes the other half. Then the halves swap. The writer pauses after each
 * write. So under load a write has hundreds of lines, and not every line wakes the thread. A line after a
 * longer silence is written at once. */
#include "server/observe/log.h"

#include "gpu/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* KEPT_BYTES is enough for REST_MS at 25 MB of lines per second. It is a multiple of every page size. */
enum {
    HALF_BYTES = 4 << 20,
    KEPT_BYTES = 256 << 10,
    RESERVE_BYTES = 64 << 10,
    REST_MS = 10,
    LAST_LINES_MS = 1000
};

#define NS_PER_MS UINT64_C(1000000)

static struct {
    pthread_mutex_t mutex; /* guards all members below except `running` and `dropped` */
    pthread_cond_t changed;
    bool idle; /* the writer's thread waits for lines */
    bool stopping;
    bool ended;
    unsigned filling; /* index of the half that threads fill now */
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

/* Writes to stderr. If that fails, drops the remaining lines and returns false, so the service continues. */
static bool write_all(const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written >= 0) {
            text += written;
            bytes -= (size_t)written;
        } else if (errno == EAGAIN) { /* another process made stderr non-blocking */
            struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            drop(count_lines(text, bytes));
            return false;
        }
    }
    return true;
}

/* After a burst of lines, returns the memory above KEPT_BYTES of a half to the system. */
static void release_pages(unsigned which, size_t bytes) {
    static bool is_grown[2];
    if (is_grown[which] && bytes <= KEPT_BYTES)
        (void)madvise(halves[which] + KEPT_BYTES, HALF_BYTES - KEPT_BYTES, MADV_DONTNEED);
    is_grown[which] = bytes > KEPT_BYTES;
}

/* Waits for a change by the monotonic clock. Returns false after until_ns. Call it with the mutex held. */
static bool wait_until(uint64_t until_ns) {
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    return pthread_cond_clockwait(&writer.changed, &writer.mutex, CLOCK_MONOTONIC, &until) == 0;
}

static void *run(void *argument) {
    uint64_t told = 0;
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
        release_pages(which, bytes);
        uint64_t dropped = mm_log_dropped();
        if (written && dropped != told)
            mm_log_error("%" PRIu64 " log lines were dropped: stderr does not take them fast enough",
                         dropped - told);
        if (written)
            told = dropped;
        pthread_mutex_lock(&writer.mutex);
        /* Pauses for REST_MS. The pause ends early if the writer stops, or if the buffer that threads fill
         * becomes more than half full. */
        if (!writer.stopping)
            (void)wait_until(mm_clock_ns() + REST_MS * NS_PER_MS);
    }
    writer.ended = true;
    pthread_cond_signal(&writer.changed);
    pthread_mutex_unlock(&writer.mutex);
    return NULL;
}

void mm_log_start(void) {
    if (pthread_create(&writer.thread, NULL, run, NULL) != 0)
        return;
    pthread_setname_np(writer.thread, "mm-log");
    __atomic_store_n(&writer.running, 1, __ATOMIC_RELEASE);
}

void mm_log_stop(void) {
    const uint64_t until_ns = mm_clock_ns() + LAST_LINES_MS * NS_PER_MS;
    if (__atomic_load_n(&writer.running, __ATOMIC_ACQUIRE) == 0)
        return;
    pthread_mutex_lock(&writer.mutex);
    writer.stopping = true;
    pthread_cond_signal(&writer.changed);
    while (!writer.ended && wait_until(until_ns)) {
    }
    const bool ended = writer.ended;
    pthread_mutex_unlock(&writer.mutex);
    if (!ended)
        return; /* stderr blocks, so the thread cannot end; the process exits without it */
    pthread_join(writer.thread, NULL);
    __atomic_store_n(&writer.running, 0, __ATOMIC_RELEASE);
}

void mm_log_put(const char *line, size_t bytes, bool one_of_many) {
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

uint64_t mm_log_dropped(void) {
    return __atomic_load_n(&writer.dropped, __ATOMIC_RELAXED);
}
