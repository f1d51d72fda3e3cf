/* The kernel of `simt`, for blocks of several shapes. simt.cu chooses the shape, and warp_tiled.cu explains
 * tiles of warps and threads. The kernel has three parts:
 *
 * - The loader copies slabs of A and B asynchronously to a ring of stages in shared memory.
 * - In the main loop each thread reads fragments of the oldest stage into registers and multiplies them.
 * - In the epilogue each thread stores its sums in C, or in the workspace if k is split. */
#pragma once

#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/finish.cuh"
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants/quad.cuh"
#include "gpu/cuda/variants/simt_shapes.cuh"
#include "gpu/product/product.h"

/* Arguments of the kernel. If k is split, a block with blockIdx.y = s adds up k from s·split_depth to
 * (s+1)·split_depth, or to the end of k. The block stores its sums in rows s·m to (s+1)·m - 1 of C. */
struct mm_simt_params {
    struct mm_product product; /* if k is split, C is the workspace of splits·m rows */
    unsigned split_depth;      /* a multiple of the tile's depth */
    const unsigned *run_flag;  /* may be nullptr; if *run_flag is 0, the kernel returns at once */
};

__device__ __forceinline__ bool mm_simt_should_run(const unsigned *run_flag) {
    return run_flag == nullptr || *run_flag != 0;
}

/* Shape INDEX of mm_simt_shapes, and sizes that follow from the shape. */
template <unsigned INDEX> struct mm_simt_tile {
    static constexpr struct mm_simt_shape SHAPE = mm_simt_shapes[INDEX];
    static constexpr unsigned ROWS = SHAPE.rows;
    static constexpr unsigned COLS = SHAPE.cols;
    static constexpr unsigned DEPTH = SHAPE.depth;
    static constexpr unsigned STAGES = SHAPE.stages;
    static constexpr unsigned THREAD_ROWS = SHAPE.thread_rows;
    static constexpr unsigned THREAD_COLS = SHAPE.thread_cols;
    static constexpr unsigned LANE_ROWS = SHAPE.lane_rows;
    static constexpr unsigned LANE_COLS = 32 / LANE_ROWS;
    static constexpr unsigned WARP_ROWS = LANE_ROWS * THREAD_ROWS;
    static constexpr unsigned WARP_COLS = LANE_COLS * THREAD_COLS;
    static constexpr unsigned WARPS_ACROSS = COLS / WARP_COLS;
    static constexpr unsigned THREADS = ROWS / WARP_ROWS * WARPS_ACROSS * 32;
    static_assert(ROWS % WARP_ROWS == 0 && COLS % WARP_COLS == 0, "a block is made of whole warps");
    static_assert(THREAD_ROWS % MM_QUAD == 0 && THREAD_COLS % MM_QUAD == 0,
                  "a thread reads quads of an operand");
    static_assert(DEPTH % (2 * MM_QUAD) == 0 && STAGES >= 2, "a slab is copied while another is used");
};

/* One operand of a tile. Lines are the rows of op(A) or the columns of op(B). GLOBAL_K_MAJOR: the elements of
 * a line are neighbours in global memory (A not transposed, B transposed). SHARED_K_MAJOR: the elements of a
 * line are neighbours in shared memory too.
 *
 * A SHARED_K_MAJOR slab has a row for each line, and one read gets four elements of one line. Other slabs
 * have a row for each k, and one read gets one element of each of four lines. PITCH pads rows by a quad if
 * threads would otherwise read or write several rows in one bank. */
