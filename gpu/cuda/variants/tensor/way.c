/* Chooses the tile size and the schedule with the shortest estimated time. */
#include "gpu/device/backend.h"
#include "gpu/cuda/variants/tensor/plan.h"

#include <math.h>

/* The constants of this file were fitted to times measured on an H100 in November 2026, for 69 products of
 * bfloat16, and float64 with one, two and three blocks on each multiprocessor. Those of narrow tiles of wgmma
 * were fitted to 12 products on an H200, and those of float8 to 11 products on an H200. */

/* A step takes column_cycles for each column of the tile, but not less than shared_cycles for each block on
 * the multiprocessor. */
struct size_cost {
    double column_cycles;
    double shared_cycles;
    double start_cycles; /* fixed cycles of a product, relative to other tile sizes */
};

static const struct size_cost *costs_of(const struct mm_product *product) {
    static const struct size_cost of_wgmma[] = {[MM_TENSOR_TINY] = {3.52, 0, 1800},
                                                [MM_TENSOR_NARROW] = {2.9, 0, 2100},
                                                [MM_TENSOR_SMALL] = {5.20, 0, 925},
                                                [MM_TENSOR_MEDIUM] = {4.84, 0, 650},
                                                [MM_TENSOR_LARGE] = {3.98, 0, 3430}};
    static const struct size_cost of_float8[] = {[MM_TENSOR_TINY] = {5.25, 0, 1800},
                                                 [MM_TENSOR_NARROW] = {3.74, 0, 2100},
                                                 [MM_TENSOR_SMALL] = {6.24, 0, 1000},
                                                 [MM_TENSOR_MEDIUM] = {5.91, 0, 650},
                                                 [MM_TENSOR_LARGE] = {5.82, 0, 3430}};
    static const struct size_cost of_float64[] = {[MM_TENSOR_TINY] = {11.4, 6.8, 0},
                                                  [MM_TENSOR_NARROW] = {10.9, 9.1, 1900},
                                                  [MM_TENSOR_SMALL] = {16.6, 0, 8000}};
    switch (product->a.dtype) {
    case MM_FLOAT64:
        return of_float64;
    case MM_FLOAT8_E4M3FN:
    case MM_FLOAT8_E5M2:
        return of_float8;
    default:
        return of_wgmma;
    }
}

unsigned mm_tensor_lines(size_t all, unsigned whole, unsigned square) {
    enum { SWIZZLED = 8 };
    return (unsigned)mm_size_min(whole, mm_size_round_up(all, square > 0 ? square : SWIZZLED));
}

size_t mm_tensor_sums_bytes(const struct mm_product *product, const struct mm_tensor_kernel *kernel) {
    return (size_t)kernel->cluster * kernel->rows * kernel->cols *
           mm_dtype_bytes(mm_dtype_sum(product->a.dtype));
}

struct mm_tensor_groups mm_tensor_groups_of(size_t k) {
    enum { ALIGNMENT = 32 }; /* so lines begin at cache lines, and planes at sectors of the L2 cache */
    struct mm_tensor_groups groups = {.depth = (unsigned)mm_size_round_up(k, ALIGNMENT)};
    for (unsigned group = 0; group < MM_TENSOR_LIMBS; group++)
        groups.begin[group + 1] =
            groups.begin[group] + (unsigned)mm_size_divide_up(
                                      (size_t)(MM_TENSOR_LIMBS - group) * groups.depth, MM_TENSOR_LINE_BYTES);
    return groups;
}

static unsigned steps_of(const struct mm_product *product) {
    return product->a.dtype == MM_INT32
               ? mm_tensor_groups_of(product->k).begin[MM_TENSOR_LIMBS]
               : (unsigned)mm_size_divide_up(product->k,
                                             MM_TENSOR_LINE_BYTES / mm_dtype_bytes(product->a.dtype));
}

/* Estimates the cycles of a step while `blocks` blocks run. The blocks load at most BYTES_PER_CYCLE. */
static double step_cycles(const struct mm_product *product, const struct mm_tensor_way *way, size_t blocks,
                          unsigned multiprocessors) {
    enum { BYTES_PER_CYCLE = 6670 };
    const struct mm_tensor_kernel *kernel = way->kernel;
    const struct size_cost *cost = &costs_of(product)[way->size];
    const double each = (double)mm_size_divide_up(blocks, multiprocessors);
    const unsigned lines = mm_tensor_lines(product->m, kernel->rows, 0) +
                           mm_tensor_lines(product->n, kernel->cols / kernel->cluster, 0);
    return fmax(fmax(cost->column_cycles, each * cost->shared_cycles) * kernel->cols,
                (double)blocks * lines * MM_TENSOR_LINE_BYTES / BYTES_PER_CYCLE);
}

