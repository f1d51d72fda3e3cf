/* What every unit test needs: cmocka, with the headers that it asks for, and the main of a file of tests. */
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

/* The main of a file: runs its tests, each between a setup and a teardown. NULL: without. */
#define RUN_TESTS_BETWEEN(setup, teardown, ...)                                                              \
    int main(void) {                                                                                         \
        static void (*const unit_tests[])(void **) = {__VA_ARGS__};                                          \
        return unit_run(#__VA_ARGS__, unit_tests, COUNT(unit_tests), setup, teardown);                       \
    }
#define RUN_TESTS(...) RUN_TESTS_BETWEEN(NULL, NULL, __VA_ARGS__)

/* Runs the statement behind it for each part of a list with bars between them, of less than 2 KiB. */
#define EACH(part, list)                                                                                     \
    for (char unit_copy[2048], *unit_rest = strcpy(unit_copy, list), *part;                                  \
         (part = strsep(&unit_rest, "|")) != NULL;)

/* JSON with ` for each ". Until the next call. */
const char *quoted(const char *text);

/* Asserts that a text was made, of this length, and frees it. */
void expect_made(char *text, size_t length, const char *expected);

/* Runs tests whose names are listed as C lists them. Returns the exit status. */
int unit_run(const char *names, void (*const *tests)(void **), size_t count, CMFixtureFunction setup,
             CMFixtureFunction teardown);
