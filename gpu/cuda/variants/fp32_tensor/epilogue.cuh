/* What fp32_tensor's product does with the sums of a tile: undoes their scale, stores them in C, and applies
 * the guard (guard.h). Most threads are done by the fast epilogue. For product.cu alone. */
#pragma once

#include "gpu/cuda/variants/element.cuh"
#include "gpu/cuda/variants/fp32_tensor/parts.h"
#include "gpu/cuda/variants/wgmma/block.cuh"

namespace {

constexpr unsigned EDGE = MM_FP32_EDGE;
constexpr unsigned WIDE = MM_FP32_WIDE;
constexpr unsigned SUMS = MM_FP32_SUMS;

/* Of the producer: warp 0 has the copying thread, the others prepare the epilogue's lines. */
constexpr unsigned PREPARING_FIRST = 32;
constexpr unsigned PREPARING_THREADS = MM_GROUP - PREPARING_FIRST;
constexpr unsigned PREPARING_WARPS = PREPARING_THREADS / 32;

using line = mm_fp32_line;

/* The largest of a tile's columns, as unscaled_up has them. */
struct column_peaks {
    float largest; /* element */
    float lost;
};

/* x·2^exponent, or more: what is not 0 does not become subnormal, where it would be rounded. x is not
 * negative. */
__device__ __forceinline__ float unscaled_up(float x, int exponent) {
    return x == 0.0f ? 0.0f : fmaxf(mm_fp32_unscaled(x, exponent), 0x1p-126f);
}

/* Whether so many elements are not certified that simt computes everything. */
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

/* x·2^exponent, for any exponent of an element of C. */
__device__ __forceinline__ double unscaled(double x, int exponent) {
    return x * __longlong_as_double(static_cast<long long>(exponent + 1023) << 52);
}

__device__ __forceinline__ double sum_of_warp(double x) {
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}

/* Which fours of the thread's sums have one that is not certified, a bit each. */
__device__ __forceinline__ unsigned uncertain_fours(const float (&sums)[SUMS], const line *lines) {
    unsigned fours = 0;
#pragma unroll
    for (unsigned i = 0; i < SUMS; i++) {
        const mm_tile at = mm_fragment_position(i);
        if (!(fabsf(sums[i]) >= mm_fp32_least(lines[at.row], lines[EDGE + at.col])))
            fours |= 1u << i / 4;
    }
    return fours;
}

/* The slow epilogue, by a whole warp: stores these fours of a thread's sums again, notes which sums are not
 * certified, and adds up what the range may cost if `adds`. It reads the sums from memory, where they can be
 * indexed. */
__device__ __forceinline__ void epilogue_slow(const mm_fp32_plan &plan, const line *lines, unsigned slot,
                                              const mm_tile &tile, unsigned fours, bool adds) {
    const mm_product &product = plan.product;
    const mm_four_sums<float> *stored = mm_sums_at<SUMS>(plan.flushed, slot);
    mm_fp32_cost cost = {0.0, 0.0};
#pragma unroll 1
    for (; fours != 0; fours &= fours - 1) {
        const unsigned four = __ffs(static_cast<int>(fours)) - 1;
        const mm_four_sums<float> sums = mm_load_past_l1(&stored[four * MM_GROUP]);
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const mm_tile fragment = mm_fragment_position(four * 4 + i);
            const unsigned row = tile.row * EDGE + fragment.row;
            const unsigned col = tile.col * WIDE + fragment.col;
            const line &of_row = lines[fragment.row];
            const line &of_col = lines[EDGE + fragment.col];
            const int exponent = of_row.exponent + of_col.exponent;
            const float least = mm_fp32_least(of_row, of_col);
            if (row >= product.m || col >= product.n)
                continue;
            mm_store_c(product, row, col, mm_fp32_unscaled(sums.sums[i], exponent));
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
        mm_fp32_cost &all = plan.costs[slot * MM_FP32_COMPUTING_WARPS + threadIdx.x / 32 - MM_GROUP / 32];
        all = {all.error_squares + cost.error_squares, all.squares + cost.squares};
        plan.flags->has_costs = 1;
    }
}

/* Where the thread's two rows begin in C, and the columns left from there; 0 for a row past C. */
struct destination {
    float *to[2];
    unsigned cols[2];
};

__device__ __forceinline__ destination destination_of(const mm_matrix &c, const mm_tile &tile,
                                                      const mm_tile &first) {
    const unsigned row = tile.row * EDGE + first.row;
    const unsigned col = tile.col * WIDE + first.col;
    const unsigned left = col < c.cols ? static_cast<unsigned>(c.cols) - col : 0;
    float *to = static_cast<float *>(c.data) + row * c.ld + col;
    return {{to, to + 8 * c.ld}, {row < c.rows ? left : 0, row + 8 < c.rows ? left : 0}};
}

/* Stores two neighbours `col` columns behind the thread's first one, in one access if `TWO`. */
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

/* The fast epilogue: undoes the scale of the sums and stores them, two at a time if `TWO`. Returns whether
 * every scale is a normal float, whether all were certified, and the largest magnitude of C. It is fully
 * unrolled and bound by instruction fetches, so each instruction counts. */
template <bool TWO>
__device__ __forceinline__ bool epilogue_fast(const float (&sums)[SUMS], const line *lines,
                                              const mm_tile &first, const destination &destination,
                                              bool &is_certain, float &largest) {
    const line rows[2] = {lines[first.row], lines[first.row + 8]};
    const line *cols = lines + EDGE + first.col;
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

/* Whether the range costs the thread's elements of C so little that the guard need not add it up. `largest`
 * is the largest magnitude of them. */
__device__ __forceinline__ bool is_range_negligible(const mm_fp32_plan &plan, const column_peaks *peaks,
                                                    const line *lines, unsigned row, float largest) {
    constexpr float PARTS = 0x1p23f * 9.8f; /* more than the square root of SUMS */
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
    return least * plan.range_share * PARTS <= largest;
}

/* The epilogue of a tile. `lines` are its rows, then its columns; `peaks` those of each preparing warp. */
__device__ __forceinline__ void epilogue(const mm_fp32_plan &plan, const line *lines,
                                         const column_peaks *peaks, unsigned slot, const mm_tile &tile,
                                         const float (&sums)[SUMS]) {
    const mm_matrix &c = plan.product.c;
    const mm_tile first = mm_fragment_position(0);
    const destination destination = destination_of(c, tile, first);
    const bool by_two = c.ld % 2 == 0 && c.cols % 2 == 0 && reinterpret_cast<size_t>(c.data) % 8 == 0;
    bool is_certain;
    float largest;
    const bool is_normal = by_two
                               ? epilogue_fast<true>(sums, lines, first, destination, is_certain, largest)
                               : epilogue_fast<false>(sums, lines, first, destination, is_certain, largest);
    /* If a scale is no normal float, `largest` is wrong. */
    const bool adds = !is_normal || !is_range_negligible(plan, peaks, lines, first.row, largest);
    if (!__all_sync(~0u, (is_certain && !adds) || is_too_uncertain(plan))) {
        mm_store_sums(sums, mm_sums_at<SUMS>(plan.flushed, slot));
        const unsigned fours = !adds ? uncertain_fours(sums, lines) : (1u << SUMS / 4) - 1;
        epilogue_slow(plan, lines, slot, tile, fours, adds);
    }
}

} // namespace
