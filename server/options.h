/* The options of the process: one table from which flags, environment variables, --help and
 * --print-config follow. A flag wins over the environment, the environment over the default. */
#ifndef MM_SERVER_OPTIONS_H
#define MM_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_OPTION_DEVICES_MAX = 64, MM_OPTION_ORIGIN_MAX = 255 };

/* What was asked for. Texts point into argv, the environment or static memory. 0 means "from the
 * machine" for threads, cpu_jobs, memory_budget_bytes; body_bytes_max is as given, not yet cut to the budget.
 */
struct mm_options {
    const char *host;
    uint64_t port;                    /* 0: any free one */
    uint64_t connections_per_address; /* 0: no limit */
    const char *tls_cert;             /* with tls_key, or both NULL: no TLS */
    const char *tls_key;
    const char *api_key_file; /* NULL: none */
    const char *api_key;      /* of the environment, never to be shown; NULL: none */
    bool open_metrics;
    const char *cors_origin; /* an origin as browsers write it, or "*"; NULL: none */
    const char *backend;
    struct {
        unsigned indices[MM_OPTION_DEVICES_MAX];
        size_t count;
        bool all;
    } devices;
    uint64_t threads;
    uint64_t cpu_jobs;
    uint64_t queue_depth;
    uint64_t queue_wait_ms;
    uint64_t memory_budget_bytes;
    uint64_t body_bytes_max;
    uint64_t dimension_max;
    uint64_t timeout_ms;
    uint64_t receive_timeout_ms;
    uint64_t receive_rate; /* bytes a second */
    uint64_t send_timeout_ms;
    uint64_t send_rate; /* bytes a second */
    uint64_t drain_timeout_ms;
    uint64_t watchdog_ms;  /* 0: never */
    uint64_t self_test_ms; /* 0: at the start alone */
    uint64_t benchmark_flops;
    uint64_t benchmark_run_flops;
    uint64_t benchmark_repeats;
    bool no_benchmark;
    const char *log_format; /* "text" or "json"; NULL: text on a terminal, else json */
    bool healthcheck;       /* --healthcheck, --print-config, --help and --version were given */
    bool print_config;
    bool help;
    bool version;
};

/* Fills *options from the default, the environment and the flags. False, with a sentence in problem
 * (cut to fit), on an unknown flag or a bad value. argv stays in use. */
bool mm_options_parse(struct mm_options *options, int argc, char **argv, char *problem, size_t problem_size);

/* --help's text, --print-config's lines (`NAME = VALUE`, as NAME=VALUE would be accepted;
 * nothing for a value that is neither given nor has a default, and "(set)" for a secret). */
void mm_options_help(FILE *out);
void mm_options_print(const struct mm_options *options, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
