/* Tests the options of the server: which source takes precedence, limits, and errors. */
#include "server/options.h"
#include "tests/unit/unit.h"

static struct mm_options options;
static struct mm_error error;

static bool parse_words(const char *first, const char *second) {
    static char program[] = "matmuld", words[2][MM_OPTION_HOSTS_MAX + 64];
    char *argv[] = {program, words[0], words[1], NULL};
    const int count = 1 + (first != NULL) + (second != NULL);
    strcpy(words[0], first == NULL ? "" : first);
    strcpy(words[1], second == NULL ? "" : second);
    argv[count] = NULL;
    return mm_options_parse(&options, count, argv, &error) == MM_OK;
}

static bool parse(const char *flag) {
    return parse_words(flag, NULL);
}

static const char *print(void) {
    static char text[4096];
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    mm_options_print(&options, out);
    fclose(out);
    return text;
}

static void expect_flag(const char *flag, const char *words) {
    const bool good = parse(flag);
    if (good != (words == NULL) || (!good && strstr(error.detail, words == NULL ? "" : words) == NULL))
        fail_msg("%s: %s '%s'", flag, good ? "was accepted" : "was refused with", error.detail);
}

static void values_are_checked(void **state) {
    static const char taken[] =
        "--port=0|--port=65535|--queue-depth=1|--backend=cpu|--memory-budget=64MiB|"
        "--memory-budget=1048576|--max-body=1|--max-dimension=2147483647|--devices=all|"
        "--devices=0,2,1023|--benchmark-flops=1|--benchmark-run-flops=1000000000000000000|"
        "--benchmark-repeats=1000000|--max-kernel-ms=1|--max-kernel-ms=299999|--no-benchmark|"
        "--no-benchmark=true|--no-benchmark=false|--connections-per-address=0|"
        "--connections-per-address=1000000|--api-key-file=/run/keys|--open-metrics|--cors-origin=*|"
        "--cors-origin=https://example.org|--cors-origin=http://127.0.0.1:3000|"
        "--cors-origin=http://[::1]:3000|--cors-origin=chrome-extension://abcdef|"
        "--cors-origin=http://example.org:443|--allowed-hosts=localhost|"
        "--allowed-hosts=a.example.,B_1:8080,10.0.0.1,[::1]:65535,[fe80::1]|"
        "--trusted-proxies=10.0.0.0/8,::1|--log-format=json|--log-level=warning|--help|"
        "--version|--print-config|--healthcheck";
    static const struct {
        const char *flag, *words;
    } refused[] = {
        {"--port=65536", "--port is '65536', but must be PORT from 0 to 65535"},
        {"--port=-1", "--port is '-1'"},
        {"--port= 1", "--port is ' 1'"},
        {"--port=0x10", "--port is '0x10'"},
        {"--port=", "--port is ''"},
        {"--port", "--port needs a value"},
        {"--queue-depth=0", "from 1 to"},
        {"--queue-depth=99999999999999999999999", "--queue-depth is"},
        {"--backend=tpu", "must be auto|cpu|cuda"},
        {"--backend=auto|cpu", "must be auto|cpu|cuda"},
        {"--backend=", "must be"},
        {"--memory-budget=1048575", "at least 1048576"},
        {"--memory-budget=64MB", "such as 64MiB or 2GiB"},
        {"--memory-budget=99999999TiB", "--memory-budget is"},
        {"--max-body=0", "--max-body is"},
        {"--max-dimension=2147483648", "from 1 to 2147483647"},
        {"--devices=0,", "--devices is"},
        {"--devices=1,0,1", "--devices is"},
        {"--devices=,", "--devices is"},
        {"--devices=a", "--devices is"},
        {"--devices=1024", "--devices is"},
        {"--devices=0;1", "--devices is"},
        {"--benchmark-flops=0", "--benchmark-flops is '0', but must be N from 1 to 1000000000000000000"},
        {"--benchmark-flops=1000000000000000001", "from 1 to 1000000000000000000"},
        {"--benchmark-flops=2e15", "--benchmark-flops is"},
        {"--benchmark-run-flops=0", "--benchmark-run-flops is"},
        {"--benchmark-repeats=1000001", "from 1 to 1000000"},
        {"--max-kernel-ms=0", "--max-kernel-ms is '0', but must be MS from 1 to"},
        {"--max-kernel-ms=300000", "less than half of --watchdog-ms, which is 600000"},
        {"--no-benchmark=yes", "--no-benchmark is 'yes', but must be true|false"},
        {"--no-benchmark=", "--no-benchmark is ''"},
        {"--no-benchmarks", "there is no option"},
        {"--connections-per-address=1000001", "from 0 to 1000000"},
        {"--api-key-file=", "--api-key-file is ''"},
        {"--tls-cert=/run/cert", "--tls-key is missing"},
        {"--tls-key=/run/key", "--tls-cert is missing"},
        {"--tls-cert=", "--tls-cert is ''"},
        {"--open-metrics=no", "--open-metrics is 'no'"},
        {"--cors-origin=", "--cors-origin is ''"},
        {"--cors-origin=https://Example.org", "lower case"},
        {"--allowed-hosts=", "--allowed-hosts is ''"},
        {"--trusted-proxies=", "at most 64 addresses or networks"},
        {"--log-format=xml", "must be text|json"},
        {"--log-level=warn", "must be debug|info|warning|error"},
        {"--hosts=x", "there is no option '--hosts=x'"},
        {"--por=1", "there is no option"},
        {"host", "there is no option 'host'"},
        {"-h", "there is no option '-h'"},
    };
    static const struct {
        const char *name, *words, *values;
    } lists[] = {
        {"--cors-origin=", "no path",
         "https://example.org:443|http://[::1]:80|http://a[b|null|example.org|https://|https://example.org/"
         "|https://example.org:|https://example.org:8o|http://[::1|http://[::1[|http://[::1/|https://"
         "a.org,https://b.org|https://"
         "a.org\r\nX: y"},
        {"--allowed-hosts=", "names or addresses", "a,|,a|a, b|*|http://a|a:65536|[]|[::1|[::1[|[::1]a"},
    };
    EACH(flag, taken) {
        expect_flag(flag, NULL);
    }
    for (size_t index = 0; index < COUNT(refused); index++)
        expect_flag(refused[index].flag, refused[index].words);
    for (size_t index = 0; index < COUNT(lists); index++) {
        EACH(value, lists[index].values) {
            char flag[128];
            snprintf(flag, sizeof flag, "%s%s", lists[index].name, value);
            expect_flag(flag, lists[index].words);
        }
    }
}

