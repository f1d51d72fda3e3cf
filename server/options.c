/* The table of the process's options, and how their values are read. */
#include "server/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A SECRET is a text of the environment alone, since whoever lists processes sees their flags, and is never
 * shown. */
enum kind { TEXT, CHOICE, NUMBER, SIZE, DEVICES, FLAG, ORIGIN, SECRET };

struct option {
    const char *name;
    const char *value; /* how the help calls the value; of a CHOICE and a FLAG, the values there are */
    enum kind kind;
    size_t offset;
    uint64_t min;
    uint64_t max;
    const char *fallback; /* the default as a user would write it; NULL: from the machine, or none */
    const char *help;
};

#define AT(member) offsetof(struct mm_options, member)

/* One row an option, in the order of the help. */
static const struct option table[] = {
    {"host", "ADDRESS", TEXT, AT(host), 0, 0, "127.0.0.1", "the address to listen on"},
    {"port", "PORT", NUMBER, AT(port), 0, 65535, "8080", "the port to listen on; 0 picks a free one"},
    {"connections-per-address", "N", NUMBER, AT(connections_per_address), 0, 1000000, "0",
     "connections from one address at a time; 0 is no limit but that of all connections"},
    {"tls-cert", "FILE", TEXT, AT(tls_cert), 0, 0, NULL,
     "serve by TLS alone, with this certificate (PEM), behind it those that sign it; read again on SIGHUP"},
    {"tls-key", "FILE", TEXT, AT(tls_key), 0, 0, NULL,
     "the certificate's private key (PEM); read again likewise"},
    {"api-key-file", "FILE", TEXT, AT(api_key_file), 0, 0, NULL,
     "API keys, one a line, of which requests must have one; read again on SIGHUP"},
    {"api-key", "KEY,...", SECRET, AT(api_key), 0, 0, NULL,
     "API keys from the environment, beside those of the file; there is no such flag"},
    {"open-metrics", "true|false", FLAG, AT(open_metrics), 0, 0, "false",
     "answer GET /metrics without a key"},
    {"cors-origin", "ORIGIN", ORIGIN, AT(cors_origin), 0, 0, NULL,
     "let the pages of this origin, such as https://example.org, or of all (*) read replies (CORS)"},
    {"backend", "auto|cpu|cuda", CHOICE, AT(backend), 0, 0, "auto",
     "what multiplies: auto is CUDA where a device works, and the CPU always"},
    {"devices", "all|I,J,...", DEVICES, AT(devices), 0, 0, "all", "the CUDA devices to use, by index"},
    {"threads", "N", NUMBER, AT(threads), 1, 1024, NULL, "HTTP threads (default: from the cores)"},
    {"cpu-jobs", "N", NUMBER, AT(cpu_jobs), 1, 1024, NULL,
     "products that the CPU computes at a time, at most 16 (default: from the cores)"},
    {"queue-depth", "N", NUMBER, AT(queue_depth), 1, 1000000, "1024",
     "jobs that may wait; one more is answered with 429"},
    {"queue-wait-ms", "MS", NUMBER, AT(queue_wait_ms), 1, UINT32_MAX, "60000",
     "what the jobs before one may take, by measured rates; with more it is answered with 429"},
    {"memory-budget", "SIZE", SIZE, AT(memory_budget_bytes), 1 << 20, UINT64_C(1) << 60, NULL,
     "bodies and results in flight (default: half of the cgroup's limit, else of the RAM)"},
    {"max-body", "SIZE", SIZE, AT(body_bytes_max), 1, UINT64_C(1) << 60, "2GiB",
     "the largest request body (never over the budget)"},
    {"max-dimension", "N", NUMBER, AT(dimension_max), 1, INT32_MAX, "2147483647",
     "the largest row or column count"},
    {"timeout-ms", "MS", NUMBER, AT(timeout_ms), 1, UINT32_MAX, "60000",
     "a job from its arrival to its result"},
    {"receive-timeout-ms", "MS", NUMBER, AT(receive_timeout_ms), 1, UINT32_MAX, "10000",
     "a request's head to come, and a body beside the time that its bytes gain it"},
    {"receive-rate", "SIZE", SIZE, AT(receive_rate), 1, UINT64_C(1) << 40, "4KiB",
     "the bytes that gain a body a second more"},
    {"send-timeout-ms", "MS", NUMBER, AT(send_timeout_ms), 1, UINT32_MAX, "10000",
     "how long a caller may take less of a reply than --send-rate before it is dropped"},
    {"send-rate", "SIZE", SIZE, AT(send_rate), 1, UINT64_C(1) << 40, "4KiB",
     "the bytes a second that callers take of replies at least"},
    {"drain-timeout-ms", "MS", NUMBER, AT(drain_timeout_ms), 0, UINT32_MAX, "30000",
     "how long SIGTERM waits for accepted jobs"},
    {"watchdog-ms", "MS", NUMBER, AT(watchdog_ms), 0, UINT32_MAX, "600000",
     "a GPU that is at one product for longer has failed; 0 is never"},
    {"self-test-ms", "MS", NUMBER, AT(self_test_ms), 0, UINT32_MAX, "60000",
     "how often a device with nothing to do is proved by known products; 0 is at the start alone"},
    {"benchmark-flops", "N", NUMBER, AT(benchmark_flops), 1, UINT64_C(1000000000000000000),
     "2000000000000000", "operations of all runs of a benchmark; one on the CPU counts as 1000"},
    {"benchmark-run-flops", "N", NUMBER, AT(benchmark_run_flops), 1, UINT64_C(1000000000000000000),
     "4000000000000", "operations of one run, which nothing can interrupt; likewise"},
    {"benchmark-repeats", "N", NUMBER, AT(benchmark_repeats), 1, 1000000, "1000", "repeats of a benchmark"},
    {"no-benchmark", "true|false", FLAG, AT(no_benchmark), 0, 0, "false",
     "switch POST /v1/benchmark off: it is answered with 404"},
    {"log-format", "text|json", CHOICE, AT(log_format), 0, 0, NULL,
     "log lines on stderr (default: text on a terminal, else json)"},
};

