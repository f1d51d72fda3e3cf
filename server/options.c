#include "server/options.h"

#include "api/slice.h"
#include "server/http/address.h"
#include "server/http/origin.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A SECRET is an option that only the environment can set, because every user can see the flags of a process.
 * It is never printed. A SWITCH is a flag without a value and without an environment variable. */
enum kind { TEXT, CHOICE, NUMBER, SIZE, DEVICES, FLAG, ORIGIN, HOSTS, NETWORKS, SECRET, SWITCH };

struct option {
    const char *name;
    const char *value; /* shown in --help; lists the valid values of a CHOICE or FLAG */
    enum kind kind;
    size_t offset;
    uint64_t min;
    uint64_t max;
    const char *fallback; /* default as text; NULL: none, or chosen for the machine */
    const char *help;
};

#define AT(member) offsetof(struct mm_options, member)

static const struct option table[] = {
    {"host", "ADDRESS", TEXT, AT(host), 0, 0, "127.0.0.1", "address to listen on"},
    {"port", "PORT", NUMBER, AT(port), 0, 65535, "8080", "port to listen on; 0: any free one"},
    {"connections-per-address", "N", NUMBER, AT(connections_per_address), 0, 1000000, "0",
     "most connections from one address at a time; 0: only the limit of all connections"},
    {"tls-cert", "FILE", TEXT, AT(tls_cert), 0, 0, NULL,
     "certificate (PEM), followed by those that sign it; makes the server speak TLS only; reread on SIGHUP"},
    {"tls-key", "FILE", TEXT, AT(tls_key), 0, 0, NULL,
     "private key of the certificate (PEM); reread on SIGHUP"},
    {"api-key-file", "FILE", TEXT, AT(api_key_file), 0, 0, NULL,
     "API keys, one a line; a request needs one of them; reread on SIGHUP"},
    {"api-key", "KEY,...", SECRET, AT(api_key), 0, 0, NULL,
     "API keys, beside those of the file; an environment variable only, not a flag"},
    {"open-metrics", "true|false", FLAG, AT(open_metrics), 0, 0, "false", "GET /metrics needs no key"},
    {"cors-origin", "ORIGIN", ORIGIN, AT(cors_origin), 0, 0, NULL,
     "origin whose pages may read replies (CORS), such as https://example.org, or * for all"},
    {"allowed-hosts", "HOST,...", HOSTS, AT(allowed_hosts), 0, 0, NULL,
     "names that Host may hold, beside IP addresses and localhost (default: none; Host is not checked if "
     "other machines reach the address)"},
    {"trusted-proxies", "CIDR,...", NETWORKS, AT(trusted_proxies), 0, 0, NULL,
     "networks of proxies, such as 10.1.2.3,::1, whose header X-Forwarded-For names the client (default: "
     "none)"},
    {"backend", "auto|cpu|cuda", CHOICE, AT(backend), 0, 0, "auto",
     "what multiplies; auto: every CUDA device that works, and the CPU"},
    {"devices", "all|I,J,...", DEVICES, AT(devices), 0, 0, "all", "CUDA devices to use, by index"},
    {"threads", "N", NUMBER, AT(threads), 1, 1024, NULL, "HTTP threads (default: from the cores)"},
    {"cpu-jobs", "N", NUMBER, AT(cpu_jobs), 1, 1024, NULL,
     "products that the CPU computes at a time, at most 16 and one a core (default: from the cores)"},
    {"queue-depth", "N", NUMBER, AT(queue_depth), 1, 1000000, "1024",
     "most jobs that may wait; further ones are answered with 429"},
    {"jobs-per-key", "N", NUMBER, AT(jobs_per_key), 1, 1000000, NULL,
     "most jobs of one API key, or without keys of one address, that may wait (default: --queue-depth)"},
    {"queue-wait-ms", "MS", NUMBER, AT(queue_wait_ms), 1, UINT32_MAX, "60000",
     "longest wait for the jobs ahead, by measured rates; a job that would wait longer is answered with 429"},
    {"memory-budget", "SIZE", SIZE, AT(memory_budget_bytes), 1 << 20, UINT64_C(1) << 60, NULL,
     "memory for bodies and results (default: half of the cgroup's limit, else of the RAM)"},
    {"memory-wait-ms", "MS", NUMBER, AT(memory_wait_ms), 0, UINT32_MAX, "3000",
     "longest time that a request waits for memory of the budget; after it 429"},
    {"max-body", "SIZE", SIZE, AT(body_bytes_max), 1, UINT64_C(1) << 60, "2GiB",
     "largest request body, never over fifteen sixteenths of the memory budget"},
    {"store-memory", "SIZE", SIZE, AT(store_bytes_max), 0, UINT64_C(1) << 60, NULL,
     "memory for stored matrices; 0: none are stored (default: a quarter of the memory of each GPU; without "
     "one, half of the memory budget)"},
    {"store-memory-per-key", "SIZE", SIZE, AT(store_key_bytes_max), 1, UINT64_C(1) << 60, NULL,
     "memory for the matrices of one API key (default: half of the store; without keys all of it)"},
    {"store-ttl-s", "S", NUMBER, AT(store_ttl_s), 0, 31536000, "0",
     "longest life of a stored matrix in seconds; 0: no limit"},
    {"store-count", "N", NUMBER, AT(store_count_max), 1, 1000000, "65536",
     "most stored matrices; one API key may have half of them"},
    {"max-dimension", "N", NUMBER, AT(dimension_max), 1, INT32_MAX, "2147483647",
     "largest row or column count"},
    {"timeout-ms", "MS", NUMBER, AT(timeout_ms), 1, UINT32_MAX, "60000",
     "longest time from the arrival of a request to its result"},
    {"max-kernel-ms", "MS", NUMBER, AT(max_kernel_ms), 1, UINT32_MAX, NULL,
     "most estimated kernel time of a product, by its variant's measured rate; over it 413; less than half "
     "of --watchdog-ms (default: 30000)"},
    {"max-device-memory", "SIZE", SIZE, AT(max_device_memory_bytes), 1 << 20, UINT64_C(1) << 60, NULL,
     "most memory of a GPU for a product, which is computed in tiles if it needs more (default: an eighth of "
     "the GPU's, only for products with generated or stored operands or with out)"},
    {"receive-timeout-ms", "MS", NUMBER, AT(receive_timeout_ms), 1, UINT32_MAX, "10000",
     "longest time to receive a request's head; a body may take a second more for each --receive-rate bytes "
     "that have arrived"},
    {"receive-rate", "SIZE", SIZE, AT(receive_rate), 1, UINT64_C(1) << 40, "4KiB",
     "slowest upload accepted, in bytes per second"},
    {"send-timeout-ms", "MS", NUMBER, AT(send_timeout_ms), 1, UINT32_MAX, "10000",
     "time after which a client that reads more slowly than --send-rate is disconnected"},
    {"send-rate", "SIZE", SIZE, AT(send_rate), 1, UINT64_C(1) << 40, "4KiB",
     "slowest download accepted, in bytes per second"},
    {"lame-duck-ms", "MS", NUMBER, AT(lame_duck_ms), 0, UINT32_MAX, "5000",
     "time after SIGTERM in which /readyz is 503 but requests are served, before the drain; 0: none"},
    {"drain-timeout-ms", "MS", NUMBER, AT(drain_timeout_ms), 0, UINT32_MAX, "30000",
     "longest wait for accepted jobs in the drain"},
    {"watchdog-ms", "MS", NUMBER, AT(watchdog_ms), 0, UINT32_MAX, "600000",
     "longest time of one product on a GPU; after it the GPU has failed; 0: no limit"},
    {"self-test-ms", "MS", NUMBER, AT(self_test_ms), 0, UINT32_MAX, "60000",
     "time between tests of an idle device by known products; 0: only at the start"},
    {"benchmark-flops", "N", NUMBER, AT(benchmark_flops), 1, UINT64_C(1000000000000000000),
     "2000000000000000", "most floating-point operations of a benchmark, all runs together"},
    {"benchmark-run-flops", "N", NUMBER, AT(benchmark_run_flops), 1, UINT64_C(1000000000000000000),
     "4000000000000", "most floating-point operations of one run, which --max-kernel-ms limits too"},
    {"benchmark-repeats", "N", NUMBER, AT(benchmark_repeats), 1, 1000000, "1000",
     "most repeats of a benchmark"},
    {"no-benchmark", "true|false", FLAG, AT(no_benchmark), 0, 0, "false",
     "POST /v1/benchmark is switched off and answered with 404"},
    {"no-page", "true|false", FLAG, AT(no_page), 0, 0, "false",
     "the page at / and /docs is switched off and answered with 404"},
    {"log-format", "text|json", CHOICE, AT(log_format), 0, 0, NULL,
     "format of the log on stderr (default: text on a terminal, else json)"},
    {"log-level", "debug|info|warning|error", CHOICE, AT(log_level), 0, 0, "info",
     "least level that is logged; debug adds health checks and scrapes that succeed, info has all other "
     "requests"},
    {"healthcheck", NULL, SWITCH, AT(healthcheck), 0, 0, NULL,
     "ask the server at --host and --port for GET /healthz; exit status 0 if the reply is 200, else 1"},
    {"print-config", NULL, SWITCH, AT(print_config), 0, 0, NULL,
     "read the files, print the options in force, and exit"},
    {"help", NULL, SWITCH, AT(help), 0, 0, NULL, "print this and exit"},
    {"version", NULL, SWITCH, AT(version), 0, 0, NULL, "print the version and exit"},
};

