/* One request again and again at a constant rate, whatever becomes of those before (an open loop): each takes
 * a connection that is idle, or a new one, and its time is counted from when it was due. A reply is `ok`
 * where its status is one that is expected (and a product is right), `refused` where it is 429 or 503 with
 * Retry-After, and `bad` otherwise; a request is `lost` where its connection ended before the reply did. One
 * line of figures:
 *
 *   requests=N ok=N refused=N bad=N lost=N unsent=N seconds=S goodput=PER_SECOND ok_p50_ms= ok_p99_ms=
 *   refused_p50_ms= refused_p99_ms=
 *
 * (`unsent`: all connections were busy.) With --kill it sends some more at once in the midst of it, and then
 * the process named the signal: only what was begun before that is judged. */
#include "tests/load/connection.h"
#include "tests/load/message.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, LINES_MAX = 20000, EVENTS_MAX = 256, PIECE_BYTES = 64 << 10, LAST_REPLY_MS = 60000 };
enum { EXPECTED_MAX = 8, AFTER_KILL_MS = 200, BURST_MS = 50 };

static const char usage[] =
    "usage: flood --port P [--host 127.0.0.1] [--rate 100] [--seconds 1] [--connections 1024]\n"
    "             [--shape 4x4x4] [--query TEXT] [--file REQUEST] [--expect 200,400,...]\n"
    "             [--kill PID --signal N --after SECONDS --burst N]\n\n"
    "--file is a whole request as it goes over the wire, in place of a raw product.\n";

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

struct times {
    double *ms;
    size_t count;
    size_t capacity;
};

struct flood {
    const char *host;
    const char *port;
    const char *file;
    double rate;
    double seconds;
    double after;
    size_t line_max;
    size_t burst;
    size_t pid;
    size_t signal;
    size_t expected[EXPECTED_MAX];
    size_t expected_count;
    struct mm_load_message message;
    const struct addrinfo *address;
    int epoll;
    struct line *lines;
    size_t line_count;
    struct line *idle;
    size_t busy;
    bool killed;
    struct times ok;
    struct times refused;
    size_t requests, bad, lost, unsent;
    uint64_t begun_ns, ended_ns;
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void add_time(struct times *times, uint64_t ns) {
    if (times->count == times->capacity) {
        times->capacity = times->capacity > 0 ? 2 * times->capacity : 1024;
        times->ms = realloc(times->ms, times->capacity * sizeof *times->ms);
        if (times->ms == NULL)
            exit(EXIT_FAILURE);
    }
    times->ms[times->count++] = (double)ns / 1e6;
}

/* --- one request */

static bool watch(struct flood *flood, struct line *line, int how, bool for_room) {
    struct epoll_event event = {.events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = line};
    return epoll_ctl(flood->epoll, how, line->connection.socket, &event) == 0;
}

/* The line is free for the next; its memory stays. */
static void rest(struct flood *flood, struct line *line) {
    flood->busy -= line->due_ns != 0;
    line->due_ns = 0;
    line->next_idle = flood->idle;
    flood->idle = line;
}

static void hang_up(struct line *line) {
    if (line->connection.socket >= 0)
        close(line->connection.socket);
    line->connection.socket = -1;
}

/* The connection ended: of an idle one nothing was lost, and it stays where it is. */
static void lose(struct flood *flood, struct line *line, const char *why) {
    hang_up(line);
    if (line->due_ns == 0)
        return;
    flood->lost += line->counts;
    if (line->counts && flood->lost == 1)
        fprintf(stderr, "flood: lost after %zu bytes sent and %zu received: %s\n", line->sent,
                line->connection.received.length, why);
    rest(flood, line);
}

static bool open_line(struct flood *flood, struct line *line) {
    char problem[MM_LOAD_PROBLEM_BYTES];
    struct mm_load_bytes kept = line->connection.received;
    bool good = mm_load_connect(&line->connection, flood->address, problem);
    line->connection.received = kept;
    if (!good)
        return false;
    (void)fcntl(line->connection.socket, F_SETFL, O_NONBLOCK);
    return watch(flood, line, EPOLL_CTL_ADD, false);
}

static size_t request_bytes(const struct flood *flood) {
    return flood->message.head.length + flood->message.body.length;
}

/* Sends what the socket takes; false where the other end is gone. */
static bool send_some(const struct flood *flood, struct line *line) {
    const struct mm_load_message *message = &flood->message;
    while (line->sent < request_bytes(flood)) {
        const bool in_head = line->sent < message->head.length;
        const char *from = in_head ? message->head.data + line->sent
                                   : message->body.data + line->sent - message->head.length;
        const size_t bytes = (in_head ? message->head.length : request_bytes(flood)) - line->sent;
        const bool more = in_head && message->body.length > 0;
        ssize_t count = send(line->connection.socket, from, bytes, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (count < 0)
            return errno == EAGAIN;
        line->sent += (size_t)count;
    }
    return true;
}

static struct line *take_line(struct flood *flood) {
    struct line *line = flood->idle;
    if (line != NULL)
        flood->idle = line->next_idle;
    else if (flood->line_count < flood->line_max)
        line = &flood->lines[flood->line_count++];
    return line;
}

static void begin(struct flood *flood, uint64_t due_ns) {
    struct line *line = take_line(flood);
    flood->requests += !flood->killed;
    if (line == NULL) {
        flood->unsent += !flood->killed;
        return;
    }
    line->sent = line->reply_bytes = 0;
    mm_load_bytes_clear(&line->connection.received);
    line->due_ns = due_ns;
    line->counts = !flood->killed;
    flood->busy++;
    if (line->connection.socket < 0 && !open_line(flood, line)) {
        lose(flood, line, "cannot connect");
        return;
    }
    if (!send_some(flood, line))
        lose(flood, line, strerror(errno));
    else if (line->sent < request_bytes(flood))
        (void)watch(flood, line, EPOLL_CTL_MOD, true);
}

/* --- its reply */

static const char *header(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, length) == 0 && at[2 + length] == ':')
            return at + 2 + length + 1 + strspn(at + 2 + length + 1, " ");
    return NULL;
}

