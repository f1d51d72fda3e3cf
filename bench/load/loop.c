/* One epoll a thread. A socket is asked for room to send only while it has none, so a small request costs the
 * client one send, one wait and one recv. Connections that are idle wait in a list, the last used first. */
#include "bench/load/loop.h"

#include "bench/load/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_BYTES_MIN = 16 << 10, EVENTS_MAX = 256 };
enum { WAIT_MAX_MS = 120000, LAST_REPLY_MS = 60000, AFTER_SIGNAL_MS = 200, BURST_MS = 50 };
#define MS_NS UINT64_C(1000000)

/* A connection, and the request on it. `received` keeps its memory from reply to reply, so its pages are
 * warm. */
struct line {
    int socket; /* -1: closed */
    char *received;
    size_t received_bytes;
    size_t capacity; /* of `received` */
    struct line *next_idle;
    bool busy;
    bool awaits_room;
    bool counts;
    bool checked;
    size_t sent;        /* of head and body */
    size_t reply_bytes; /* of head and body; 0 until the head is there */
    size_t head_bytes;
    unsigned status;
    uint64_t begun_ns; /* or due */
    size_t done;       /* requests of this phase */
};

struct thread {
    const struct mm_load_loop *loop;
    pthread_barrier_t *start;
    pthread_t handle;
    struct line *lines;
    size_t line_count;
    struct line *idle;
    size_t busy; /* lines with a request under way */
    int epoll;
    size_t quota; /* of a closed loop's phase: requests of a line; 0: until until_ns */
    uint64_t until_ns;
    bool counts; /* requests that are begun now */
    bool failed;
    struct mm_load_tally tally;
};

/* --- a request ends */

static void rest(struct thread *thread, struct line *line) {
    line->next_idle = thread->idle;
    thread->idle = line;
}

static void hang_up(struct line *line) {
    if (line->socket >= 0)
        close(line->socket);
    line->socket = -1;
}

/* The request on a line is over; `why` says what was wrong with it. */
static void settle(struct thread *thread, struct line *line, enum mm_load_fate fate, const char *why) {
    struct mm_load_tally *tally = &thread->tally;
    const bool has_spans = thread->loop->reads_spans && fate == MM_LOAD_OK;
    if (line->counts)
        mm_load_tally_add(tally, fate, line->begun_ns,
                          has_spans ? mm_load_header_in(line->received, "Server-Timing") : NULL);
    if (fate >= MM_LOAD_LOST)
        hang_up(line);
    if (thread->loop->rate == 0 && fate != MM_LOAD_OK &&
        (fate > MM_LOAD_LOST || !thread->loop->takes_refusals))
        thread->failed = true;
    if (tally->trouble[0] == '\0' && (thread->failed || (line->counts && fate > MM_LOAD_REFUSED)))
        snprintf(tally->trouble, sizeof tally->trouble,
                 "after %zu bytes sent and %zu received, status %u: %.400s", line->sent, line->received_bytes,
                 line->status, why);
    line->busy = false;
    line->done++;
    thread->busy--;
    rest(thread, line);
}

/* --- its way there */

static bool watch(struct thread *thread, struct line *line, int how, bool for_room) {
    struct epoll_event event = {.events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = line};
    line->awaits_room = for_room;
    return epoll_ctl(thread->epoll, how, line->socket, &event) == 0;
}

/* Connects without a delay for small packets; false, with errno, if that fails. */
static bool open_line(struct thread *thread, struct line *line) {
    const struct addrinfo *address = thread->loop->address;
    const int one = 1;
    line->socket = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line->socket < 0 || connect(line->socket, address->ai_addr, address->ai_addrlen) != 0)
        return false;
    (void)setsockopt(line->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)fcntl(line->socket, F_SETFL, O_NONBLOCK);
    return watch(thread, line, EPOLL_CTL_ADD, false);
}

static bool is_sent(const struct thread *thread, const struct line *line) {
    const struct mm_load_message *message = thread->loop->message;
    return line->sent == message->head_bytes + message->body_bytes;
}

