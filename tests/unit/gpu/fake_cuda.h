/* A fake CUDA runtime that replaces the real one in tests. Device memory is host memory. Each call has
 * finished when it returns. But the runtime knows which accesses the real one could reorder (races). The
 * handles of streams are below FAKE_STREAMS, and those of events that order streams below FAKE_EVENTS. The
 * file also replaces mm_cuda_gather, the gate and the check of a product. */
#pragma once

#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"

/* Counts the calls, and makes some of them fail. */
struct fake_cuda {
    unsigned copies;
    unsigned gathers;
    unsigned reductions;
    unsigned makes; /* launches that generate operands */
    size_t gathered_words;
    unsigned launches;
    unsigned batches;
    unsigned passes; /* launches of the pass that applies epilogues */
    dim3 grid;       /* grid of the last batch */
    struct {
        struct mm_product product;
        dim3 grid;
    } noted[4]; /* launches of other kernels than fake_kernels */
    unsigned notes;
    size_t launched_bytes; /* dynamic shared memory of the last launch */
    bool may_begin_before; /* the last launch may start before the previous one ends */
    /* Bytes of shared memory for a block: static, largest dynamic, and largest in all. */
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
    bool is_late;           /* if set, no event has completed */
    int current;            /* index of the current device */
    bool is_lost[4];        /* all calls fail on the device with this index */
    unsigned races;         /* accesses that need not come after an earlier access to the same memory */
    unsigned launches_left; /* launch_fails counts only after this many launches */
};
extern struct fake_cuda fake_cuda;

/* Addresses that stand for kernels with blocks of FAKE_BLOCK × FAKE_BLOCK. `lonely` has no batch kernel. */
struct fake_kernels {
    char plain, transposed, plain_batch, transposed_batch, lonely, pass;
};
extern const struct fake_kernels fake_kernels;
enum { FAKE_STREAMS = 4, FAKE_EVENTS = 256 };
enum { FAKE_BLOCK = 16, FAKE_GRID_Y_MAX = 65535 };

/* Returns the depth of each of two parts of k, or 0 if k is not divided. */
static inline unsigned fake_split_depth(size_t k) {
    return (unsigned)(k / 2);
}

/* Asserts that the host has waited for all accesses to the memory. */
void fake_expect_written(const void *memory, size_t bytes);

/* Forgets all accesses to memory. */
void fake_forget(void);

/* Computes the product on the host. If `transposes`, A is stored transposed. */
void fake_compute(const struct mm_product *product, bool transposes);