template <class TILE, bool IS_A, bool TRANSPOSED> struct mm_simt_operand {
    static constexpr bool GLOBAL_K_MAJOR = IS_A != TRANSPOSED;
    static constexpr bool SHARED_K_MAJOR = GLOBAL_K_MAJOR && IS_A && TILE::SHAPE.keeps_k_major;
    static constexpr unsigned DEPTH = TILE::DEPTH;
    static constexpr unsigned THREADS = TILE::THREADS;
    static constexpr unsigned LINES = IS_A ? TILE::ROWS : TILE::COLS;
    static constexpr unsigned THREAD_LINES = IS_A ? TILE::THREAD_ROWS : TILE::THREAD_COLS;
    static constexpr unsigned LANES = IS_A ? TILE::LANE_ROWS : TILE::LANE_COLS;
    static constexpr unsigned PITCH = SHARED_K_MAJOR   ? DEPTH + MM_QUAD
                                      : GLOBAL_K_MAJOR ? LINES + MM_QUAD
                                                       : LINES;
    static constexpr unsigned WORDS = (SHARED_K_MAJOR ? LINES : DEPTH) * PITCH; /* words of a slab */

    /* Returns the index in the block of the thread's line `index`. `warp` is the first line of the warp, and
     * `lane` the thread's position in the warp. If the slab is SHARED_K_MAJOR, neighbouring threads have
     * neighbouring lines. Otherwise they have neighbouring quads of lines. */
    static __device__ __forceinline__ unsigned line_of(unsigned warp, unsigned lane, unsigned index) {
        return SHARED_K_MAJOR ? warp + index * LANES + lane
                              : warp + index / MM_QUAD * LANES * MM_QUAD + lane * MM_QUAD + index % MM_QUAD;
    }
};

/* Copies the thread's part of each slab. To save registers, the loader stores few values, and recomputes
 * others at the borders of the matrix. */
template <class OPERAND> struct mm_simt_loader {
    static constexpr unsigned HEIGHT = OPERAND::GLOBAL_K_MAJOR ? OPERAND::LINES : OPERAND::DEPTH;
    static constexpr unsigned WIDTH = OPERAND::GLOBAL_K_MAJOR ? OPERAND::DEPTH : OPERAND::LINES;

    const float *global;    /* the thread's first element of the next slab */
    unsigned shared_offset; /* offset of the thread's first element in a slab in shared memory */
    bool is_wide;           /* copies have 16 bytes, not 4 */
    bool is_whole;          /* all lines of the block are inside the operand */

    __device__ __forceinline__ mm_simt_loader(const struct mm_matrix &x, unsigned first_line,
                                              unsigned begin) {
        is_wide = (!OPERAND::GLOBAL_K_MAJOR || OPERAND::SHARED_K_MAJOR) && mm_is_wide(x);
        is_whole = lines_left(x, first_line) >= static_cast<int>(OPERAND::LINES);
        const unsigned row = is_wide ? row_of<MM_QUAD>() : row_of<1>();
        const unsigned col = is_wide ? col_of<MM_QUAD>() : col_of<1>();
        const size_t first_row = OPERAND::GLOBAL_K_MAJOR ? first_line : begin;
        global = static_cast<const float *>(x.data) + (first_row + row) * x.ld +
                 (OPERAND::GLOBAL_K_MAJOR ? begin : first_line) + col;
        shared_offset = offset_of(row, col);
    }

    static __device__ __forceinline__ int lines_left(const struct mm_matrix &x, unsigned first_line) {
        return static_cast<int>(static_cast<unsigned>(OPERAND::GLOBAL_K_MAJOR ? x.rows : x.cols) -
                                first_line);
    }

    /* Returns the first row of a slab that the thread copies if each copy has COPY elements. */
    template <unsigned COPY> static __device__ __forceinline__ unsigned row_of() {
        return threadIdx.x / (WIDTH / COPY);
    }

    template <unsigned COPY> static __device__ __forceinline__ unsigned col_of() {
        return threadIdx.x % (WIDTH / COPY) * COPY;
    }

    static __device__ __forceinline__ unsigned offset_of(unsigned row, unsigned col) {
        return OPERAND::GLOBAL_K_MAJOR && !OPERAND::SHARED_K_MAJOR ? col * OPERAND::PITCH + row
                                                                   : row * OPERAND::PITCH + col;
    }

    /* Starts the thread's copies of a slab. Elements from row `rows` or column `cols` on are outside the
     * operand and become zeros. If WHOLE, all elements are inside. */
    template <unsigned COPY, bool WHOLE>
    __device__ __forceinline__ void copy(float *slab, size_t ld, int rows, int cols) const {
        constexpr unsigned BREADTH = WIDTH / COPY;
        constexpr unsigned COPIES = HEIGHT * BREADTH;
        /* Checks that the distances between a thread's copies are compile-time constants. */
        static_assert(BREADTH % OPERAND::THREADS == 0 || OPERAND::THREADS % BREADTH == 0, "no copy wraps");
#pragma unroll
        for (unsigned first = 0; first < COPIES; first += OPERAND::THREADS) {
            const unsigned row = first / BREADTH;
            const unsigned col = first % BREADTH * COPY;
            if (COPIES % OPERAND::THREADS != 0 && first + threadIdx.x >= COPIES)
                break;
            unsigned count = COPY;
            if (!WHOLE) {
                const int left = cols - static_cast<int>(col_of<COPY>() + col);
                const bool within = static_cast<int>(row_of<COPY>() + row) < rows;
                count = within ? min(max(left, 0), static_cast<int>(COPY)) : 0;
            }
            mm_copy_async<COPY>(&slab[shared_offset + offset_of(row, col)], global + row * ld + col, count);
        }
    }

    /* Starts to copy the next slab, with zeros outside the operand. `k_left` is the number of elements of k
     * from the slab to the end. */
    __device__ __forceinline__ void next(float *slab, const struct mm_matrix &x, unsigned first_line,
                                         int k_left) {
        const bool whole = is_whole && k_left >= static_cast<int>(OPERAND::DEPTH);
        const int rows = OPERAND::GLOBAL_K_MAJOR ? lines_left(x, first_line) : k_left;
        const int cols = OPERAND::GLOBAL_K_MAJOR ? k_left : lines_left(x, first_line);
        if (is_wide && whole)
            copy<MM_QUAD, true>(slab, x.ld, rows, cols);
        else if (is_wide)
            copy<MM_QUAD, false>(slab, x.ld, rows, cols);
        else if (whole)
            copy<1, true>(slab, x.ld, rows, cols);
        else
            copy<1, false>(slab, x.ld, rows, cols);
        global += OPERAND::GLOBAL_K_MAJOR ? OPERAND::DEPTH : OPERAND::DEPTH * x.ld;
    }
};

