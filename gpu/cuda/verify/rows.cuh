/* The kernel that compares the sums of C's rows with the sums of the rows of op(A)·op(B). */
#pragma once

#include "gpu/cuda/verify/sums.cuh"

namespace {

constexpr unsigned COMPARING = 512;

/* For each row of a product, the sums of C·x in c_parts parts, and of A·(B·x) in a_parts parts. The sums of
 * `addend` and `bias` have no parts. `addend` or `bias` is NULL if the product has no such operand. */
template <typename NUMBER> struct rows {
    const NUMBER *c;
    const NUMBER *a;
    const NUMBER *addend;
    const NUMBER *bias;
    size_t c_parts;
    size_t a_parts;
    size_t count;
};

template <typename KIND>
__device__ void compare_row(const struct rows<double> &rows, const struct mm_verify_bounds &bounds,
                            size_t row, struct mm_verification *seen) {
    double c[KIND::SUMS] = {}, a[KIND::SUMS] = {}, addend[KIND::SUMS] = {}, bias[KIND::SUMS] = {};
    struct mm_verify_sums of_row = {};
    add_parts<KIND>(c, rows.c, rows.c_parts, rows.count, row);
    add_parts<KIND>(a, rows.a, rows.a_parts, rows.count, row);
    for (unsigned s = 0; s < KIND::SUMS && rows.addend != NULL; s++)
        addend[s] = rows.addend[s * rows.count + row];
    for (unsigned s = 0; s < KIND::SUMS && rows.bias != NULL; s++)
        bias[s] = rows.bias[s];
    mm_verify_apply(&bounds, a, addend, bias, KIND::SUMS == MM_VERIFY_PRECISE_SUMS);
    for (unsigned v = 0; v < VECTORS; v++)
        mm_verify_add(&of_row, KIND::difference(c, a, v), a[v]);
    mm_verify_row(seen, &bounds, row, &of_row, a[KIND::LAST],
                  fabs(bounds.beta) * addend[KIND::LAST] + bias[KIND::LAST], c[KIND::LAST]);
}

/* Compares one sum after the other, because integers have too many sums for registers. */
template <typename KIND, typename WORD>
__device__ void compare_row(const struct rows<WORD> &rows, const struct mm_verify_bounds &bounds, size_t row,
                            struct mm_verification *seen) {
    const WORD alpha = static_cast<WORD>(bounds.whole_alpha), beta = static_cast<WORD>(bounds.whole_beta);
    bool is_wrong = false;
    for (unsigned s = 0; s < KIND::SUMS; s++) {
        WORD difference = 0;
        for (size_t part = 0; part < rows.c_parts; part++)
            difference += rows.c[(part * KIND::SUMS + s) * rows.count + row];
        for (size_t part = 0; part < rows.a_parts; part++)
            difference -= alpha * rows.a[(part * KIND::SUMS + s) * rows.count + row];
        if (rows.addend != NULL)
            difference -= beta * rows.addend[s * rows.count + row];
        if (rows.bias != NULL)
            difference -= rows.bias[s];
        is_wrong = is_wrong || difference != 0;
    }
    mm_verify_words_row(seen, row, is_wrong);
}

template <typename KIND>
__device__ void merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (KIND::SUMS == MM_VERIFY_WORDS)
        mm_verify_merge_words(into, rows);
    else
        mm_verify_merge(into, rows);
}

/* Compares all rows in one block, because there are few sums. Merges the results into *result, which has the
 * results of earlier parts unless part.is_first. */
template <typename KIND>
__global__ void __launch_bounds__(COMPARING, 1)
    compare(struct rows<typename KIND::number> rows, struct mm_verify_bounds bounds, uint64_t seed,
            struct mm_cuda_check_part part, struct mm_verification *result) {
    __shared__ struct mm_verification seen[COMPARING / 2]; /* results that other threads merge */
    struct mm_verification mine = {};
    for (size_t row = threadIdx.x; row < rows.count; row += COMPARING)
        compare_row<KIND>(rows, bounds, row, &mine);
    for (unsigned half = COMPARING / 2; half > 0; half /= 2) {
        if (threadIdx.x >= half && threadIdx.x < 2 * half)
            seen[threadIdx.x - half] = mine;
        __syncthreads(); /* so `seen` is written before other threads read it */
        if (threadIdx.x < half)
            merge<KIND>(&mine, &seen[threadIdx.x]);
        __syncthreads(); /* so `seen` is read before the next round overwrites it */
    }
    if (threadIdx.x == 0) {
        struct mm_verification all = {};
        if (!part.is_first)
            all = *result;
        mine.row += part.row;
        merge<KIND>(&all, &mine);
        if (part.is_counted_before) {
            all.rows_checked -= mine.rows_checked;
            all.rows_unjudged -= mine.rows_unjudged;
        }
        all.is_done = true;
        all.seed = seed;
        *result = all;
    }
}

} // namespace
