/* Rows become those of getopt_long. */
#include "bench/load/options.h"

#include "bench/load/message.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPTIONS_MAX = 24, EDGE_MAX = 65536 };

static bool read_count(const struct mm_load_option *row, const char *text) {
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    *(size_t *)row->value = (size_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= row->min && value <= row->max;
}

static bool read_seconds(const struct mm_load_option *row, const char *text) {
    char *end;
    const double value = strtod(text, &end);
    *(double *)row->value = value;
    return end != text && *end == '\0' && value >= (double)row->min && value <= (double)row->max;
}

static bool read_shape(struct mm_load_message *message, const char *text) {
    char rest;
    return sscanf(text, "%5zux%5zux%5zu%c", &message->m, &message->k, &message->n, &rest) == 3 &&
           message->m > 0 && message->k > 0 && message->n > 0 && message->m <= EDGE_MAX &&
           message->k <= EDGE_MAX && message->n <= EDGE_MAX;
}

static bool read_value(const struct mm_load_option *row, const char *text) {
    switch (row->kind) {
    case MM_LOAD_TEXT:
        *(const char **)row->value = text;
        return true;
    case MM_LOAD_COUNT:
        return read_count(row, text);
    case MM_LOAD_SECONDS:
        return read_seconds(row, text);
    case MM_LOAD_SHAPE:
        return read_shape(row->value, text);
    case MM_LOAD_FORM:
        return mm_load_message_form_find(text, row->value);
    case MM_LOAD_YES:
        return *(bool *)row->value = true;
    }
    return false;
}

static bool read_all(const struct mm_load_option *rows, int argc, char **argv) {
    struct option table[OPTIONS_MAX + 1] = {0};
    int index = 0;
    for (size_t row = 0; row < OPTIONS_MAX && rows[row].name != NULL; row++)
        table[row] = (struct option){
            rows[row].name, rows[row].kind == MM_LOAD_YES ? no_argument : required_argument, NULL, 0};
    for (int found; (found = getopt_long(argc, argv, "", table, &index)) != -1;)
        if (found != 0 || !read_value(&rows[index], optarg)) {
            if (found == 0)
                fprintf(stderr, "%s: a bad value for --%s: '%s'\n", argv[0], rows[index].name, optarg);
            return false;
        }
    return optind == argc;
}

void mm_load_options_read(const struct mm_load_option *rows, const char *const *port, const char *usage,
                          int argc, char **argv) {
    if (read_all(rows, argc, argv) && *port != NULL)
        return;
    fputs(usage, stderr);
    exit(MM_LOAD_EXIT_USAGE);
}

struct addrinfo *mm_load_resolve(const char *host, const char *port) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    const int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure == 0)
        return addresses;
    fprintf(stderr, "%s port %s: %s\n", host, port, gai_strerror(failure));
    exit(EXIT_FAILURE);
}