static bool is_expected(const struct flood *flood, unsigned status) {
    for (size_t index = 0; index < flood->expected_count; index++)
        if (flood->expected[index] == status)
            return true;
    return flood->expected_count == 0 && status == 200;
}

static void fail(struct flood *flood, const char *what, const char *reply) {
    if (flood->bad++ == 0)
        fprintf(stderr, "flood: %s: %.500s\n", what, reply);
}

static void judge(struct flood *flood, const struct line *line, uint64_t now_ns) {
    char *head = line->connection.received.data;
    char problem[MM_LOAD_PROBLEM_BYTES];
    const unsigned status = (unsigned)strtoul(head + 9, NULL, 10);
    const char *retry = header(head, "Retry-After");
    if (!line->counts)
        return;
    if (is_expected(flood, status)) {
        if (status == 200 && flood->file == NULL &&
            !mm_load_message_check(&flood->message, head + line->head_bytes,
                                   line->reply_bytes - line->head_bytes, problem, sizeof problem)) {
            fail(flood, "a wrong product", problem);
            return;
        }
        add_time(&flood->ok, now_ns - line->due_ns);
        flood->ended_ns = now_ns;
    } else if ((status == 429 || status == 503) && retry != NULL && *retry >= '1' && *retry <= '9') {
        add_time(&flood->refused, now_ns - line->due_ns);
    } else {
        fail(flood, "not expected", head);
    }
}

/* Whether the head is whole; the empty line after it becomes a NUL. False as well where it is none. */
static bool read_head(struct flood *flood, struct line *line) {
    struct mm_load_bytes *received = &line->connection.received;
    char *end = memmem(received->data, received->length, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    end[2] = '\0';
    const char *length = header(received->data, "Content-Length");
    if (strncmp(received->data, "HTTP/1.1 ", 9) != 0 || length == NULL) {
        fail(flood, "malformed reply", received->data);
        return false;
    }
    line->head_bytes = (size_t)(end - received->data) + 4;
    line->reply_bytes = line->head_bytes + (size_t)strtoull(length, NULL, 10);
    return true;
}

static void receive(struct flood *flood, struct line *line) {
    struct mm_load_bytes *received = &line->connection.received;
    char *end = mm_load_bytes_reserve(received, PIECE_BYTES);
    ssize_t count = recv(line->connection.socket, end, PIECE_BYTES, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 || line->due_ns == 0) {
        lose(flood, line, count < 0 ? strerror(errno) : "closed by the server");
        return;
    }
    end[count] = '\0';
    received->length += (size_t)count;
    if ((line->reply_bytes == 0 && !read_head(flood, line)) || received->length < line->reply_bytes)
        return;
    judge(flood, line, clock_ns());
    const char *closes = header(received->data, "Connection");
    if (line->sent < request_bytes(flood) || (closes != NULL && strncasecmp(closes, "close", 5) == 0))
        hang_up(line);
    rest(flood, line);
}

static void serve(struct flood *flood, struct line *line, uint32_t events) {
    if ((events & EPOLLOUT) != 0 && line->due_ns != 0) {
        if (!send_some(flood, line) && (events & EPOLLIN) == 0) {
            lose(flood, line, strerror(errno));
            return;
        }
        if (line->sent == request_bytes(flood))
            (void)watch(flood, line, EPOLL_CTL_MOD, false);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && line->connection.socket >= 0)
        receive(flood, line);
}

/* --- all of them */

/* Serves what happens until then, or until nothing is under way where that is what is waited for. */
static void serve_until(struct flood *flood, uint64_t until_ns, bool to_the_end) {
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        const uint64_t now_ns = clock_ns();
        if (now_ns >= until_ns || (to_the_end && flood->busy == 0))
            return;
        /* Whole milliseconds are too coarse for a rate of thousands: the last one is spun through. */
        const int wait_ms = (int)((until_ns - now_ns) / 1000000);
        int count = epoll_wait(flood->epoll, events, EVENTS_MAX, wait_ms < 1000 ? wait_ms : 1000);
        for (int index = 0; index < count; index++)
            serve(flood, events[index].data.ptr, events[index].events);
    }
}

