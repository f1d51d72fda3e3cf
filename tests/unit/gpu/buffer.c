/* The budget: what is lent counts, what is given back does not, and a refusal takes nothing. */
#include "gpu/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <string.h>

#include <cmocka.h>

static void counts_against_the_budget(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1000);
    struct mm_buffer first = {0};
    struct mm_buffer second = {0};
    struct mm_error error;
    (void)state;
    assert_int_equal(mm_buffers_acquire(buffers, 600, &first, &error), MM_OK);
    memset(first.data, 1, first.bytes);
    assert_int_equal(mm_buffers_used(buffers), 600);
    assert_int_equal(mm_buffers_acquire(buffers, 401, &second, &error), MM_BUSY);
    assert_null(second.data);
    assert_int_equal(mm_buffers_used(buffers), 600);
    assert_int_equal(mm_buffers_acquire(buffers, 400, &second, &error), MM_OK);
    assert_int_equal(mm_buffers_used(buffers), 1000);
    mm_buffers_release(buffers, &first);
    mm_buffers_release(buffers, &first);
    assert_int_equal(mm_buffers_used(buffers), 400);
    mm_buffers_release(buffers, &second);
    assert_int_equal(mm_buffers_used(buffers), 0);
    mm_buffers_close(buffers);
}

static void more_than_all_is_too_large(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1000);
    struct mm_buffer buffer = {0};
    struct mm_error error;
    (void)state;
    assert_int_equal(mm_buffers_acquire(buffers, 1001, &buffer, &error), MM_TOO_LARGE);
    assert_true(error.has_limit);
    assert_int_equal(error.limit, 1000);
    assert_int_equal(mm_buffers_acquire(buffers, SIZE_MAX, &buffer, &error), MM_TOO_LARGE);
    assert_null(buffer.data);
    mm_buffers_close(buffers);
}

static void reservations_count_like_loans(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1000);
    struct mm_buffer buffer = {0};
    (void)state;
    assert_int_equal(mm_buffers_reserve(buffers, 1001, NULL), MM_TOO_LARGE);
    assert_int_equal(mm_buffers_reserve(buffers, 700, NULL), MM_OK);
    assert_int_equal(mm_buffers_reserve(buffers, 301, NULL), MM_BUSY);
    assert_int_equal(mm_buffers_acquire(buffers, 301, &buffer, NULL), MM_BUSY);
    mm_buffers_unreserve(buffers, 700);
    assert_int_equal(mm_buffers_used(buffers), 0);
    mm_buffers_close(buffers);
}

static void large_and_empty_buffers_are_aligned(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(64 << 20);
    static const size_t sizes[] = {0, 1, 63, 4096, (2 << 20) - 1, (2 << 20) + 1, 33 << 20};
    (void)state;
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
        struct mm_buffer buffer = {0};
        assert_int_equal(mm_buffers_acquire(buffers, sizes[index], &buffer, NULL), MM_OK);
        assert_non_null(buffer.data);
        assert_true(buffer.bytes >= sizes[index]);
        assert_int_equal((uintptr_t)buffer.data % 64, 0);
        memset(buffer.data, 0x5a, buffer.bytes);
        mm_buffers_release(buffers, &buffer);
    }
    mm_buffers_close(buffers);
}

static void *acquire_and_release(void *argument) {
    struct mm_buffers *buffers = argument;
    for (int round = 0; round < 20000; round++) {
        struct mm_buffer buffer = {0};
        if (mm_buffers_acquire(buffers, 300, &buffer, NULL) == MM_OK)
            mm_buffers_release(buffers, &buffer);
    }
    return NULL;
}

static void threads_share_the_budget(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1000);
    pthread_t threads[8];
    (void)state;
    for (int index = 0; index < 8; index++)
        assert_int_equal(pthread_create(&threads[index], NULL, acquire_and_release, buffers), 0);
    for (int index = 0; index < 8; index++)
        pthread_join(threads[index], NULL);
    assert_int_equal(mm_buffers_used(buffers), 0);
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_against_the_budget),
        cmocka_unit_test(more_than_all_is_too_large),
        cmocka_unit_test(reservations_count_like_loans),
        cmocka_unit_test(large_and_empty_buffers_are_aligned),
        cmocka_unit_test(threads_share_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