/* A default kernel time is lowered if the watchdog requires it. A kernel time that the user chose is rejected
 * instead. A watchdog of 0 is off. */
static void the_kernel_time_is_under_half_of_the_watchdog(void **state) {
    static const struct {
        const char *watchdog, *asked; /* NULL if not given */
        uint64_t kernel_ms;           /* 0 if rejected */
    } cases[] = {{"60001", NULL, 30000}, {"60000", NULL, 29999},
                 {"1000", NULL, 499},    {"1", NULL, 1},
                 {"0", NULL, 30000},     {"60000", "29999", 29999},
                 {"60000", "30000", 0},  {"0", "4294967295", UINT32_MAX}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        setenv("MATMULD_WATCHDOG_MS", cases[index].watchdog, 1);
        if (cases[index].asked != NULL)
            setenv("MATMULD_MAX_KERNEL_MS", cases[index].asked, 1);
        const bool good = parse(NULL);
        assert_true(good == (cases[index].kernel_ms > 0));
        if (good)
            assert_int_equal(options.max_kernel_ms, cases[index].kernel_ms);
        unsetenv("MATMULD_WATCHDOG_MS");
        unsetenv("MATMULD_MAX_KERNEL_MS");
    }
}

/* A key must not be given as a flag, but if it is, the error must not show it. */
static void secrets_are_not_shown(void **state) {
    static const char *const words[][2] = {{"--api-key=hush"}, {"--api-key"}, {"--port", "--api-key=hush"}};
    for (size_t index = 0; index < COUNT(words); index++) {
        assert_false(parse_words(words[index][0], words[index][1]));
        assert_non_null(strstr(error.detail, "set MATMULD_API_KEY"));
        assert_null(strstr(error.detail, "hush"));
    }
    setenv("MATMULD_API_KEY", "hush", 1);
    assert_true(parse(NULL));
    unsetenv("MATMULD_API_KEY");
    assert_string_equal(options.api_key, "hush");
    assert_non_null(strstr(print(), "api-key = (set)\n"));
    assert_null(strstr(print(), "hush"));
}