/* Estimates the fix-up's time in steps of `step` cycles. */
static struct mm_fix_up_cost fix_up_of(const struct mm_product *product,
                                       const struct mm_tensor_kernel *kernel, double step) {
    enum { START = 3150, EACH = 43, BYTES_PER_CYCLE = 535 };
    const double bytes = (double)mm_tensor_sums_bytes(product, kernel);
    return (struct mm_fix_up_cost){START / step, EACH / step, bytes / BYTES_PER_CYCLE / step};
}

/* Returns the best schedule with tiles of this size and at most `resident` blocks on a multiprocessor. */
static struct mm_tensor_way way_by(const struct mm_plan *plan, const struct mm_product *product,
                                   const struct mm_tensor_kernel *kernel, enum mm_tensor_size size,
                                   unsigned resident) {
    struct mm_tensor_way way = {.kernel = kernel, .size = size};
    const unsigned multiprocessors = plan->device->multiprocessors;
    const unsigned clusters_max = multiprocessors * resident / kernel->cluster;
    const double step = step_cycles(product, &way, (size_t)clusters_max * kernel->cluster, multiprocessors);
    const struct mm_fix_up_cost fix_up = fix_up_of(product, kernel, step);
    way.schedule = mm_schedule_of(
        mm_product_count(product),
        (unsigned)mm_size_divide_up(product->m, (size_t)kernel->cluster * kernel->rows),
        (unsigned)mm_size_divide_up(product->n, kernel->cols), steps_of(product), clusters_max, &fix_up);
    return way;
}

/* Estimates the cycles of the product, without the launch. */
static double cycles_of(const struct mm_plan *plan, const struct mm_product *product,
                        const struct mm_tensor_way *way) {
    const size_t blocks = (size_t)way->schedule.clusters * way->kernel->cluster;
    const double step = step_cycles(product, way, blocks, plan->device->multiprocessors);
    const struct mm_fix_up_cost fix_up = fix_up_of(product, way->kernel, step);
    return costs_of(product)[way->size].start_cycles + step * mm_schedule_steps(&way->schedule, &fix_up);
}

/* Whether the type has tiles of this size, and the request's `tile` allows the size. `tile` is a number of
 * columns, or 0 for all sizes. But 64×64 tiles of wgmma are number 32, and 64×128 tiles number 64. */
static bool suits(const struct mm_tensor_kernels *kernels, enum mm_tensor_size size, unsigned tile) {
    static const unsigned tiles[] = {[MM_TENSOR_TINY] = 32,
                                     [MM_TENSOR_NARROW] = 64,
                                     [MM_TENSOR_SMALL] = 128,
                                     [MM_TENSOR_MEDIUM] = 192,
                                     [MM_TENSOR_LARGE] = 256};
    return kernels->of[size][0][0].kernel != NULL && (tile == 0 || tile == tiles[size]);
}

/* Returns the way of the whole product. */
static struct mm_tensor_way best_of(const struct mm_plan *plan, const struct mm_product *product,
                                    const struct mm_tensor_kernels *kernels) {
    struct mm_tensor_way best = {.kernel = NULL};
    double best_cycles = INFINITY;
    for (enum mm_tensor_size size = 0; size < MM_TENSOR_SIZES; size++) {
        const struct mm_tensor_kernel *kernel = &kernels->of[size][0][0];
        for (unsigned resident = 1; suits(kernels, size, product->tile) && resident <= kernel->resident;
             resident++) {
            const struct mm_tensor_way way = way_by(plan, product, kernel, size, resident);
            const double cycles = cycles_of(plan, product, &way);
            if (cycles < best_cycles) {
                best = way;
                best_cycles = cycles;
            }
        }
    }
    return best;
}

struct mm_tensor_way mm_tensor_way_of(const struct mm_plan *plan, const struct mm_product *product,
                                      const struct mm_tensor_kernels *kernels) {
    const struct mm_product whole = mm_product_whole(product);
    struct mm_tensor_way way = best_of(plan, &whole, kernels);
    way.schedule = mm_schedule_share(&way.schedule, product, (size_t)way.kernel->cluster * way.kernel->rows,
                                     way.kernel->cols);
    return way;
}

bool mm_tensor_has_tile(const struct mm_tensor_kernels *kernels, unsigned tile) {
    enum mm_tensor_size size = 0;
    while (size < MM_TENSOR_SIZES && !suits(kernels, size, tile))
        size++;
    return size < MM_TENSOR_SIZES;
}
