/* The budget: what is lent counts, what is given back does not, and a refusal takes nothing. And the pool:
 * what comes back is lent again, warm and locked, as long as nobody needs the budget for something else. */
#include "gpu/buffer.h"

#include "gpu/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

static void counts_against_the_budget(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1000);
    struct mm_buffer first = {0};
    struct mm_buffer second = {0};
    struct mm_error error = {0};
    (void)state;
    assert_int_equal(mm_buffers_budget(buffers), 1000);
    assert_int_equal(mm_buffers_acquire(buffers, 600, &first, &error), MM_OK);
    memset(first.data, 1, first.bytes);
    assert_int_equal(mm_buffers_used(buffers), 600);
    second.bytes = 7;
    assert_int_equal(mm_buffers_acquire(buffers, 401, &second, &error), MM_BUSY);
    assert_null(second.data);
    assert_int_equal(second.bytes, 7);
    assert_int_equal(error.needed_bytes, 401);
    assert_false(error.has_limit);
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
    assert_string_equal(error.got, "1001");
    assert_int_equal(error.needed_bytes, 1001);
    assert_int_equal(mm_buffers_acquire(buffers, SIZE_MAX, &buffer, &error), MM_TOO_LARGE);
    assert_null(buffer.data);
    mm_buffers_close(buffers);
    mm_buffers_close(NULL);
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

enum { KIB = 1024, LARGE = 100 * KIB };

static void *lend(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer) {
    *buffer = (struct mm_buffer){0};
    assert_int_equal(mm_buffers_acquire(buffers, bytes, buffer, NULL), MM_OK);
    assert_true(buffer->bytes >= bytes);
    memset(buffer->data, 0x5a, buffer->bytes);
    return buffer->data;
}

/* Lends and takes back. */
static void *pass(struct mm_buffers *buffers, size_t bytes) {
    struct mm_buffer buffer;
    void *data = lend(buffers, bytes, &buffer);
    mm_buffers_release(buffers, &buffer);
    return data;
}

static void what_comes_back_is_lent_again(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    (void)state;
    void *small = pass(buffers, 300);
    assert_ptr_equal(pass(buffers, 310), small); /* a class of 320 */
    assert_ptr_not_equal(pass(buffers, 200), small);
    assert_int_equal(mm_buffers_kept(buffers), 0); /* the arena does not count */

    void *large = pass(buffers, LARGE);
    assert_int_equal(mm_buffers_kept(buffers), LARGE);
    assert_int_equal(mm_buffers_used(buffers), 0);
    assert_ptr_equal(pass(buffers, LARGE), large);
    assert_ptr_equal(pass(buffers, LARGE * 4 / 5), large); /* a quarter less */
    assert_ptr_not_equal(pass(buffers, LARGE * 4 / 5 - 1), large);
    assert_int_equal(mm_buffers_kept(buffers), LARGE + LARGE * 4 / 5 - 1);
    assert_ptr_not_equal(pass(buffers, LARGE + 1), large);

    struct mm_buffer first, second;
    mm_buffers_trim(buffers, UINT64_MAX);
    large = pass(buffers, 95 * KIB);
    assert_ptr_not_equal(pass(buffers, 65 * KIB), large); /* the class below, and more than a quarter less */
    assert_ptr_equal(lend(buffers, 81 * KIB, &first), large);
    lend(buffers, 81 * KIB, &second);
    mm_buffers_release(buffers, &first);
    mm_buffers_release(buffers, &second);
    assert_ptr_equal(pass(buffers, 90 * KIB), large); /* behind one of its class that is too little */

    assert_ptr_not_equal(lend(buffers, LARGE, &first), lend(buffers, LARGE, &second));
    assert_int_equal(mm_buffers_used(buffers), first.bytes + second.bytes);
    mm_buffers_release(buffers, &first);
    mm_buffers_release(buffers, &second);
    mm_buffers_close(buffers);
}

static void what_is_kept_gives_way(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(3 * LARGE);
    struct mm_buffer buffer;
    (void)state;
    pass(buffers, LARGE);
    void *second = pass(buffers, LARGE / 2);
    assert_int_equal(mm_buffers_kept(buffers), LARGE + LARGE / 2);
    lend(buffers, 2 * LARGE, &buffer); /* there is room once the one that was kept longest has gone */
    assert_int_equal(mm_buffers_kept(buffers), LARGE / 2);
    assert_int_equal(mm_buffers_used(buffers), 2 * LARGE);
    assert_ptr_equal(pass(buffers, LARGE / 2), second);
    assert_int_equal(mm_buffers_reserve(buffers, LARGE, NULL), MM_OK);
    assert_int_equal(mm_buffers_kept(buffers), 0);
    assert_int_equal(mm_buffers_reserve(buffers, 1, NULL), MM_BUSY);
    mm_buffers_unreserve(buffers, LARGE);
    mm_buffers_release(buffers, &buffer);
    assert_int_equal(mm_buffers_acquire(buffers, 3 * LARGE, &buffer, NULL), MM_OK);
    mm_buffers_release(buffers, &buffer);
    mm_buffers_close(buffers);
}

