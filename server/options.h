/* The options of the process. One table defines flags, environment variables, --help and --print-config. A
 * flag overrides the environment variable, which overrides the default. */
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

/* Strings point into argv, the environment or static memory. If threads, cpu_jobs or memory_budget_bytes is
 * 0, main chooses a value for the machine. main also lowers body_bytes_max to fit the memory budget. */
struct mm_options {
    const char *host;
    uint64_t port;                    /* 0: any free port */
    uint64_t connections_per_address; /* 0: no limit */
    const char *tls_cert;             /* NULL: no TLS; then tls_key is NULL too */
    const char *tls_key;
    const char *api_key_file; /* NULL: no key file */
    const char *api_key;      /* secret; NULL: not given */
    bool open_metrics;
    const char *cors_origin;     /* an origin or "*"; NULL: no CORS */
    const char *allowed_hosts;   /* separated by commas; NULL: not given */
    const char *trusted_proxies; /* networks that mm_networks_read accepts; NULL: not given */
    const char *backend;
    struct {
        unsigned indices[MM_OPTION_DEVICES_MAX];
        size_t count;
        bool all;
    } devices;
    uint64_t threads;
    uint64_t cpu_jobs;
    uint64_t queue_depth;
    uint64_t jobs_per_key; /* 0: only queue_depth limits the jobs of a key */
    uint64_t queue_wait_ms;
    uint64_t memory_budget_bytes;
    uint64_t memory_wait_ms;
    uint64_t body_bytes_max;
    uint64_t store_bytes_max;     /* 0: no store; UINT64_MAX: main chooses the size */
    uint64_t store_key_bytes_max; /* 0: main chooses a share of the store */
    uint64_t store_ttl_s;         /* 0: matrices do not expire */
    uint64_t store_count_max;
    uint64_t dimension_max;
    uint64_t timeout_ms;
    uint64_t max_device_memory_bytes; /* 0: an eighth of the GPU's memory */
    uint64_t max_kernel_ms;
    uint64_t receive_timeout_ms;
    uint64_t receive_rate; /* bytes per second */
    uint64_t send_timeout_ms;
    uint64_t send_rate;    /* bytes per second */
    uint64_t lame_duck_ms; /* 0: the drain begins at once */
    uint64_t drain_timeout_ms;
    uint64_t watchdog_ms;  /* 0: no watchdog */
    uint64_t self_test_ms; /* 0: self-tests run only at the start */
    uint64_t benchmark_flops;
    uint64_t benchmark_run_flops;
    uint64_t benchmark_repeats;
    bool no_benchmark;
    bool no_page;
    const char *log_format; /* "text" or "json"; NULL: text on a terminal, otherwise json */
    const char *log_level;  /* a word for mm_log_set_level */
    bool healthcheck;       /* this flag and the next three: given on the command line */
    bool print_config;
    bool help;
    bool version;
};

/* Sets *options from the defaults, the environment and the flags. Ignores a value that Kubernetes has set
 * (mm_environment_is_link) for an option that must be a number. Fails with MM_BAD_REQUEST if a flag or a
 * value is wrong. argv must outlive *options. */
enum mm_status mm_options_parse(struct mm_options *options, int argc, char **argv, struct mm_error *error);

/* Whether Kubernetes could have set this value, as in tcp://10.96.3.7:8080. Any thread may call it. */
bool mm_environment_is_link(const char *value);

/* Logs a warning for each ignored variable whose name begins with MATMULD_. For a misspelt name the warning
 * shows the nearest option. Variables that Kubernetes has set for a Service cause no warning, except
 * MATMULD_PORT. Only main may call it, before other threads start. */
void mm_environment_warn(void);

/* Writes the name of an option's variable; false after the last option. Any thread may call it. */
bool mm_options_variable(size_t index, char name[MM_OPTION_VARIABLE_MAX]);

/* Print the texts of --help and --print-config. mm_options_print writes a line `NAME = VALUE` for each
 * option. VALUE is valid input for the option, empty if the option is not set, or "(set)" for a secret. */
void mm_options_help(FILE *out);
void mm_options_print(const struct mm_options *options, FILE *out);
