/* Tests which devices are marked as failed after a CUDA error, on a fake CUDA runtime. */
#include "fake_cuda.h"
#include "tests/unit/unit.h"

enum { CARDS = 3 };

static struct mm_cuda_device cards[CARDS];

static void open_cards(void) {
    memset(&fake_cuda, 0, sizeof fake_cuda);
    memset(cards, 0, sizeof cards);
    for (unsigned index = 0; index < CARDS; index++) {
        cards[index].head = (struct mm_device){.name = "Card", .index = index};
        mm_cuda_add_open_device(&cards[index]);
    }
}

/* After a persistent error, all open devices are tried. Each device that fails again is marked as failed.
 * `lost` and `failed` have a bit for each device. */
static void persistent_error_fails_each_device_that_repeats_it(void **state) {
    static const struct {
        cudaError_t code;
        enum mm_status status;
        unsigned lost, closed, failed;
    } cases[] = {{cudaErrorInvalidConfiguration, MM_INTERNAL},
                 {cudaErrorMemoryAllocation, MM_NO_DEVICE_MEMORY},
                 {cudaErrorIllegalAddress, MM_DEVICE_FAILED, 2, 0, 2},
                 {cudaErrorIllegalAddress, MM_DEVICE_FAILED, 3, 0, 3},
                 {cudaErrorIllegalAddress, MM_DEVICE_FAILED, 7, 1, 6}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_error error;
        unsigned failed = 0;
        open_cards();
        for (unsigned card = 0; card < CARDS; card++)
            fake_cuda.is_lost[card] = (cases[index].lost >> card & 1) != 0;
        for (unsigned time = 0; time < 2 * cases[index].closed; time++)
            mm_cuda_remove_open_device(&cards[0]); /* removing it twice must do no harm */
        cudaSetDevice(1);
        assert_int_equal(mm_cuda_status(&cards[1], cases[index].code, "being tried", &error),
                         cases[index].status);
        assert_int_equal(error.needed_bytes, 0);
        assert_int_equal(fake_cuda.current, 1);
        for (unsigned card = 0; card < CARDS; card++) {
            failed |= (unsigned)cards[card].head.failed << card;
            mm_cuda_remove_open_device(&cards[card]);
        }
        assert_int_equal(failed, cases[index].failed);
    }
}

RUN_TESTS(persistent_error_fails_each_device_that_repeats_it)
