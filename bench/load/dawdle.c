/* Callers who are slow on purpose: heads and bodies that come a few bytes at a time, and replies that are
 * taken so, each on a connection of its own. It tells how many of them the service has ended, and when. One
 * line for each kind:
 *
 *   heads=N ended=N first_s=SECONDS last_s=SECONDS
 *
 * and before them `ready` on a line of its own, once all are connected and have begun. */
#include "bench/load/connection.h"
#include "bench/load/message.h"
#include "bench/load/options.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A reader's socket holds little, so that what it does not take stays with the service. */
enum { CALLERS_MAX = 20000, PIECE_MAX = 65536, TICK_MS = 20, RECEIVE_BUFFER_BYTES = 8192, CLAIM_MIN = 65536 };

enum kind { HEADS, BODIES, READERS, KIND_COUNT };

static const char *const kind_names[KIND_COUNT] = {"heads", "bodies", "readers"};

static const char usage[] =
    "usage: dawdle --port P [--host 127.0.0.1] [--heads N] [--bodies N] [--readers N] [--bytes 1]\n"
    "              [--every-ms 1000] [--shape 1024x1x1024] [--claim BYTES] [--seconds 60]\n\n"
    "Each caller sends or takes so many bytes in so many milliseconds, until the service ends it or the "
    "time\n"
    "is up. Bodies and replies are those of a product of this shape. With --claim the heads of bodies\n"
    "promise BYTES, half of that, and so on to 64 KiB, and again from the beginning.\n";

struct caller {
    enum kind kind;
    struct mm_load_connection connection;
    size_t sent; /* of the request */
    uint64_t due_ms;
    double ended_s; /* below 0: not yet */
};

struct load {
    size_t counts[KIND_COUNT];
    size_t bytes;
    size_t every_ms;
    size_t seconds;
    size_t claim; /* 0: the shape's */
    struct mm_load_message message;
    struct caller *callers;
    struct pollfd *polled;
    size_t count;
    uint64_t begun_ms;
};

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A small buffer has to be asked for before the other end is told of it. */
static bool connect_caller(struct caller *caller, const struct addrinfo *address) {
    const int bytes = RECEIVE_BUFFER_BYTES;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    caller->connection = (struct mm_load_connection){.socket = fd};
    if (fd >= 0 && caller->kind == READERS)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return true;
    fprintf(stderr, "dawdle: cannot connect: %s\n", strerror(errno));
    return false;
}

/* The head of a body that claims its part of --claim. */
static void send_claim(const struct load *load, struct caller *caller, size_t index) {
    char head[256], problem[MM_LOAD_PROBLEM_BYTES];
    size_t halvings = 0;
    while (load->claim >> (halvings + 1) >= CLAIM_MIN)
        halvings++;
    const size_t bytes = (load->claim >> index % (halvings + 1)) / 8 * 8;
    const int length = snprintf(head, sizeof head,
                                "POST /v1/matmul?m=1&k=%zu&n=1 HTTP/1.1\r\nHost: dawdle\r\n"
                                "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
                                bytes / 8, bytes);
    (void)mm_load_send(&caller->connection, head, (size_t)length, problem);
}

/* What is sent at once: nothing of a head, the head alone of a body, and all of a reader's request. Who is
 * refused by then is found to be when it is looked at. */
static void begin(const struct load *load, struct caller *caller, size_t index) {
    const struct mm_load_message *message = &load->message;
    char problem[MM_LOAD_PROBLEM_BYTES];
    if (caller->kind == HEADS)
        return;
    caller->sent = message->head.length;
    if (caller->kind == BODIES && load->claim > 0)
        send_claim(load, caller, index);
    else if (mm_load_send(&caller->connection, message->head.data, message->head.length, problem) &&
             caller->kind == READERS)
        (void)mm_load_send(&caller->connection, message->body.data, message->body.length, problem);
}

static void end(const struct load *load, struct caller *caller) {
    caller->ended_s = (double)(now_ms() - load->begun_ms) / 1e3;
    mm_load_disconnect(&caller->connection);
}

