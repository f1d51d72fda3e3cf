/* The kernel of `simt` for products in which one operand has at most four rows or columns, called vectors
 * here. Memory limits the speed, because each element of the other matrix is used at most four times. So
 * threads load the matrix directly to registers, and stage only the vectors in shared memory. */
#pragma once

#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/quad.cuh"
#include "gpu/cuda/variants/simt.cuh"

/* Arguments of the vector kernels, which compute the dot product of each line of a matrix with each vector.
 * Strides are in elements. If k is split, a block with blockIdx.y = s adds up k from s·split_depth to
 * (s+1)·split_depth, or to the end of k. The block stores its sums in rows s·m to (s+1)·m - 1 of C. */
struct mm_simt_vector_params {
    struct mm_product product; /* if k is split, C is the workspace of splits·m rows */
    struct mm_matrix matrix;   /* as stored; a line is a stored row or a stored column */
    unsigned lines;
    unsigned k;
    const float *vectors;
    size_t vector_stride; /* distance between vectors */
    size_t depth_stride;  /* distance between elements of a vector */
    unsigned count;       /* number of vectors */
    unsigned split_depth; /* a multiple of 4 if k is split */
    /* true: vectors are columns of op(B), and lines are rows of op(A)
     * false: vectors are rows of op(A), and lines are columns of op(B) */
    bool are_columns;
    const unsigned *run_flag; /* may be nullptr; if *run_flag is 0, the kernel returns at once */
};

constexpr unsigned MM_SIMT_VECTORS_MAX = 4;
constexpr unsigned MM_SIMT_VECTOR_WARPS = 8;
constexpr unsigned MM_SIMT_VECTOR_THREADS = MM_SIMT_VECTOR_WARPS * 32;
/* How many lines a block computes. Stored columns: four for each thread of a warp. Stored rows: one for each
 * warp. */
constexpr unsigned MM_SIMT_STRIDED_LINES = 32 * MM_QUAD;
constexpr unsigned MM_SIMT_CONTIGUOUS_LINES = MM_SIMT_VECTOR_WARPS;
constexpr unsigned MM_SIMT_IN_FLIGHT = 8;                            /* loads of a thread in flight */
constexpr unsigned MM_SIMT_CHUNK = 32 * MM_QUAD * MM_SIMT_IN_FLIGHT; /* elements of k staged at once */

/* Returns the position of the thread's element `index` (0 to 3) in a group of 128. If WIDE, a thread has four
 * neighbouring elements, otherwise every 32nd element. */
template <bool WIDE> __device__ __forceinline__ unsigned mm_simt_offset_of(unsigned index) {
    const unsigned lane = threadIdx.x % 32;
    return WIDE ? lane * MM_QUAD + index : lane + 32 * index;
}

/* Loads four of the 128 elements at `from` for this thread. Elements from position `left` on become zeros.
 * __ldcs tells the caches to evict these elements first, because each element is used only once. */
template <bool WIDE>
__device__ __forceinline__ void mm_simt_load(float (&to)[MM_QUAD], const float *from, int left) {
    const int first = static_cast<int>(mm_simt_offset_of<WIDE>(0));
    if (WIDE && first + static_cast<int>(MM_QUAD) <= left) {
        const float4 quad = __ldcs(reinterpret_cast<const float4 *>(from + first));
        to[0] = quad.x;
        to[1] = quad.y;
        to[2] = quad.z;
        to[3] = quad.w;
        return;
    }
#pragma unroll
    for (unsigned index = 0; index < MM_QUAD; index++) {
        const unsigned offset = mm_simt_offset_of<WIDE>(index);
        to[index] = static_cast<int>(offset) < left ? __ldcs(from + offset) : 0.0f;
    }
}

