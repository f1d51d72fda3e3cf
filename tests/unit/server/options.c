/* The process's options: order of precedence, values at their edges, and clear refusals. */
#include "server/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool parse(struct mm_options *options, const char *flag, char *problem, size_t size) {
    char program[] = "matmuld";
    char text[128];
    char *argv[] = {program, text, NULL};
    snprintf(text, sizeof text, "%s", flag == NULL ? "" : flag);
    return mm_options_parse(options, flag == NULL ? 1 : 2, argv, problem, size);
}

static void defaults(void **state) {
    struct mm_options options;
    char problem[256];
    (void)state;
    assert_true(parse(&options, NULL, problem, sizeof problem));
    assert_string_equal(options.host, "127.0.0.1");
    assert_int_equal(options.port, 8080);
    assert_string_equal(options.backend, "auto");
    assert_true(options.devices.all);
    assert_int_equal(options.queue_depth, 1024);
    assert_int_equal(options.body_bytes_max, UINT64_C(2) << 30);
    assert_int_equal(options.dimension_max, INT32_MAX);
    assert_int_equal(options.timeout_ms, 60000);
    assert_int_equal(options.drain_timeout_ms, 30000);
    assert_int_equal(options.benchmark_flops, UINT64_C(2000000000000000));
    assert_int_equal(options.benchmark_run_flops, UINT64_C(4000000000000));
    assert_int_equal(options.benchmark_repeats, 1000);
    assert_false(options.no_benchmark);
}

static void values_are_judged(void **state) {
    static const struct {
        const char *flag;
        const char *words; /* of the refusal; NULL: it is taken */
    } cases[] = {
        {"--port=0", NULL},
        {"--port=65535", NULL},
        {"--port=65536", "--port is '65536', but must be PORT from 0 to 65535"},
        {"--port=-1", "--port is '-1'"},
        {"--port= 1", "--port is ' 1'"},
        {"--port=0x10", "--port is '0x10'"},
        {"--port=", "--port is ''"},
        {"--port", "--port needs a value"},
        {"--queue-depth=0", "from 1 to"},
        {"--queue-depth=1", NULL},
        {"--queue-depth=99999999999999999999999", "--queue-depth is"},
        {"--backend=cpu", NULL},
        {"--backend=tpu", "must be auto|cpu|cuda"},
        {"--backend=auto|cpu", "must be auto|cpu|cuda"},
        {"--backend=", "must be"},
        {"--memory-budget=64MiB", NULL},
        {"--memory-budget=1048576", NULL},
        {"--memory-budget=1048575", "at least 1048576"},
        {"--memory-budget=64MB", "such as 64MiB or 2GiB"},
        {"--memory-budget=99999999TiB", "--memory-budget is"},
        {"--max-body=1", NULL},
        {"--max-body=0", "--max-body is"},
        {"--max-dimension=2147483647", NULL},
        {"--max-dimension=2147483648", "from 1 to 2147483647"},
        {"--devices=all", NULL},
        {"--devices=0,2,17", NULL},
        {"--devices=0,", "--devices is"},
        {"--devices=1,0,1", "--devices is"},
        {"--devices=,", "--devices is"},
        {"--devices=a", "--devices is"},
        {"--benchmark-flops=1", NULL},
        {"--benchmark-flops=0", "--benchmark-flops is '0', but must be N from 1 to 1000000000000000000"},
        {"--benchmark-flops=1000000000000000001", "from 1 to 1000000000000000000"},
        {"--benchmark-flops=2e15", "--benchmark-flops is"},
        {"--benchmark-run-flops=1000000000000000000", NULL},
        {"--benchmark-run-flops=0", "--benchmark-run-flops is"},
        {"--benchmark-repeats=1000000", NULL},
        {"--benchmark-repeats=1000001", "from 1 to 1000000"},
        {"--no-benchmark", NULL},
        {"--no-benchmark=true", NULL},
        {"--no-benchmark=false", NULL},
        {"--no-benchmark=yes", "--no-benchmark is 'yes', but must be true|false"},
        {"--no-benchmark=", "--no-benchmark is ''"},
        {"--no-benchmarks", "there is no option"},
        {"--connections-per-address=0", NULL},
        {"--connections-per-address=1000000", NULL},
        {"--connections-per-address=1000001", "from 0 to 1000000"},
        {"--api-key-file=/run/keys", NULL},
        {"--api-key-file=", "--api-key-file is ''"},
        {"--tls-cert=/run/cert", "--tls-key is missing"},
        {"--tls-key=/run/key", "--tls-cert is missing"},
        {"--tls-cert=", "--tls-cert is ''"},
        {"--open-metrics", NULL},
        {"--open-metrics=no", "--open-metrics is 'no'"},
        {"--cors-origin=*", NULL},
        {"--cors-origin=https://example.org", NULL},
        {"--cors-origin=http://127.0.0.1:3000", NULL},
        {"--cors-origin=http://[::1]:3000", NULL},
        {"--cors-origin=chrome-extension://abcdef", NULL},
        {"--cors-origin=http://example.org:443", NULL},
        {"--cors-origin=https://example.org:443", "no path"},
        {"--cors-origin=http://[::1]:80", "no path"},
        {"--cors-origin=http://a[b", "no path"},
        {"--cors-origin=", "--cors-origin is ''"},
        {"--cors-origin=null", "no path"},
        {"--cors-origin=example.org", "no path"},
        {"--cors-origin=https://", "no path"},
        {"--cors-origin=https://example.org/", "no path"},
        {"--cors-origin=https://Example.org", "lower case"},
        {"--cors-origin=https://example.org:", "no path"},
        {"--cors-origin=https://example.org:8o", "no path"},
        {"--cors-origin=http://[::1", "no path"},
        {"--cors-origin=https://a.org,https://b.org", "no path"},
        {"--cors-origin=https://a.org\r\nX: y", "no path"},
        {"--log-format=json", NULL},
        {"--log-format=xml", "must be text|json"},
        {"--help", NULL},
        {"--version", NULL},
        {"--print-config", NULL},
        {"--healthcheck", NULL},
        {"--hosts=x", "there is no option '--hosts=x'"},
        {"--por=1", "there is no option"},
        {"host", "there is no option 'host'"},
        {"-h", "there is no option '-h'"},
    };
    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        struct mm_options options;
        char problem[256] = "";
        bool good = parse(&options, cases[index].flag, problem, sizeof problem);
        if (good != (cases[index].words == NULL) || (!good && strstr(problem, cases[index].words) == NULL))
            fail_msg("%s: %s '%s'", cases[index].flag, good ? "was taken" : "was refused with", problem);
    }
}