static const struct {
    const char *name;
    size_t offset;
    const char *help;
} switches[] = {
    {"healthcheck", AT(healthcheck),
     "ask the server at --host and --port for GET /healthz; exit status 0 if that is 200, else 1"},
    {"print-config", AT(print_config), "print the options in force and exit"},
    {"help", AT(help), "print this and exit"},
    {"version", AT(version), "print the version and exit"},
};

enum {
    OPTION_COUNT = sizeof table / sizeof table[0],
    SWITCH_COUNT = sizeof switches / sizeof switches[0],
    ENVIRONMENT_NAME_MAX = 64
};

static void *member(struct mm_options *options, size_t offset) {
    return (char *)options + offset;
}

/* Decimal digits only: strtoull alone would take spaces, signs and hexadecimal. */
static bool read_digits(const char **text, uint64_t *number) {
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *number = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static bool read_number(const char *text, uint64_t *number) {
    return read_digits(&text, number) && *text == '\0';
}

/* Bytes: 1048576, 64KiB, 64MiB, 2GiB, 1TiB. */
static bool read_size(const char *text, uint64_t *bytes) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    if (!read_digits(&text, bytes))
        return false;
    for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++)
        if (strcmp(text, units[unit]) == 0)
            return !__builtin_mul_overflow(*bytes, UINT64_C(1) << (10 * unit), bytes);
    return false;
}

static bool has_device(const struct mm_options *options, uint64_t index) {
    for (size_t at = 0; at < options->devices.count; at++)
        if (options->devices.indices[at] == index)
            return true;
    return false;
}

