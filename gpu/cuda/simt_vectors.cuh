/* Products of `simt` where one operand is a vector, or a few: of a whole matrix each element is then used but
 * once or a few times, so that memory sets the pace, and nothing is gained by tiles. The matrix goes straight
 * to registers, 16 bytes a thread and access where it may, eight accesses under way; the vectors come through
 * shared memory. For simt.cu and for programs that time it. */
#ifndef MM_GPU_CUDA_SIMT_VECTORS_CUH
#define MM_GPU_CUDA_SIMT_VECTORS_CUH

#include "gpu/cuda/quad.cuh"

/* The sums over k of matrix line times vector, for each of `lines` lines and `count` vectors. Strides are in
 * elements. k may be cut into parts of part_depth, a multiple of 4; part p is that of blockIdx.y, and its
 * sums go to to + p·to_part. */
struct mm_simt_lines {
    struct mm_matrix matrix; /* as stored: a line lies along its rows, or across */
    unsigned lines;
    unsigned k;
    const float *vectors;
    size_t vector_stride; /* from one vector to the next */
    size_t depth_stride;  /* from one element of a vector to the next */
    unsigned count;
    unsigned part_depth;
    float *to;
    size_t to_vector; /* from the sum of a vector to that of the next */
    size_t to_line;
    size_t to_part;
    const unsigned *wanted; /* as mm_simt_work's */
};

constexpr unsigned MM_SIMT_VECTORS_MAX = 4;
constexpr unsigned MM_SIMT_VECTOR_WARPS = 8; /* of a block */
constexpr unsigned MM_SIMT_VECTOR_THREADS = MM_SIMT_VECTOR_WARPS * 32;
constexpr unsigned MM_SIMT_ACROSS_LINES = 32 * MM_QUAD;        /* of a block, where lines lie across rows */
constexpr unsigned MM_SIMT_ALONG_LINES = MM_SIMT_VECTOR_WARPS; /* and where they lie along them: one a warp */
constexpr unsigned MM_SIMT_UNDER_WAY = 8;                      /* accesses of a thread */
constexpr unsigned MM_SIMT_CHUNK = 32 * MM_QUAD * MM_SIMT_UNDER_WAY; /* elements of k between two barriers */

/* Which of 128 neighbours are the thread's: a quad, or where they are read one by one, every 32nd. */
template <bool WIDE> __device__ __forceinline__ unsigned mm_simt_place_of(unsigned index) {
    const unsigned lane = threadIdx.x % 32;
    return WIDE ? lane * MM_QUAD + index : lane + 32 * index;
}

/* The thread's four of 128 neighbours from `from` on, of which `left` are there; zeros past them. They are
 * not needed again, and should not drive from the caches what is. */
template <bool WIDE>
__device__ __forceinline__ void mm_simt_read(float (&to)[MM_QUAD], const float *from, int left) {
    const int first = static_cast<int>(mm_simt_place_of<WIDE>(0));
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
        const unsigned place = mm_simt_place_of<WIDE>(index);
        to[index] = static_cast<int>(place) < left ? __ldcs(from + place) : 0.0f;
    }
}

/* Copies a chunk of each vector to shared memory, zeros past `end` and past the last vector. */
template <unsigned VECTORS>
__device__ __forceinline__ void mm_simt_stage(float (&to)[VECTORS][MM_SIMT_CHUNK],
                                              const struct mm_simt_lines &work, unsigned first,
                                              unsigned end) {
#pragma unroll
    for (unsigned vector = 0; vector < VECTORS; vector++)
        for (unsigned depth = threadIdx.x; depth < MM_SIMT_CHUNK; depth += MM_SIMT_VECTOR_THREADS) {
            const bool within = vector < work.count && first + depth < end;
            const float *from =
                work.vectors + vector * work.vector_stride + (first + depth) * work.depth_stride;
            to[vector][depth] = within ? *from : 0.0f;
        }
}

