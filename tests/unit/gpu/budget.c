/* Tests that the memory budget counts each reservation exactly, in the right part of the budget. */
#include "gpu/memory/budget.h"
#include "tests/unit/unit.h"

#include <pthread.h>

/* A budget of 1 MiB keeps a sixteenth for small requests. */
enum { KIB = 1 << 10, MAIN = 960 * KIB, SMALL = 64 * KIB };

static struct mm_budget budget;
static struct mm_reservation first, second;

static int open_budget(void **state) {
    assert_true(mm_budget_open(&budget, MAIN + SMALL));
    first = second = (struct mm_reservation){.budget = &budget};
    return 0;
}

static int close_budget(void **state) {
    mm_reservation_close(&first);
    mm_reservation_close(&second);
    mm_budget_close(&budget);
    return 0;
}

static void set_waiting(int part, size_t all, size_t holders) {
    budget.waiting[part] = (struct mm_budget_waiting){.all = all, .holders = holders};
}

static void extend(struct mm_reservation *reservation, size_t more, bool fits) {
    const size_t before = reservation->bytes;
    assert_int_equal(mm_reservation_extend(reservation, more), fits);
    assert_int_equal(reservation->bytes, fits ? before + more : before);
}

static void expect_reserved(size_t main_bytes, size_t small_bytes) {
    assert_int_equal(budget.reserved_bytes[MM_BUDGET_MAIN], main_bytes);
    assert_int_equal(budget.reserved_bytes[MM_BUDGET_SMALL], small_bytes);
    assert_int_equal(mm_budget_used(&budget), main_bytes + small_bytes);
    assert_int_equal(mm_budget_free_bytes(&budget, MM_BUDGET_MAIN),
                     main_bytes > MAIN ? 0 : MAIN - main_bytes);
    assert_int_equal(mm_budget_free_bytes(&budget, MM_BUDGET_SMALL), SMALL - small_bytes);
}

static void expect_held(size_t bytes, size_t used_bytes) {
    assert_true(first.bytes == bytes && first.used_bytes == used_bytes);
    assert_int_equal(mm_reservation_unused(&first), bytes - used_bytes);
}

static void limit_for_small_requests(void **state) {
    struct mm_budget large;
    assert_true(mm_budget_open(&large, 64 * MAIN));
    assert_int_equal(large.part_bytes[MM_BUDGET_MAIN], 60 * MAIN);
    assert_int_equal(large.part_bytes[MM_BUDGET_SMALL], 4 * MAIN);
    assert_int_equal(large.small_bytes_max, MAIN / 4);
    mm_budget_close(&large);

    /* Rows: expected, reserved and requested bytes of a request, and whether the request counts as small. */
    static const size_t rows[][4] = {{0, 0, SMALL, 1},     {0, 0, SMALL + 1, 0}, {0, 9, SMALL - 9, 1},
                                     {0, 9, SMALL, 0},     {SMALL, 0, 1, 1},     {SMALL + 1, 0, 1, 0},
                                     {0, SMALL + 1, 0, 0}, {0, 1, SIZE_MAX, 0}};
    for (size_t row = 0; row < COUNT(rows); row++) {
        const struct mm_reservation reservation = {
            .budget = &budget, .expected_bytes = rows[row][0], .bytes = rows[row][1]};
        assert_int_equal(mm_reservation_line(&reservation, rows[row][2]),
                         rows[row][3] ? MM_BUDGET_SMALL : MM_BUDGET_MAIN);
    }
}

static void small_requests_leave_the_main_part_to_waiting_requests(void **state) {
    set_waiting(MM_BUDGET_SMALL, 1, 1); /* must have no effect */
    extend(&first, 1000, true);
    expect_reserved(1000, 0);
    set_waiting(MM_BUDGET_MAIN, 1, 0);
    extend(&second, SMALL, true);
    extend(&first, 1, false); /* moves the whole reservation to the part for small requests */
    expect_reserved(1000, SMALL);
    mm_reservation_close(&second);
    extend(&first, 1, true);
    expect_reserved(0, 1001);
    extend(&first, SIZE_MAX, false);
    extend(&second, MAIN - SMALL, true);
    extend(&first, SMALL, false); /* moves the whole reservation to the main part */
    expect_reserved(MAIN - SMALL, 1001);
    mm_reservation_close(&second);
    extend(&first, SMALL, true);
    expect_reserved(SMALL + 1001, 0);
    mm_reservation_close(&first);

    set_waiting(MM_BUDGET_MAIN, 0, 0);
    extend(&second, MAIN, true);
    extend(&first, 1000, true);
    expect_reserved(MAIN, 1000);
    mm_reservation_close(&first);
    first.expected_bytes = SMALL + 1;
    extend(&first, 1000, false); /* a large request cannot use the part for small requests */
}

