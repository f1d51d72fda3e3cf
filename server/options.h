/* The options of the process: flags, environment variables, --help and --print-config follow from one table.
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

/* Texts point into argv, the environment or static memory. 0 means "from the machine" for threads, cpu_jobs
 * and memory_budget_bytes; body_bytes_max may be over the budget. */
struct mm_options {
    const char *host;
    uint64_t port;                    /* 0: any free one */
    uint64_t connections_per_address; /* 0: no limit */
    const char *tls_cert;             /* NULL, as tls_key: no TLS */
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
    uint64_t store_bytes_max;     /* 0: no store. UINT64_MAX: from the machine */
    uint64_t store_key_bytes_max; /* 0: from the machine */
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
    uint64_t self_test_ms; /* 0: at the start alone */
    uint64_t benchmark_flops;
    uint64_t benchmark_run_flops;
    uint64_t benchmark_repeats;
    bool no_benchmark;
    bool no_page;
    const char *log_format; /* "text" or "json"; NULL: text on a terminal, else json */
    bool healthcheck;       /* these four: the flag was given */
    bool print_config;
    bool help;
    bool version;
};

/* Fills *options from the defaults, the environment and the flags, except a number that Kubernetes has set
 * (mm_environment_is_link). MM_BAD_REQUEST in *error on an unknown flag or a bad value. argv stays in use. */
enum mm_status mm_options_parse(struct mm_options *options, int argc, char **argv, struct mm_error *error);

/* Whether Kubernetes sets such a value as the port of a Service: tcp://10.96.3.7:8080. Any thread. */
bool mm_environment_is_link(const char *value);

/* Logs a warning for each MATMULD_… variable that is ignored: misspelt ones with the nearest option, and
 * MATMULD_PORT if Kubernetes has set it. Other variables of a Service are passed over. From main, before
 * other threads. */
void mm_environment_warn(void);

/* The environment variable of option number `index`; false past the last. Any thread. */
bool mm_options_variable(size_t index, char name[MM_OPTION_VARIABLE_MAX]);

/* The texts of --help and --print-config. The latter prints `NAME = VALUE` as NAME=VALUE would be accepted,
 * nothing for a value that is not set, and "(set)" for a secret. */
void mm_options_help(FILE *out);
void mm_options_print(const struct mm_options *options, FILE *out);
