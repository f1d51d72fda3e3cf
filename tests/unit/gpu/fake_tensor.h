/* A fake driver, fake kernels and a fake device, for the tests of `tensor`. */
#pragma once

#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/tensor/plan.h"
#include "tests/unit/unit.h"

/* Calls since the last launch. */
extern struct seen {
    struct mm_tensor_plan plan;
    struct mm_matrix copies[2];
    dim3 grid; /* grid of the kernel that multiplies */
    struct mm_tensor_split splits[2];
    unsigned copied, maps, enqueued, reduced, loaded_reduce, split, loaded_split, tiled;
    unsigned loaded_full, loaded_plain;
    bool is_plain; /* the kernel that multiplies is for plain products */
    enum mm_dtype sums;
} seen;

extern struct mm_cuda_device device;
extern const char small_batch_kernel;
extern char operands[1 << 12]; /* the data of all matrices, and kept copies; never read or written */
extern bool is_kept;           /* the device keeps copies of the operands */
extern uint64_t keys[2];       /* of the operands' copies */

/* What the fake driver writes into a tensor map. */
struct map {
    const void *address;
    unsigned lines; /* number of lines in a box */
};
struct map read_map(const CUtensorMap *encoded);

/* Returns a product for the kernels of wgmma and float64. Bit 0 of `transposes` is for A, bit 1 for B. Small
 * products choose a tile, because otherwise they would use another kernel. */
struct mm_product product_of(enum mm_dtype dtype, size_t m, size_t k, size_t n, unsigned transposes);

/* Plans and enqueues a product, and checks the launch. A stack without its own kernel needs a launch for each
 * product, so only the last product is launched. All data must fit into the workspace. */
void launch(const struct mm_product *product);
