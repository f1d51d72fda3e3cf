#include "unit.h"

enum { TESTS_MAX = 64 };

const char *quoted(const char *text) {
    static char copy[4096];
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    for (char *at = copy; (at = strchr(at, '`')) != NULL;)
        *at = '"';
    return copy;
}

void expect_text(char *text, size_t length, const char *expected) {
    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    free(text);
}

int unit_run(const char *names, void (*const *tests)(void **), size_t count, CMFixtureFunction setup,
             CMFixtureFunction teardown) {
    static char copy[4096];
    static struct CMUnitTest rows[TESTS_MAX];
    char *rest = copy;
    if (count > TESTS_MAX || strlen(names) >= sizeof copy)
        return 1;
    strcpy(copy, names);
    for (size_t index = 0; index < count; index++)
        rows[index] = (struct CMUnitTest){.name = strtok_r(NULL, ", ", &rest),
                                          .test_func = tests[index],
                                          .setup_func = setup,
                                          .teardown_func = teardown};
    return _cmocka_run_group_tests("tests", rows, count, NULL, NULL);
}
