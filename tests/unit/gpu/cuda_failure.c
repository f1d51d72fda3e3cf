/* What a CUDA error says of its device and of the others, on the made-up runtime. */
#include "fake_cuda.h"
#include "tests/unit/unit.h"

enum { COUNT = 3 };

static struct mm_cuda_device cards[COUNT];

static int open_cards(void **state) {
    memset(&fake_cuda, 0, sizeof fake_cuda);
    memset(cards, 0, sizeof cards);
    for (unsigned index = 0; index < COUNT; index++) {
        cards[index].head = (struct mm_device){.name = "Card", .index = index};
        mm_cuda_note_opened(&cards[index]);
    }
    return 0;
}

static int close_cards(void **state) {
    for (unsigned index = 0; index < COUNT; index++)
        mm_cuda_note_closed(&cards[index]);
    return 0;
}

static enum mm_status fail_on(unsigned index, cudaError_t code) {
    struct mm_error error;
    cudaSetDevice((int)index);
    return mm_cuda_status(&cards[index], code, "being tried", &error);
}

static void expect_failed(bool first, bool second, bool third) {
    assert_int_equal(cards[0].head.failed, first);
    assert_int_equal(cards[1].head.failed, second);
    assert_int_equal(cards[2].head.failed, third);
}

static void an_error_that_passes_fails_no_device(void **state) {
    assert_int_equal(fail_on(1, cudaErrorInvalidConfiguration), MM_INTERNAL);
    assert_int_equal(fail_on(1, cudaErrorMemoryAllocation), MM_NO_DEVICE_MEMORY);
    expect_failed(false, false, false);
}

static void an_error_that_stays_fails_its_device(void **state) {
    fake_cuda.is_lost[1] = true;
    assert_int_equal(fail_on(1, cudaErrorIllegalAddress), MM_DEVICE_FAILED);
    expect_failed(false, true, false);
    assert_int_equal(fake_cuda.current, 1);
}

static void and_all_others_that_repeat_it(void **state) {
    fake_cuda.is_lost[1] = fake_cuda.is_lost[0] = true;
    assert_int_equal(fail_on(1, cudaErrorIllegalAddress), MM_DEVICE_FAILED);
    expect_failed(true, true, false);
    assert_int_equal(fake_cuda.current, 1);
}

static void but_none_that_is_closed(void **state) {
    mm_cuda_note_closed(&cards[0]);
    mm_cuda_note_closed(&cards[0]); /* as of one that did not open */
    memset(fake_cuda.is_lost, true, sizeof fake_cuda.is_lost);
    assert_int_equal(fail_on(1, cudaErrorIllegalAddress), MM_DEVICE_FAILED);
    expect_failed(false, true, true);
}

#define WITH_CARDS(test) cmocka_unit_test_setup_teardown(test, open_cards, close_cards)

RUN_TESTS_BETWEEN(open_cards, close_cards, an_error_that_passes_fails_no_device,
                  an_error_that_stays_fails_its_device, and_all_others_that_repeat_it,
                  but_none_that_is_closed)