/* Where a line's elements are neighbours: a warp goes along it. */
template <unsigned VECTORS, bool WIDE>
__device__ void mm_simt_go_along(const struct mm_simt_lines &work, float (&staged)[VECTORS][MM_SIMT_CHUNK]) {
    const unsigned line = blockIdx.x * MM_SIMT_ALONG_LINES + threadIdx.x / 32;
    const unsigned begin = blockIdx.y * work.part_depth;
    const unsigned end = min(work.k, begin + work.part_depth);
    const float *from = static_cast<const float *>(work.matrix.data) + line * work.matrix.ld;
    float sums[VECTORS][MM_QUAD] = {};
    for (unsigned chunk = begin; chunk < end; chunk += MM_SIMT_CHUNK) {
        /* The matrix's elements are asked for first: they are on their way while the vectors' come. */
        float values[MM_SIMT_UNDER_WAY][MM_QUAD];
        const int left = line < work.lines ? static_cast<int>(end - chunk) : 0;
#pragma unroll
        for (unsigned access = 0; access < MM_SIMT_UNDER_WAY; access++)
            mm_simt_read<WIDE>(values[access], from + chunk + access * 32 * MM_QUAD,
                               left - static_cast<int>(access * 32 * MM_QUAD));

        /* All have used the last chunk, before it is overwritten; and all of this one is there, before it is
         * used. */
        __syncthreads();
        mm_simt_stage(staged, work, chunk, end);
        __syncthreads();
#pragma unroll
        for (unsigned access = 0; access < MM_SIMT_UNDER_WAY; access++)
#pragma unroll
            for (unsigned vector = 0; vector < VECTORS; vector++)
#pragma unroll
                for (unsigned index = 0; index < MM_QUAD; index++)
                    sums[vector][index] =
                        fmaf(values[access][index],
                             staged[vector][access * 32 * MM_QUAD + mm_simt_place_of<WIDE>(index)],
                             sums[vector][index]);
    }
#pragma unroll
    for (unsigned vector = 0; vector < VECTORS; vector++) {
        float sum = (sums[vector][0] + sums[vector][1]) + (sums[vector][2] + sums[vector][3]);
#pragma unroll
        for (unsigned apart = 16; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(0xffffffff, sum, apart);
        if (threadIdx.x % 32 == 0 && line < work.lines && vector < work.count)
            work.to[blockIdx.y * work.to_part + vector * work.to_vector + line * work.to_line] = sum;
    }
}

/* Where lines lie across rows: a warp takes 128 lines, and every eighth group of rows. The warps' sums are
 * added up in their order. */
template <unsigned VECTORS, bool WIDE>
__device__ void mm_simt_go_across(const struct mm_simt_lines &work, float (&staged)[VECTORS][MM_SIMT_CHUNK]) {
    __shared__ float of_warps[MM_SIMT_VECTOR_WARPS][VECTORS][MM_SIMT_ACROSS_LINES];
    const unsigned warp = threadIdx.x / 32;
    const unsigned first_line = blockIdx.x * MM_SIMT_ACROSS_LINES;
    const unsigned begin = blockIdx.y * work.part_depth;
    const unsigned end = min(work.k, begin + work.part_depth);
    const float *const from = static_cast<const float *>(work.matrix.data) + first_line;
    const int lines_left = static_cast<int>(work.lines - first_line);
    float sums[VECTORS][MM_QUAD] = {};
    for (unsigned chunk = begin; chunk < end; chunk += MM_SIMT_CHUNK) {
        /* As in mm_simt_go_along. */
        __syncthreads();
        mm_simt_stage(staged, work, chunk, end);
        __syncthreads();
        const unsigned deep = min(end - chunk, MM_SIMT_CHUNK);
        for (unsigned first = warp * MM_SIMT_UNDER_WAY; first < deep;
             first += MM_SIMT_VECTOR_WARPS * MM_SIMT_UNDER_WAY) {
            float values[MM_SIMT_UNDER_WAY][MM_QUAD];
#pragma unroll
            for (unsigned access = 0; access < MM_SIMT_UNDER_WAY; access++)
                mm_simt_read<WIDE>(values[access], from + (chunk + first + access) * work.matrix.ld,
                                   first + access < deep ? lines_left : 0);
#pragma unroll
            for (unsigned access = 0; access < MM_SIMT_UNDER_WAY; access++)
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
            of_warps[warp][vector][mm_simt_place_of<WIDE>(index)] = sums[vector][index];

    /* Each thread adds up what all warps wrote. */
    __syncthreads();
    for (unsigned index = threadIdx.x; index < work.count * MM_SIMT_ACROSS_LINES;
         index += MM_SIMT_VECTOR_THREADS) {
        const unsigned vector = index / MM_SIMT_ACROSS_LINES;
        const unsigned line = index % MM_SIMT_ACROSS_LINES;
        float sum = 0.0f;
        for (unsigned of = 0; of < MM_SIMT_VECTOR_WARPS; of++)
            sum += of_warps[of][vector][line];
        if (static_cast<int>(line) < lines_left)
            work.to[blockIdx.y * work.to_part + vector * work.to_vector +
                    (first_line + line) * work.to_line] = sum;
    }
}

template <unsigned VECTORS, bool ALONG>
__global__ void __launch_bounds__(MM_SIMT_VECTOR_THREADS, VECTORS == 1 ? 3 : 2)
    mm_simt_by_lines(const __grid_constant__ struct mm_simt_lines work) {
    __shared__ float staged[VECTORS][MM_SIMT_CHUNK];
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    if (!mm_simt_is_wanted(work.wanted))
        return;
    const bool is_wide = mm_is_wide(work.matrix);
    if constexpr (ALONG) {
        if (is_wide)
            mm_simt_go_along<VECTORS, true>(work, staged);
        else
            mm_simt_go_along<VECTORS, false>(work, staged);
    } else {
        if (is_wide)
            mm_simt_go_across<VECTORS, true>(work, staged);
        else
            mm_simt_go_across<VECTORS, false>(work, staged);
    }
}

#endif
