/* The same product asked for again and again by some connections, and what that took. One line of figures:
 *
 *   requests=N refused=N seconds=S rate=PER_SECOND mean_ms= p50_ms= p99_ms= max_ms=
 *
 * and with --spans also outside_ms= (the median of a request's time less its kernel's), rest_ms= (all of
 * the time less all kernels') and the mean of each span of Server-Timing, as kernel_mean_ms=. */
#include "bench/load/loop.h"
#include "bench/load/options.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT_MAX = 1000000000, CONNECTIONS_MAX = 60000 };

static const char usage[] =
    "usage: steady --port P [--host 127.0.0.1] [--form raw|json|multipart] [--shape 4x4x4]\n"
    "              [--query TEXT] [--connections 1] [--threads 1] [--warm 1]\n"
    "              [--seconds 1 | --requests N] [--spans] [--refusals] [--unchecked]\n\n"
    "Each connection asks for the same product over and over. The shape is MxKxN; --requests are those of\n"
    "each connection, after --warm that are not timed. --refusals counts replies other than 200, which\n"
    "otherwise end the run; --unchecked takes any reply for the product.\n";

static void print(const struct mm_load_tally *tally, size_t refused, bool with_spans) {
    const struct mm_load_times *ok = &tally->fates[MM_LOAD_OK];
    const double seconds = mm_load_tally_seconds(tally), count = (double)ok->count;
    double sum = 0;
    for (size_t index = 0; index < ok->count; index++)
        sum += ok->ms[index];
    printf("requests=%zu refused=%zu seconds=%.6f rate=%.3f mean_ms=%.4f p50_ms=%.4f p99_ms=%.4f max_ms=%.4f",
           ok->count, refused, seconds, count / seconds, sum / count, mm_load_percentile(ok, 50),
           mm_load_percentile(ok, 99), mm_load_percentile(ok, 100));
    if (with_spans)
        printf(" outside_ms=%.4f rest_ms=%.4f", mm_load_percentile(&tally->outside, 50),
               seconds * 1e3 - tally->span_ms[MM_LOAD_SPAN_KERNEL]);
    for (size_t span = 0; with_spans && span < MM_LOAD_SPANS; span++)
        printf(" %s_mean_ms=%.4f", mm_load_span_names[span], tally->span_ms[span] / count);
    printf("\n");
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *port = NULL;
    bool takes_refusals = false, unchecked = false;
    struct mm_load_message message = {.m = 4, .k = 4, .n = 4};
    struct mm_load_loop loop = {.connections = 1, .threads = 1, .warm = 1, .seconds = 1};
    struct mm_load_tally tally;
    char authority[300];
    const struct mm_load_option rows[] = {
        {"host", MM_LOAD_TEXT, &host, 0, 0},
        {"port", MM_LOAD_TEXT, &port, 0, 0},
        {"form", MM_LOAD_FORM, &message.form, 0, 0},
        {"shape", MM_LOAD_SHAPE, &message, 0, 0},
        {"query", MM_LOAD_TEXT, &message.extra, 0, 0},
        {"connections", MM_LOAD_COUNT, &loop.connections, 1, CONNECTIONS_MAX},
        {"threads", MM_LOAD_COUNT, &loop.threads, 1, 1024},
        {"warm", MM_LOAD_COUNT, &loop.warm, 0, COUNT_MAX},
        {"requests", MM_LOAD_COUNT, &loop.requests, 1, COUNT_MAX},
        {"seconds", MM_LOAD_SECONDS, &loop.seconds, 0, 1000000},
        {"spans", MM_LOAD_YES, &loop.reads_spans, 0, 0},
        {"refusals", MM_LOAD_YES, &takes_refusals, 0, 0},
        {"unchecked", MM_LOAD_YES, &unchecked, 0, 0},
        {0},
    };
    mm_load_options_read(rows, &port, usage, argc, argv);
    struct addrinfo *addresses = mm_load_resolve(host, port);
    snprintf(authority, sizeof authority, "%s:%s", host, port);
    message.authority = authority;
    mm_load_message_make(&message);
    loop.message = &message;
    loop.address = addresses;
    loop.checks = !unchecked;
    loop.threads = loop.threads < loop.connections ? loop.threads : loop.connections;
    loop.fatal = 1U << MM_LOAD_UNREACHED | 1U << MM_LOAD_BROKEN;
    if (!takes_refusals)
        loop.fatal |= 1U << MM_LOAD_REFUSED | 1U << MM_LOAD_OTHER | 1U << MM_LOAD_LOST;
    bool good = mm_load_loop_run(&loop, &tally);
    const size_t refused = tally.fates[MM_LOAD_REFUSED].count + tally.fates[MM_LOAD_OTHER].count +
                           tally.fates[MM_LOAD_LOST].count;
    if (!good)
        fprintf(stderr, "steady: %s\n", tally.trouble);
    else if (tally.fates[MM_LOAD_OK].count == 0)
        fprintf(stderr, "steady: no request was answered, %zu were refused\n", refused);
    else
        print(&tally, refused, loop.reads_spans);
    good = good && tally.fates[MM_LOAD_OK].count > 0;
    mm_load_tally_free(&tally);
    mm_load_message_free(&message);
    freeaddrinfo(addresses);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
