/* Kernels that read a matrix once, multiply its rows by a few vectors, and add up the products. A row of
 * op(X) is called a line, because it may be a column of the stored matrix. Lines are divided into parts, so a
 * few long lines still keep the whole chip busy. */
#pragma once

#include "gpu/cuda/verify/numbers.cuh"

namespace {

constexpr unsigned WARP = 32;
constexpr unsigned THREADS = 256;

/* A matrix op(X) with `lines` rows of `length` elements. The elements of a row are neighbours in memory, or
 * `ld` elements apart if is_turned. */
struct operand {
    const void *data;
    size_t ld;
    size_t lines;
    size_t length;
    bool is_turned;
};

/* How lines are divided into parts. Sum s of part p of line l is results[(p·SUMS + s)·lines + l]. */
struct cut {
    size_t parts;
    size_t part; /* elements of a part; the last part may have fewer */
};

__device__ size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* For lines whose elements are neighbours in memory. Each warp adds up a line, and each of its threads adds
 * every 32nd element. */
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
        return; /* the whole warp returns */
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

/* For lines that are columns of the stored matrix. Each thread adds up one line, so a warp reads neighbouring
 * elements of a stored row. */
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

/* Adds up the sums of all parts of B's lines, and computes norms. The result replaces the first part. */
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
