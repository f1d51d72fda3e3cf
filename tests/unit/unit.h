/* Every unit test includes this header. It includes cmocka and defines macros for main. */
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

/* Defines main. `setup` runs before each test and `teardown` after it, unless they are NULL. */
#define RUN_TESTS_BETWEEN(setup, teardown, ...)                                                              \
    int main(void) {                                                                                         \
        static void (*const unit_tests[])(void **) = {__VA_ARGS__};                                          \
        return unit_run(#__VA_ARGS__, unit_tests, COUNT(unit_tests), setup, teardown);                       \
    }
#define RUN_TESTS(...) RUN_TESTS_BETWEEN(NULL, NULL, __VA_ARGS__)

/* Runs the next statement for each part of a list like "one|two". The list must be shorter than 2 KiB. */
#define EACH(part, list)                                                                                     \
    for (char unit_copy[2048], *unit_rest = strcpy(unit_copy, list), *part;                                  \
         (part = strsep(&unit_rest, "|")) != NULL;)

/* Returns the text with each ` replaced by ". The next call overwrites the result. */
const char *quoted(const char *text);

/* Asserts that the text has this length and content. Frees the text. */
void expect_text(char *text, size_t length, const char *expected);

/* Runs the tests. `names` lists their names, separated by commas. Returns the exit status of the program. */
int unit_run(const char *names, void (*const *tests)(void **), size_t count, CMFixtureFunction setup,
             CMFixtureFunction teardown);
