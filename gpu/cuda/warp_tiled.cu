/* warp_tiled: a level between the block and the thread. A warp owns a compact 64×64 square of C, and
 * each of its threads 8×16 elements of that. At each element of k the warp then fetches 64 words of A and 64
 * of B from shared memory for 4096 multiplications, where one of `vectorized` fetches 16 and 128 for 2048,
 * and a thread does 6 reads of 16 bytes for 128, where there it does 4 for 64. Threads that share words sit
 * side by side (lane and lane ^ 1 read the same of A, lane and lane ^ 2 the same of B), which lets the
 * hardware serve the reads of 16 threads at a time.
 *
 * It also has asynchronous copies, as `tiled_async`: the next slabs arrive while these are used, with one
 * barrier for every 16 of k. A copy moves 16 bytes and fills in zeros at an edge by itself; it cannot turn
 * what it moves, so slabs stay as their matrices are stored, and the threads read along or across them.
 * Where a matrix or its rows are not at multiples of 16 bytes, the copies are of 4.
 *
 * It costs 128 threads of up to 255 registers, so that a multiprocessor holds two blocks, or eight warps,
 * and little but each thread's own 128 independent sums hides latency; 32 to 40 KiB of shared memory; and, at
 * 128×128 of C a block, a large product to fill the chip.
 *
 * Thread blocks, warps and threads as levels of tiling are those of NVIDIA's CUTLASS. The lanes' order is
 * the one that S. Gray's "maxas" SGEMM made known. */
#include "gpu/cuda/async.cuh"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128;     /* of a block's square of C */
constexpr unsigned DEPTH = 16;     /* of a slab, along k */
constexpr unsigned QUAD = 4;       /* elements of one access */
constexpr unsigned WARP_EDGE = 64; /* of a warp's square; 2×2 warps */
constexpr unsigned WARPS = 2;
constexpr unsigned LANE_ROWS = 8; /* threads of a warp down its square */
constexpr unsigned LANE_COLS = 4; /* and across it */
constexpr unsigned ROWS = WARP_EDGE / LANE_ROWS;
constexpr unsigned COLS = WARP_EDGE / LANE_COLS;
constexpr unsigned THREADS = WARPS * WARPS * LANE_ROWS * LANE_COLS;

/* DEPTH of each of EDGE lines; a line is a row of op(A) or a column of op(B). ALONG says that a line's
 * elements are neighbours in memory (A as it is, B transposed); they are neighbours here, too. A line's
 * padding then puts the quads of 8 lines, 20 words from one to the next, into 32 banks. */
template <bool ALONG> struct slab {
    static constexpr unsigned PITCH = ALONG ? DEPTH + QUAD : EDGE;
    float words[(ALONG ? EDGE : DEPTH) * PITCH];

    __device__ static unsigned at(unsigned line, unsigned depth) {
        return ALONG ? line * PITCH + depth : depth * PITCH + line;
    }
};

/* Begins to copy a slab, from (first_line, step) on, by WORDS elements at a time. Neighbouring threads copy
 * neighbouring elements, and each goes down one column of the slab as it is stored, so that there is
 * little to compute for a copy. What lies past an edge becomes 0. */
template <unsigned WORDS, bool ALONG>
__device__ void fetch_by(slab<ALONG> &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
    constexpr unsigned BREADTH = (ALONG ? DEPTH : EDGE) / WORDS; /* threads along a stored row */
    constexpr unsigned HEIGHT = ALONG ? EDGE : DEPTH;
    const unsigned down = threadIdx.x / BREADTH;
    const unsigned right = threadIdx.x % BREADTH * WORDS;
    const unsigned row = (ALONG ? first_line : step) + down;
    const unsigned col = (ALONG ? step : first_line) + right;
    const unsigned rows = static_cast<unsigned>(x.rows);
    const unsigned cols = static_cast<unsigned>(x.cols);
    const unsigned count = col < cols ? min(cols - col, WORDS) : 0;
    const float *from = static_cast<const float *>(x.data) + row * x.ld + col;
    float *words = &to.words[down * slab<ALONG>::PITCH + right];
#pragma unroll
    for (unsigned i = 0; i < HEIGHT; i += THREADS / BREADTH)
        mm_copy_async<WORDS>(words + i * slab<ALONG>::PITCH, from + i * x.ld, row + i < rows ? count : 0);
}

