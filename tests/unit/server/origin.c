/* Tests which requests are accepted from pages of another origin. */
#include "server/http/origin.h"
#include "tests/unit/unit.h"

static void hosts(void **state) {
    static const char allowed[] = "Matmul.example.org.,b:1,[fe80::1]";
    static const struct {
        const char *allowed, *hosts;
        bool good;
    } cases[] = {
        {NULL, "127.0.0.1|10.1.2.3:8080|[::1]|[2001:db8::1]:8080|localhost|LOCALHOST.:8080 \t", true},
        {NULL,
         "|evil.example|localhost.evil.example|evil.localhost|127.0.0.1.evil.example|127.0.0.1.evil.example:"
         "80|0x7f.1|127.0.0.256|2130706433|matmul.example.org|[evil]|[127.0.0.1]",
         false},
        {allowed, "matmul.example.org|MATMUL.EXAMPLE.ORG.:8443|b|b:2|localhost|127.0.0.1", true},
        {allowed, "a.matmul.example.org|matmul.example.or|matmul.example.org..|evil.example", false},
    };
    assert_int_equal(mm_origin_check_host(NULL, NULL, NULL), MM_OK); /* HTTP/1.0 needs no Host */
    for (size_t index = 0; index < COUNT(cases); index++) {
        EACH(host, cases[index].hosts) {
            struct mm_error error = {0};
            const enum mm_status status = mm_origin_check_host(cases[index].allowed, host, &error);
            if (status != (cases[index].good ? MM_OK : MM_FORBIDDEN) || error.status != status ||
                (status != MM_OK && strstr(error.detail, "--allowed-hosts") == NULL))
                fail_msg("'%s' by '%s': %s, '%s'", host, cases[index].allowed, mm_status_name(status),
                         error.detail);
        }
    }
}

static void origins(void **state) {
    static const struct {
        const char *origin;
        const char *host;
        bool good;
    } cases[] = {
        {NULL, "a.example", true},
        {NULL, NULL, true},
        {"http://a.example", "a.example", true},
        {"http://a.example:8080", "A.example.:8080", true},
        {"http://a.example", "a.example:80", true},
        {"http://a.example:80", "a.example", true},
        {"https://a.example", "a.example", true},
        {"https://a.example", "a.example:443", true},
        {"HTTPS://A.example", "a.example", true},
        {"https://a.example:8080", "a.example:8080", true},
        {"http://[::1]:8080", "[::1]:8080", true},
        {"x://a.example", "a.example", true},
        {"http://a.example", "a.example:443", false},
        {"http:// a.example", "a.example", false},
        {"https://a.example", "a.example:80", false},
        {"http://a.example:8080", "a.example", false},
        {"http://a.example", "a.example:8080", false},
        {"http://a.example:8081", "a.example:8080", false},
        {"http://evil.example", "a.example", false},
        {"http://a.example.evil.example", "a.example", false},
        {"http://evil.example", NULL, false},
        {"http://evil.example", "", false},
        {"http://", "", false},
        {"http://a.example:65536", "a.example", false},
        {"http://a.example/", "a.example", false},
        {"a.example", "a.example", false},
        {"null", "a.example", false},
        {"null", "null", false},
        {"", "a.example", false},
        {"", "", false},
    };
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS"}, *const unsafe[] = {"POST", "PUT", "DELETE"};
    struct mm_error error = {0};
    for (size_t index = 0; index < COUNT(cases); index++)
        for (size_t method = 0; method < 3; method++) {
            const enum mm_status status =
                mm_origin_check(unsafe[method], cases[index].origin, cases[index].host, &error);
            assert_int_equal(mm_origin_check(safe[method], cases[index].origin, cases[index].host, NULL),
                             MM_OK);
            if (status != (cases[index].good ? MM_OK : MM_FORBIDDEN) ||
                (status != MM_OK && strstr(error.detail, "--cors-origin") == NULL))
                fail_msg("'%s' at '%s': %s, '%s'", cases[index].origin, cases[index].host,
                         mm_status_name(status), error.detail);
        }
}

RUN_TESTS(hosts, origins)
