/* The options of the process. Flags, environment variables, --help and --print-config follow from one table.
 * A flag wins over the environment, the environment over the default. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    MM_OPTION_DEVICES_MAX = 64,
    MM_OPTION_ORIGIN_MAX = 255,
    MM_OPTION_HOSTS_MAX = 4095,
    MM_OPTION_VARIABLE_MAX = 64
};

/* Texts point into argv, the environment or static memory. For threads, cpu_jobs and memory_budget_bytes, 0
 * means that the machine decides. body_bytes_max may exceed the budget. */
struct mm_options {
    const char *host;
    uint64_t port;                    /* 0: any free one */
    uint64_t connections_per_address; /* 0: no limit */
    const char *tls_cert;             /* tls_cert and tls_key NULL: no TLS */
    const char *tls_key;
    const char *api_key_file; /* NULL: none */
    const char *api_key;      /* secret; NULL: none */
    bool open_metrics;
    const char *cors_origin;   /* or "*"; NULL: none */
    const char *allowed_hosts; /* separated by commas; NULL: not given */
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
    uint64_t memory_wait_ms;
    uint64_t body_bytes_max;
    uint64_t store_bytes_max;     /* 0: no store. UINT64_MAX: the machine decides */
    uint64_t store_key_bytes_max; /* 0: a share of the store */
    uint64_t store_ttl_s;         /* 0: no limit */
    uint64_t store_count_max;
    uint64_t dimension_max;
    uint64_t timeout_ms;
    uint64_t max_device_memory_bytes; /* 0: an eighth of each device's */
    uint64_t max_kernel_ms;
    uint64_t receive_timeout_ms;
    uint64_t receive_rate; /* bytes a second */
    uint64_t send_timeout_ms;
    uint64_t send_rate; /* bytes a second */
    uint64_t drain_timeout_ms;
    uint64_t watchdog_ms;  /* 0: never */
    uint64_t self_test_ms; /* 0: only at the start */
    uint64_t benchmark_flops;
    uint64_t benchmark_run_flops;
    uint64_t benchmark_repeats;
    bool no_benchmark;
    bool no_page;
    const char *log_format; /* "text" or "json"; NULL: text on a terminal, else json */
    bool healthcheck;       /* this one and the next three: the flag was given */
    bool print_config;
    bool help;
    bool version;
};

/* Sets *options from the defaults, the environment and the flags, but ignores a number that Kubernetes has
 * set (mm_environment_is_link). MM_BAD_REQUEST in *error if a flag is unknown or a value is bad. argv stays
 * in use. */
enum mm_status mm_options_parse(struct mm_options *options, int argc, char **argv, struct mm_error *error);

/* Whether Kubernetes sets such a value as the port of a Service: tcp://10.96.3.7:8080. Any thread may call
 * it. */
bool mm_environment_is_link(const char *value);

/* Logs a warning for each MATMULD_… variable that is ignored: a misspelt one, with the nearest option, and
 * MATMULD_PORT if Kubernetes has set it. Other variables of a Service cause no warning. Only main calls it,
 * before other threads start. */
void mm_environment_warn(void);

/* Writes the environment variable of option number `index`; false past the last. Any thread may call it. */
bool mm_options_variable(size_t index, char name[MM_OPTION_VARIABLE_MAX]);

/* Print --help and --print-config. mm_options_print writes `NAME = VALUE` with a value that NAME=VALUE would
 * accept, nothing for a value that is not set, and "(set)" for a secret. */
void mm_options_help(FILE *out);
void mm_options_print(const struct mm_options *options, FILE *out);
