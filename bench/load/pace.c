/* One epoll a thread. A socket is asked for room to send only while it has none, so that a small request
 * costs the client one send, one wait and one recv. */
#include "bench/load/pace.h"

#include "bench/load/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REPLY_BYTES_MIN = 16 << 10, EVENTS_MAX = 64, WAIT_MAX_MS = 120000 };

const char *const mm_load_span_names[MM_LOAD_SPANS] = {"receive", "decode",   "queue",  "upload",
                                                       "kernel",  "download", "encode", "total"};

/* `received` keeps its memory from reply to reply, so that its pages are warm. */
struct line {
    struct mm_load_connection connection;
    size_t sent;        /* of head and body */
    size_t reply_bytes; /* of head and body; 0 until the head is there */
    size_t head_bytes;
    unsigned status;
    bool awaits_room;
    bool checked;
    uint64_t begun_ns;
    size_t done;
};

struct thread {
    const struct mm_load_pace *pace;
    pthread_barrier_t *start;
    pthread_t handle;
    struct line *lines;
    size_t line_count;
    size_t busy; /* lines with a request under way */
    int epoll;
    size_t quota; /* requests of a line in this phase; 0: until until_ns */
    uint64_t until_ns;
    bool measures;
    struct mm_load_tally tally;
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static bool fail(struct thread *thread, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(thread->tally.trouble, sizeof thread->tally.trouble, format, arguments);
    va_end(arguments);
    return false;
}

static bool watch(struct thread *thread, struct line *line, int how, bool for_room) {
    struct epoll_event event = {.events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = line};
    line->awaits_room = for_room;
    if (epoll_ctl(thread->epoll, how, line->connection.socket, &event) == 0)
        return true;
    return fail(thread, "epoll_ctl: %s", strerror(errno));
}

static bool open_line(struct thread *thread, struct line *line) {
    char problem[MM_LOAD_PROBLEM_BYTES];
    struct mm_load_bytes kept = line->connection.received;
    if (!mm_load_connect(&line->connection, thread->pace->address, problem))
        return fail(thread, "%s", problem);
    line->connection.received = kept;
    (void)fcntl(line->connection.socket, F_SETFL, O_NONBLOCK);
    return watch(thread, line, EPOLL_CTL_ADD, false);
}

/* The memory for replies stays. */
static bool reopen(struct thread *thread, struct line *line) {
    close(line->connection.socket);
    return open_line(thread, line);
}

/* Sends what the socket takes. False where the other end is gone. */
static bool send_some(const struct mm_load_message *message, struct line *line) {
    size_t head = message->head.length;
    while (line->sent < head + message->body.length) {
        size_t of_head = line->sent < head ? line->sent : head;
        struct iovec pieces[] = {
            {message->head.data + of_head, head - of_head},
            {message->body.data + (line->sent - of_head), message->body.length - (line->sent - of_head)}};
        const struct msghdr all = {.msg_iov = pieces, .msg_iovlen = 2};
        ssize_t count = sendmsg(line->connection.socket, &all, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN;
        line->sent += (size_t)count;
    }
    return true;
}

static bool is_sent(const struct thread *thread, const struct line *line) {
    const struct mm_load_message *message = thread->pace->message;
    return line->sent == message->head.length + message->body.length;
}

/* A refused request counts; its connection is made anew. */
static bool give_up(struct thread *thread, struct line *line, const char *why);

static bool begin(struct thread *thread, struct line *line) {
    line->sent = line->reply_bytes = 0;
    mm_load_bytes_clear(&line->connection.received);
    line->begun_ns = clock_ns();
    thread->busy++;
    if (!send_some(thread->pace->message, line))
        return give_up(thread, line, strerror(errno));
    return is_sent(thread, line) == !line->awaits_room ||
           watch(thread, line, EPOLL_CTL_MOD, !is_sent(thread, line));
}

static bool goes_on(const struct thread *thread, const struct line *line) {
    return thread->quota > 0 ? line->done < thread->quota : clock_ns() < thread->until_ns;
}

static bool next(struct thread *thread, struct line *line) {
    line->done++;
    thread->busy--;
    return !goes_on(thread, line) || begin(thread, line);
}

static bool give_up(struct thread *thread, struct line *line, const char *why) {
    if (!thread->pace->takes_refusals)
        return fail(thread, "the connection broke after %zu bytes sent: %s", line->sent, why);
    thread->tally.refused++;
    return reopen(thread, line) && next(thread, line);
}

static double read_spans(struct thread *thread, const char *head) {
    const char *timing = mm_load_header_in(head, "Server-Timing");
    double kernel_ms = 0;
    for (size_t span = 0; timing != NULL && span < MM_LOAD_SPANS; span++) {
        char name[32];
        snprintf(name, sizeof name, "%s;dur=", mm_load_span_names[span]);
        const char *at = strstr(timing, name);
        double ms = at == NULL ? 0 : strtod(at + strlen(name), NULL);
        thread->tally.span_ms[span] += ms;
        if (span == MM_LOAD_SPAN_KERNEL)
            kernel_ms = ms;
    }
    return kernel_ms / 1e3;
}

static void add_sample(struct thread *thread, struct line *line, uint64_t now_ns) {
    struct mm_load_tally *tally = &thread->tally;
    if (tally->count == tally->capacity) {
        tally->capacity = tally->capacity > 0 ? 2 * tally->capacity : 1024;
        struct mm_load_sample *grown = mm_load_allocate(tally->capacity * sizeof *grown);
        if (tally->count > 0)
            memcpy(grown, tally->samples, tally->count * sizeof *grown);
        free(tally->samples);
        tally->samples = grown;
    }
    double kernel_seconds =
        thread->pace->reads_spans ? read_spans(thread, line->connection.received.data) : 0;
    tally->samples[tally->count++] = (struct mm_load_sample){
        .seconds = (double)(now_ns - line->begun_ns) / 1e9, .kernel_seconds = kernel_seconds};
    tally->ended_ns = now_ns;
}

/* Reads what the head says, once it is whole: true where it is, or may still become so. The empty line
 * before the body becomes a NUL, and with it the head a string. */
static bool read_head(struct thread *thread, struct line *line) {
    struct mm_load_bytes *received = &line->connection.received;
    char *end = memmem(received->data, received->length, "\r\n\r\n", 4);
    if (end == NULL)
        return received->length < REPLY_BYTES_MIN || fail(thread, "the head of a reply is too long");
    end[2] = '\0';
    const char *length = mm_load_header_in(received->data, "Content-Length");
    if (strncmp(received->data, "HTTP/1.1 ", 9) != 0 || length == NULL)
        return fail(thread, "malformed reply: %.200s", received->data);
    line->status = (unsigned)strtoul(received->data + 9, NULL, 10);
    line->head_bytes = (size_t)(end - received->data) + 4;
    line->reply_bytes = line->head_bytes + (size_t)strtoull(length, NULL, 10);
    if (line->reply_bytes > received->length)
        (void)mm_load_bytes_reserve(received, line->reply_bytes - received->length);
    return true;
}

static bool check(struct thread *thread, struct line *line) {
    const struct mm_load_bytes *received = &line->connection.received;
    char problem[MM_LOAD_PROBLEM_BYTES];
    line->checked = true;
    received->data[line->reply_bytes] = '\0';
    return mm_load_message_check(thread->pace->message, received->data + line->head_bytes,
                                 line->reply_bytes - line->head_bytes, problem, sizeof problem) ||
           fail(thread, "%s", problem);
}

/* A whole reply is there. */
static bool finish(struct thread *thread, struct line *line) {
    uint64_t now_ns = clock_ns();
    struct mm_load_bytes *received = &line->connection.received;
    const char *closes = mm_load_header_in(received->data, "Connection");
    if (received->length > line->reply_bytes)
        return fail(thread, "more bytes came than the reply had");
    if (line->status != 200 && !thread->pace->takes_refusals)
        return fail(thread, "answered with %u: %.300s", line->status, received->data + line->head_bytes);
    if (line->status == 200 && thread->pace->checks_products && !line->checked && !check(thread, line))
        return false;
    if (line->status != 200)
        thread->tally.refused++;
    else if (thread->measures)
        add_sample(thread, line, now_ns);
    if ((closes != NULL && strncasecmp(closes, "close", 5) == 0) || !is_sent(thread, line))
        return reopen(thread, line) && next(thread, line);
    return next(thread, line);
}

static bool receive(struct thread *thread, struct line *line) {
    struct mm_load_bytes *received = &line->connection.received;
    size_t want =
        line->reply_bytes > received->length ? line->reply_bytes - received->length : REPLY_BYTES_MIN;
    char *end = mm_load_bytes_reserve(received, want);
    ssize_t count = recv(line->connection.socket, end, want, 0);
    if (count == 0)
        return give_up(thread, line, "closed by the server");
    if (count < 0)
        return errno == EAGAIN || errno == EINTR || give_up(thread, line, strerror(errno));
    received->length += (size_t)count;
    if (line->reply_bytes == 0 && !read_head(thread, line))
        return false;
    return line->reply_bytes == 0 || received->length < line->reply_bytes || finish(thread, line);
}

static bool serve(struct thread *thread, struct line *line, uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        if (!send_some(thread->pace->message, line) && (events & EPOLLIN) == 0)
            return give_up(thread, line, strerror(errno));
        if (is_sent(thread, line) && !watch(thread, line, EPOLL_CTL_MOD, false))
            return false;
    }
    return (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0 || receive(thread, line);
}

/* One phase: all lines begin, and go on until each has its quota, or the time is up. */
static bool run_phase(struct thread *thread) {
    struct epoll_event events[EVENTS_MAX];
    for (size_t index = 0; index < thread->line_count; index++) {
        thread->lines[index].done = 0;
        if (!begin(thread, &thread->lines[index]))
            return false;
    }
    while (thread->busy > 0) {
        int count = epoll_wait(thread->epoll, events, EVENTS_MAX, WAIT_MAX_MS);
        if (count == 0)
            return fail(thread, "no byte came within %d s", WAIT_MAX_MS / 1000);
        for (int index = 0; index < count; index++)
            if (!serve(thread, events[index].data.ptr, events[index].events))
                return false;
    }
    return true;
}

static bool open_lines(struct thread *thread) {
    thread->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (thread->epoll < 0)
        return fail(thread, "epoll_create1: %s", strerror(errno));
    for (size_t index = 0; index < thread->line_count; index++)
        if (!open_line(thread, &thread->lines[index]))
            return false;
    return true;
}

static void *run_thread(void *argument) {
    struct thread *thread = argument;
    thread->quota = thread->pace->warm;
    bool good = open_lines(thread) && (thread->quota == 0 || run_phase(thread));
    pthread_barrier_wait(thread->start);
    thread->tally.refused = 0;
    thread->measures = true;
    thread->quota = thread->pace->requests;
    thread->tally.begun_ns = clock_ns();
    thread->until_ns = thread->tally.begun_ns + (uint64_t)(thread->pace->seconds * 1e9);
    if (good)
        (void)run_phase(thread);
    return NULL;
}

static void close_thread(struct thread *thread) {
    for (size_t index = 0; index < thread->line_count; index++)
        mm_load_disconnect(&thread->lines[index].connection);
    if (thread->epoll >= 0)
        close(thread->epoll);
    free(thread->lines);
    free(thread->tally.samples);
}

static void merge(struct mm_load_tally *all, const struct mm_load_tally *one) {
    if (one->count > 0)
        memcpy(all->samples + all->count, one->samples, one->count * sizeof *one->samples);
    all->count += one->count;
    all->refused += one->refused;
    all->begun_ns = all->begun_ns == 0 || one->begun_ns < all->begun_ns ? one->begun_ns : all->begun_ns;
    all->ended_ns = one->ended_ns > all->ended_ns ? one->ended_ns : all->ended_ns;
    for (size_t span = 0; span < MM_LOAD_SPANS; span++)
        all->span_ms[span] += one->span_ms[span];
    if (all->trouble[0] == '\0')
        memcpy(all->trouble, one->trouble, sizeof all->trouble);
}

static void prepare(struct thread *thread, const struct mm_load_pace *pace, size_t lines,
                    pthread_barrier_t *start) {
    *thread = (struct thread){.pace = pace, .start = start, .line_count = lines, .epoll = -1};
    thread->lines = mm_load_allocate(lines * sizeof *thread->lines);
    memset(thread->lines, 0, lines * sizeof *thread->lines);
    for (size_t index = 0; index < lines; index++)
        thread->lines[index].connection.socket = -1;
}

bool mm_load_pace_run(const struct mm_load_pace *pace, struct mm_load_tally *tally) {
    struct thread *threads = mm_load_allocate(pace->threads * sizeof *threads);
    pthread_barrier_t start;
    size_t count = 0;
    *tally = (struct mm_load_tally){0};
    pthread_barrier_init(&start, NULL, (unsigned)pace->threads);
    for (size_t index = 0; index < pace->threads; index++) {
        struct thread *thread = &threads[index];
        size_t lines = pace->connections / pace->threads + (index < pace->connections % pace->threads);
        prepare(thread, pace, lines, &start);
        if (pthread_create(&thread->handle, NULL, run_thread, thread) != 0) {
            fputs("the load client cannot start its threads\n", stderr);
            exit(EXIT_FAILURE); /* those that were started wait for the others */
        }
    }
    for (size_t index = 0; index < pace->threads; index++) {
        pthread_join(threads[index].handle, NULL);
        count += threads[index].tally.count;
    }
    tally->samples = mm_load_allocate(count * sizeof *tally->samples);
    for (size_t index = 0; index < pace->threads; index++) {
        merge(tally, &threads[index].tally);
        close_thread(&threads[index]);
    }
    pthread_barrier_destroy(&start);
    free(threads);
    return tally->trouble[0] == '\0';
}
