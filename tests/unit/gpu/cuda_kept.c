/* Implements cuda_kept.h. */
#include "tests/unit/gpu/cuda_kept.h"

static _Alignas(256) char memory[2][KEPT_BYTES];
static bool is_kept;
static unsigned are_filled;

struct mm_cuda_device device = {.head.multiprocessors = MULTIPROCESSORS};
_Alignas(256) char scratch[SCRATCH_BYTES];
struct kept kept[2] = {{.copy = memory[0]}, {.copy = memory[1]}};

void keep_copies(unsigned filled) {
    is_kept = true;
    are_filled = filled;
    kept[0].is_noted = kept[1].is_noted = false;
}

void keep_no_copies(void) {
    is_kept = false;
    are_filled = 0;
}

size_t offset_of(const void *address) {
    const char *at = address;
    assert_true(at >= scratch && at < scratch + sizeof scratch);
    return (size_t)(at - scratch);
}

void *mm_cuda_acquire_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key,
                              size_t bytes, bool *is_filled) {
    assert_ptr_equal(from, scratch);
    assert_true(!is_kept || bytes <= KEPT_BYTES);
    kept[slot].bytes = bytes;
    *is_filled = are_filled >> slot & 1;
    return is_kept ? kept[slot].copy : NULL;
}

cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot) {
    kept[slot].is_noted = true;
    return cudaSuccess;
}

enum mm_status mm_cuda_status(struct mm_cuda_device *failed, cudaError_t code, const char *doing,
                              struct mm_error *error) {
    return code == cudaSuccess ? MM_OK : mm_fail(error, MM_INTERNAL, "%s", doing);
}
