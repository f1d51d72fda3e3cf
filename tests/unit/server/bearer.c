/* Tests that the key is found in the value of an Authorization header. */
#include "server/auth/bearer.h"
#include "tests/unit/unit.h"

static void values_are_read(void **state) {
    static const struct {
        const char *value;
        const char *key; /* "" if the value has no key */
    } cases[] = {
        {"Bearer k", "k"},       {"bearer k", "k"},     {"BEARER k", "k"},       {"Bearer   k", "k"},
        {"Bearer \t k \t", "k"}, {"Bearer a b", "a b"}, {"Bearer a=,b", "a=,b"}, {"", ""},
        {"Bearer", ""},          {"Bearer ", ""},       {"Bearer  \t ", ""},     {"Bearer\tk", ""},
        {"Bearerk", ""},         {"Basic k", ""},       {"Beare k", ""},         {" Bearer k", ""},
        {"Token Bearer k", ""},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const char *key = NULL;
        size_t length = strlen(cases[index].value);
        char *exact = malloc(length > 0 ? length : 1); /* so a sanitizer reports reads past the end */
        assert_non_null(exact);
        memcpy(exact, cases[index].value, length);
        size_t bytes = mm_bearer_key(exact, length, &key);
        if (bytes != strlen(cases[index].key) || (bytes > 0 && memcmp(key, cases[index].key, bytes) != 0))
            fail_msg("'%s': '%.*s'", cases[index].value, (int)bytes, bytes == 0 ? "" : key);
        free(exact);
    }
    const char *key = NULL;
    assert_int_equal(mm_bearer_key(NULL, 0, &key), 0);
}

RUN_TESTS(values_are_read)