/* A thread's fragment of an operand, in registers, if the slab has a row for each k. The fragment is
 * double-buffered: a thread reads the elements of the next k before it multiplies those of the current k. */
template <class OPERAND, bool SHARED_K_MAJOR = OPERAND::SHARED_K_MAJOR> struct mm_simt_fragment {
    float values[2][OPERAND::THREAD_LINES];

    __device__ __forceinline__ float at(unsigned depth, unsigned index) const {
        return values[depth % 2][index];
    }

    /* Reads the fragment at `depth`. `slab` points to the thread's first element of the slab. */
    __device__ __forceinline__ void read(const float *slab, unsigned depth) {
#pragma unroll
        for (unsigned index = 0; index < OPERAND::THREAD_LINES; index += MM_QUAD)
            mm_read_quad(&values[depth % 2][index],
                         &slab[depth * OPERAND::PITCH + OPERAND::line_of(0, 0, index)]);
    }

    __device__ __forceinline__ void read_line(const float *, unsigned, unsigned) {
    }
};

/* A thread's fragment of a SHARED_K_MAJOR slab: four elements of each line. A line's next four elements
 * replace these four as soon as the line is multiplied, so the fragment needs no second buffer. */
template <class OPERAND> struct mm_simt_fragment<OPERAND, true> {
    float values[OPERAND::THREAD_LINES][MM_QUAD];

    __device__ __forceinline__ float at(unsigned depth, unsigned index) const {
        return values[index][depth % MM_QUAD];
    }

    __device__ __forceinline__ void read(const float *, unsigned) {
    }

    __device__ __forceinline__ void read_line(const float *slab, unsigned depth, unsigned index) {
        if (depth % MM_QUAD == 0)
            mm_read_quad(values[index], &slab[OPERAND::line_of(0, 0, index) * OPERAND::PITCH + depth]);
    }
};

template <class OPERAND>
__device__ __forceinline__ unsigned mm_simt_first_word(unsigned warp, unsigned lane) {
    const unsigned line = OPERAND::line_of(warp, lane, 0);
    return OPERAND::SHARED_K_MAJOR ? line * OPERAND::PITCH : line;
}

/* Multiplies the fragments of one k, and reads the next elements of SHARED_K_MAJOR lines. Every other row of
 * sums goes backwards, so successive multiplications share an operand (see warp_tiled.cu). */