__device__ bool is_wide(const struct mm_matrix &x) {
    return reinterpret_cast<size_t>(x.data) % sizeof(float4) == 0 && x.ld % QUAD == 0;
}

template <bool ALONG>
__device__ void fetch(slab<ALONG> &to, const struct mm_matrix &x, bool wide, unsigned first_line,
                      unsigned step) {
    if (wide)
        fetch_by<QUAD>(to, x, first_line, step);
    else
        fetch_by<1>(to, x, first_line, step);
}

/* Which line of its warp's square is a thread's `index`-th, of the LANES threads along that edge. Read
 * along lines, 8 of them at a time must be 8 neighbours for their banks to differ; read across, quads. */
template <bool ALONG, unsigned LANES> __device__ unsigned place_of(unsigned lane, unsigned index) {
    return ALONG ? index * LANES + lane : index / QUAD * LANES * QUAD + lane * QUAD + index % QUAD;
}

/* Reads four depths of four of a thread's lines, from `index` on, by four accesses of 16 bytes. */
template <unsigned LANES, bool ALONG>
__device__ void take(float (&square)[QUAD][QUAD], const slab<ALONG> &from, unsigned first_line, unsigned lane,
                     unsigned index, unsigned depth) {
#pragma unroll
    for (unsigned i = 0; i < QUAD; i++) {
        const unsigned line = first_line + place_of<ALONG, LANES>(lane, ALONG ? index + i : index);
        const float4 quad =
            *reinterpret_cast<const float4 *>(&from.words[from.at(line, ALONG ? depth : depth + i)]);
        (ALONG ? square[0][i] : square[i][0]) = quad.x;
        (ALONG ? square[1][i] : square[i][1]) = quad.y;
        (ALONG ? square[2][i] : square[i][2]) = quad.z;
        (ALONG ? square[3][i] : square[i][3]) = quad.w;
    }
}

/* Where a thread stands: its warp's square in the block's, and itself in the warp's. */
struct position {
    unsigned warp_row;
    unsigned warp_col;
    unsigned lane_row;
    unsigned lane_col;
};

__device__ position position_of(unsigned thread) {
    const unsigned warp = thread / 32;
    const unsigned lane = thread % 32;
    return {warp / WARPS * WARP_EDGE, warp % WARPS * WARP_EDGE, lane / 2 % LANE_ROWS,
            lane / 16 * 2 + lane % 2};
}

/* Adds the slabs' products to the thread's sums: four depths of all its rows, with four columns at a time. */
template <bool A_ALONG, bool B_ALONG>
__device__ void multiply(float (&sums)[ROWS][COLS], const slab<A_ALONG> &a_slab, const slab<B_ALONG> &b_slab,
                         const position &at) {
#pragma unroll 2
    for (unsigned depth = 0; depth < DEPTH; depth += QUAD) {
        float a[ROWS / QUAD][QUAD][QUAD];
#pragma unroll
        for (unsigned i = 0; i < ROWS / QUAD; i++)
            take<LANE_ROWS>(a[i], a_slab, at.warp_row, at.lane_row, i * QUAD, depth);
#pragma unroll
        for (unsigned first = 0; first < COLS; first += QUAD) {
            float b[QUAD][QUAD];
            take<LANE_COLS>(b, b_slab, at.warp_col, at.lane_col, first, depth);
#pragma unroll
            for (unsigned d = 0; d < QUAD; d++)
#pragma unroll
                for (unsigned i = 0; i < ROWS; i++)
#pragma unroll
                    for (unsigned j = 0; j < QUAD; j++)
                        sums[i][first + j] = fmaf(a[i / QUAD][d][i % QUAD], b[d][j], sums[i][first + j]);
        }
    }
}