/* The next piece of what is sent: never the last byte of a head. */
static bool send_piece(const struct load *load, struct caller *caller) {
    const struct mm_load_message *message = &load->message;
    const struct mm_load_bytes *part = caller->kind == HEADS ? &message->head : &message->body;
    const size_t at = caller->kind == HEADS ? caller->sent : caller->sent - message->head.length;
    const size_t left = part->length - at - (caller->kind == HEADS && at < part->length ? 1 : 0);
    const size_t bytes = left < load->bytes ? left : load->bytes;
    if (bytes == 0)
        return true;
    ssize_t sent = send(caller->connection.socket, part->data + at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    caller->sent += sent > 0 ? (size_t)sent : 0;
    return sent > 0 || errno == EAGAIN;
}

static bool take_piece(const struct load *load, struct caller *caller) {
    char bytes[PIECE_MAX];
    ssize_t count = recv(caller->connection.socket, bytes, load->bytes, MSG_DONTWAIT);
    return count > 0 || (count < 0 && errno == EAGAIN);
}

static void look_at(struct load *load, size_t index, uint64_t now) {
    struct caller *caller = &load->callers[index];
    if ((load->polled[index].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
        end(load, caller);
        return;
    }
    if (now < caller->due_ms)
        return;
    caller->due_ms += load->every_ms;
    if (!(caller->kind == READERS ? take_piece(load, caller) : send_piece(load, caller)))
        end(load, caller);
}

static bool open_all(struct load *load, const struct addrinfo *address) {
    size_t index = 0;
    load->callers = mm_load_allocate(load->count * sizeof *load->callers);
    load->polled = mm_load_allocate(load->count * sizeof *load->polled);
    load->begun_ms = now_ms();
    for (size_t kind = 0; kind < KIND_COUNT; kind++)
        for (size_t of_kind = 0; of_kind < load->counts[kind]; of_kind++, index++) {
            struct caller *caller = &load->callers[index];
            *caller = (struct caller){.kind = (enum kind)kind, .ended_s = -1};
            if (!connect_caller(caller, address))
                return false;
            begin(load, caller, of_kind);
            if (caller->connection.socket < 0)
                end(load, caller);
            caller->due_ms = now_ms() + index * load->every_ms / load->count; /* not all in one moment */
        }
    return true;
}

static void run(struct load *load) {
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    const uint64_t until_ms = load->begun_ms + load->seconds * 1000;
    size_t left = 1;
    while (left > 0 && now_ms() < until_ms) {
        for (size_t index = 0; index < load->count; index++)
            load->polled[index] =
                (struct pollfd){.fd = load->callers[index].connection.socket, .events = POLLRDHUP};
        (void)poll(load->polled, (nfds_t)load->count, 0);
        left = 0;
        for (size_t index = 0; index < load->count; index++) {
            if (load->callers[index].ended_s < 0)
                look_at(load, index, now_ms());
            left += load->callers[index].ended_s < 0;
        }
        nanosleep(&tick, NULL);
    }
}

static void print(const struct load *load) {
    for (size_t kind = 0; kind < KIND_COUNT; kind++) {
        double first = 0, last = 0;
        size_t ended = 0;
        for (size_t index = 0; index < load->count; index++) {
            const struct caller *caller = &load->callers[index];
            if (caller->kind != (enum kind)kind || caller->ended_s < 0)
                continue;
            first = ended == 0 || caller->ended_s < first ? caller->ended_s : first;
            last = caller->ended_s > last ? caller->ended_s : last;
            ended++;
        }
        printf("%s=%zu ended=%zu first_s=%.2f last_s=%.2f\n", kind_names[kind], load->counts[kind], ended,
               first, last);
    }
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *port = NULL;
    struct load load = {
        .bytes = 1,
        .every_ms = 1000,
        .seconds = 60,
        .message = {.m = 1024, .k = 1, .n = 1024, .path = "/v1/matmul", .authority = "localhost"}};
    const struct mm_load_option rows[] = {
        {"heads", MM_LOAD_COUNT, &load.counts[HEADS], 0, CALLERS_MAX},
        {"bodies", MM_LOAD_COUNT, &load.counts[BODIES], 0, CALLERS_MAX},
        {"readers", MM_LOAD_COUNT, &load.counts[READERS], 0, CALLERS_MAX},
        {"host", MM_LOAD_TEXT, &host, 0, 0},
        {"port", MM_LOAD_TEXT, &port, 0, 0},
        {"bytes", MM_LOAD_COUNT, &load.bytes, 1, PIECE_MAX},
        {"every-ms", MM_LOAD_COUNT, &load.every_ms, TICK_MS, 1000000},
        {"shape", MM_LOAD_SHAPE, &load.message, 0, 0},
        {"seconds", MM_LOAD_COUNT, &load.seconds, 1, 1000000},
        {"claim", MM_LOAD_COUNT, &load.claim, CLAIM_MIN, SIZE_MAX / 2},
        {0},
    };
    mm_load_options_read(rows, &port, usage, argc, argv);
    load.count = load.counts[HEADS] + load.counts[BODIES] + load.counts[READERS];
    struct addrinfo *addresses = mm_load_resolve(host, port);
    mm_load_message_make(&load.message);
    const bool good = open_all(&load, addresses);
    freeaddrinfo(addresses);
    if (!good)
        return EXIT_FAILURE;
    puts("ready");
    fflush(stdout);
    run(&load);
    print(&load);
    for (size_t index = 0; index < load.count; index++)
        mm_load_disconnect(&load.callers[index].connection);
    mm_load_message_free(&load.message);
    free(load.polled);
    free(load.callers);
    return EXIT_SUCCESS;
}