template <class TILE, class A, class B>
__device__ __forceinline__ void mm_simt_multiply(float (&sums)[TILE::THREAD_ROWS][TILE::THREAD_COLS],
                                                 mm_simt_fragment<A> &a, mm_simt_fragment<B> &b,
                                                 unsigned depth, const float *a_slab) {
    const unsigned next = (depth + 1) % TILE::DEPTH;
#pragma unroll
    for (unsigned i = 0; i < TILE::THREAD_ROWS; i++) {
#pragma unroll
        for (unsigned index = 0; index < TILE::THREAD_COLS; index++) {
            const unsigned j = i % 2 == 0 ? index : TILE::THREAD_COLS - 1 - index;
            sums[i][j] = fmaf(a.at(depth, i), b.at(depth, j), sums[i][j]);
        }
        a.read_line(a_slab, next, i);
    }
}

/* Sets *row and *col to the first row and column of the block's part of C. Blocks go through C in bands of
 * BAND rows of blocks, column by column in each band. Blocks that run together then load few different lines,
 * which stay in the L2 cache. The result does not depend on this order. */
template <class TILE>
__device__ __forceinline__ void mm_simt_block_origin(const struct mm_product &product, unsigned *row,
                                                     unsigned *col) {
    constexpr unsigned BAND = TILE::ROWS < 2048 ? 2048 / TILE::ROWS : 1; /* rows of blocks in a band */
    const unsigned rows = (static_cast<unsigned>(product.m) + TILE::ROWS - 1) / TILE::ROWS;
    const unsigned cols = (static_cast<unsigned>(product.n) + TILE::COLS - 1) / TILE::COLS;
    /* Known limit: if n is above 2³¹ - 32 and tiles are 32×32, BAND·cols overflows to 0, which is a division
     * by 0. For other tiles BAND·cols is at most 2³¹. */
    const unsigned band = blockIdx.x / (BAND * cols) * BAND;
    const unsigned index = blockIdx.x % (BAND * cols);
    const unsigned height = min(BAND, rows - band);
    *row = (band + index % height) * TILE::ROWS;
    *col = index / height * TILE::COLS;
}

/* Returns the product with C moved to the rows of the block's split. */
__device__ __forceinline__ struct mm_product mm_simt_split_of(const struct mm_product &product) {
    struct mm_product split = product;
    split.c.data = static_cast<float *>(product.c.data) + blockIdx.y * product.m * product.c.ld;
    return split;
}

/* Words of shared memory for one stage, which has a slab of A and a slab of B. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
constexpr unsigned MM_SIMT_STAGE_WORDS =
    mm_simt_operand<TILE, true, TRANSPOSE_A>::WORDS + mm_simt_operand<TILE, false, TRANSPOSE_B>::WORDS;

/* Where the warp's part of the block begins, and where the thread lies in its warp. */
struct mm_simt_thread {
    unsigned warp_row;
    unsigned warp_col;
    unsigned lane_row;
    unsigned lane_col;
};

/* Orders lanes so that neighbouring lanes read equal words, which shared memory serves at once. */
template <class TILE> __device__ __forceinline__ struct mm_simt_thread mm_simt_this_thread() {
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    const bool is_tall = TILE::LANE_ROWS >= TILE::LANE_COLS;
    constexpr unsigned LONGER = TILE::LANE_ROWS >= TILE::LANE_COLS ? TILE::LANE_ROWS : TILE::LANE_COLS;
    const unsigned longer = lane / 2 % LONGER;
    const unsigned shorter = lane / 2 / LONGER * 2 + lane % 2;
    return {warp / TILE::WARPS_ACROSS * TILE::WARP_ROWS, warp % TILE::WARPS_ACROSS * TILE::WARP_COLS,
            is_tall ? longer : shorter, is_tall ? shorter : longer};
}

template <class TILE> struct mm_simt_sums { float at[TILE::THREAD_ROWS][TILE::THREAD_COLS]; };