static bool read_devices(const char *text, struct mm_options *options) {
    options->devices.count = 0;
    options->devices.all = strcmp(text, "all") == 0;
    if (options->devices.all)
        return true;
    for (;;) {
        uint64_t index;
        if (options->devices.count == MM_OPTION_DEVICES_MAX || !read_digits(&text, &index) || index > 1023 ||
            has_device(options, index))
            return false;
        options->devices.indices[options->devices.count++] = (unsigned)index;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

/* Whether `text` is one of the values in "a|b|c". */
static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    while (*choices != '\0') {
        size_t choice_length = strcspn(choices, "|");
        if (length == choice_length && memcmp(choices, text, length) == 0)
            return true;
        choices += choice_length;
        choices += *choices == '|';
    }
    return false;
}

/* As browsers write an origin, since it is compared with what they send: scheme://host or
 * scheme://host:port, in lower case, without a path. */
static bool is_origin(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
    if (strcmp(text, "*") == 0)
        return true;
    const size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    if (scheme == 0 || strlen(text) > MM_OPTION_ORIGIN_MAX || strncmp(text + scheme, "://", 3) != 0)
        return false;
    const char *host = text + scheme + 3;
    const bool is_ipv6 = host[0] == '[';
    size_t length = is_ipv6 ? strspn(host, "[0123456789abcdef:.") : strspn(host, letters);
    if (is_ipv6 && host[length++] != ']')
        return false;
    const char *port = host + length;
    /* Browsers leave out the port that goes without saying, so that it would be no origin of theirs. */
    if ((strncmp(text, "https:", 6) == 0 && strcmp(port, ":443") == 0) ||
        (strncmp(text, "http:", 5) == 0 && strcmp(port, ":80") == 0))
        return false;
    return length > 0 && (port[0] == '\0' || (port[0] == ':' && port[1] != '\0' &&
                                              port[1 + strspn(port + 1, "0123456789")] == '\0'));
}

/* As a flag's value is written, or as an environment variable often is. */
static bool read_flag(const char *text, bool *flag) {
    *flag = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *flag || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool fail(char *problem, size_t size, const struct option *option, const char *source,
                 const char *text) {
    char range[128] = "";
    if (option->kind == NUMBER)
        snprintf(range, sizeof range, " from %" PRIu64 " to %" PRIu64, option->min, option->max);
    else if (option->kind == SIZE)
        snprintf(range, sizeof range, " such as 64MiB or 2GiB, at least %" PRIu64, option->min);
    else if (option->kind == ORIGIN)
        snprintf(range, sizeof range,
                 ": * or scheme://host[:port] in lower case, no path and no port that goes without saying");
    snprintf(problem, size, "%s is '%s', but must be %s%s", source, text, option->value, range);
    return false;
}

static bool set(struct mm_options *options, const struct option *option, const char *source, const char *text,
                char *problem, size_t size) {
    void *target = member(options, option->offset);
    uint64_t number = 0;
    bool good = true;
    switch (option->kind) {
    case TEXT:
        good = text[0] != '\0';
        *(const char **)target = text;
        break;
    case ORIGIN:
        good = is_origin(text);
        *(const char **)target = text;
        break;
    case SECRET: /* judged by who reads it (server/keys.h), whose sentences do not show it */
        *(const char **)target = text;
        break;
    case CHOICE:
        good = is_choice(option->value, text);
        *(const char **)target = text;
        break;
    case NUMBER:
        good = read_number(text, &number) && number >= option->min && number <= option->max;
        *(uint64_t *)target = number;
        break;
    case SIZE:
        good = read_size(text, &number) && number >= option->min && number <= option->max;
        *(uint64_t *)target = number;
        break;
    case DEVICES:
        good = read_devices(text, options);
        break;
    case FLAG:
        good = read_flag(text, target);
        break;
    }
    return good ? true : fail(problem, size, option, source, text);
}

/* queue-depth -> MATMULD_QUEUE_DEPTH */
static void environment_name(const char *name, char *out) {
    size_t length = (size_t)snprintf(out, ENVIRONMENT_NAME_MAX, "MATMULD_%s", name);
    for (size_t index = 0; index < length; index++)
        out[index] = (char)(out[index] == '-' ? '_' : toupper((unsigned char)out[index]));
}

static bool set_from_environment(struct mm_options *options, char *problem, size_t size) {
    for (size_t index = 0; index < OPTION_COUNT; index++) {
        char name[ENVIRONMENT_NAME_MAX];
        environment_name(table[index].name, name);
        const char *text = getenv(name);
        if (text != NULL && !set(options, &table[index], name, text, problem, size))
            return false;
    }
    return true;
}

static bool set_switch(struct mm_options *options, const char *flag) {
    for (size_t index = 0; index < SWITCH_COUNT; index++) {
        if (strcmp(switches[index].name, flag) == 0) {
            *(bool *)member(options, switches[index].offset) = true;
            return true;
        }
    }
    return false;
}

/* The secret that someone gives as a flag, --api-key or --api-key=KEY; NULL: none. */
static const struct option *find_secret(const char *flag) {
    const size_t length = strcspn(flag, "=");
    for (size_t index = 0; index < OPTION_COUNT; index++)
        if (table[index].kind == SECRET && length == strlen(table[index].name) + 2 &&
            strncmp(flag, "--", 2) == 0 && memcmp(flag + 2, table[index].name, length - 2) == 0)
            return &table[index];
    return NULL;
}

/* The value behind a flag that there is not must not be shown where it is a secret. */
static bool fail_flag(const char *flag, char *problem, size_t size) {
    const struct option *secret = find_secret(flag);
    char name[ENVIRONMENT_NAME_MAX];
    if (secret == NULL) {
        snprintf(problem, size, "there is no option '%s'", flag);
        return false;
    }
    environment_name(secret->name, name);
    snprintf(problem, size, "--%s would be seen by whoever lists processes: set %s, or use a file",
             secret->name, name);
    return false;
}

/* Reads --name value or --name=value at argv[*at], and moves *at past it. */
static bool set_from_flag(struct mm_options *options, int argc, char **argv, int *at, char *problem,
                          size_t size) {
    const char *flag = argv[(*at)++];
    if (strncmp(flag, "--", 2) == 0 && set_switch(options, flag + 2))
        return true;
    for (size_t index = 0; index < OPTION_COUNT && strncmp(flag, "--", 2) == 0; index++) {
        size_t length = strlen(table[index].name);
        if (table[index].kind == SECRET || strncmp(flag + 2, table[index].name, length) != 0)
            continue;
        char source[ENVIRONMENT_NAME_MAX];
        snprintf(source, sizeof source, "--%s", table[index].name);
        if (flag[2 + length] == '=')
            return set(options, &table[index], source, flag + 2 + length + 1, problem, size);
        if (flag[2 + length] != '\0')
            continue;
        if (table[index].kind == FLAG)
            return set(options, &table[index], source, "true", problem, size);
        if (*at == argc) {
            snprintf(problem, size, "%s needs a value: %s", source, table[index].value);
            return false;
        }
        if (find_secret(argv[*at]) != NULL) /* which the refusal of this value would show */
            return fail_flag(argv[*at], problem, size);
        return set(options, &table[index], source, argv[(*at)++], problem, size);
    }
    return fail_flag(flag, problem, size);
}

bool mm_options_parse(struct mm_options *options, int argc, char **argv, char *problem, size_t problem_size) {
    memset(options, 0, sizeof *options);
    for (int at = 1; at < argc; at++) {
        /* Help is to be had whatever else is wrong. */
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "--version") == 0)
            return set_switch(options, argv[at] + 2);
    }
    for (size_t index = 0; index < OPTION_COUNT; index++)
        if (table[index].fallback != NULL &&
            !set(options, &table[index], "the default", table[index].fallback, problem, problem_size))
            return false;
    if (!set_from_environment(options, problem, problem_size))
        return false;
    for (int at = 1; at < argc;)
        if (!set_from_flag(options, argc, argv, &at, problem, problem_size))
            return false;
    if ((options->tls_cert == NULL) == (options->tls_key == NULL))
        return true;
    snprintf(problem, problem_size, "--tls-cert and --tls-key are given both or neither, and %s is missing",
             options->tls_cert == NULL ? "--tls-cert" : "--tls-key");
    return false;
}