static bool is_mapped(const void *memory) {
    unsigned char resident;
    return mincore((void *)((uintptr_t)memory / 4096 * 4096), 1, &resident) == 0;
}

static void what_is_not_used_goes_back(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    (void)state;
    const uint64_t before_ns = mm_clock_ns();
    pass(buffers, LARGE);
    mm_buffers_trim(buffers, before_ns);
    assert_int_equal(mm_buffers_kept(buffers), LARGE);
    const uint64_t between_ns = mm_clock_ns() + 1;
    while (mm_clock_ns() <= between_ns)
        continue;
    pass(buffers, 2 * LARGE);
    mm_buffers_trim(buffers, between_ns);
    assert_int_equal(mm_buffers_kept(buffers), 2 * LARGE);
    const void *kept = pass(buffers, 2 * LARGE);
    assert_true(is_mapped(kept));
    mm_buffers_trim(buffers, UINT64_MAX);
    assert_int_equal(mm_buffers_kept(buffers), 0);
    assert_false(is_mapped(kept));
    mm_buffers_close(buffers);
}

static void without_memory_nothing_is_taken(void **state) {
    const size_t more_than_there_is = (size_t)1 << 60;
    struct mm_buffers *buffers = mm_buffers_open(SIZE_MAX / 2);
    struct mm_buffer buffer = {.bytes = 7};
    struct mm_error error;
    (void)state;
    pass(buffers, LARGE);
    assert_int_equal(mm_buffers_acquire(buffers, more_than_there_is, &buffer, &error), MM_INTERNAL);
    assert_int_equal(error.status, MM_INTERNAL);
    assert_null(buffer.data);
    assert_int_equal(buffer.bytes, 7);
    assert_int_equal(mm_buffers_used(buffers), 0);
    assert_int_equal(mm_buffers_kept(buffers), 0); /* given back before it was tried again */
    mm_buffers_close(buffers);
}

/* A device's locking that keeps books, and refuses on demand. */
static struct {
    size_t locked_bytes;
    unsigned locks;
    unsigned unlocks;
    bool refuses;
} pages;

static bool lock_pages(void *memory, size_t bytes) {
    (void)memory;
    if (pages.refuses)
        return false;
    pages.locks++;
    pages.locked_bytes += bytes;
    return true;
}

static void unlock_pages(void *memory) {
    (void)memory;
    pages.unlocks++;
}

static void pages_are_locked_once(void **state) {
    static const struct mm_page_locking locking = {lock_pages, unlock_pages};
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    struct mm_buffer buffer;
    (void)state;
    pass(buffers, LARGE);
    mm_buffers_lock(buffers, &locking);
    assert_int_equal(pages.locks, 1); /* the arena's */
    lend(buffers, 100, &buffer);
    assert_true(buffer.is_locked);
    mm_buffers_release(buffers, &buffer);
    lend(buffers, LARGE, &buffer); /* what was kept before is gone */
    assert_true(buffer.is_locked);
    mm_buffers_release(buffers, &buffer);
    pass(buffers, LARGE);
    assert_int_equal(pages.locks, 2);
    assert_int_equal(pages.unlocks, 0);
    pages.refuses = true;
    lend(buffers, 3 * LARGE, &buffer);
    assert_false(buffer.is_locked);
    mm_buffers_release(buffers, &buffer);
    mm_buffers_close(buffers);
    assert_int_equal(pages.unlocks, 2);
}

static bool lock_at_once(void *memory, size_t bytes) {
    (void)memory;
    (void)bytes;
    return true;
}

static void unlock_nothing(void *memory) {
    (void)memory;
}