/* The main loop: adds up k from `begin` to `end` for the block of C at (first_row, first_col). `slabs` is
 * shared memory for STAGES stages, which no thread may be reading. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ __forceinline__ void mm_simt_mainloop(const struct mm_product &product,
                                                 const struct mm_simt_thread &thread, unsigned first_row,
                                                 unsigned first_col, unsigned begin, unsigned end,
                                                 float *slabs, struct mm_simt_sums<TILE> &sums) {
    using A = mm_simt_operand<TILE, true, TRANSPOSE_A>;
    using B = mm_simt_operand<TILE, false, TRANSPOSE_B>;
    constexpr unsigned STAGE_WORDS = MM_SIMT_STAGE_WORDS<TILE, TRANSPOSE_A, TRANSPOSE_B>;
    constexpr unsigned DEPTH = TILE::DEPTH;
    const float *const a_own = slabs + mm_simt_first_word<A>(thread.warp_row, thread.lane_row);
    const float *const b_own = slabs + A::WORDS + mm_simt_first_word<B>(thread.warp_col, thread.lane_col);

    mm_simt_loader<A> a_loader(product.a, first_row, begin);
    mm_simt_loader<B> b_loader(product.b, first_col, begin);
    const auto copy = [&](float *slab, int k_left) {
        if (k_left > 0) {
            a_loader.next(slab, product.a, first_row, k_left);
            b_loader.next(slab + A::WORDS, product.b, first_col, k_left);
        }
        mm_commit_copies(); /* the waits count groups, so a group may be empty */
    };
    int k_left = static_cast<int>(end - begin); /* elements of k from the current stage to `end` */
#pragma unroll 1
    for (unsigned stage = 0; stage < TILE::STAGES - 1; stage++)
        copy(slabs + stage * STAGE_WORDS, k_left - static_cast<int>(stage * DEPTH));
    /* Wait until all threads have finished their copies of the first stage. */
    mm_wait_copies_pending<TILE::STAGES - 2>();
    __syncthreads();

    sums = {};
    mm_simt_fragment<A> a;
    mm_simt_fragment<B> b;
    unsigned stage_offset = 0; /* words before the current stage */
    a.read(a_own, 0);
    b.read(b_own, 0);
#pragma unroll
    for (unsigned i = 0; i < TILE::THREAD_ROWS; i++)
        a.read_line(a_own, 0, i);
#pragma unroll 1
    for (; k_left > 0; k_left -= static_cast<int>(DEPTH)) {
#pragma unroll
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            if (depth == DEPTH - 1) {
                /* After this barrier the next stage is complete, because each thread has waited for its own
                 * copies. All threads have read the current stage, so copies may overwrite it. */
                mm_wait_copies_pending<TILE::STAGES - 2>();
                __syncthreads();
                stage_offset =
                    stage_offset == (TILE::STAGES - 1) * STAGE_WORDS ? 0 : stage_offset + STAGE_WORDS;
            }
            /* In the last step these reads get words that are not used. */
            a.read(a_own + stage_offset, (depth + 1) % DEPTH);
            b.read(b_own + stage_offset, (depth + 1) % DEPTH);
            /* Refill the previous stage, which no thread reads any more. At this depth the fewest registers
             * are in use, because a SHARED_K_MAJOR fragment has only one element of each line left. */
            if (depth == MM_QUAD - 1)
                copy(slabs +
                         (stage_offset == 0 ? (TILE::STAGES - 1) * STAGE_WORDS : stage_offset - STAGE_WORDS),
                     k_left - static_cast<int>((TILE::STAGES - 1) * DEPTH));
            /* Elements past k are 0 in both fragments, so they add nothing to the sums. */
            mm_simt_multiply<TILE, A, B>(sums.at, a, b, depth, a_own + stage_offset);
        }
    }
}

/* The epilogue: stores the sums of the block of C at (first_row, first_col). */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ __forceinline__ void mm_simt_epilogue(const struct mm_product &product,
                                                 const struct mm_simt_thread &thread, unsigned first_row,
                                                 unsigned first_col, const struct mm_simt_sums<TILE> &sums) {
    using A = mm_simt_operand<TILE, true, TRANSPOSE_A>;
    using B = mm_simt_operand<TILE, false, TRANSPOSE_B>;
    const unsigned row = first_row + A::line_of(thread.warp_row, thread.lane_row, 0);
    const unsigned col = first_col + B::line_of(thread.warp_col, thread.lane_col, 0);
    const bool is_wide = mm_is_wide(product.c);
#pragma unroll
    for (unsigned i = 0; i < TILE::THREAD_ROWS; i++)
        mm_store_quads<B::LANES * MM_QUAD>(product, is_wide, row + A::line_of(0, 0, i), col, 0, sums.at[i]);
}