/* Half of those at once have a moment to arrive, and half have not. */
static void send_signal(struct flood *flood) {
    for (size_t index = 0; index < flood->burst; index++) {
        if (index == flood->burst / 2)
            serve_until(flood, clock_ns() + BURST_MS * UINT64_C(1000000), false);
        begin(flood, clock_ns());
    }
    flood->killed = true;
    if (kill((pid_t)flood->pid, (int)flood->signal) != 0)
        fprintf(stderr, "flood: kill: %s\n", strerror(errno));
}

static void run(struct flood *flood) {
    const uint64_t pace_ns = (uint64_t)(1e9 / flood->rate);
    flood->begun_ns = flood->ended_ns = clock_ns();
    const uint64_t kill_ns = flood->begun_ns + (uint64_t)(flood->after * 1e9);
    uint64_t until_ns = flood->begun_ns + (uint64_t)(flood->seconds * 1e9);
    for (uint64_t due_ns = flood->begun_ns; due_ns < until_ns; due_ns += pace_ns) {
        serve_until(flood, due_ns, false);
        if (flood->pid != 0 && !flood->killed && due_ns >= kill_ns) {
            send_signal(flood);
            until_ns = clock_ns() + AFTER_KILL_MS * UINT64_C(1000000);
        }
        begin(flood, due_ns);
    }
    serve_until(flood, clock_ns() + LAST_REPLY_MS * UINT64_C(1000000), true);
    for (size_t index = 0; index < flood->line_count; index++)
        if (flood->lines[index].due_ns != 0)
            lose(flood, &flood->lines[index], "no reply within a minute");
}

static int compare(const void *one, const void *other) {
    const double *a = one;
    const double *b = other;
    return (*a > *b) - (*a < *b);
}

static double percentile(const struct times *times, size_t hundredths) {
    return times->count == 0 ? 0 : times->ms[(times->count - 1) * hundredths / 100];
}

static void print(struct flood *flood) {
    const double seconds = (double)(flood->ended_ns - flood->begun_ns) / 1e9;
    if (flood->ok.count > 0)
        qsort(flood->ok.ms, flood->ok.count, sizeof(double), compare);
    if (flood->refused.count > 0)
        qsort(flood->refused.ms, flood->refused.count, sizeof(double), compare);
    printf("requests=%zu ok=%zu refused=%zu bad=%zu lost=%zu unsent=%zu seconds=%.3f goodput=%.3f "
           "ok_p50_ms=%.4f "
           "ok_p99_ms=%.4f refused_p50_ms=%.4f refused_p99_ms=%.4f\n",
           flood->requests, flood->ok.count, flood->refused.count, flood->bad, flood->lost, flood->unsent,
           seconds, seconds > 0 ? (double)flood->ok.count / seconds : 0, percentile(&flood->ok, 50),
           percentile(&flood->ok, 99), percentile(&flood->refused, 50), percentile(&flood->refused, 99));
}

/* --- options */

static bool read_count(const char *text, size_t min, size_t max, size_t *count) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    *count = (size_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= min && value <= max;
}

static bool read_positive(const char *text, double *number) {
    char *end;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && *number > 0 && *number <= 1e6;
}

static bool read_shape(const char *text, struct mm_load_message *message) {
    char rest_of_it;
    return sscanf(text, "%5zux%5zux%5zu%c", &message->m, &message->k, &message->n, &rest_of_it) == 3 &&
           message->m > 0 && message->k > 0 && message->n > 0;
}

