/* The same product asked for again and again by some connections, and what that took. One line of figures:
 *
 *   requests=N refused=N seconds=S rate=PER_SECOND mean_ms= p50_ms= p99_ms= max_ms=
 *
 * and with --spans also outside_ms= (the median of a request's time less its kernel's), rest_ms= (all of
 * the time less all kernels') and the mean of each span of Server-Timing, as kernel_mean_ms=. */
#include "bench/load/pace.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, EDGE_MAX = 65536, COUNT_MAX = 1000000000, CONNECTIONS_MAX = 60000 };

static const char usage[] =
    "usage: steady --port P [--host 127.0.0.1] [--form raw|json|multipart] [--shape 4x4x4]\n"
    "              [--path /v1/matmul] [--query TEXT] [--connections 1] [--threads 1] [--warm 1]\n"
    "              [--seconds 1 | --requests N] [--spans] [--refusals] [--unchecked]\n\n"
    "Each connection asks for the same product over and over. The shape is MxKxN; --requests are those of\n"
    "each connection, after --warm that are not timed. --refusals counts replies other than 200, which\n"
    "otherwise end the run; --unchecked takes any reply for the product.\n";

struct options {
    struct mm_load_message message;
    struct mm_load_pace pace;
    const char *host;
    const char *port;
};

static bool read_count(const char *text, size_t min, size_t max, size_t *count) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    *count = (size_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= min && value <= max;
}

static bool read_seconds(const char *text, double *seconds) {
    char *end;
    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= 0 && *seconds <= 1e6;
}

static bool read_shape(const char *text, struct mm_load_message *message) {
    char rest;
    return sscanf(text, "%5zux%5zux%5zu%c", &message->m, &message->k, &message->n, &rest) == 3 &&
           message->m > 0 && message->k > 0 && message->n > 0 && message->m <= EDGE_MAX &&
           message->k <= EDGE_MAX && message->n <= EDGE_MAX;
}

static bool read_option(struct options *options, int option, const char *text) {
    struct mm_load_pace *pace = &options->pace;
    switch (option) {
    case 'h':
        options->host = text;
        return true;
    case 'p':
        options->port = text;
        return true;
    case 'f':
        return mm_load_message_form_find(text, &options->message.form);
    case 's':
        return read_shape(text, &options->message);
    case 'a':
        options->message.path = text;
        return true;
    case 'q':
        options->message.extra = text;
        return true;
    case 'c':
        return read_count(text, 1, CONNECTIONS_MAX, &pace->connections);
    case 't':
        return read_count(text, 1, 1024, &pace->threads);
    case 'w':
        return read_count(text, 0, COUNT_MAX, &pace->warm);
    case 'n':
        return read_count(text, 1, COUNT_MAX, &pace->requests);
    case 'd':
        return read_seconds(text, &pace->seconds);
    case 'S':
        return pace->reads_spans = true;
    case 'R':
        return pace->takes_refusals = true;
    case 'U':
        pace->checks_products = false;
        return true;
    default:
        return false;
    }
}

static bool read_options(struct options *options, int argc, char **argv) {
    static const struct option table[] = {
        {"host", required_argument, NULL, 'h'},
        {"port", required_argument, NULL, 'p'},
        {"form", required_argument, NULL, 'f'},
        {"shape", required_argument, NULL, 's'},
        {"path", required_argument, NULL, 'a'},
        {"query", required_argument, NULL, 'q'},
        {"connections", required_argument, NULL, 'c'},
        {"threads", required_argument, NULL, 't'},
        {"warm", required_argument, NULL, 'w'},
        {"requests", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 'd'},
        {"spans", no_argument, NULL, 'S'},
        {"refusals", no_argument, NULL, 'R'},
        {"unchecked", no_argument, NULL, 'U'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;)
        if (!read_option(options, option, optarg)) {
            if (option != '?')
                fprintf(stderr, "steady: a bad value: '%s'\n", optarg);
            return false;
        }
    if (options->pace.threads > options->pace.connections)
        options->pace.threads = options->pace.connections;
    return optind == argc && options->port != NULL;
}

static int compare(const void *one, const void *other) {
    const double *a = one;
    const double *b = other;
    return (*a > *b) - (*a < *b);
}

static void print_spans(const struct mm_load_tally *tally, double *values, double seconds) {
    for (size_t index = 0; index < tally->count; index++)
        values[index] = tally->samples[index].seconds - tally->samples[index].kernel_seconds;
    qsort(values, tally->count, sizeof *values, compare);
    printf(" outside_ms=%.4f rest_ms=%.4f", values[tally->count / 2] * 1e3,
           seconds * 1e3 - tally->span_ms[MM_LOAD_SPAN_KERNEL]);
    for (size_t span = 0; span < MM_LOAD_SPANS; span++)
        printf(" %s_mean_ms=%.4f", mm_load_span_names[span], tally->span_ms[span] / (double)tally->count);
}

static void print_figures(const struct mm_load_tally *tally, bool with_spans) {
    double seconds = (double)(tally->ended_ns - tally->begun_ns) / 1e9;
    double *values = mm_load_allocate(tally->count * sizeof *values);
    double sum = 0;
    for (size_t index = 0; index < tally->count; index++)
        sum += values[index] = tally->samples[index].seconds;
    qsort(values, tally->count, sizeof *values, compare);
    printf("requests=%zu refused=%zu seconds=%.6f rate=%.3f mean_ms=%.4f p50_ms=%.4f p99_ms=%.4f max_ms=%.4f",
           tally->count, tally->refused, seconds, (double)tally->count / seconds,
           sum / (double)tally->count * 1e3, values[tally->count / 2] * 1e3,
           values[tally->count - 1 - tally->count / 100] * 1e3, values[tally->count - 1] * 1e3);
    if (with_spans)
        print_spans(tally, values, seconds);
    printf("\n");
    free(values);
}

static bool run(struct options *options, const struct addrinfo *address) {
    struct mm_load_tally tally;
    char authority[300];
    snprintf(authority, sizeof authority, "%s:%s", options->host, options->port);
    options->message.authority = authority;
    mm_load_message_make(&options->message);
    options->pace.message = &options->message;
    options->pace.address = address;
    bool good = mm_load_pace_run(&options->pace, &tally);
    if (!good)
        fprintf(stderr, "steady: %s\n", tally.trouble);
    else if (tally.count == 0)
        fprintf(stderr, "steady: no request was answered, %zu were refused\n", tally.refused);
    else
        print_figures(&tally, options->pace.reads_spans);
    good = good && tally.count > 0;
    free(tally.samples);
    mm_load_message_free(&options->message);
    return good;
}

int main(int argc, char **argv) {
    struct options options = {
        .message = {.m = 4, .k = 4, .n = 4, .path = "/v1/matmul"},
        .pace = {.connections = 1, .threads = 1, .warm = 1, .seconds = 1, .checks_products = true},
        .host = "127.0.0.1"};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (!read_options(&options, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    int failure = getaddrinfo(options.host, options.port, &hints, &addresses);
    if (failure != 0) {
        fprintf(stderr, "steady: %s port %s: %s\n", options.host, options.port, gai_strerror(failure));
        return EXIT_FAILURE;
    }
    bool good = run(&options, addresses);
    freeaddrinfo(addresses);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