/* By the C library, or, where pages are locked, in locked pages, which are kept for who comes. */
static void lend_past_the_arena(const struct mm_page_locking *locking) {
    enum { COUNT = 600, BYTES = 31 * KIB, PAGES = 32 * KIB }; /* 512 of them are all that the arena has */
    struct mm_buffers *buffers = mm_buffers_open((size_t)COUNT * PAGES);
    static struct mm_buffer lent[COUNT];
    if (locking != NULL)
        mm_buffers_lock(buffers, locking);
    for (int index = 0; index < COUNT; index++) {
        lend(buffers, BYTES, &lent[index]);
        assert_int_equal((uintptr_t)lent[index].data % 64, 0);
        assert_int_equal(lent[index].is_locked, locking != NULL);
    }
    const size_t mapped = locking != NULL ? COUNT - 512 : 0;
    assert_int_equal(mm_buffers_used(buffers), (COUNT - mapped) * BYTES + mapped * PAGES);
    for (int index = 0; index < COUNT; index++)
        for (int byte = 0; byte < BYTES; byte += 97)
            assert_int_equal(((char *)lent[index].data)[byte], 0x5a);
    for (int index = 0; index < COUNT; index++)
        mm_buffers_release(buffers, &lent[index]);
    assert_int_equal(mm_buffers_used(buffers), 0);
    assert_int_equal(mm_buffers_kept(buffers), mapped * PAGES);
    mm_buffers_close(buffers);
}

static void small_pieces_past_the_arena_are_the_librarys_or_locked(void **state) {
    static const struct mm_page_locking locking = {lock_at_once, unlock_nothing};
    (void)state;
    lend_past_the_arena(NULL);
    lend_past_the_arena(&locking);
}

static void *pass_many(void *argument) {
    struct mm_buffers *buffers = argument;
    for (int round = 0; round < 2000; round++) {
        struct mm_buffer buffer = {0};
        const size_t bytes = (size_t)(40 + round % 20) * KIB;
        if (mm_buffers_acquire(buffers, bytes, &buffer, NULL) != MM_OK)
            continue;
        *(volatile char *)buffer.data = 1;
        mm_buffers_release(buffers, &buffer);
        if (round % 100 == 0)
            mm_buffers_trim(buffers, UINT64_MAX);
    }
    return NULL;
}

static void threads_share_what_is_kept(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(200 * KIB);
    pthread_t threads[4];
    (void)state;
    for (int index = 0; index < 4; index++)
        assert_int_equal(pthread_create(&threads[index], NULL, pass_many, buffers), 0);
    for (int index = 0; index < 4; index++)
        pthread_join(threads[index], NULL);
    assert_int_equal(mm_buffers_used(buffers), 0);
    assert_true(mm_buffers_kept(buffers) <= 200 * KIB);
    mm_buffers_close(buffers);
}

static int unlocks; /* __atomic access only */

static void unlock_slowly(void *memory) {
    const struct timespec pause = {.tv_nsec = 300000};
    (void)memory;
    __atomic_add_fetch(&unlocks, 1, __ATOMIC_RELAXED);
    nanosleep(&pause, NULL);
}

static int is_through; /* __atomic access only */

static void *trim_often(void *argument) {
    while (!__atomic_load_n(&is_through, __ATOMIC_ACQUIRE))
        mm_buffers_trim(argument, UINT64_MAX);
    return NULL;
}

/* Nobody holds anything: what another thread is about to give back to the system is in nobody's way. */
static void what_goes_back_counts_no_more(void **state) {
    static const struct mm_page_locking slow = {lock_at_once, unlock_slowly};
    struct mm_buffers *buffers = mm_buffers_open(LARGE);
    pthread_t trimmer;
    (void)state;
    mm_buffers_lock(buffers, &slow);
    assert_int_equal(pthread_create(&trimmer, NULL, trim_often, buffers), 0);
    while (__atomic_load_n(&unlocks, __ATOMIC_RELAXED) < 20) {
        pass(buffers, LARGE);
        sched_yield();
    }
    __atomic_store_n(&is_through, 1, __ATOMIC_RELEASE);
    pthread_join(trimmer, NULL);
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_against_the_budget),
        cmocka_unit_test(more_than_all_is_too_large),
        cmocka_unit_test(reservations_count_like_loans),
        cmocka_unit_test(large_and_empty_buffers_are_aligned),
        cmocka_unit_test(threads_share_the_budget),
        cmocka_unit_test(what_comes_back_is_lent_again),
        cmocka_unit_test(what_is_kept_gives_way),
        cmocka_unit_test(what_is_not_used_goes_back),
        cmocka_unit_test(without_memory_nothing_is_taken),
        cmocka_unit_test(pages_are_locked_once),
        cmocka_unit_test(small_pieces_past_the_arena_are_the_librarys_or_locked),
        cmocka_unit_test(threads_share_what_is_kept),
        cmocka_unit_test(what_goes_back_counts_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