static void requests_with_memory_overtake_those_without(void **state) {
    static const struct {
        int line;
        size_t all, holders, held, more;
        bool fits;
    } rows[] = {{MM_BUDGET_MAIN, 1, 0, 0, 2 * SMALL, false}, {MM_BUDGET_MAIN, 1, 0, 1, 2 * SMALL, true},
                {MM_BUDGET_MAIN, 1, 1, 1, 2 * SMALL, false}, {MM_BUDGET_MAIN, 1, 1, 0, 9, true},
                {MM_BUDGET_SMALL, 1, 0, 0, 9, false},        {MM_BUDGET_SMALL, 1, 0, 1, 9, true},
                {MM_BUDGET_SMALL, 1, 1, 1, 9, false},        {MM_BUDGET_SMALL, 1, 1, 0, 2 * SMALL, true}};
    for (size_t row = 0; row < COUNT(rows); row++) {
        extend(&first, rows[row].held, true);
        set_waiting(rows[row].line, rows[row].all, rows[row].holders);
        assert_true(mm_budget_is_awaited(&budget));
        assert_int_equal(mm_reservation_try(&first, rows[row].more), rows[row].fits);
        set_waiting(rows[row].line, 0, 0);
        mm_reservation_close(&first);
    }
    assert_false(mm_budget_is_awaited(&budget));
    assert_false(mm_reservation_try(&first, MAIN + 1));
}

static void reserved_bytes_are_exact(void **state) {
    struct mm_buffer loan = {0}, grown = {0}, empty = {0};
    extend(&first, 100001, true);
    assert_int_equal(mm_reservation_acquire(&first, 99999, &loan, NULL), MM_OK);
    expect_held(100001, 99999);
    assert_int_equal(mm_reservation_acquire(&first, 0, &empty, NULL),
                     MM_OK); /* an empty buffer counts as one byte */
    assert_int_equal(mm_reservation_grow(&first, 3, MAIN, &grown, NULL), MM_OK);
    expect_held(100003, 100003);
    assert_int_equal(mm_reservation_grow(&first, 300003, MAIN, &grown, NULL), MM_OK);
    assert_int_equal(mm_reservation_grow(&first, 2, MAIN, &grown, NULL), MM_OK);
    mm_reservation_shrink(&first, &grown, 200001);
    mm_reservation_settle(&first, &grown);
    expect_held(400003, 300001);
    mm_reservation_free(&first, &loan);
    mm_reservation_free(&first, &loan);
    mm_reservation_free(&first, &empty);
    assert_int_equal(mm_reservation_ensure(&first, 200002, NULL), MM_OK);
    expect_held(400003, 200001);
    assert_int_equal(mm_reservation_ensure(&first, 200003, NULL), MM_OK);
    expect_reserved(400004, 0);
    mm_reservation_trim(&first);
    expect_reserved(200001, 0);
    mm_reservation_close(&first); /* the buffer is freed later */
    expect_reserved(0, 0);
    mm_buffers_release(budget.buffers, &grown);
}

/* A stored buffer counts in the main part, even if that part is full. */
static void stored_buffer_counts_in_the_main_part(void **state) {
    struct mm_buffer large, small;
    extend(&first, 200000, true);
    assert_int_equal(mm_reservation_acquire(&first, 100000, &large, NULL), MM_OK);
    mm_reservation_hand_over(&first, &large);
    expect_held(100000, 0);
    mm_reservation_close(&first);
    expect_reserved(100000, 0);
    extend(&second, MAIN - 100000, true);
    assert_int_equal(mm_reservation_acquire(&first, 1001, &small, NULL), MM_OK);
    expect_reserved(MAIN, 1001);
    first.is_for_store = true; /* the part for small requests is not for stored values */
    assert_int_equal(mm_reservation_ensure(&first, 0, NULL), MM_BUSY);
    mm_budget_free(&budget, &large);
    assert_null(large.data);
    assert_int_equal(mm_reservation_ensure(&first, 0, NULL), MM_OK);
    expect_reserved(MAIN - 100000 + 1001, 0);
    mm_reservation_hand_over(&first, &small);
    expect_held(0, 0);
    expect_reserved(MAIN - 100000 + 1001, 0);
    mm_budget_free(&budget, &small);
    expect_reserved(MAIN - 100000, 0);
}