enum {
    ROW_COUNT = sizeof table / sizeof table[0],
    SWITCH_COUNT = 4,
    OPTION_COUNT = ROW_COUNT - SWITCH_COUNT
};

static void *member(struct mm_options *options, size_t offset) {
    return (char *)options + offset;
}

static bool read_size(const char *text, uint64_t *bytes) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const struct mm_slice digits = {text, strspn(text, "0123456789")};
    if (!mm_slice_whole(digits, bytes, NULL))
        return false;
    for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++)
        if (strcmp(text + digits.length, units[unit]) == 0)
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
    struct mm_slice rest = mm_slice_of(text), item;
    uint64_t index;
    while (mm_slice_next(&rest, ',', &item)) {
        if (options->devices.count == MM_OPTION_DEVICES_MAX || !mm_slice_whole(item, &index, NULL) ||
            index > 1023 || has_device(options, index))
            return false;
        options->devices.indices[options->devices.count++] = (unsigned)index;
    }
    return true;
}

/* Whether `text` is one of the values in "a|b|c". */
static bool is_choice(const char *choices, const char *text) {
    struct mm_slice rest = mm_slice_of(choices), choice;
    while (mm_slice_next(&rest, '|', &choice))
        if (mm_slice_is(choice, text))
            return true;
    return false;
}

