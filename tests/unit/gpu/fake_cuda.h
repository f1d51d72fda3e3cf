/* A fake CUDA runtime, linked in place of the real one. Its device memory is host memory, and each call
 * completes at once. It also replaces mm_cuda_gather, the gate and the check of a product. */
#pragma once

#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"

/* Counters of calls to the fake runtime, and switches that make calls fail. */
struct fake_cuda {
    unsigned copies;
    unsigned gathers;
    unsigned reductions;
    unsigned makes; /* launches that fill generated operands */
    size_t gathered_words;
    unsigned launches;
    unsigned batches;
    dim3 grid; /* of the last batch */
    struct {
        struct mm_product product;
        dim3 grid;
    } noted[4]; /* launches of kernels that are not in fake_kernels; they compute nothing */
    unsigned notes;
    size_t launched_bytes; /* dynamic shared memory of the last launch */
    bool may_begin_before; /* the last launch may begin before the previous one ends */
    /* Bytes of shared memory for a block of any kernel: static, dynamic at most, and both at most. */
    size_t static_bytes, dynamic_max, block_max;
    unsigned attributes_read, attributes_set;
    size_t pitch_max;
    size_t memory_max;
    size_t memory_used;
    unsigned allocations; /* allocations of device memory since the reset */
    int events;           /* events created and not destroyed */
    int streams;          /* streams created and not destroyed */
    unsigned checks;
    cudaError_t check_fails;
    cudaError_t launch_fails;
    cudaError_t event_fails;
    bool is_late;    /* no event has completed */
    int current;     /* index of the current device */
    bool is_lost[4]; /* every call fails for the device of this index */
};
extern struct fake_cuda fake_cuda;

/* Addresses of the fake kernels. `plain` and `transposed` have kernels for batches; `lonely` has none. Blocks
 * compute FAKE_BLOCK × FAKE_BLOCK elements. */
struct fake_kernels {
    char plain, transposed, plain_batch, transposed_batch, lonely;
};
extern const struct fake_kernels fake_kernels;
enum { FAKE_BLOCK = 16, FAKE_GRID_Y_MAX = 65535 };

/* Returns the depth of each of two parts of k; 0 if k is not split. */
static inline unsigned fake_split_depth(size_t k) {
    return (unsigned)(k / 2);
}

/* Computes the product on the host, with A transposed if `transposes`. */
void fake_compute(const struct mm_product *product, bool transposes);
