/* Requests at a constant rate, whatever becomes of those before (open_loop.h). One line of figures:
 *
 *   requests=N ok=N refused=N bad=N lost=N unsent=N seconds=S goodput=PER_SECOND ok_p50_ms= ok_p99_ms=
 *   refused_p50_ms= refused_p99_ms= */
#include "bench/load/open_loop.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2, PIECE_BYTES = 64 << 10 };

static const char usage[] =
    "usage: flood --port P [--host 127.0.0.1] [--rate 100] [--seconds 1] [--connections 1024]\n"
    "             [--shape 4x4x4] [--query TEXT] [--file REQUEST] [--expect 200,400,...]\n"
    "             [--kill PID --signal N --after SECONDS --burst N]\n\n"
    "--file is a whole request as it goes over the wire, in place of a raw product.\n";

struct flood {
    const char *host;
    const char *port;
    const char *file; /* NULL: a product */
    struct mm_load_message message;
    struct mm_load_open_loop loop;
};

static int compare(const void *one, const void *other) {
    const double *a = one;
    const double *b = other;
    return (*a > *b) - (*a < *b);
}

static double percentile(const struct mm_load_times *times, size_t hundredths) {
    return times->count == 0 ? 0 : times->ms[(times->count - 1) * hundredths / 100];
}

static void sort(struct mm_load_times *times) {
    if (times->count > 0)
        qsort(times->ms, times->count, sizeof *times->ms, compare);
}

static void print(struct mm_load_fates *fates) {
    sort(&fates->ok);
    sort(&fates->refused);
    printf("requests=%zu ok=%zu refused=%zu bad=%zu lost=%zu unsent=%zu seconds=%.3f goodput=%.3f "
           "ok_p50_ms=%.4f ok_p99_ms=%.4f refused_p50_ms=%.4f refused_p99_ms=%.4f\n",
           fates->requests, fates->ok.count, fates->refused.count, fates->bad, fates->lost, fates->unsent,
           fates->seconds, fates->seconds > 0 ? (double)fates->ok.count / fates->seconds : 0,
           percentile(&fates->ok, 50), percentile(&fates->ok, 99), percentile(&fates->refused, 50),
           percentile(&fates->refused, 99));
}

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
    for (char *end; flood->loop.expected_count < MM_LOAD_EXPECTED_MAX; text = end + 1) {
        flood->loop.expected[flood->loop.expected_count++] = strtoul(text, &end, 10);
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
        return read_positive(text, &flood->loop.rate);
    case 'd':
        return read_positive(text, &flood->loop.seconds);
    case 'a':
        return read_positive(text, &flood->loop.after);
    case 'c':
        return read_count(text, 1, MM_LOAD_LINES_MAX, &flood->loop.connections);
    case 's':
        return read_shape(text, &flood->message);
    case 'q':
        flood->message.extra = text;
        return true;
    case 'e':
        return read_expected(flood, text);
    case 'k':
        return read_count(text, 2, INT32_MAX, &flood->loop.pid);
    case 'S':
        return read_count(text, 1, 64, &flood->loop.signal);
    case 'b':
        return read_count(text, 0, MM_LOAD_LINES_MAX, &flood->loop.burst);
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
    flood->loop.message = &flood->message;
    flood->loop.checks_products = flood->file == NULL;
    flood->message.authority = "localhost";
    if (flood->file == NULL)
        mm_load_message_make(&flood->message);
    else if (!read_file(flood))
        fprintf(stderr, "flood: there is nothing in %s\n", flood->file);
    return flood->message.head.length > 0;
}

int main(int argc, char **argv) {
    struct flood flood = {.host = "127.0.0.1",
                          .message = {.m = 4, .k = 4, .n = 4, .path = "/v1/matmul"},
                          .loop = {.rate = 100, .seconds = 1, .connections = 1024, .signal = SIGTERM}};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    struct mm_load_fates fates;
    if (!read_options(&flood, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (getaddrinfo(flood.host, flood.port, &hints, &addresses) != 0 || !prepare(&flood)) {
        fputs("flood: it cannot begin\n", stderr);
        return EXIT_FAILURE;
    }
    flood.loop.address = addresses;
    const bool good = mm_load_open_loop_run(&flood.loop, &fates);
    if (good)
        print(&fates);
    free(fates.ok.ms);
    free(fates.refused.ms);
    mm_load_message_free(&flood.message);
    freeaddrinfo(addresses);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