static bool read_flag(const char *text, bool *flag) {
    *flag = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *flag || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static enum mm_status fail(const struct option *option, const char *source, const char *text,
                           struct mm_error *error) {
    char range[128] = "";
    if (option->kind == NUMBER)
        snprintf(range, sizeof range, " from %" PRIu64 " to %" PRIu64, option->min, option->max);
    else if (option->kind == SIZE)
        snprintf(range, sizeof range, " such as 64MiB or 2GiB, at least %" PRIu64, option->min);
    else if (option->kind == ORIGIN)
        snprintf(range, sizeof range,
                 ": * or scheme://host[:port] in lower case, no path and no default port");
    else if (option->kind == HOSTS)
        snprintf(range, sizeof range,
                 ": names or addresses by commas, without spaces, of at most %d bytes together",
                 MM_OPTION_HOSTS_MAX);
    else if (option->kind == NETWORKS)
        snprintf(range, sizeof range,
                 ": at most %d addresses or networks by commas, without spaces, such as 10.0.0.0/8,::1",
                 MM_NETWORKS_MAX);
    return mm_fail(error, MM_BAD_REQUEST, "%s is '%s', but must be %s%s", source, text, option->value, range);
}

static bool is_good_text(const struct option *option, const char *text) {
    struct mm_networks networks;
    switch (option->kind) {
    case ORIGIN:
        return strcmp(text, "*") == 0 || (strlen(text) <= MM_OPTION_ORIGIN_MAX && mm_origin_is_origin(text));
    case HOSTS:
        return strlen(text) <= MM_OPTION_HOSTS_MAX && mm_origin_is_list(text);
    case NETWORKS:
        return mm_networks_read(text, &networks);
    case CHOICE:
        return is_choice(option->value, text);
    case SECRET: /* server/auth/keys.h checks secrets */
        return true;
    default:
        return text[0] != '\0';
    }
}

static enum mm_status set(struct mm_options *options, const struct option *option, const char *source,
                          const char *text, struct mm_error *error) {
    void *target = member(options, option->offset);
    uint64_t number = 0;
    bool good;
    switch (option->kind) {
    case NUMBER:
    case SIZE:
        good = option->kind == NUMBER ? mm_slice_whole(mm_slice_of(text), &number, NULL)
                                      : read_size(text, &number);
        good = good && number >= option->min && number <= option->max;
        *(uint64_t *)target = number;
        break;
    case DEVICES:
        good = read_devices(text, options);
        break;
    case FLAG:
    case SWITCH:
        good = read_flag(text, target);
        break;
    default:
        good = is_good_text(option, text);
        *(const char **)target = text;
    }
    return good ? MM_OK : fail(option, source, text, error);
}

static void environment_name(const char *name, char *out) {
    size_t length = (size_t)snprintf(out, MM_OPTION_VARIABLE_MAX, "MATMULD_%s", name);
    for (size_t index = 0; index < length; index++)
        out[index] = (char)(out[index] == '-' ? '_' : toupper((unsigned char)out[index]));
}

bool mm_options_variable(size_t index, char name[MM_OPTION_VARIABLE_MAX]) {
    if (index < OPTION_COUNT)
        environment_name(table[index].name, name);
    return index < OPTION_COUNT;
}

static enum mm_status set_from_environment(struct mm_options *options, struct mm_error *error) {
    for (size_t index = 0; index < OPTION_COUNT; index++) {
        char name[MM_OPTION_VARIABLE_MAX];
        environment_name(table[index].name, name);
        const char *text = getenv(name);
        if (text != NULL && table[index].kind == NUMBER && mm_environment_is_link(text))
            continue;
        if (text != NULL && set(options, &table[index], name, text, error) != MM_OK)
            return error->status;
    }
    return MM_OK;
}

static const struct option *find_option(const char *flag) {
    const size_t length = strcspn(flag, "=");
    for (size_t index = 0; index < ROW_COUNT; index++)
        if (strncmp(flag, "--", 2) == 0 && length == strlen(table[index].name) + 2 &&
            memcmp(flag + 2, table[index].name, length - 2) == 0)
            return &table[index];
    return NULL;
}

static enum mm_status refuse_secret(const struct option *secret, struct mm_error *error) {
    char name[MM_OPTION_VARIABLE_MAX];
    environment_name(secret->name, name);
    return mm_fail(error, MM_BAD_REQUEST,
                   "--%s would show to every user who lists processes: set %s, or use a file", secret->name,
                   name);
}

/* Reads the flag at argv[*at], as --name value or --name=value, and moves *at past it. */
static enum mm_status set_from_flag(struct mm_options *options, int argc, char **argv, int *at,
                                    struct mm_error *error) {
    const char *flag = argv[(*at)++];
    const struct option *option = find_option(flag);
    char source[MM_OPTION_VARIABLE_MAX];
    if (option == NULL || (option->kind == SWITCH && strchr(flag, '=') != NULL))
        return mm_fail(error, MM_BAD_REQUEST, "there is no option '%s'", flag);
    if (option->kind == SECRET)
        return refuse_secret(option, error);
    snprintf(source, sizeof source, "--%s", option->name);
    if (strchr(flag, '=') != NULL)
        return set(options, option, source, strchr(flag, '=') + 1, error);
    if (option->kind == FLAG || option->kind == SWITCH)
        return set(options, option, source, "true", error);
    if (*at == argc)
        return mm_fail(error, MM_BAD_REQUEST, "%s needs a value: %s", source, option->value);
    const char *text = argv[(*at)++];
    const struct option *other = find_option(text);
    if (other != NULL && other->kind == SECRET) /* printing `text` would show the secret */
        return refuse_secret(other, error);
    return set(options, option, source, text, error);
}

/* Sets max_kernel_ms below half of --watchdog-ms, because the watchdog treats longer kernels as hung. */
static enum mm_status settle_kernel_time(struct mm_options *options, struct mm_error *error) {
    enum { FALLBACK_MS = 30000 };
    const uint64_t under_half = options->watchdog_ms > 2 ? (options->watchdog_ms - 1) / 2 : 1;
    const uint64_t most = options->watchdog_ms == 0 ? UINT32_MAX : under_half;
    if (options->max_kernel_ms > most)
        return mm_fail(error, MM_BAD_REQUEST,
                       "--max-kernel-ms is %" PRIu64
                       ", but must be less than half of --watchdog-ms, which is %" PRIu64,
                       options->max_kernel_ms, options->watchdog_ms);
    if (options->max_kernel_ms == 0)
        options->max_kernel_ms = most < FALLBACK_MS ? most : FALLBACK_MS;
    return MM_OK;
}

enum mm_status mm_options_parse(struct mm_options *options, int argc, char **argv, struct mm_error *error) {
    enum mm_status status = MM_OK;
    memset(options, 0, sizeof *options);
    options->store_bytes_max = UINT64_MAX; /* means not set, because 0 is a valid value */
    for (int at = 1; at < argc; at++)      /* --help must work even if other options are wrong */
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "--version") == 0)
            return set_from_flag(options, argc, argv, &at, error);
    for (size_t index = 0; index < OPTION_COUNT && status == MM_OK; index++)
        if (table[index].fallback != NULL)
            status = set(options, &table[index], "the default", table[index].fallback, error);
    if (status == MM_OK)
        status = set_from_environment(options, error);
    for (int at = 1; at < argc && status == MM_OK;)
        status = set_from_flag(options, argc, argv, &at, error);
    if (status == MM_OK && (options->tls_cert == NULL) != (options->tls_key == NULL))
        return mm_fail(error, MM_BAD_REQUEST, "--tls-cert and --tls-key need each other, and %s is missing",
                       options->tls_cert == NULL ? "--tls-cert" : "--tls-key");
    return status == MM_OK ? settle_kernel_time(options, error) : status;
}

