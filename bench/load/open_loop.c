/* One thread, one epoll. Connections that are idle wait in a list, the last used first. */
#include "bench/load/open_loop.h"

#include "bench/load/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, PIECE_BYTES = 64 << 10, LAST_REPLY_MS = 60000, AFTER_KILL_MS = 200, BURST_MS = 50 };

/* A connection, and the request on it. */
struct line {
    struct mm_load_connection connection;
    struct line *next_idle;
    size_t sent;
    size_t reply_bytes; /* of head and body; 0 until the head is there */
    size_t head_bytes;
    uint64_t due_ns; /* 0: idle */
    bool counts;     /* begun before the signal */
};

struct state {
    const struct mm_load_open_loop *loop;
    struct mm_load_fates *fates;
    int epoll;
    struct line *lines;
    size_t line_count;
    struct line *idle;
    size_t busy;
    bool killed;
    uint64_t begun_ns, ended_ns;
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void add_time(struct mm_load_times *times, uint64_t ns) {
    if (times->count == times->capacity) {
        times->capacity = times->capacity > 0 ? 2 * times->capacity : 1024;
        double *grown = mm_load_allocate(times->capacity * sizeof *grown);
        if (times->count > 0)
            memcpy(grown, times->ms, times->count * sizeof *grown);
        free(times->ms);
        times->ms = grown;
    }
    times->ms[times->count++] = (double)ns / 1e6;
}

/* --- one request */

static bool watch(struct state *state, struct line *line, int how, bool for_room) {
    struct epoll_event event = {.events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = line};
    return epoll_ctl(state->epoll, how, line->connection.socket, &event) == 0;
}

/* The line is free for the next; its memory stays. */
static void rest(struct state *state, struct line *line) {
    state->busy -= line->due_ns != 0;
    line->due_ns = 0;
    line->next_idle = state->idle;
    state->idle = line;
}

static void hang_up(struct line *line) {
    if (line->connection.socket >= 0)
        close(line->connection.socket);
    line->connection.socket = -1;
}

/* The connection ended: of an idle one nothing was lost, and it stays where it is. */
static void lose(struct state *state, struct line *line, const char *why) {
    hang_up(line);
    if (line->due_ns == 0)
        return;
    state->fates->lost += line->counts;
    if (line->counts && state->fates->lost == 1)
        fprintf(stderr, "flood: lost after %zu bytes sent and %zu received: %s\n", line->sent,
                line->connection.received.length, why);
    rest(state, line);
}

static bool open_line(struct state *state, struct line *line) {
    char problem[MM_LOAD_PROBLEM_BYTES];
    struct mm_load_bytes kept = line->connection.received;
    bool good = mm_load_connect(&line->connection, state->loop->address, problem);
    line->connection.received = kept;
    if (!good)
        return false;
    (void)fcntl(line->connection.socket, F_SETFL, O_NONBLOCK);
    return watch(state, line, EPOLL_CTL_ADD, false);
}

static size_t request_bytes(const struct state *state) {
    return state->loop->message->head.length + state->loop->message->body.length;
}

/* Sends what the socket takes; false where the other end is gone. */
static bool send_some(const struct state *state, struct line *line) {
    const struct mm_load_message *message = state->loop->message;
    while (line->sent < request_bytes(state)) {
        const bool in_head = line->sent < message->head.length;
        const char *from = in_head ? message->head.data + line->sent
                                   : message->body.data + line->sent - message->head.length;
        const size_t bytes = (in_head ? message->head.length : request_bytes(state)) - line->sent;
        const bool more = in_head && message->body.length > 0;
        ssize_t count = send(line->connection.socket, from, bytes, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (count < 0)
            return errno == EAGAIN;
        line->sent += (size_t)count;
    }
    return true;
}

static struct line *take_line(struct state *state) {
    struct line *line = state->idle;
    if (line != NULL)
        state->idle = line->next_idle;
    else if (state->line_count < state->loop->connections)
        line = &state->lines[state->line_count++];
    return line;
}

static void begin(struct state *state, uint64_t due_ns) {
    struct line *line = take_line(state);
    state->fates->requests += !state->killed;
    if (line == NULL) {
        state->fates->unsent += !state->killed;
        return;
    }
    line->sent = line->reply_bytes = 0;
    mm_load_bytes_clear(&line->connection.received);
    line->due_ns = due_ns;
    line->counts = !state->killed;
    state->busy++;
    if (line->connection.socket < 0 && !open_line(state, line)) {
        lose(state, line, "cannot connect");
        return;
    }
    if (!send_some(state, line))
        lose(state, line, strerror(errno));
    else if (line->sent < request_bytes(state))
        (void)watch(state, line, EPOLL_CTL_MOD, true);
}

/* --- its reply */

static bool is_expected(const struct state *state, unsigned status) {
    for (size_t index = 0; index < state->loop->expected_count; index++)
        if (state->loop->expected[index] == status)
            return true;
    return state->loop->expected_count == 0 && status == 200;
}

static void fail(struct state *state, const char *what, const char *reply) {
    if (state->fates->bad++ == 0)
        fprintf(stderr, "flood: %s: %.500s\n", what, reply);
}

static void judge(struct state *state, const struct line *line, uint64_t now_ns) {
    char *head = line->connection.received.data;
    char problem[MM_LOAD_PROBLEM_BYTES];
    const unsigned status = (unsigned)strtoul(head + 9, NULL, 10);
    const char *retry = mm_load_header_in(head, "Retry-After");
    if (!line->counts)
        return;
    if (is_expected(state, status)) {
        if (status == 200 && state->loop->checks_products &&
            !mm_load_message_check(state->loop->message, head + line->head_bytes,
                                   line->reply_bytes - line->head_bytes, problem, sizeof problem)) {
            fail(state, "a wrong product", problem);
            return;
        }
        add_time(&state->fates->ok, now_ns - line->due_ns);
        state->ended_ns = now_ns;
    } else if ((status == 429 || status == 503) && retry != NULL && *retry >= '1' && *retry <= '9') {
        add_time(&state->fates->refused, now_ns - line->due_ns);
    } else {
        fail(state, "not expected", head);
    }
}

/* Whether the head is whole; the empty line after it becomes a NUL. False as well where it is none. */
static bool read_head(struct state *state, struct line *line) {
    struct mm_load_bytes *received = &line->connection.received;
    char *end = memmem(received->data, received->length, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    end[2] = '\0';
    const char *length = mm_load_header_in(received->data, "Content-Length");
    if (strncmp(received->data, "HTTP/1.1 ", 9) != 0 || length == NULL) {
        fail(state, "malformed reply", received->data);
        return false;
    }
    line->head_bytes = (size_t)(end - received->data) + 4;
    line->reply_bytes = line->head_bytes + (size_t)strtoull(length, NULL, 10);
    return true;
}

static void receive(struct state *state, struct line *line) {
    struct mm_load_bytes *received = &line->connection.received;
    char *end = mm_load_bytes_reserve(received, PIECE_BYTES);
    ssize_t count = recv(line->connection.socket, end, PIECE_BYTES, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 || line->due_ns == 0) {
        lose(state, line, count < 0 ? strerror(errno) : "closed by the server");
        return;
    }
    end[count] = '\0';
    received->length += (size_t)count;
    if ((line->reply_bytes == 0 && !read_head(state, line)) || received->length < line->reply_bytes)
        return;
    judge(state, line, clock_ns());
    const char *closes = mm_load_header_in(received->data, "Connection");
    if (line->sent < request_bytes(state) || (closes != NULL && strncasecmp(closes, "close", 5) == 0))
        hang_up(line);
    rest(state, line);
}

static void serve(struct state *state, struct line *line, uint32_t events) {
    if ((events & EPOLLOUT) != 0 && line->due_ns != 0) {
        if (!send_some(state, line) && (events & EPOLLIN) == 0) {
            lose(state, line, strerror(errno));
            return;
        }
        if (line->sent == request_bytes(state))
            (void)watch(state, line, EPOLL_CTL_MOD, false);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && line->connection.socket >= 0)
        receive(state, line);
}

/* --- all of them */

/* Serves what happens until then, or until nothing is under way where that is what is waited for. */
static void serve_until(struct state *state, uint64_t until_ns, bool to_the_end) {
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        const uint64_t now_ns = clock_ns();
        if (now_ns >= until_ns || (to_the_end && state->busy == 0))
            return;
        /* Whole milliseconds are too coarse for a rate of thousands: the last one is spun through. */
        const int wait_ms = (int)((until_ns - now_ns) / 1000000);
        int count = epoll_wait(state->epoll, events, EVENTS_MAX, wait_ms < 1000 ? wait_ms : 1000);
        for (int index = 0; index < count; index++)
            serve(state, events[index].data.ptr, events[index].events);
    }
}

/* Half of those at once have a moment to arrive, and half have not. */
static void send_signal(struct state *state) {
    for (size_t index = 0; index < state->loop->burst; index++) {
        if (index == state->loop->burst / 2)
            serve_until(state, clock_ns() + BURST_MS * UINT64_C(1000000), false);
        begin(state, clock_ns());
    }
    state->killed = true;
    if (kill((pid_t)state->loop->pid, (int)state->loop->signal) != 0)
        fprintf(stderr, "flood: kill: %s\n", strerror(errno));
}

static void run(struct state *state) {
    const uint64_t pace_ns = (uint64_t)(1e9 / state->loop->rate);
    state->begun_ns = state->ended_ns = clock_ns();
    const uint64_t kill_ns = state->begun_ns + (uint64_t)(state->loop->after * 1e9);
    uint64_t until_ns = state->begun_ns + (uint64_t)(state->loop->seconds * 1e9);
    for (uint64_t due_ns = state->begun_ns; due_ns < until_ns; due_ns += pace_ns) {
        serve_until(state, due_ns, false);
        if (state->loop->pid != 0 && !state->killed && due_ns >= kill_ns) {
            send_signal(state);
            until_ns = clock_ns() + AFTER_KILL_MS * UINT64_C(1000000);
        }
        begin(state, due_ns);
    }
    serve_until(state, clock_ns() + LAST_REPLY_MS * UINT64_C(1000000), true);
    for (size_t index = 0; index < state->line_count; index++)
        if (state->lines[index].due_ns != 0)
            lose(state, &state->lines[index], "no reply within a minute");
}

bool mm_load_open_loop_run(const struct mm_load_open_loop *loop, struct mm_load_fates *fates) {
    struct state state = {.loop = loop, .fates = fates, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    *fates = (struct mm_load_fates){0};
    if (state.epoll < 0)
        return false;
    state.lines = mm_load_allocate(loop->connections * sizeof *state.lines);
    memset(state.lines, 0, loop->connections * sizeof *state.lines);
    for (size_t index = 0; index < loop->connections; index++)
        state.lines[index].connection.socket = -1;
    run(&state);
    fates->seconds = (double)(state.ended_ns - state.begun_ns) / 1e9;
    for (size_t index = 0; index < state.line_count; index++)
        mm_load_disconnect(&state.lines[index].connection);
    free(state.lines);
    close(state.epoll);
    return true;
}