template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(TILE::THREADS, TILE::SHAPE.resident)
    mm_simt_tiles(const __grid_constant__ struct mm_simt_params params) {
    extern __shared__ float4 mm_simt_slabs[];
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    if (!mm_simt_should_run(params.run_flag))
        return;
    unsigned first_row;
    unsigned first_col;
    mm_simt_block_origin<TILE>(params.product, &first_row, &first_col);
    const unsigned begin = blockIdx.y * params.split_depth;
    const unsigned end = min(static_cast<unsigned>(params.product.k), begin + params.split_depth);
    const struct mm_simt_thread thread = mm_simt_this_thread<TILE>();
    struct mm_simt_sums<TILE> sums;
    mm_simt_mainloop<TILE, TRANSPOSE_A, TRANSPOSE_B>(params.product, thread, first_row, first_col, begin, end,
                                                     reinterpret_cast<float *>(mm_simt_slabs), sums);
    mm_simt_epilogue<TILE, TRANSPOSE_A, TRANSPOSE_B>(mm_simt_split_of(params.product), thread, first_row,
                                                     first_col, sums);
    if (params.product.epilogue.is_set)
        mm_cuda_finish_block<TILE::ROWS, TILE::COLS, TILE::THREADS>(params.product, first_row, first_col);
}

/* Whether a block of a batch can add up splits. Large tiles have no registers for a second set of sums. */
template <class TILE> constexpr bool MM_SIMT_ADDS_SPLITS = TILE::THREAD_ROWS *TILE::THREAD_COLS <= 32;

/* The kernel for a batch, which has no workspace. A block computes all splits of its part of C, one after
 * another, and adds their sums in the order of simt_sum. So batches do not change the bits of a product. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(TILE::THREADS, 2)
    mm_simt_each(const __grid_constant__ struct mm_cuda_items batch) {
    extern __shared__ float4 mm_simt_slabs[];
    const struct mm_cuda_item *item = mm_cuda_item_of(batch);
    if (item == nullptr)
        return;
    const struct mm_product product = mm_cuda_product_of<TRANSPOSE_A, TRANSPOSE_B>(batch, *item);
    const bool is_one_split = item->split_depth >= item->k;
    const unsigned first_row = blockIdx.y * TILE::ROWS;
    const unsigned first_col = blockIdx.x * TILE::COLS;
    const struct mm_simt_thread thread = mm_simt_this_thread<TILE>();
    float *const slabs = reinterpret_cast<float *>(mm_simt_slabs);
    if constexpr (!MM_SIMT_ADDS_SPLITS<TILE>) {
        struct mm_simt_sums<TILE> sums;
        mm_simt_mainloop<TILE, TRANSPOSE_A, TRANSPOSE_B>(product, thread, first_row, first_col, 0, item->k,
                                                         slabs, sums);
        mm_simt_epilogue<TILE, TRANSPOSE_A, TRANSPOSE_B>(product, thread, first_row, first_col, sums);
        return;
    }
    struct mm_simt_sums<TILE> total = {};
    unsigned begin = 0;
    do {
        struct mm_simt_sums<TILE> sums;
        __syncthreads(); /* wait until all threads have read the stages of the previous split */
        mm_simt_mainloop<TILE, TRANSPOSE_A, TRANSPOSE_B>(product, thread, first_row, first_col, begin,
                                                         min(item->k, begin + item->split_depth), slabs,
                                                         sums);
#pragma unroll
        for (unsigned i = 0; i < TILE::THREAD_ROWS; i++)
#pragma unroll
            for (unsigned j = 0; j < TILE::THREAD_COLS; j++)
                total.at[i][j] = is_one_split ? sums.at[i][j] : total.at[i][j] + sums.at[i][j];
        begin += item->split_depth;
    } while (begin < item->k);
    mm_simt_epilogue<TILE, TRANSPOSE_A, TRANSPOSE_B>(product, thread, first_row, first_col, total);
}
