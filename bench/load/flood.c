/* Requests at a constant rate, whatever becomes of those before. One line of figures, and the first request
 * that failed on stderr:
 *
 *   requests=N ok=N refused=N bad=N lost=N unsent=N seconds=S goodput=PER_SECOND ok_p50_ms= ok_p99_ms=
 *   refused_p50_ms= refused_p99_ms= */
#include "bench/load/loop.h"
#include "bench/load/options.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_BYTES = 64 << 10, LINES_MAX = 20000, RATE_MAX = 1000000, SECONDS_MAX = 1000000 };

static const char usage[] =
    "usage: flood --port P [--rate 100] [--seconds 1] [--connections 1024]\n"
    "             [--shape 4x4x4] [--query TEXT] [--file REQUEST] [--expect 200,400,...]\n"
    "             [--kill PID --after SECONDS --burst N]\n\n"
    "--file is a whole request as it goes over the wire, in place of a raw product. --kill sends SIGTERM\n"
    "to PID after so many seconds, and after N requests at once.\n";

static void print(const struct mm_load_tally *tally) {
    const struct mm_load_times *fates = tally->fates, *ok = &fates[MM_LOAD_OK],
                               *refused = &fates[MM_LOAD_REFUSED];
    const double seconds = mm_load_tally_seconds(tally);
    size_t requests = tally->unsent;
    for (size_t fate = 0; fate < MM_LOAD_FATES; fate++)
        requests += fates[fate].count;
    printf("requests=%zu ok=%zu refused=%zu bad=%zu lost=%zu unsent=%zu seconds=%.3f goodput=%.3f "
           "ok_p50_ms=%.4f ok_p99_ms=%.4f refused_p50_ms=%.4f refused_p99_ms=%.4f\n",
           requests, ok->count, refused->count, fates[MM_LOAD_OTHER].count + fates[MM_LOAD_BROKEN].count,
           fates[MM_LOAD_LOST].count + fates[MM_LOAD_UNREACHED].count, tally->unsent, seconds,
           seconds > 0 ? (double)ok->count / seconds : 0, mm_load_percentile(ok, 50),
           mm_load_percentile(ok, 99), mm_load_percentile(refused, 50), mm_load_percentile(refused, 99));
}

static bool read_expected(struct mm_load_loop *loop, const char *text) {
    for (char *end; text != NULL && loop->expected_count < MM_LOAD_EXPECTED_MAX; text = end + 1) {
        loop->expected[loop->expected_count++] = strtoul(text, &end, 10);
        if (*end == '\0')
            return end != text;
        if (*end != ',')
            return false;
    }
    return text == NULL;
}

/* The file's bytes in place of a head; there is no body beside them. */
static void read_file(struct mm_load_message *message, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t count = 1;
    while (file != NULL && count > 0) {
        char *end = mm_load_bytes_reserve(&message->head, PIECE_BYTES);
        count = fread(end, 1, PIECE_BYTES, file);
        message->head.length += count;
    }
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv) {
    const char *port = NULL, *file = NULL, *expected = NULL;
    struct mm_load_message message = {.m = 4, .k = 4, .n = 4, .authority = "localhost"};
    struct mm_load_loop loop = {
        .message = &message, .rate = 100, .seconds = 1, .connections = 1024, .threads = 1};
    struct mm_load_tally tally;
    const struct mm_load_option rows[] = {
        {"port", MM_LOAD_TEXT, &port, 0, 0},
        {"rate", MM_LOAD_SECONDS, &loop.rate, 0, RATE_MAX},
        {"seconds", MM_LOAD_SECONDS, &loop.seconds, 0, SECONDS_MAX},
        {"connections", MM_LOAD_COUNT, &loop.connections, 1, LINES_MAX},
        {"shape", MM_LOAD_SHAPE, &message, 0, 0},
        {"query", MM_LOAD_TEXT, &message.extra, 0, 0},
        {"file", MM_LOAD_TEXT, &file, 0, 0},
        {"expect", MM_LOAD_TEXT, &expected, 0, 0},
        {"kill", MM_LOAD_COUNT, &loop.pid, 2, INT32_MAX},
        {"after", MM_LOAD_SECONDS, &loop.after, 0, SECONDS_MAX},
        {"burst", MM_LOAD_COUNT, &loop.burst, 0, LINES_MAX},
        {0},
    };
    mm_load_options_read(rows, &port, usage, argc, argv);
    if (!(loop.rate > 0) || !read_expected(&loop, expected)) {
        fputs(usage, stderr);
        return MM_LOAD_EXIT_USAGE;
    }
    struct addrinfo *addresses = mm_load_resolve("127.0.0.1", port);
    loop.address = addresses;
    loop.checks = file == NULL;
    if (file == NULL)
        mm_load_message_make(&message);
    else
        read_file(&message, file);
    if (message.head.length == 0) {
        fprintf(stderr, "flood: nothing can be read from %s\n", file);
        return EXIT_FAILURE;
    }
    (void)mm_load_loop_run(&loop, &tally);
    if (tally.trouble[0] != '\0')
        fprintf(stderr, "flood: %s\n", tally.trouble);
    print(&tally);
    mm_load_tally_free(&tally);
    mm_load_message_free(&message);
    freeaddrinfo(addresses);
    return EXIT_SUCCESS;
}