/* Sends what the socket takes. False if the server closed the connection. */
static bool send_some(const struct thread *thread, struct line *line) {
    const struct mm_load_message *message = thread->loop->message;
    const size_t head = message->head_bytes;
    while (!is_sent(thread, line)) {
        const size_t of_head = line->sent < head ? line->sent : head;
        struct iovec pieces[] = {
            {message->head + of_head, head - of_head},
            {message->body + (line->sent - of_head), message->body_bytes - (line->sent - of_head)}};
        const struct msghdr all = {.msg_iov = pieces, .msg_iovlen = 2};
        const ssize_t bytes = sendmsg(line->socket, &all, MSG_NOSIGNAL);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0)
            return errno == EAGAIN;
        line->sent += (size_t)bytes;
    }
    return true;
}

/* A request on an idle line, due at that time; 0: now, once there is a connection. */
static void begin(struct thread *thread, struct line *line, uint64_t due_ns) {
    line->sent = line->received_bytes = line->reply_bytes = line->status = 0;
    line->busy = true;
    line->counts = thread->counts;
    line->begun_ns = due_ns;
    thread->busy++;
    if (line->socket < 0 && !open_line(thread, line)) {
        settle(thread, line, MM_LOAD_UNREACHED, strerror(errno));
        return;
    }
    if (due_ns == 0)
        line->begun_ns = mm_load_clock();
    if (!send_some(thread, line))
        settle(thread, line, MM_LOAD_LOST, strerror(errno));
    else if (is_sent(thread, line) == line->awaits_room)
        (void)watch(thread, line, EPOLL_CTL_MOD, !line->awaits_room);
}

/* --- its reply */

static bool is_expected(const struct mm_load_loop *loop, unsigned status) {
    for (size_t index = 0; index < loop->expected_count; index++)
        if (loop->expected[index] == status)
            return true;
    return loop->expected_count == 0 && status == 200;
}

/* A whole reply is there, its head a string. */
static void finish(struct thread *thread, struct line *line) {
    const struct mm_load_loop *loop = thread->loop;
    const char *head = line->received, *body = head + line->head_bytes;
    const char *closes = mm_load_header_in(head, "Connection");
    const char *retry = mm_load_header_in(head, "Retry-After");
    char problem[MM_LOAD_TROUBLE_BYTES];
    enum mm_load_fate fate = MM_LOAD_OTHER;
    if (is_expected(loop, line->status))
        fate = MM_LOAD_OK;
    else if ((line->status == 429 || line->status == 503) && retry != NULL && *retry >= '1' && *retry <= '9')
        fate = MM_LOAD_REFUSED;
    const bool checks = loop->checks && line->status == 200 && (loop->rate > 0 || !line->checked);
    line->checked = line->checked || checks;
    if (checks && !mm_load_message_check(loop->message, body, line->reply_bytes - line->head_bytes, problem,
                                         sizeof problem)) {
        settle(thread, line, MM_LOAD_BROKEN, problem);
        return;
    }
    if (!is_sent(thread, line) || (closes != NULL && strncasecmp(closes, "close", 5) == 0))
        hang_up(line);
    settle(thread, line, fate, body);
}

/* The head, which ends at `end`, becomes a string. */
static bool read_head(struct line *line, char *end) {
    end[2] = '\0';
    const char *length = mm_load_header_in(line->received, "Content-Length");
    if (strncmp(line->received, "HTTP/1.1 ", 9) != 0 || length == NULL)
        return false;
    line->status = (unsigned)strtoul(line->received + 9, NULL, 10);
    line->head_bytes = (size_t)(end - line->received) + 4;
    line->reply_bytes = line->head_bytes + (size_t)strtoull(length, NULL, 10);
    return true;
}