static void help_name(const struct option *option, char *text, size_t size) {
    char name[MM_OPTION_VARIABLE_MAX];
    environment_name(option->name, name);
    if (option->kind == SECRET)
        snprintf(text, size, "%s=%s", name, option->value);
    else if (option->kind == FLAG || option->kind == SWITCH)
        snprintf(text, size, "--%s", option->name);
    else
        snprintf(text, size, "--%s %s", option->name, option->value);
}

/* Prints a flag and, in the column beside it, its description, wrapped at HELP_COLUMNS. */
static void help_entry(FILE *out, const char *flag, const char *text) {
    enum { HELP_COLUMNS = 100, TEXT_COLUMN = 29 };
    int column = fprintf(out, "  %s", flag);
    while (*text != '\0') {
        const int word = (int)strcspn(text, " ");
        if (column + 1 + word > HELP_COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        const int gap = column < TEXT_COLUMN ? TEXT_COLUMN - column : 1;
        column += fprintf(out, "%*s%.*s", gap, "", word, text);
        text += word + strspn(text + word, " ");
    }
    fputc('\n', out);
}

void mm_options_help(FILE *out) {
    fprintf(out, "usage: matmuld [OPTION]...\n\n"
                 "Multiplies matrices for anyone who can send an HTTP request.\n\n"
                 "Every option is a flag and an environment variable (--queue-depth, MATMULD_QUEUE_DEPTH);\n"
                 "a flag wins over the environment, the environment over the default.\n\n");
    for (size_t index = 0; index < ROW_COUNT; index++) {
        char flag[MM_OPTION_VARIABLE_MAX + 64];
        char text[400];
        const bool has_default = table[index].fallback != NULL && table[index].kind != FLAG;
        help_name(&table[index], flag, sizeof flag);
        snprintf(text, sizeof text, "%s%s%s%s", table[index].help, has_default ? " (default: " : "",
                 has_default ? table[index].fallback : "", has_default ? ")" : "");
        help_entry(out, flag, text);
    }
}

static void print_devices(const struct mm_options *options, FILE *out) {
    if (options->devices.all)
        fprintf(out, "all");
    for (size_t index = 0; index < options->devices.count; index++)
        fprintf(out, "%s%u", index > 0 ? "," : "", options->devices.indices[index]);
}

static void print_value(const struct mm_options *options, const struct option *option, FILE *out) {
    const void *at = (const char *)options + option->offset;
    const char *text;
    uint64_t number;
    switch (option->kind) {
    case NUMBER:
    case SIZE:
        number = *(const uint64_t *)at;
        if (number >= option->min && number <= option->max) /* otherwise the value depends on the machine */
            fprintf(out, "%" PRIu64, number);
        break;
    case DEVICES:
        print_devices(options, out);
        break;
    case FLAG:
        fputs(*(const bool *)at ? "true" : "false", out);
        break;
    default:
        text = *(const char *const *)at;
        fputs(text == NULL ? "" : option->kind == SECRET ? "(set)" : text, out);
    }
}

void mm_options_print(const struct mm_options *options, FILE *out) {
    for (size_t index = 0; index < OPTION_COUNT; index++) {
        fprintf(out, "%s = ", table[index].name);
        print_value(options, &table[index], out);
        fputc('\n', out);
    }
}