/* How a user gives it: --port PORT, --no-benchmark, MATMULD_API_KEY=KEY,... */
static void help_name(const struct option *option, char *text, size_t size) {
    char name[ENVIRONMENT_NAME_MAX];
    environment_name(option->name, name);
    if (option->kind == SECRET)
        snprintf(text, size, "%s=%s", name, option->value);
    else if (option->kind == FLAG)
        snprintf(text, size, "--%s", option->name);
    else
        snprintf(text, size, "--%s %s", option->name, option->value);
}

void mm_options_help(FILE *out) {
    fprintf(out, "usage: matmuld [OPTION]...\n\n"
                 "Multiplies matrices for anyone who can send an HTTP request.\n\n"
                 "Every option is a flag and an environment variable (--queue-depth, MATMULD_QUEUE_DEPTH);\n"
                 "a flag wins over the environment, the environment over the default.\n\n");
    for (size_t index = 0; index < OPTION_COUNT; index++) {
        char flag[ENVIRONMENT_NAME_MAX + 64];
        bool bare = table[index].kind == FLAG;
        help_name(&table[index], flag, sizeof flag);
        fprintf(out, "  %-26s %s", flag, table[index].help);
        if (table[index].fallback != NULL && !bare)
            fprintf(out, " (default: %s)", table[index].fallback);
        fputc('\n', out);
    }
    for (size_t index = 0; index < SWITCH_COUNT; index++)
        fprintf(out, "  --%-24s %s\n", switches[index].name, switches[index].help);
}

static void print_devices(const struct mm_options *options, FILE *out) {
    if (options->devices.all)
        fprintf(out, "all");
    for (size_t index = 0; index < options->devices.count; index++)
        fprintf(out, "%s%u", index > 0 ? "," : "", options->devices.indices[index]);
}

/* Nothing for what is not given and has no default. */
static void print_text(const char *text, FILE *out) {
    if (text != NULL)
        fputs(text, out);
}

/* Nothing for a 0 that stands for what the machine gives: nobody could write it. */
static void print_number(const struct option *option, uint64_t number, FILE *out) {
    if (number >= option->min)
        fprintf(out, "%" PRIu64, number);
}

void mm_options_print(const struct mm_options *options, FILE *out) {
    for (size_t index = 0; index < OPTION_COUNT; index++) {
        const char *at = (const char *)options + table[index].offset;
        fprintf(out, "%s = ", table[index].name);
        switch (table[index].kind) {
        case TEXT:
        case CHOICE:
        case ORIGIN:
            print_text(*(const char *const *)(const void *)at, out);
            break;
        case SECRET:
            print_text(*(const char *const *)(const void *)at == NULL ? NULL : "(set)", out);
            break;
        case NUMBER:
        case SIZE:
            print_number(&table[index], *(const uint64_t *)(const void *)at, out);
            break;
        case DEVICES:
            print_devices(options, out);
            break;
        case FLAG:
            fprintf(out, "%s", *(const bool *)(const void *)at ? "true" : "false");
            break;
        }
        fputc('\n', out);
    }
}