static bool read_expected(struct flood *flood, const char *text) {
    for (char *end; flood->expected_count < EXPECTED_MAX; text = end + 1) {
        flood->expected[flood->expected_count++] = strtoul(text, &end, 10);
        if (*end == '\0')
            return end != text;
        if (*end != ',')
            return false;
    }
    return false;
}

static bool read_option(struct flood *flood, int option, const char *text) {
    switch (option) {
    case 'h':
        flood->host = text;
        return true;
    case 'p':
        flood->port = text;
        return true;
    case 'f':
        flood->file = text;
        return true;
    case 'r':
        return read_positive(text, &flood->rate);
    case 'd':
        return read_positive(text, &flood->seconds);
    case 'a':
        return read_positive(text, &flood->after);
    case 'c':
        return read_count(text, 1, LINES_MAX, &flood->line_max);
    case 's':
        return read_shape(text, &flood->message);
    case 'q':
        flood->message.extra = text;
        return true;
    case 'e':
        return read_expected(flood, text);
    case 'k':
        return read_count(text, 2, INT32_MAX, &flood->pid);
    case 'S':
        return read_count(text, 1, 64, &flood->signal);
    case 'b':
        return read_count(text, 0, LINES_MAX, &flood->burst);
    default:
        return false;
    }
}

static bool read_options(struct flood *flood, int argc, char **argv) {
    static const struct option table[] = {
        {"host", required_argument, NULL, 'h'},   {"port", required_argument, NULL, 'p'},
        {"rate", required_argument, NULL, 'r'},   {"seconds", required_argument, NULL, 'd'},
        {"file", required_argument, NULL, 'f'},   {"connections", required_argument, NULL, 'c'},
        {"shape", required_argument, NULL, 's'},  {"query", required_argument, NULL, 'q'},
        {"expect", required_argument, NULL, 'e'}, {"kill", required_argument, NULL, 'k'},
        {"signal", required_argument, NULL, 'S'}, {"after", required_argument, NULL, 'a'},
        {"burst", required_argument, NULL, 'b'},  {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;)
        if (!read_option(flood, option, optarg))
            return false;
    return optind == argc && flood->port != NULL;
}

/* The file's bytes in place of a head; there is no body beside them. */
static bool read_file(struct flood *flood) {
    FILE *file = fopen(flood->file, "rb");
    size_t count = 1;
    while (file != NULL && count > 0) {
        char *end = mm_load_bytes_reserve(&flood->message.head, PIECE_BYTES);
        count = fread(end, 1, PIECE_BYTES, file);
        flood->message.head.length += count;
    }
    if (file != NULL)
        fclose(file);
    return flood->message.head.length > 0;
}

static bool prepare(struct flood *flood) {
    if (flood->file != NULL && !read_file(flood)) {
        fprintf(stderr, "flood: there is nothing in %s\n", flood->file);
        return false;
    }
    flood->message.authority = "flood";
    if (flood->file == NULL)
        mm_load_message_make(&flood->message);
    flood->epoll = epoll_create1(EPOLL_CLOEXEC);
    flood->lines = mm_load_allocate(flood->line_max * sizeof *flood->lines);
    memset(flood->lines, 0, flood->line_max * sizeof *flood->lines);
    for (size_t index = 0; index < flood->line_max; index++)
        flood->lines[index].connection.socket = -1;
    return flood->epoll >= 0;
}

static void release(struct flood *flood) {
    for (size_t index = 0; index < flood->line_count; index++)
        mm_load_disconnect(&flood->lines[index].connection);
    close(flood->epoll);
    free(flood->ok.ms);
    free(flood->refused.ms);
    free(flood->lines);
    mm_load_message_free(&flood->message);
}

int main(int argc, char **argv) {
    struct flood flood = {.host = "127.0.0.1",
                          .rate = 100,
                          .seconds = 1,
                          .line_max = 1024,
                          .signal = SIGTERM,
                          .message = {.m = 4, .k = 4, .n = 4, .path = "/v1/matmul"}};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (!read_options(&flood, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (getaddrinfo(flood.host, flood.port, &hints, &addresses) != 0 || !prepare(&flood)) {
        fputs("flood: it cannot begin\n", stderr);
        return EXIT_FAILURE;
    }
    flood.address = addresses;
    run(&flood);
    print(&flood);
    release(&flood);
    freeaddrinfo(addresses);
    return EXIT_SUCCESS;
}