/* The printed options must be valid values. cpu-jobs must not be printed as 0. */
static void printed_options_are_valid(void **state) {
    char text[4096];
    assert_true(parse(NULL));
    strcpy(text, print());
    assert_non_null(strstr(text, "cpu-jobs = \n"));
    assert_non_null(strstr(text, "connections-per-address = 0\n"));
    unsigned values = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char flag[128];
        char *value = strstr(line, " = ");
        assert_non_null(value);
        *value = '\0';
        snprintf(flag, sizeof flag, "--%s=%s", line, value + strlen(" = "));
        if (value[strlen(" = ")] != '\0' && !parse(flag))
            fail_msg("printed, but not accepted: %s", error.detail);
        values++;
    }
    assert_true(values > 20);
}

/* The longest text is accepted, and a longer one is rejected. */
static void texts_have_a_limit(void **state) {
    static const struct {
        const char *flag, *start;
        size_t bytes_max;
    } rows[] = {{"--cors-origin=", "https://", MM_OPTION_ORIGIN_MAX},
                {"--allowed-hosts=", "", MM_OPTION_HOSTS_MAX}};
    for (size_t index = 0; index < 2 * COUNT(rows); index++) {
        const size_t bytes = rows[index / 2].bytes_max + index % 2;
        char flag[MM_OPTION_HOSTS_MAX + 64] = "";
        strcat(strcpy(flag, rows[index / 2].flag), rows[index / 2].start);
        memset(flag + strlen(flag), 'a', bytes - strlen(rows[index / 2].start));
        assert_int_equal(strlen(flag), strlen(rows[index / 2].flag) + bytes);
        assert_true(parse(flag) == (index % 2 == 0));
    }
}

static void flag_takes_no_following_word(void **state) {
    assert_true(parse_words("--no-benchmark", "--port=1"));
    assert_true(options.no_benchmark);
    assert_int_equal(options.port, 1);
    setenv("MATMULD_NO_BENCHMARK", "1", 1);
    assert_true(parse(NULL));
    assert_true(options.no_benchmark);
    assert_true(parse("--no-benchmark=0"));
    assert_false(options.no_benchmark);
    setenv("MATMULD_MAX_BODY", "3KiB", 1);
    assert_true(parse("--devices=3,0"));
    assert_int_equal(options.body_bytes_max, 3072);
    assert_false(options.devices.all);
    assert_int_equal(options.devices.count, 2);
    assert_int_equal(options.devices.indices[0], 3);
    assert_int_equal(options.devices.indices[1], 0);
    unsetenv("MATMULD_MAX_BODY");
    setenv("MATMULD_NO_BENCHMARK", "on", 1);
    assert_false(parse(NULL));
    assert_string_equal(error.detail, "MATMULD_NO_BENCHMARK is 'on', but must be true|false");
    unsetenv("MATMULD_NO_BENCHMARK");
}

RUN_TESTS(values_are_checked, the_kernel_time_is_under_half_of_the_watchdog, secrets_are_not_shown,
          printed_options_are_valid, texts_have_a_limit, flag_takes_no_following_word)