/* Writes four sums that are neighbours in C, from (row, col) on, as far as C goes. */
__device__ void store_quad(const struct mm_matrix &c, bool wide, unsigned row, unsigned col,
                           const float *sums) {
    float *to = static_cast<float *>(c.data) + row * c.ld + col;
    if (wide && col + QUAD <= c.cols) {
        *reinterpret_cast<float4 *>(to) = make_float4(sums[0], sums[1], sums[2], sums[3]);
        return;
    }
#pragma unroll
    for (unsigned j = 0; j < QUAD; j++)
        if (col + j < c.cols)
            to[j] = sums[j];
}

template <bool A_ALONG, bool B_ALONG>
__device__ void store(const struct mm_matrix &c, const float (&sums)[ROWS][COLS], unsigned first_row,
                      unsigned first_col, const position &at) {
    const bool wide = is_wide(c);
#pragma unroll
    for (unsigned i = 0; i < ROWS; i++) {
        const unsigned row = first_row + at.warp_row + place_of<A_ALONG, LANE_ROWS>(at.lane_row, i);
        if (row >= c.rows)
            continue;
        const unsigned warp_col = first_col + at.warp_col;
        if (B_ALONG) {
#pragma unroll
            for (unsigned j = 0; j < COLS; j++) {
                const unsigned col = warp_col + place_of<true, LANE_COLS>(at.lane_col, j);
                if (col < c.cols)
                    static_cast<float *>(c.data)[row * c.ld + col] = sums[i][j];
            }
        } else {
#pragma unroll
            for (unsigned j = 0; j < COLS; j += QUAD)
                store_quad(c, wide, row, warp_col + place_of<false, LANE_COLS>(at.lane_col, j), &sums[i][j]);
        }
    }
}

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(THREADS, 2) warp_tiled(const __grid_constant__ struct mm_product product) {
    constexpr bool A_ALONG = !TRANSPOSE_A;
    constexpr bool B_ALONG = TRANSPOSE_B;
    alignas(sizeof(float4)) __shared__ slab<A_ALONG> a_slab[2];
    alignas(sizeof(float4)) __shared__ slab<B_ALONG> b_slab[2];
    const unsigned first_row = blockIdx.y * EDGE;
    const unsigned first_col = blockIdx.x * EDGE;
    const position at = position_of(threadIdx.x);
    const bool a_wide = is_wide(product.a);
    const bool b_wide = is_wide(product.b);

    if (product.k > 0) {
        fetch(a_slab[0], product.a, a_wide, first_row, 0);
        fetch(b_slab[0], product.b, b_wide, first_col, 0);
    }
    float sums[ROWS][COLS] = {};
    unsigned now = 0;
    for (unsigned step = 0; step < product.k; step += DEPTH, now ^= 1) {
        /* One barrier for two reasons. Each thread has waited for its own copies, so past it all of this
         * step's slabs are there. And all have left the step before, so its slabs may be overwritten. */
        mm_wait_copies();
        __syncthreads();
        if (step + DEPTH < product.k) {
            fetch(a_slab[now ^ 1], product.a, a_wide, first_row, step + DEPTH);
            fetch(b_slab[now ^ 1], product.b, b_wide, first_col, step + DEPTH);
        }

        /* Past k both slabs hold 0, so nothing is added there; past m or n the zeros only meet sums that
         * are never stored. */
        multiply(sums, a_slab[now], b_slab[now], at);
    }
    store<A_ALONG, B_ALONG>(product.c, sums, first_row, first_col, at);
}

} // namespace

enum mm_status mm_cuda_warp_tiled(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    static const mm_cuda_kernel kernels[2][2] = {{warp_tiled<false, false>, warp_tiled<false, true>},
                                                 {warp_tiled<true, false>, warp_tiled<true, true>}};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick(kernels, product);
    layout.block_rows = layout.block_cols = EDGE;
    layout.threads_x = THREADS;
    layout.threads_y = 1;
    return mm_cuda_launch(&layout, product, lane, error);
}