/* A key that is given as a flag is in nobody's log, at least. */
static void secrets_are_not_shown(void **state) {
    struct mm_options options;
    char problem[256];
    char text[4096] = "";
    (void)state;
    for (unsigned form = 0; form < 2; form++) {
        assert_false(parse(&options, form == 0 ? "--api-key=hush" : "--api-key", problem, sizeof problem));
        assert_non_null(strstr(problem, "set MATMULD_API_KEY"));
        assert_null(strstr(problem, "hush"));
    }
    char program[] = "matmuld", port[] = "--port", flag[] = "--api-key=hush";
    char *argv[] = {program, port, flag, NULL};
    assert_false(mm_options_parse(&options, 3, argv, problem, sizeof problem));
    assert_non_null(strstr(problem, "set MATMULD_API_KEY"));
    assert_null(strstr(problem, "hush"));
    setenv("MATMULD_API_KEY", "hush", 1);
    assert_true(parse(&options, NULL, problem, sizeof problem));
    unsetenv("MATMULD_API_KEY");
    assert_string_equal(options.api_key, "hush");
    FILE *out = fmemopen(text, sizeof text, "w");
    mm_options_print(&options, out);
    fclose(out);
    assert_non_null(strstr(text, "api-key = (set)\n"));
    assert_null(strstr(text, "hush"));
}

