/* The same request again and again, in a closed loop or at a constant rate, and what that took. One line of
 * figures, and the first request that failed on stderr:
 *
 *   requests=N ok=N refused=N bad=N lost=N unsent=N seconds=S rate=OK_PER_SECOND mean_ms= p50_ms= p99_ms=
 * max_ms= refused_p99_ms=
 *
 * and with --spans also outside_ms= (the median of a request's time less its kernel's), rest_ms= (all of
 * the time less all kernels') and the mean of each span of Server-Timing, as kernel_mean_ms=. */
#include "bench/load/loop.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: steady --port P [--host 127.0.0.1] [--form raw|json|multipart] [--shape 4x4x4]\n"
    "              [--query TEXT] [--file REQUEST] [--connections N] [--seconds 1] [--unchecked]\n"
    "              [--expect 200,400,...]\n"
    "  closed loop [--requests N] [--threads 1] [--warm 1] [--spans] [--refusals]\n"
    "  open loop    --rate PER_SECOND [--kill PID --after SECONDS --burst N]\n\n"
    "In a closed loop each connection (1) asks for the same product over and over. The shape is MxKxN; "
    "--requests\n"
    "are those of each connection, after --warm that are not timed. --refusals counts replies other than "
    "200,\n"
    "which otherwise end the run; --unchecked takes any reply for the product. In an open loop requests are "
    "due\n"
    "at a constant rate, whatever becomes of those before, by 1024 connections at most. --file is a whole "
    "request\n"
    "as it goes over the wire, in place of a product. --kill sends SIGTERM to PID after so many seconds, and "
    "after\n"
    "N requests at once.\n";

/* What the options say. */
static const char *host = "127.0.0.1", *port, *file, *expected;
static struct mm_load_message message = {.m = 4, .k = 4, .n = 4};
static struct mm_load_loop loop = {
    .message = &message, .checks = true, .threads = 1, .warm = 1, .seconds = 1};
static bool unchecked;

/* What an option takes, and what `value` points to. */
enum kind {
    TEXT,   /* const char * */
    COUNT,  /* size_t */
    NUMBER, /* double */
    SHAPE,  /* nothing: the message's m, k and n are set from MxKxN */
    FORM,   /* nothing: likewise its form */
    YES     /* bool, set by the option alone */
};

static const struct row {
    const char *name;
    enum kind kind;
    void *value;
} rows[] = {
    {"host", TEXT, &host},
    {"port", TEXT, &port},
    {"form", FORM, NULL},
    {"shape", SHAPE, NULL},
    {"query", TEXT, &message.extra},
    {"file", TEXT, &file},
    {"expect", TEXT, &expected},
    {"connections", COUNT, &loop.connections},
    {"threads", COUNT, &loop.threads},
    {"warm", COUNT, &loop.warm},
    {"requests", COUNT, &loop.requests},
    {"seconds", NUMBER, &loop.seconds},
    {"spans", YES, &loop.reads_spans},
    {"refusals", YES, &loop.takes_refusals},
    {"unchecked", YES, &unchecked},
    {"rate", NUMBER, &loop.rate},
    {"kill", COUNT, &loop.pid},
    {"after", NUMBER, &loop.after},
    {"burst", COUNT, &loop.burst},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool read_shape(const char *text) {
    char rest;
    return sscanf(text, "%5zux%5zux%5zu%c", &message.m, &message.k, &message.n, &rest) == 3 &&
           message.m > 0 && message.k > 0 && message.n > 0;
}

static bool read_value(const struct row *row, const char *text) {
    char *end;
    switch (row->kind) {
    case TEXT:
        *(const char **)row->value = text;
        return true;
    case COUNT:
        *(size_t *)row->value = strtoull(text, &end, 10);
        return text[0] >= '0' && text[0] <= '9' && *end == '\0';
    case NUMBER:
        *(double *)row->value = strtod(text, &end);
        return end != text && *end == '\0' && *(double *)row->value >= 0;
    case SHAPE:
        return read_shape(text);
    case FORM:
        return mm_load_message_form_find(text, &message.form);
    case YES:
        *(bool *)row->value = true;
        return true;
    }
    return false;
}

static bool read_expected(const char *text) {
    for (char *end; text != NULL && loop.expected_count < MM_LOAD_EXPECTED_MAX; text = end + 1) {
        loop.expected[loop.expected_count++] = strtoul(text, &end, 10);
        if (*end == '\0')
            return end != text;
        if (*end != ',')
            return false;
    }
    return text == NULL;
}

static bool read_options(int argc, char **argv) {
    struct option table[ROWS + 1] = {0};
    int index = 0;
    for (size_t row = 0; row < ROWS; row++)
        table[row] =
            (struct option){rows[row].name, rows[row].kind == YES ? no_argument : required_argument, NULL, 0};
    for (int found; (found = getopt_long(argc, argv, "", table, &index)) != -1;)
        if (found != 0 || !read_value(&rows[index], optarg)) {
            if (found == 0)
                fprintf(stderr, "steady: a bad value for --%s: '%s'\n", rows[index].name, optarg);
            return false;
        }
    if (loop.connections == 0)
        loop.connections = loop.rate > 0 ? 1024 : 1;
    if (loop.rate > 0)
        loop.threads = 1;
    loop.threads = loop.threads < loop.connections ? loop.threads : loop.connections;
    loop.checks = !unchecked && file == NULL;
    return optind == argc && port != NULL && loop.threads > 0 && read_expected(expected);
}

static struct addrinfo *resolve(void) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    const int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure == 0)
        return addresses;
    fprintf(stderr, "%s port %s: %s\n", host, port, gai_strerror(failure));
    exit(EXIT_FAILURE);
}

