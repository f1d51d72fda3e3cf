/* Every unit test includes this: cmocka with its headers, and macros that define main. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Defines main, which runs each test between a setup and a teardown; NULL: none. */
#define RUN_TESTS_BETWEEN(setup, teardown, ...)                                                              \
    int main(void) {                                                                                         \
        static void (*const unit_tests[])(void **) = {__VA_ARGS__};                                          \
        return unit_run(#__VA_ARGS__, unit_tests, COUNT(unit_tests), setup, teardown);                       \
    }
#define RUN_TESTS(...) RUN_TESTS_BETWEEN(NULL, NULL, __VA_ARGS__)

/* Runs the next statement for each part of a list separated by bars. The list must be shorter than 2 KiB. */
#define EACH(part, list)                                                                                     \
    for (char unit_copy[2048], *unit_rest = strcpy(unit_copy, list), *part;                                  \
         (part = strsep(&unit_rest, "|")) != NULL;)

/* Returns the text with " for each `. The next call overwrites the result. */
const char *quoted(const char *text);

/* Asserts that the text has this length and content, and frees it. */
void expect_text(char *text, size_t length, const char *expected);

/* Runs the tests that `names` lists, separated by commas. Returns the exit status. */
int unit_run(const char *names, void (*const *tests)(void **), size_t count, CMFixtureFunction setup,
             CMFixtureFunction teardown);
