/* The last part of fp32_tensor's product kernel. It undoes the scale of a tile's sums, applies the guard
 * (guard.h) and the product's epilogue to them, and stores them in C. The fast epilogue always runs. Then a
 * warp runs the slow epilogue in two cases:
 * - some of the warp's sums are not certified
 * - the guard must count the accuracy that the warp's sums lose */
#pragma once

#include "gpu/cuda/variants/finish.cuh"
#include "gpu/cuda/variants/fp32_tensor/plan.h"
#include "gpu/cuda/variants/wgmma/block.cuh"

namespace {

constexpr unsigned ROWS = MM_FP32_ROWS;
constexpr unsigned COLS = MM_FP32_COLS;
constexpr unsigned SUMS = MM_FP32_SUMS;

/* Warps 1 to 3 of the producer warpgroup prepare the data of rows and columns (struct line) for the
 * epilogue. */
constexpr unsigned PREPARING_FIRST = 32;
constexpr unsigned PREPARING_THREADS = MM_WARPGROUP - PREPARING_FIRST;
constexpr unsigned PREPARING_WARPS = PREPARING_THREADS / 32;

using line = mm_fp32_line;

/* Maxima over the columns of a tile that one warp prepares. Both are unscaled and rounded up. */
struct column_peaks {
    float largest;
    float lost;
};

/* Returns x·2^exponent, but at least the smallest normal float, because a subnormal result could be rounded
 * down. If x is 0, returns 0. x must not be negative. */
__device__ __forceinline__ float unscaled_up(float x, int exponent) {
    return x == 0.0f ? 0.0f : fmaxf(mm_fp32_unscaled(x, exponent), 0x1p-126f);
}

/* Whether so many elements are uncertified that simt will compute the whole product. */
__device__ __forceinline__ bool is_too_uncertain(const mm_fp32_plan &plan) {
    return *static_cast<volatile unsigned *>(&plan.flags->uncertain) > plan.uncertain_max;
}

__device__ __forceinline__ void note_uncertain(const mm_fp32_plan &plan, unsigned row, unsigned col) {
    if (is_too_uncertain(plan))
        return;
    const unsigned index = atomicAdd(&plan.flags->uncertain, 1u);
    if (index < plan.uncertain_max)
        plan.uncertain[index] = {row, col};
}

/* Returns x·2^exponent. 2^exponent must be a normal double, which holds for all elements of C. */
__device__ __forceinline__ double unscaled(double x, int exponent) {
    return x * __longlong_as_double(static_cast<long long>(exponent + 1023) << 52);
}

__device__ __forceinline__ double sum_of_warp(double x) {
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}

/* Returns a mask with a bit for each group of four sums: 1 if one of the four is not certified. */
__device__ __forceinline__ unsigned uncertain_fours(const float (&sums)[SUMS], const line *lines) {
    unsigned fours = 0;
#pragma unroll
    for (unsigned i = 0; i < SUMS; i++) {
        const mm_tile at = mm_fragment_position(i);
        if (!(fabsf(sums[i]) >= mm_fp32_least(lines[at.row], lines[ROWS + at.col])))
            fours |= 1u << i / 4;
    }
    return fours;
}

/* The slow epilogue, which a whole warp runs. `fours` is a mask that chooses groups of four sums. The
 * function stores these sums in C again, and records those that are not certified. If `adds` is set, the
 * function also adds up the accuracy that these sums lose by float16's limited range. It reads the sums from
 * memory, because a run-time index cannot select a register. */
__device__ __forceinline__ void epilogue_slow(const mm_fp32_plan &plan, const line *lines, unsigned slot,
                                              const mm_tile &tile, unsigned fours, bool adds) {
    const mm_product &product = plan.product;
    const mm_four_sums<float> *stored = mm_sums_at<SUMS>(plan.flushed, slot);
    mm_fp32_cost cost = {0.0, 0.0};
#pragma unroll 1
    for (; fours != 0; fours &= fours - 1) {
        const unsigned four = __ffs(static_cast<int>(fours)) - 1;
        const mm_four_sums<float> sums = mm_load_past_l1(&stored[four * MM_WARPGROUP]);
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const mm_tile fragment = mm_fragment_position(four * 4 + i);
            const unsigned row = tile.row * ROWS + fragment.row;
            const unsigned col = tile.col * COLS + fragment.col;
            const line &of_row = lines[fragment.row];
            const line &of_col = lines[ROWS + fragment.col];
            const int exponent = of_row.exponent + of_col.exponent;
            const float least = mm_fp32_least(of_row, of_col);
            if (row >= product.m || col >= product.n)
                continue;
            static_cast<float *>(product.c.data)[row * product.c.ld + col] =
                mm_fp32_unscaled(sums.sums[i], exponent);
            if (!(fabsf(sums.sums[i]) >= least)) {
                note_uncertain(plan, row, col);
            } else if (adds) {
                const double c = unscaled(sums.sums[i], exponent);
                const double error = unscaled(least * plan.range_share, exponent);
                cost.squares += c * c;
                cost.error_squares += error * error;
            }
        }
    }
    if (!__any_sync(~0u, adds))
        return;
    cost = {sum_of_warp(cost.error_squares), sum_of_warp(cost.squares)};
    if (threadIdx.x % 32 == 0) {
        mm_fp32_cost &all = plan.costs[slot * MM_FP32_CONSUMER_WARPS + threadIdx.x / 32 - MM_WARPGROUP / 32];
        all = {all.error_squares + cost.error_squares, all.squares + cost.squares};
        plan.flags->has_costs = 1;
    }
}

/* Where the thread stores its elements of C, for each of its two rows: the address of the first element, and
 * the number of columns from this element to the end of C. */
