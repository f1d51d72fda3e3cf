/* A made-up CUDA runtime for tests of jobs: its device memory is the host's, and what it is asked for it does
 * at once. It takes the place of the real one where a test is linked with it; mm_cuda_gather, the gate and
 * the check of a product, which are kernels, are its own. */
#pragma once

#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"

/* What it was asked for, and how it is to fail. */
struct fake_cuda {
    unsigned copies;
    unsigned gathers;
    unsigned reductions;
    unsigned makes; /* launches that make operands */
    size_t gathered_words;
    unsigned launches;
    unsigned batches;
    dim3 grid; /* of the last batch */
    struct {
        struct mm_product product;
        dim3 grid;
    } noted[4]; /* launches of any other kernel, which computes nothing */
    unsigned notes;
    size_t launched_bytes; /* of dynamic shared memory, by the last launch */
    bool may_begin_before; /* the last launch, before the one ahead of it is over */
    /* Of every kernel: what a block has of static shared memory, what it may have of dynamic, and of both. */
    size_t static_bytes, dynamic_max, block_max;
    unsigned attributes_read, attributes_set;
    size_t pitch_max;
    size_t memory_max;
    size_t memory_used;
    unsigned taken; /* pieces of memory, ever */
    int events;     /* made and not destroyed */
    int streams;    /* likewise */
    unsigned checks;
    cudaError_t check_fails;
    cudaError_t launch_fails;
    cudaError_t event_fails;
    bool is_late;    /* no event has come */
    int current;     /* device */
    bool is_lost[4]; /* of the device of this index nothing is to be had */
};
extern struct fake_cuda fake_cuda;

/* Its kernels, by their addresses: one that has another for batches, once for A as it is and once for it
 * transposed; and one that has none. A batch is of blocks of FAKE_BLOCK along either edge. */
struct fake_kernels {
    char plain, turned, plain_batch, turned_batch, lonely;
};
extern const struct fake_kernels fake_kernels;
enum { FAKE_BLOCK = 16, FAKE_GRID_Y_MAX = 65535 };

/* k goes in two parts, but not if that is less than 2. */
static inline unsigned fake_split_depth(size_t k) {
    return (unsigned)(k / 2);
}

/* What they compute; `turns`: of A transposed. */
void fake_compute(const struct mm_product *product, bool turns);