/* No line says what would be refused as a value: cpu-jobs, which the machine gives, takes no 0. */
static void what_is_printed_would_be_taken(void **state) {
    struct mm_options options;
    char problem[256];
    char text[4096] = "";
    (void)state;
    assert_true(parse(&options, NULL, problem, sizeof problem));
    FILE *out = fmemopen(text, sizeof text, "w");
    mm_options_print(&options, out);
    fclose(out);
    assert_non_null(strstr(text, "cpu-jobs = \n"));
    assert_non_null(strstr(text, "connections-per-address = 0\n"));
    unsigned values = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char flag[128];
        char *value = strstr(line, " = ");
        assert_non_null(value);
        *value = '\0';
        snprintf(flag, sizeof flag, "--%s=%s", line, value + strlen(" = "));
        if (value[strlen(" = ")] != '\0' && !parse(&options, flag, problem, sizeof problem))
            fail_msg("printed, but not taken: %s", problem);
        values++;
    }
    assert_true(values > 20);
}

/* The longest origin, and one that is longer. */
static void origins_have_a_limit(void **state) {
    struct mm_options options;
    char problem[256];
    char flag[320] = "--cors-origin=https://";
    char *origin = flag + strlen("--cors-origin=");
    char program[] = "matmuld";
    char *argv[] = {program, flag, NULL};
    (void)state;
    memset(flag + strlen(flag), 'a', MM_OPTION_ORIGIN_MAX - strlen(origin));
    assert_int_equal(strlen(origin), MM_OPTION_ORIGIN_MAX);
    assert_true(mm_options_parse(&options, 2, argv, problem, sizeof problem));
    origin[MM_OPTION_ORIGIN_MAX] = 'a';
    assert_false(mm_options_parse(&options, 2, argv, problem, sizeof problem));
}

static void flags_win_over_the_environment(void **state) {
    struct mm_options options;
    char problem[256];
    (void)state;
    setenv("MATMULD_QUEUE_DEPTH", "7", 1);
    setenv("MATMULD_MAX_BODY", "3KiB", 1);
    assert_true(parse(&options, "--queue-depth=9", problem, sizeof problem));
    assert_int_equal(options.queue_depth, 9);
    assert_int_equal(options.body_bytes_max, 3072);
    setenv("MATMULD_QUEUE_DEPTH", "many", 1);
    assert_false(parse(&options, NULL, problem, sizeof problem));
    assert_non_null(strstr(problem, "MATMULD_QUEUE_DEPTH is 'many'"));
    unsetenv("MATMULD_QUEUE_DEPTH");
    unsetenv("MATMULD_MAX_BODY");
}

static void a_flag_takes_no_word_behind_it(void **state) {
    struct mm_options options;
    char problem[256];
    char program[] = "matmuld";
    char flag[] = "--no-benchmark";
    char next[] = "--port=1";
    char *argv[] = {program, flag, next, NULL};
    (void)state;
    assert_true(mm_options_parse(&options, 3, argv, problem, sizeof problem));
    assert_true(options.no_benchmark);
    assert_int_equal(options.port, 1);
    setenv("MATMULD_NO_BENCHMARK", "1", 1);
    assert_true(parse(&options, NULL, problem, sizeof problem));
    assert_true(options.no_benchmark);
    assert_true(parse(&options, "--no-benchmark=0", problem, sizeof problem));
    assert_false(options.no_benchmark);
    setenv("MATMULD_NO_BENCHMARK", "on", 1);
    assert_false(parse(&options, NULL, problem, sizeof problem));
    assert_string_equal(problem, "MATMULD_NO_BENCHMARK is 'on', but must be true|false");
    unsetenv("MATMULD_NO_BENCHMARK");
}

static void devices_are_listed(void **state) {
    struct mm_options options;
    char problem[256];
    (void)state;
    assert_true(parse(&options, "--devices=3,0", problem, sizeof problem));
    assert_false(options.devices.all);
    assert_int_equal(options.devices.count, 2);
    assert_int_equal(options.devices.indices[0], 3);
    assert_int_equal(options.devices.indices[1], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values_are_judged),
        cmocka_unit_test(flags_win_over_the_environment),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(what_is_printed_would_be_taken),
        cmocka_unit_test(origins_have_a_limit),
        cmocka_unit_test(a_flag_takes_no_word_behind_it),
        cmocka_unit_test(devices_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