struct destination {
    float *to[2];
    unsigned cols[2];
};

__device__ __forceinline__ destination destination_of(const mm_matrix &c, const mm_tile &tile,
                                                      const mm_tile &first) {
    const unsigned row = tile.row * ROWS + first.row;
    const unsigned col = tile.col * COLS + first.col;
    const unsigned left = col < c.cols ? static_cast<unsigned>(c.cols) - col : 0;
    float *to = static_cast<float *>(c.data) + row * c.ld + col;
    return {{to, to + 8 * c.ld}, {row < c.rows ? left : 0, row + 8 < c.rows ? left : 0}};
}

/* Stores two neighbouring elements, `col` columns to the right of the thread's first column. If TWO, one
 * access stores both elements. */
template <bool TWO>
__device__ __forceinline__ void store_pair(const destination &destination, unsigned down, unsigned col,
                                           const float (&x)[2]) {
    float *to = destination.to[down] + col;
    if (TWO && col < destination.cols[down])
        *reinterpret_cast<float2 *>(to) = {x[0], x[1]};
    if (!TWO && col < destination.cols[down])
        to[0] = x[0];
    if (!TWO && col + 1 < destination.cols[down])
        to[1] = x[1];
}

/* The fast epilogue: undoes the scale of the sums and stores them. If TWO, each access stores two sums. Sets
 * `largest` to the largest magnitude of the thread's elements of op(A)·op(B). If a scale is not a normal
 * float, returns false. In this case the stored elements and `largest` are wrong. */
template <bool TWO>
__device__ __forceinline__ bool epilogue_fast(const float (&sums)[SUMS], const line *lines,
                                              const mm_tile &first, const destination &destination,
                                              bool &is_certain, float &largest) {
    const line rows[2] = {lines[first.row], lines[first.row + 8]};
    const line *cols = lines + ROWS + first.col;
    int lowest = cols[0].exponent;
    int highest = cols[0].exponent;
    is_certain = true;
    largest = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 4) {
        const line col_lines[2] = {cols[i * 2], cols[i * 2 + 1]};
        lowest = min(lowest, min(col_lines[0].exponent, col_lines[1].exponent));
        highest = max(highest, max(col_lines[0].exponent, col_lines[1].exponent));
#pragma unroll
        for (unsigned down = 0; down < 2; down++) {
            float x[2];
#pragma unroll
            for (unsigned j = 0; j < 2; j++) {
                const float sum = sums[i + 2 * down + j];
                is_certain = is_certain && fabsf(sum) >= mm_fp32_least(rows[down], col_lines[j]);
                x[j] = sum * mm_fp32_power_of_two(rows[down].exponent + col_lines[j].exponent);
                largest = fmaxf(largest, fabsf(x[j]));
            }
            store_pair<TWO>(destination, down, i * 2, x);
        }
    }
    lowest += min(rows[0].exponent, rows[1].exponent);
    highest += max(rows[0].exponent, rows[1].exponent);
    return lowest >= MM_FP32_POWER_MIN && highest <= MM_FP32_POWER_MAX;
}

/* Whether the thread's elements lose so little accuracy by float16's range that the guard ignores this
 * loss. */
__device__ __forceinline__ bool is_range_negligible(const mm_fp32_plan &plan, const column_peaks *peaks,
                                                    const line *lines, unsigned row, float largest) {
    constexpr float RATIO = 0x1p23f * 9.8f; /* 9.8 is just above the square root of SUMS */
    float col_largest = peaks[0].largest;
    float col_lost = peaks[0].lost;
    for (unsigned warp = 1; warp < PREPARING_WARPS; warp++) {
        col_largest = fmaxf(col_largest, peaks[warp].largest);
        col_lost = fmaxf(col_lost, peaks[warp].lost);
    }
    float least = 0.0f;
    for (unsigned down = 0; down < 16; down += 8) {
        const line &of_row = lines[row + down];
        least = fmaxf(least, unscaled_up(mm_fp32_least(of_row, {col_lost, col_largest, 0}), of_row.exponent));
    }
    return least * plan.range_share * RATIO <= largest;
}

/* `lines` has the data of the tile's rows, and then of its columns. `peaks` has an element for each warp that
 * prepared lines. */
__device__ __forceinline__ void epilogue(const mm_fp32_plan &plan, const line *lines,
                                         const column_peaks *peaks, unsigned slot, const mm_tile &tile,
                                         const float (&sums)[SUMS]) {
    const mm_matrix &c = plan.product.c;
    const mm_tile first = mm_fragment_position(0);
    const destination destination = destination_of(c, tile, first);
    const bool by_two =
        c.ld % 2 == 0 && c.cols % 2 == 0 && reinterpret_cast<size_t>(c.data) % sizeof(float2) == 0;
    bool is_certain;
    float largest;
    const bool is_normal = by_two
                               ? epilogue_fast<true>(sums, lines, first, destination, is_certain, largest)
                               : epilogue_fast<false>(sums, lines, first, destination, is_certain, largest);
    const bool adds = !is_normal || !is_range_negligible(plan, peaks, lines, first.row, largest);
    if (!__all_sync(~0u, (is_certain && !adds) || is_too_uncertain(plan))) {
        mm_store_sums(sums, mm_sums_at<SUMS>(plan.flushed, slot));
        const unsigned fours = !adds ? uncertain_fours(sums, lines) : (1u << SUMS / 4) - 1;
        epilogue_slow(plan, lines, slot, tile, fours, adds);
    }
    if (plan.product.epilogue.is_set)
        mm_cuda_finish_warp<16, COLS, float>(plan.product, tile.row * ROWS + first.row / 16 * 16,
                                             tile.col * COLS);
}

} // namespace