/* Copies a chunk of each vector to shared memory, with zeros past `end` and for missing vectors. */
template <unsigned VECTORS>
__device__ __forceinline__ void mm_simt_stage(float (&to)[VECTORS][MM_SIMT_CHUNK],
                                              const struct mm_simt_vector_params &params, unsigned first,
                                              unsigned end) {
#pragma unroll
    for (unsigned vector = 0; vector < VECTORS; vector++)
        for (unsigned depth = threadIdx.x; depth < MM_SIMT_CHUNK; depth += MM_SIMT_VECTOR_THREADS) {
            const bool within = vector < params.count && first + depth < end;
            const float *from =
                params.vectors + vector * params.vector_stride + (first + depth) * params.depth_stride;
            to[vector][depth] = within ? *from : 0.0f;
        }
}

/* Stores the dot product of a line and a vector, which must both exist. */
__device__ __forceinline__ void mm_simt_store(const struct mm_simt_vector_params &params, unsigned line,
                                              unsigned vector, float sum) {
    const struct mm_product product = mm_simt_split_of(params.product);
    if (params.are_columns)
        mm_store_c_float(&product, line, vector, sum);
    else
        mm_store_c_float(&product, vector, line, sum);
}

/* Computes lines that are stored rows. A warp computes a line, and adds its threads' sums by shuffles. */
template <unsigned VECTORS, bool WIDE>
__device__ void mm_simt_k_contiguous(const struct mm_simt_vector_params &params,
                                     float (&staged)[VECTORS][MM_SIMT_CHUNK]) {
    const unsigned line = blockIdx.x * MM_SIMT_CONTIGUOUS_LINES + threadIdx.x / 32;
    const unsigned begin = blockIdx.y * params.split_depth;
    const unsigned end = min(params.k, begin + params.split_depth);
    const float *from = static_cast<const float *>(params.matrix.data) + line * params.matrix.ld;
    float sums[VECTORS][MM_QUAD] = {};
    for (unsigned chunk = begin; chunk < end; chunk += MM_SIMT_CHUNK) {
        /* Load the matrix first, so the loads are in flight while the vectors are staged. */
        float values[MM_SIMT_IN_FLIGHT][MM_QUAD];
        const int left = line < params.lines ? static_cast<int>(end - chunk) : 0;
#pragma unroll
        for (unsigned access = 0; access < MM_SIMT_IN_FLIGHT; access++)
            mm_simt_load<WIDE>(values[access], from + chunk + access * 32 * MM_QUAD,
                               left - static_cast<int>(access * 32 * MM_QUAD));

        /* All threads must have read the previous chunk before this chunk overwrites it. */
        __syncthreads();
        mm_simt_stage(staged, params, chunk, end);
        __syncthreads();
#pragma unroll
        for (unsigned access = 0; access < MM_SIMT_IN_FLIGHT; access++)
#pragma unroll
            for (unsigned vector = 0; vector < VECTORS; vector++)
#pragma unroll
                for (unsigned index = 0; index < MM_QUAD; index++)
                    sums[vector][index] =
                        fmaf(values[access][index],
                             staged[vector][access * 32 * MM_QUAD + mm_simt_offset_of<WIDE>(index)],
                             sums[vector][index]);
    }
#pragma unroll
    for (unsigned vector = 0; vector < VECTORS; vector++) {
        float sum = (sums[vector][0] + sums[vector][1]) + (sums[vector][2] + sums[vector][3]);
#pragma unroll
        for (unsigned distance = 16; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(0xffffffff, sum, distance);
        if (threadIdx.x % 32 == 0 && line < params.lines && vector < params.count)
            mm_simt_store(params, line, vector, sum);
    }
}

/* Computes lines that are columns of the stored matrix. Each of the eight warps adds up an eighth of the
 * block's values of k for all 128 lines of the block. Then the sums of the warps are added in a fixed
 * order. */
template <unsigned VECTORS, bool WIDE>
__device__ void mm_simt_k_strided(const struct mm_simt_vector_params &params,
                                  float (&staged)[VECTORS][MM_SIMT_CHUNK]) {
    __shared__ float warp_sums[MM_SIMT_VECTOR_WARPS][VECTORS][MM_SIMT_STRIDED_LINES];
    const unsigned warp = threadIdx.x / 32;
    const unsigned first_line = blockIdx.x * MM_SIMT_STRIDED_LINES;
    const unsigned begin = blockIdx.y * params.split_depth;
    const unsigned end = min(params.k, begin + params.split_depth);
    const float *const from = static_cast<const float *>(params.matrix.data) + first_line;
    const int lines_left = static_cast<int>(params.lines - first_line);
    float sums[VECTORS][MM_QUAD] = {};
    for (unsigned chunk = begin; chunk < end; chunk += MM_SIMT_CHUNK) {
        /* All threads must have read the previous chunk before this chunk overwrites it. */
        __syncthreads();
        mm_simt_stage(staged, params, chunk, end);
        __syncthreads();
        const unsigned depths = min(end - chunk, MM_SIMT_CHUNK);
        for (unsigned first = warp * MM_SIMT_IN_FLIGHT; first < depths;
             first += MM_SIMT_VECTOR_WARPS * MM_SIMT_IN_FLIGHT) {
            float values[MM_SIMT_IN_FLIGHT][MM_QUAD];
#pragma unroll
            for (unsigned access = 0; access < MM_SIMT_IN_FLIGHT; access++)
                mm_simt_load<WIDE>(values[access], from + (chunk + first + access) * params.matrix.ld,
                                   first + access < depths ? lines_left : 0);
#pragma unroll
            for (unsigned access = 0; access < MM_SIMT_IN_FLIGHT; access++)
#pragma unroll
                for (unsigned vector = 0; vector < VECTORS; vector++)
#pragma unroll
                    for (unsigned index = 0; index < MM_QUAD; index++)
                        sums[vector][index] =
                            fmaf(values[access][index], staged[vector][first + access], sums[vector][index]);
        }
    }
#pragma unroll
    for (unsigned vector = 0; vector < VECTORS; vector++)
#pragma unroll
        for (unsigned index = 0; index < MM_QUAD; index++)
            warp_sums[warp][vector][mm_simt_offset_of<WIDE>(index)] = sums[vector][index];

    /* Wait until all warps have written their sums, because threads add the sums of all warps. */
    __syncthreads();
    for (unsigned index = threadIdx.x; index < params.count * MM_SIMT_STRIDED_LINES;
         index += MM_SIMT_VECTOR_THREADS) {
        const unsigned vector = index / MM_SIMT_STRIDED_LINES;
        const unsigned line = index % MM_SIMT_STRIDED_LINES;
        float sum = 0.0f;
        for (unsigned other_warp = 0; other_warp < MM_SIMT_VECTOR_WARPS; other_warp++)
            sum += warp_sums[other_warp][vector][line];
        if (static_cast<int>(line) < lines_left)
            mm_simt_store(params, first_line + line, vector, sum);
    }
}

template <unsigned VECTORS, bool K_CONTIGUOUS>
__global__ void __launch_bounds__(MM_SIMT_VECTOR_THREADS, VECTORS == 1 ? 3 : 2)
    mm_simt_vector_kernel(const __grid_constant__ struct mm_simt_vector_params params) {
    __shared__ float staged[VECTORS][MM_SIMT_CHUNK];
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    if (!mm_simt_should_run(params.run_flag))
        return;
    const bool is_wide = mm_is_wide(params.matrix);
    if constexpr (K_CONTIGUOUS) {
        if (is_wide)
            mm_simt_k_contiguous<VECTORS, true>(params, staged);
        else
            mm_simt_k_contiguous<VECTORS, false>(params, staged);
    } else {
        if (is_wide)
            mm_simt_k_strided<VECTORS, true>(params, staged);
        else
            mm_simt_k_strided<VECTORS, false>(params, staged);
    }
}
