/* Kernels that read a matrix once and multiply its rows by a few vectors. A row of op(X) is called a line
 * here, because it can be a column in memory. Parts of lines are added up in parallel. */
#pragma once

#include "gpu/cuda/verify/numbers.cuh"

namespace {

constexpr unsigned WARP = 32;
constexpr unsigned THREADS = 256;

/* A matrix op(X) with `lines` rows of `length` elements. If is_turned, the elements of a row are `ld`
 * elements apart. Otherwise the elements of a row are neighbours in memory. */
struct operand {
    const void *data;
    size_t ld;
    size_t lines;
    size_t length;
    bool is_turned;
};

/* How a matrix's lines are divided into parts. Each part of a line gives SUMS results. Result s of part p of
 * line l is results[(p·SUMS + s)·lines + l]. */
struct cut {
    size_t parts;
    size_t part; /* elements of a part; the last part may have fewer */
};

__device__ size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Adds up lines whose elements are neighbours in memory. Each warp adds up a part of one line. */
template <enum mm_dtype DTYPE, typename KIND, typename FACTORS>
__global__ void __launch_bounds__(THREADS)
    sum_along(struct operand x, FACTORS by, struct cut cut, typename KIND::number *results) {
    using number = typename KIND::number;
    const size_t line = static_cast<size_t>(blockIdx.x) * (THREADS / WARP) + threadIdx.x / WARP;
    const unsigned lane = threadIdx.x % WARP;
    const size_t first = blockIdx.y * cut.part;
    const size_t end = smaller(first + cut.part, x.length);
    number sums[KIND::SUMS] = {};
    if (line >= x.lines)
        return; /* all threads of a warp have the same line, so the shuffles below are safe */
    const typename element<DTYPE>::type *data =
        static_cast<const typename element<DTYPE>::type *>(x.data) + line * x.ld;
    for (size_t index = first + lane; index < end; index += WARP)
        by.add(sums, static_cast<number>(element<DTYPE>::worth(data[index])), index);
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        number others[KIND::SUMS];
#pragma unroll
        for (unsigned s = 0; s < KIND::SUMS; s++)
            others[s] = __shfl_xor_sync(0xffffffff, sums[s], distance);
        KIND::merge(sums, others);
    }
    if (lane != 0)
        return;
#pragma unroll
    for (unsigned s = 0; s < KIND::SUMS; s++)
        results[(blockIdx.y * KIND::SUMS + s) * x.lines + line] = sums[s];
}

/* Adds up lines that are columns in memory. Each thread adds up a part of one line. */
template <enum mm_dtype DTYPE, typename KIND, typename FACTORS>
__global__ void __launch_bounds__(THREADS)
    sum_across(struct operand x, FACTORS by, struct cut cut, typename KIND::number *results) {
    using number = typename KIND::number;
    const size_t line = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    const size_t first = blockIdx.y * cut.part;
    const size_t end = smaller(first + cut.part, x.length);
    number sums[KIND::SUMS] = {};
    if (line >= x.lines)
        return;
    const typename element<DTYPE>::type *data =
        static_cast<const typename element<DTYPE>::type *>(x.data) + line;
    for (size_t index = first; index < end; index++)
        by.add(sums, static_cast<number>(element<DTYPE>::worth(data[index * x.ld])), index);
#pragma unroll
    for (unsigned s = 0; s < KIND::SUMS; s++)
        results[(blockIdx.y * KIND::SUMS + s) * x.lines + line] = sums[s];
}

template <typename KIND>
__device__ void add_parts(typename KIND::number (&sums)[KIND::SUMS], const typename KIND::number *results,
                          size_t parts, size_t lines, size_t line) {
    for (size_t part = 0; part < parts; part++) {
        typename KIND::number others[KIND::SUMS];
#pragma unroll
        for (unsigned s = 0; s < KIND::SUMS; s++)
            others[s] = results[(part * KIND::SUMS + s) * lines + line];
        KIND::merge(sums, others);
    }
}

/* For each line of B, adds up the parts' sums, and computes the norm. Overwrites the sums of the first part
 * with the results. */
template <typename KIND>
__global__ void __launch_bounds__(THREADS) join(typename KIND::number *results, size_t parts, size_t lines) {
    const size_t line = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    typename KIND::number sums[KIND::SUMS] = {};
    if (line >= lines)
        return;
    add_parts<KIND>(sums, results, parts, lines, line);
    KIND::make_norms(sums);
#pragma unroll
    for (unsigned s = 0; s < KIND::SUMS; s++)
        results[s * lines + line] = sums[s];
}

} // namespace
