/* A memory budget with one reservation, for code under test that allocates from a reservation. */
#pragma once

#include "gpu/memory/budget.h"
#include "tests/unit/unit.h"

static struct mm_budget budget;
static struct mm_reservation memory;

/* Opens a budget of `bytes` bytes and a reservation in it. */
static inline void open_budget(size_t bytes) {
    assert_true(mm_budget_open(&budget, bytes));
    budget.part_bytes[MM_BUDGET_MAIN] = bytes;
    budget.part_bytes[MM_BUDGET_SMALL] = 0;
    memory = (struct mm_reservation){.budget = &budget};
}

/* Asserts that the test has freed all memory. */
static inline void close_budget(void) {
    assert_int_equal(memory.used_bytes, 0);
    mm_reservation_close(&memory);
    mm_budget_close(&budget);
}

/* Setup and teardown of tests, with a budget of 1 MiB. */
static inline int open_memory(void **state) {
    open_budget(1 << 20);
    return 0;
}

static inline int close_memory(void **state) {
    close_budget();
    return 0;
}