static void receive(struct thread *thread, struct line *line) {
    const size_t want =
        line->reply_bytes > line->received_bytes ? line->reply_bytes - line->received_bytes : REPLY_BYTES_MIN;
    if (line->received_bytes + want >= line->capacity) { /* a NUL follows what was received */
        line->capacity = line->received_bytes + want + 1;
        line->received = mm_load_resize(line->received, line->capacity);
    }
    char *to = line->received + line->received_bytes;
    const ssize_t bytes = recv(line->socket, to, want, 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (!line->busy) { /* nothing is lost with a connection that nobody uses */
        hang_up(line);
        return;
    }
    if (bytes <= 0) {
        settle(thread, line, MM_LOAD_LOST, bytes < 0 ? strerror(errno) : "closed by the server");
        return;
    }
    to[bytes] = '\0';
    line->received_bytes += (size_t)bytes;
    if (line->reply_bytes == 0) {
        char *end = memmem(line->received, line->received_bytes, "\r\n\r\n", 4);
        if (end == NULL && line->received_bytes < REPLY_BYTES_MIN)
            return;
        if (end == NULL || !read_head(line, end)) {
            settle(thread, line, MM_LOAD_BROKEN, line->received);
            return;
        }
    }
    if (line->received_bytes > line->reply_bytes)
        settle(thread, line, MM_LOAD_BROKEN, "more bytes came than the reply had");
    else if (line->received_bytes == line->reply_bytes)
        finish(thread, line);
}

static void serve(struct thread *thread, struct line *line, uint32_t events) {
    if ((events & EPOLLOUT) != 0 && line->busy) {
        if (!send_some(thread, line) && (events & EPOLLIN) == 0) {
            settle(thread, line, MM_LOAD_LOST, strerror(errno));
            return;
        }
        if (is_sent(thread, line))
            (void)watch(thread, line, EPOLL_CTL_MOD, false);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && line->socket >= 0)
        receive(thread, line);
}

static struct line *take_idle(struct thread *thread) {
    struct line *line = thread->idle;
    if (line != NULL)
        thread->idle = line->next_idle;
    return line;
}

/* In a closed loop a line begins again at once, until it has its quota or the time is up. */
static void begin_again(struct thread *thread) {
    for (struct line *line; !thread->failed && (line = take_idle(thread)) != NULL;)
        if (thread->quota > 0 ? line->done < thread->quota : mm_load_clock() < thread->until_ns)
            begin(thread, line, 0);
}

/* False if nothing happened in this time. */
static bool serve_some(struct thread *thread, int wait_ms) {
    struct epoll_event events[EVENTS_MAX];
    const int happened = epoll_wait(thread->epoll, events, EVENTS_MAX, wait_ms);
    for (int index = 0; index < happened; index++) {
        serve(thread, events[index].data.ptr, events[index].events);
        if (thread->loop->rate == 0)
            begin_again(thread);
    }
    return happened != 0;
}

/* --- a closed loop */

static void run_phase(struct thread *thread) {
    thread->idle = NULL;
    for (size_t index = 0; index < thread->line_count; index++) {
        thread->lines[index].done = 0;
        rest(thread, &thread->lines[index]);
    }
    begin_again(thread);
    while (thread->busy > 0 && !thread->failed)
        if (!serve_some(thread, WAIT_MAX_MS)) {
            snprintf(thread->tally.trouble, sizeof thread->tally.trouble, "no byte came within %d s",
                     WAIT_MAX_MS / 1000);
            thread->failed = true;
        }
}

static void *run_closed(void *argument) {
    struct thread *thread = argument;
    thread->quota = thread->loop->warm;
    if (thread->quota > 0)
        run_phase(thread);
    pthread_barrier_wait(thread->start);
    thread->tally.begun_ns = thread->tally.ended_ns = mm_load_clock();
    thread->until_ns = thread->tally.begun_ns + (uint64_t)(thread->loop->seconds * 1e9);
    thread->quota = thread->loop->requests;
    thread->counts = true;
    run_phase(thread);
    return NULL;
}

/* --- an open loop */

/* Serves what happens until then, or, `to_the_end`, until nothing is under way. */
static void serve_until(struct thread *thread, uint64_t until_ns, bool to_the_end) {
    for (uint64_t now_ns; (now_ns = mm_load_clock()) < until_ns && (thread->busy > 0 || !to_the_end);) {
        /* Whole milliseconds are too coarse for a rate of thousands: the last one is spun through. */
        const uint64_t wait_ms = (until_ns - now_ns) / MS_NS;
        (void)serve_some(thread, wait_ms < 1000 ? (int)wait_ms : 1000);
    }
}

static void begin_due(struct thread *thread, uint64_t due_ns) {
    struct line *line = take_idle(thread);
    if (line != NULL)
        begin(thread, line, due_ns);
    else
        thread->tally.unsent += thread->counts;
}

static void send_signal(struct thread *thread) {
    for (size_t index = 0; index < thread->loop->burst; index++) {
        if (index == thread->loop->burst / 2)
            serve_until(thread, mm_load_clock() + BURST_MS * MS_NS, false);
        begin_due(thread, mm_load_clock());
    }
    thread->counts = false;
    if (kill((pid_t)thread->loop->pid, SIGTERM) != 0)
        perror("kill");
}

static void *run_open(void *argument) {
    struct thread *thread = argument;
    const struct mm_load_loop *loop = thread->loop;
    const uint64_t begun_ns = mm_load_clock();
    uint64_t until_ns = begun_ns + (uint64_t)(loop->seconds * 1e9);
    thread->tally.begun_ns = thread->tally.ended_ns = begun_ns;
    thread->counts = true;
    for (size_t index = thread->line_count; index-- > 0;)
        rest(thread, &thread->lines[index]);
    for (uint64_t due_ns = begun_ns; due_ns < until_ns; due_ns += (uint64_t)(1e9 / loop->rate)) {
        serve_until(thread, due_ns, false);
        if (loop->pid != 0 && thread->counts && due_ns >= begun_ns + (uint64_t)(loop->after * 1e9)) {
            send_signal(thread);
            until_ns = mm_load_clock() + AFTER_SIGNAL_MS * MS_NS;
        }
        begin_due(thread, due_ns);
    }
    serve_until(thread, mm_load_clock() + LAST_REPLY_MS * MS_NS, true);
    for (size_t index = 0; index < thread->line_count; index++)
        if (thread->lines[index].busy)
            settle(thread, &thread->lines[index], MM_LOAD_LOST, "no reply within a minute");
    return NULL;
}

/* --- all threads */

static void start_thread(struct thread *thread, const struct mm_load_loop *loop, size_t lines,
                         pthread_barrier_t *start) {
    *thread = (struct thread){
        .loop = loop, .start = start, .line_count = lines, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    thread->lines = mm_load_resize(NULL, lines * sizeof *thread->lines);
    for (size_t index = 0; index < lines; index++)
        thread->lines[index] = (struct line){.socket = -1};
    if (thread->epoll < 0 ||
        pthread_create(&thread->handle, NULL, loop->rate > 0 ? run_open : run_closed, thread) != 0) {
        fputs("the load client cannot start its threads\n", stderr);
        exit(EXIT_FAILURE); /* those that were started wait for the others */
    }
}

bool mm_load_loop_run(const struct mm_load_loop *loop, struct mm_load_tally *tally) {
    static struct thread *threads; /* with lines and times, until the process ends */
    pthread_barrier_t start;
    bool good = true;
    threads = mm_load_resize(NULL, loop->threads * sizeof *threads);
    *tally = (struct mm_load_tally){0};
    pthread_barrier_init(&start, NULL, (unsigned)loop->threads);
    for (size_t index = 0; index < loop->threads; index++)
        start_thread(&threads[index], loop,
                     loop->connections / loop->threads + (index < loop->connections % loop->threads), &start);
    for (size_t index = 0; index < loop->threads; index++) {
        pthread_join(threads[index].handle, NULL);
        good = good && !threads[index].failed;
        mm_load_tally_merge(tally, &threads[index].tally);
    }
    mm_load_tally_sort(tally);
    pthread_barrier_destroy(&start);
    return good;
}