static void print(const struct mm_load_tally *tally) {
    const struct mm_load_times *fates = tally->fates, *ok = &fates[MM_LOAD_OK],
                               *refused = &fates[MM_LOAD_REFUSED];
    const double seconds = mm_load_tally_seconds(tally), count = ok->count > 0 ? (double)ok->count : 1;
    size_t requests = tally->unsent;
    double sum = 0;
    for (size_t fate = 0; fate < MM_LOAD_FATES; fate++)
        requests += fates[fate].count;
    for (size_t index = 0; index < ok->count; index++)
        sum += ok->ms[index];
    printf("requests=%zu ok=%zu refused=%zu bad=%zu lost=%zu unsent=%zu seconds=%.6f rate=%.3f mean_ms=%.4f "
           "p50_ms=%.4f p99_ms=%.4f max_ms=%.4f refused_p99_ms=%.4f",
           requests, ok->count, refused->count, fates[MM_LOAD_OTHER].count + fates[MM_LOAD_BROKEN].count,
           fates[MM_LOAD_LOST].count + fates[MM_LOAD_UNREACHED].count, tally->unsent, seconds,
           seconds > 0 ? (double)ok->count / seconds : 0, sum / count, mm_load_percentile(ok, 50),
           mm_load_percentile(ok, 99), mm_load_percentile(ok, 100), mm_load_percentile(refused, 99));
    if (loop.reads_spans)
        printf(" outside_ms=%.4f rest_ms=%.4f", mm_load_percentile(&tally->outside, 50),
               seconds * 1e3 - tally->span_ms[MM_LOAD_SPAN_KERNEL]);
    for (size_t span = 0; loop.reads_spans && span < MM_LOAD_SPANS; span++)
        printf(" %s_mean_ms=%.4f", mm_load_span_names[span], tally->span_ms[span] / count);
    printf("\n");
}

int main(int argc, char **argv) {
    static struct mm_load_tally tally;
    char authority[300];
    if (!read_options(argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    struct addrinfo *addresses = resolve();
    loop.address = addresses;
    snprintf(authority, sizeof authority, "%s:%s", host, port);
    message.authority = authority;
    if (file == NULL)
        mm_load_message_make(&message);
    else
        mm_load_message_read(&message, file);
    bool good = mm_load_loop_run(&loop, &tally);
    freeaddrinfo(addresses);
    if (tally.trouble[0] != '\0')
        fprintf(stderr, "steady: %s\n", tally.trouble);
    if (good && loop.rate == 0 && tally.fates[MM_LOAD_OK].count == 0) {
        fputs("steady: no request was answered as expected\n", stderr);
        good = false;
    }
    if (good)
        print(&tally);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
