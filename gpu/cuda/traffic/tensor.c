/* The traffic of `tensor` and `tf32`: variants/tensor/product.cuh, and the copies of operands that come
 * before it (variants/passes.cu). float64, whose threads store C by themselves, has no description. The
 * tensor cores read shared memory by themselves, so passes over its banks are not predicted. */
#include "gpu/cuda/traffic/count.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/tensor/parts.h"

enum { CHUNK_BYTES = 16, WORD_BYTES = 4 };

/* Lanes of a warp access so many bytes each, `at_once` of them by one instruction, along a stored row. */
static struct mm_share along(const struct mm_matrix *x, unsigned lane_bytes, unsigned at_once_bytes) {
    const unsigned bytes = (unsigned)mm_dtype_bytes(x->dtype),
                   each = lane_bytes > bytes ? lane_bytes / bytes : 1;
    const unsigned at_once = at_once_bytes > bytes ? at_once_bytes / bytes : 1;
    return (struct mm_share){1, MM_WARP_LANES * each, each, at_once, MM_WARP_LANES};
}

/* The copy of an operand. One that is not transposed loads 16 bytes a thread by words. The fifth word, for
 * rows that begin between words, is left out. */
static bool count_copy(struct mm_traffic *traffic, const struct mm_matrix *from, const struct mm_matrix *to,
                       bool is_transposed, const struct mm_plan *plan) {
    if (!is_transposed) {
        const struct mm_share loads = along(from, CHUNK_BYTES, WORD_BYTES);
        const struct mm_share stores = along(to, CHUNK_BYTES, CHUNK_BYTES);
        mm_count_loads(traffic, from, &loads, 1);
        mm_count_stores(traffic, to, &stores, 1);
        return true;
    }
    struct mm_product copy = {.a = *from, .c = *to, .transpose_a = true};
    struct mm_traffic of_copy;
    (void)mm_product_conform(MM_TRANSPOSE, &copy, NULL);
    if (!mm_cuda_choose_transpose(plan->device, &copy)->traffic(&copy, plan, &of_copy))
        return false;
    for (enum mm_traffic_figure figure = 0; figure <= MM_GLOBAL_STORE_SECTORS; figure++)
        traffic->figures[figure] += of_copy.figures[figure];
    return true;
}

/* A line of a box has 128 bytes of a stored row, as much as 32 lanes with a word each. Each block
 * of a cluster gets all of a box of B, which they load together. C leaves in such boxes too, or by 16 bytes a
 * thread. */
static void count_product(struct mm_traffic *traffic, const struct mm_product *product,
                          const struct mm_tensor_work *work) {
    const size_t across = mm_size_divide_up(product->n, work->kernel->cols);
    const size_t down = mm_size_divide_up(product->m, (size_t)work->kernel->cluster * work->kernel->rows);
    const size_t c_bytes = mm_dtype_bytes(product->c.dtype);
    const bool maps_c = product->c.ld * c_bytes % CHUNK_BYTES == 0 && product->n * c_bytes % CHUNK_BYTES == 0;
    const unsigned stored_bytes = maps_c ? WORD_BYTES : CHUNK_BYTES;
    const struct mm_share of_a = along(&work->operands[0], WORD_BYTES, WORD_BYTES);
    const struct mm_share of_c = along(&product->c, stored_bytes, stored_bytes);
    const struct mm_schedule_parts parts = mm_schedule_parts_of(&work->schedule);
    const uint64_t partials = (uint64_t)parts.continuing + parts.first;
    const uint64_t sums = partials * work->kernel->cluster * work->kernel->rows * work->kernel->cols;
    mm_count_loads(traffic, &work->operands[0], &of_a, across);
    mm_count_loads(traffic, &work->operands[1], &of_a, (uint64_t)down * work->kernel->cluster);
    mm_count_stores(traffic, &product->c, &of_c, 1);
    traffic->figures[MM_GLOBAL_LOADS] += sums;
    traffic->figures[MM_GLOBAL_LOAD_SECTORS] += sums * sizeof(float) / MM_SECTOR_BYTES;
    traffic->figures[MM_GLOBAL_STORE_SECTORS] += sums * sizeof(float) / MM_SECTOR_BYTES;
}

bool mm_cuda_traffic_tensor(const struct mm_product *product, const struct mm_plan *plan,
                            struct mm_traffic *traffic) {
    if (product->a.dtype == MM_FLOAT64 || product->k == 0)
        return false;
    const struct mm_tensor_work work = mm_tensor_work_of(plan, product);
    if (plan->is_frugal && (work.is_copied[0] || work.is_copied[1]))
        return mm_cuda_traffic_tiled(product, plan, traffic);
    const struct mm_matrix *stored[2] = {&product->a, &product->b};
    *traffic = (struct mm_traffic){0};
    for (unsigned which = 0; which < 2; which++)
        if (work.is_copied[which] &&
            !count_copy(traffic, stored[which], &work.operands[which], work.is_transposed[which], plan))
            return false;
    count_product(traffic, product, &work);
    traffic->figures[MM_SHARED_LOAD_PASSES] = traffic->figures[MM_SHARED_STORE_PASSES] =
        traffic->figures[MM_BANK_CONFLICT_PASSES] = MM_TRAFFIC_UNKNOWN;
    return true;
}