static void rejection_names_needed_bytes_and_reserves_none(void **state) {
    struct mm_buffer untouched = {.bytes = 7}, grown = {0};
    struct mm_error error = {0};
    extend(&first, 100000, true);
    extend(&second, MAIN - 100000, true);
    assert_int_equal(mm_reservation_acquire(&first, 100001, &untouched, &error), MM_BUSY);
    assert_int_equal(error.needed_bytes, 100001);
    assert_int_equal(mm_reservation_acquire(&first, SIZE_MAX, &untouched, NULL), MM_BUSY);
    assert_true(untouched.data == NULL && untouched.bytes == 7);
    assert_int_equal(mm_reservation_grow(&first, 100000, MAIN, &grown, &error), MM_OK);
    assert_int_equal(mm_reservation_grow(&first, 100009, MAIN, &grown, &error), MM_BUSY);
    assert_int_equal(error.needed_bytes, 9);
    assert_int_equal(grown.bytes, 100000);
    expect_held(100000, 100000);
    mm_reservation_free(&first, &grown);
}

/* Threads reserve, extend, move and release concurrently. */
static void *reserve_and_close(void *argument) {
    uint32_t random = *(const uint32_t *)argument;
    for (unsigned round = 0; round < 20000; round++) {
        struct mm_reservation reservation = {.budget = &budget};
        const size_t waits = round % 8 == 0;
        __atomic_add_fetch(&budget.waiting[MM_BUDGET_MAIN].all, waits, __ATOMIC_RELAXED);
        for (unsigned step = 0; step < 4; step++) {
            random = random * 1664525 + 1013904223;
            (void)mm_reservation_extend(&reservation, (random >> 8) % (random >> 31 ? MAIN / 2 : SMALL));
            for (int part = 0; part < MM_BUDGET_PARTS; part++)
                assert_true(__atomic_load_n(&budget.reserved_bytes[part], __ATOMIC_RELAXED) <=
                            budget.part_bytes[part]);
        }
        mm_reservation_close(&reservation);
        __atomic_sub_fetch(&budget.waiting[MM_BUDGET_MAIN].all, waits, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void threads_never_exceed_a_part(void **state) {
    pthread_t threads[4];
    static uint32_t seeds[COUNT(threads)] = {1, 2, 3, 4};
    for (size_t index = 0; index < COUNT(threads); index++)
        assert_int_equal(pthread_create(&threads[index], NULL, reserve_and_close, &seeds[index]), 0);
    for (size_t index = 0; index < COUNT(threads); index++)
        pthread_join(threads[index], NULL);
    expect_reserved(0, 0);
}

/* While others wait, a client gets at most half of the budget in several requests. */
static void a_client_gets_half_while_others_wait(void **state) {
    struct mm_reservation other = {.budget = &budget, .client = 2};
    first.client = second.client = 1;
    extend(&first, 400 * KIB, true);
    extend(&second, 112 * KIB, true); /* together exactly half */
    assert_int_equal(budget.client_bytes[1], 512 * KIB);
    assert_true(mm_reservation_is_unfair(&second, 1, false));
    assert_false(mm_reservation_is_unfair(&other, 960 * KIB, false)); /* one large request */
    budget.client_waiting_bytes[1] = 400 * KIB;
    assert_true(mm_reservation_is_unfair(&first, 1, true)); /* `second` has memory, and goes on */
    assert_false(mm_reservation_is_unfair(&second, 1, false));
    budget.client_waiting_bytes[1] = 512 * KIB;
    assert_false(mm_reservation_is_unfair(&first, 1, true)); /* both wait, so one must go on */
    budget.client_waiting_bytes[1] = 0;
    set_waiting(MM_BUDGET_MAIN, 1, 0);
    assert_true(mm_reservation_try(&first, 0));
    assert_false(
        mm_reservation_try(&second, 128 * KIB)); /* has memory, but the waiting request comes first */
    mm_reservation_close(&first);
    assert_int_equal(budget.client_bytes[1], 112 * KIB);
    assert_true(mm_reservation_try(&second, 600 * KIB)); /* its only request */
    set_waiting(MM_BUDGET_MAIN, 0, 0);
    extend(&first, 200 * KIB, true); /* nobody waits */
}

RUN_TESTS_BETWEEN(open_budget, close_budget, limit_for_small_requests, a_client_gets_half_while_others_wait,
                  small_requests_leave_the_main_part_to_waiting_requests,
                  requests_with_memory_overtake_those_without, reserved_bytes_are_exact,
                  stored_buffer_counts_in_the_main_part, rejection_names_needed_bytes_and_reserves_none,
                  threads_never_exceed_a_part)
