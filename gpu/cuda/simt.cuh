/* The tiles of `simt`: one kernel for blocks of many shapes, of which a product takes the one that suits its
 * own (simt.cu says how it is chosen, and what the levels of tiling are for: warp_tiled.cu). It knows no
 * shape of a product. For simt.cu and for programs that compare tiles. */
#ifndef MM_GPU_CUDA_SIMT_CUH
#define MM_GPU_CUDA_SIMT_CUH

#include "gpu/cuda/async.cuh"
#include "gpu/cuda/follow.cuh"
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/quad.cuh"
#include "gpu/product.h"

/* What a kernel of tiles computes. k may be cut into parts of part_depth, a multiple of the tile's depth;
 * part p is that of blockIdx.y, and its sums go to the rows of `to` from p·m on. */
struct mm_simt_work {
    struct mm_product product;
    struct mm_matrix to; /* C where there is one part; else scratch memory of parts·m rows */
    unsigned part_depth;
    const unsigned
        *wanted; /* in the device's memory: nothing is done where it holds 0. NULL: all is wanted */
};

/* Whether the kernel is to do anything. The same for all of its threads. */
__device__ __forceinline__ bool mm_simt_is_wanted(const unsigned *wanted) {
    return wanted == nullptr || *wanted != 0;
}

/* A shape of block: ROWS×COLS of C by slabs of DEPTH along k, STAGES of them in shared memory;
 * EACH_ROWS×EACH_COLS of it a thread, and LANE_ROWS threads of a warp down its part of C. RESIDENT blocks are
 * to fit on a multiprocessor. KEEPS says what becomes of an operand whose lines lie along rows in memory: it
 * is kept so, which lets copies of 16 bytes move it; else each copy of 4 bytes turns it. */
template <unsigned ROWS_OF, unsigned COLS_OF, unsigned DEPTH_OF, unsigned EACH_ROWS_OF, unsigned EACH_COLS_OF,
          unsigned LANE_ROWS_OF, unsigned STAGES_OF, unsigned RESIDENT_OF, bool KEEPS_OF>
struct mm_simt_tile {
    static constexpr unsigned ROWS = ROWS_OF;
    static constexpr unsigned COLS = COLS_OF;
    static constexpr unsigned DEPTH = DEPTH_OF;
    static constexpr unsigned EACH_ROWS = EACH_ROWS_OF;
    static constexpr unsigned EACH_COLS = EACH_COLS_OF;
    static constexpr unsigned LANE_ROWS = LANE_ROWS_OF;
    static constexpr unsigned LANE_COLS = 32 / LANE_ROWS;
    static constexpr unsigned WARP_ROWS = LANE_ROWS * EACH_ROWS;
    static constexpr unsigned WARP_COLS = LANE_COLS * EACH_COLS;
    static constexpr unsigned WARPS_ACROSS = COLS / WARP_COLS;
    static constexpr unsigned THREADS = ROWS / WARP_ROWS * WARPS_ACROSS * 32;
    static constexpr unsigned STAGES = STAGES_OF;
    static constexpr unsigned RESIDENT = RESIDENT_OF;
    static constexpr bool KEEPS = KEEPS_OF;
    static_assert(ROWS % WARP_ROWS == 0 && COLS % WARP_COLS == 0, "a block is made of whole warps");
    static_assert(EACH_ROWS % MM_QUAD == 0 && EACH_COLS % MM_QUAD == 0, "a thread takes quads of an operand");
    static_assert(DEPTH % (2 * MM_QUAD) == 0 && STAGES >= 2, "a slab is copied while another is used");
};

/* One operand's part in a tile. Its lines are the rows of op(A), or the columns of op(B). ALONG says that a
 * line's elements are neighbours in memory (A as it is, B transposed).
 *
 * A slab that is kept has a row a line, padded by a quad, so that threads that read the same depths of
 * neighbouring lines meet different banks; each read takes four depths of one line. Any other has a row a
 * depth, and each read takes one depth of four lines. One that is turned is padded for the copies'
 * sake, which write 8 depths or more of a line at once. */
template <class TILE, bool IS_A, bool TRANSPOSED> struct mm_simt_side {
    static constexpr bool ALONG = IS_A != TRANSPOSED;
    static constexpr bool KEPT = ALONG && TILE::KEEPS && IS_A;
    static constexpr unsigned DEPTH = TILE::DEPTH;
    static constexpr unsigned THREADS = TILE::THREADS;
    static constexpr unsigned LINES = IS_A ? TILE::ROWS : TILE::COLS;
    static constexpr unsigned EACH = IS_A ? TILE::EACH_ROWS : TILE::EACH_COLS;
    static constexpr unsigned LANES = IS_A ? TILE::LANE_ROWS : TILE::LANE_COLS;
    static constexpr unsigned PITCH = KEPT ? DEPTH + MM_QUAD : ALONG ? LINES + MM_QUAD : LINES;
    static constexpr unsigned WORDS = (KEPT ? LINES : DEPTH) * PITCH; /* of a slab */

    /* Where in the block the thread's line `index` of EACH lies; `warp` is where its warp's lines begin.
     * Threads side by side have neighbouring quads, or of a slab that is kept neighbouring lines. */
    static __device__ __forceinline__ unsigned line_of(unsigned warp, unsigned lane, unsigned index) {
        return KEPT ? warp + index * LANES + lane
                    : warp + index / MM_QUAD * LANES * MM_QUAD + lane * MM_QUAD + index % MM_QUAD;
    }
};

/* A thread's share in copying an operand's slabs, one after another along k. Registers are what a tile is
 * short of, so that it keeps two addresses, and works out again what only the edges need. */
template <class SIDE> struct mm_simt_copier {
    /* A slab as it lies in memory. */
    static constexpr unsigned HEIGHT = SIDE::ALONG ? SIDE::LINES : SIDE::DEPTH;
    static constexpr unsigned WIDTH = SIDE::ALONG ? SIDE::DEPTH : SIDE::LINES;

    const float *from; /* the thread's first element of the next slab */
    unsigned to;       /* that element's place in a slab */
    bool is_wide;      /* copied by 16 bytes */
    bool is_whole;     /* no line of the block is past the edge */

    __device__ __forceinline__ mm_simt_copier(const struct mm_matrix &x, unsigned first_line,
                                              unsigned begin) {
        is_wide = (!SIDE::ALONG || SIDE::KEPT) && mm_is_wide(x);
        is_whole = lines_left(x, first_line) >= static_cast<int>(SIDE::LINES);
        const unsigned row = is_wide ? row_of<MM_QUAD>() : row_of<1>();
        const unsigned col = is_wide ? col_of<MM_QUAD>() : col_of<1>();
        const size_t first_row = SIDE::ALONG ? first_line : begin;
        from = static_cast<const float *>(x.data) + (first_row + row) * x.ld +
               (SIDE::ALONG ? begin : first_line) + col;
        to = place_of(row, col);
    }

    static __device__ __forceinline__ int lines_left(const struct mm_matrix &x, unsigned first_line) {
        return static_cast<int>(static_cast<unsigned>(SIDE::ALONG ? x.rows : x.cols) - first_line);
    }

    /* The thread's first element of a slab in memory, copied by EACH elements. */
    template <unsigned EACH> static __device__ __forceinline__ unsigned row_of() {
        return threadIdx.x / (WIDTH / EACH);
    }

    template <unsigned EACH> static __device__ __forceinline__ unsigned col_of() {
        return threadIdx.x % (WIDTH / EACH) * EACH;
    }

    static __device__ __forceinline__ unsigned place_of(unsigned row, unsigned col) {
        return SIDE::ALONG && !SIDE::KEPT ? col * SIDE::PITCH + row : row * SIDE::PITCH + col;
    }

    /* Of `rows` and `cols` of a slab that there are. Widths and thread counts are powers of two, so that
     * copies THREADS apart are in one column, or in one row and the next ones. */
    template <unsigned EACH, bool WHOLE>
    __device__ __forceinline__ void copy(float *slab, size_t ld, int rows, int cols) const {
        constexpr unsigned BREADTH = WIDTH / EACH;
        constexpr unsigned COPIES = HEIGHT * BREADTH;
        static_assert(BREADTH % SIDE::THREADS == 0 || SIDE::THREADS % BREADTH == 0, "no copy wraps");
#pragma unroll
        for (unsigned first = 0; first < COPIES; first += SIDE::THREADS) {
            const unsigned row = first / BREADTH;
            const unsigned col = first % BREADTH * EACH;
            if (COPIES % SIDE::THREADS != 0 && first + threadIdx.x >= COPIES)
                break;
            unsigned count = EACH;
            if (!WHOLE) {
                const int left = cols - static_cast<int>(col_of<EACH>() + col);
                const bool within = static_cast<int>(row_of<EACH>() + row) < rows;
                count = within ? min(max(left, 0), static_cast<int>(EACH)) : 0;
            }
            mm_copy_async<EACH>(&slab[to + place_of(row, col)], from + row * ld + col, count);
        }
    }

    /* Begins to copy the next slab, `deep_left` before the part's end. What lies past an edge comes as zeros,
     * by the copies themselves; where nothing does, they need not be told how much to read. */
    __device__ __forceinline__ void next(float *slab, const struct mm_matrix &x, unsigned first_line,
                                         int deep_left) {
        const bool whole = is_whole && deep_left >= static_cast<int>(SIDE::DEPTH);
        const int rows = SIDE::ALONG ? lines_left(x, first_line) : deep_left;
        const int cols = SIDE::ALONG ? deep_left : lines_left(x, first_line);
        if (is_wide && whole)
            copy<MM_QUAD, true>(slab, x.ld, rows, cols);
        else if (is_wide)
            copy<MM_QUAD, false>(slab, x.ld, rows, cols);
        else if (whole)
            copy<1, true>(slab, x.ld, rows, cols);
        else
            copy<1, false>(slab, x.ld, rows, cols);
        from += SIDE::ALONG ? SIDE::DEPTH : SIDE::DEPTH * x.ld;
    }
};

/* What a thread multiplies of an operand. Of slabs with a row a depth: this depth's elements and the next's,
 * which are taken before this one's are multiplied. */
template <class SIDE, bool KEPT = SIDE::KEPT> struct mm_simt_operand {
    float values[2][SIDE::EACH];

    __device__ __forceinline__ float at(unsigned depth, unsigned index) const {
        return values[depth % 2][index];
    }

    /* `slab` is the thread's own first element of it. */
    __device__ __forceinline__ void take(const float *slab, unsigned depth) {
#pragma unroll
        for (unsigned index = 0; index < SIDE::EACH; index += MM_QUAD)
            mm_read_quad(&values[depth % 2][index], &slab[depth * SIDE::PITCH + SIDE::line_of(0, 0, index)]);
    }

    __device__ __forceinline__ void take_line(const float *, unsigned, unsigned) {
    }
};

/* Of slabs that are kept: four depths at a time. A line's next four are taken once the last of these is
 * multiplied, while the other lines' are, and so need no registers of their own. */
template <class SIDE> struct mm_simt_operand<SIDE, true> {
    float values[SIDE::EACH][MM_QUAD];

    __device__ __forceinline__ float at(unsigned depth, unsigned index) const {
        return values[index][depth % MM_QUAD];
    }

    __device__ __forceinline__ void take(const float *, unsigned) {
    }

    __device__ __forceinline__ void take_line(const float *slab, unsigned depth, unsigned index) {
        if (depth % MM_QUAD == 0)
            mm_read_quad(values[index], &slab[SIDE::line_of(0, 0, index) * SIDE::PITCH + depth]);
    }
};

/* Where a thread's own elements of a slab begin. */
template <class SIDE> __device__ __forceinline__ unsigned mm_simt_begins(unsigned warp, unsigned lane) {
    const unsigned line = SIDE::line_of(warp, lane, 0);
    return SIDE::KEPT ? line * SIDE::PITCH : line;
}

/* Multiplies this depth's elements, and takes those of the next as their places fall free. Every other row
 * goes backwards, so that one multiplication has an operand in common with the next (warp_tiled.cu). */
template <class TILE, class A, class B>
__device__ __forceinline__ void mm_simt_multiply(float (&sums)[TILE::EACH_ROWS][TILE::EACH_COLS],
                                                 mm_simt_operand<A> &a, mm_simt_operand<B> &b, unsigned depth,
                                                 const float *a_slab, const float *b_slab) {
    const unsigned next = (depth + 1) % TILE::DEPTH;
#pragma unroll
    for (unsigned i = 0; i < TILE::EACH_ROWS; i++) {
#pragma unroll
        for (unsigned step = 0; step < TILE::EACH_COLS; step++) {
            const unsigned j = i % 2 == 0 ? step : TILE::EACH_COLS - 1 - step;
            sums[i][j] = fmaf(a.at(depth, i), b.at(depth, j), sums[i][j]);
            if (i == TILE::EACH_ROWS - 1)
                b.take_line(b_slab, next, j);
        }
        a.take_line(a_slab, next, i);
    }
}

/* The block's place in C. Blocks that run at one time should share what they read, by the L2 cache: so they
 * go through C in bands of BAND rows, column by column in each. */
template <class TILE>
__device__ __forceinline__ void mm_simt_place(const struct mm_product &product, unsigned *row,
                                              unsigned *col) {
    constexpr unsigned BAND = TILE::ROWS < 2048 ? 2048 / TILE::ROWS : 1; /* blocks */
    const unsigned rows = (static_cast<unsigned>(product.m) + TILE::ROWS - 1) / TILE::ROWS;
    const unsigned cols = (static_cast<unsigned>(product.n) + TILE::COLS - 1) / TILE::COLS;
    /* A band's blocks pass 2³² only where C would have 2³⁷ elements or more. */
    const unsigned band = blockIdx.x / (BAND * cols) * BAND;
    const unsigned index = blockIdx.x % (BAND * cols);
    const unsigned height = min(BAND, rows - band);
    *row = (band + index % height) * TILE::ROWS;
    *col = index / height * TILE::COLS;
}

/* Stores a thread's sums: by quads where its columns are such. */
template <class TILE, class A, class B>
__device__ __forceinline__ void mm_simt_store(const struct mm_matrix &to, unsigned row, unsigned col,
                                              const float (&sums)[TILE::EACH_ROWS][TILE::EACH_COLS]) {
    const bool is_wide = mm_is_wide(to);
#pragma unroll
    for (unsigned i = 0; i < TILE::EACH_ROWS; i++) {
        const unsigned to_row = row + A::line_of(0, 0, i);
        if (to_row >= to.rows)
            continue;
        if (B::KEPT) {
            float *into = static_cast<float *>(to.data) + to_row * to.ld;
#pragma unroll
            for (unsigned j = 0; j < TILE::EACH_COLS; j++)
                if (col + B::line_of(0, 0, j) < to.cols)
                    into[col + B::line_of(0, 0, j)] = sums[i][j];
        } else {
#pragma unroll
            for (unsigned j = 0; j < TILE::EACH_COLS; j += MM_QUAD)
                mm_store_quad(to, is_wide, to_row, col + B::line_of(0, 0, j), &sums[i][j]);
        }
    }
}

/* The part's own rows of `to`. */
__device__ __forceinline__ struct mm_matrix mm_simt_part_of(const struct mm_simt_work &work) {
    struct mm_matrix part = work.to;
    part.data = static_cast<float *>(part.data) + blockIdx.y * work.product.m * part.ld;
    part.rows = work.product.m;
    return part;
}

/* Words of shared memory of both operands' slabs. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
constexpr unsigned MM_SIMT_STAGE =
    mm_simt_side<TILE, true, TRANSPOSE_A>::WORDS + mm_simt_side<TILE, false, TRANSPOSE_B>::WORDS;

/* Where the warp's lines begin in the block, and which of its threads this one is. Threads that read the
 * same of an operand are side by side or 2 or more apart, which takes the banks once for all of them. */
struct mm_simt_thread {
    unsigned warp_row;
    unsigned warp_col;
    unsigned lane_row;
    unsigned lane_col;
};

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

/* What a thread adds up of C. */
template <class TILE> struct mm_simt_sums { float at[TILE::EACH_ROWS][TILE::EACH_COLS]; };

/* The sums of k from begin to end, for the block whose rows and columns begin there. `slabs` is shared memory
 * for STAGES of both operands' slabs, which all threads have done with. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ __forceinline__ void mm_simt_sum_up(const struct mm_product &product,
                                               const struct mm_simt_thread &thread, unsigned first_row,
                                               unsigned first_col, unsigned begin, unsigned end, float *slabs,
                                               struct mm_simt_sums<TILE> &sums) {
    using A = mm_simt_side<TILE, true, TRANSPOSE_A>;
    using B = mm_simt_side<TILE, false, TRANSPOSE_B>;
    constexpr unsigned STAGE = MM_SIMT_STAGE<TILE, TRANSPOSE_A, TRANSPOSE_B>;
    constexpr unsigned DEPTH = TILE::DEPTH;
    const float *const a_own = slabs + mm_simt_begins<A>(thread.warp_row, thread.lane_row);
    const float *const b_own = slabs + A::WORDS + mm_simt_begins<B>(thread.warp_col, thread.lane_col);

    mm_simt_copier<A> a_copier(product.a, first_row, begin);
    mm_simt_copier<B> b_copier(product.b, first_col, begin);
    const auto copy = [&](float *slab, int deep_left) {
        if (deep_left > 0) {
            a_copier.next(slab, product.a, first_row, deep_left);
            b_copier.next(slab + A::WORDS, product.b, first_col, deep_left);
        }
        mm_end_copies(); /* past the last slab a group is empty, so that counting goes on */
    };
    int left = static_cast<int>(end - begin); /* of k, from the slab in use on */
#pragma unroll 1
    for (unsigned stage = 0; stage < TILE::STAGES - 1; stage++)
        copy(slabs + stage * STAGE, left - static_cast<int>(stage * DEPTH));
    /* Each thread waits for its own copies of the first slab, so past the barrier it is there. */
    mm_wait_copies_but<TILE::STAGES - 2>();
    __syncthreads();

    sums = {};
    mm_simt_operand<A> a;
    mm_simt_operand<B> b;
    unsigned now = 0; /* where the slabs in use begin */
    a.take(a_own, 0);
    b.take(b_own, 0);
#pragma unroll
    for (unsigned i = 0; i < TILE::EACH_ROWS; i++)
        a.take_line(a_own, 0, i);
#pragma unroll
    for (unsigned j = 0; j < TILE::EACH_COLS; j++)
        b.take_line(b_own, 0, j);
#pragma unroll 1
    for (; left > 0; left -= static_cast<int>(DEPTH)) {
#pragma unroll
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            if (depth == DEPTH - 1) {
                /* One barrier for two reasons: past it the next slabs are there, of all threads. And all have
                 * taken the last of this step's, which may be overwritten. */
                mm_wait_copies_but<TILE::STAGES - 2>();
                __syncthreads();
                now = now == (TILE::STAGES - 1) * STAGE ? 0 : now + STAGE;
            }
            /* Past the last slab this takes what no one multiplies. */
            a.take(a_own + now, (depth + 1) % DEPTH);
            b.take(b_own + now, (depth + 1) % DEPTH);
            /* The slab before this one is used up, and gives its place to the last of those under way. Here
             * fewest registers are in use: of what was taken by fours, one is left. */
            if (depth == MM_QUAD - 1)
                copy(slabs + (now == 0 ? (TILE::STAGES - 1) * STAGE : now - STAGE),
                     left - static_cast<int>((TILE::STAGES - 1) * DEPTH));
            /* Past k both operands are 0, so nothing is added; past m or n the zeros only meet sums that are
             * never stored. */
            mm_simt_multiply<TILE, A, B>(sums.at, a, b, depth, a_own + now, b_own + now);
        }
    }
}

/* Stores a thread's sums of the block whose rows and columns begin there. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ __forceinline__ void
mm_simt_store_block(const struct mm_matrix &to, const struct mm_simt_thread &thread, unsigned first_row,
                    unsigned first_col, const struct mm_simt_sums<TILE> &sums) {
    using A = mm_simt_side<TILE, true, TRANSPOSE_A>;
    using B = mm_simt_side<TILE, false, TRANSPOSE_B>;
    mm_simt_store<TILE, A, B>(to, first_row + A::line_of(thread.warp_row, thread.lane_row, 0),
                              first_col + B::line_of(thread.warp_col, thread.lane_col, 0), sums.at);
}

template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(TILE::THREADS, TILE::RESIDENT)
    mm_simt_tiles(const __grid_constant__ struct mm_simt_work work) {
    extern __shared__ float4 mm_simt_slabs[];
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    if (!mm_simt_is_wanted(work.wanted))
        return;
    unsigned first_row;
    unsigned first_col;
    mm_simt_place<TILE>(work.product, &first_row, &first_col);
    const unsigned begin = blockIdx.y * work.part_depth;
    const unsigned end = min(static_cast<unsigned>(work.product.k), begin + work.part_depth);
    const struct mm_simt_thread thread = mm_simt_this_thread<TILE>();
    struct mm_simt_sums<TILE> sums;
    mm_simt_sum_up<TILE, TRANSPOSE_A, TRANSPOSE_B>(work.product, thread, first_row, first_col, begin, end,
                                                   reinterpret_cast<float *>(mm_simt_slabs), sums);
    mm_simt_store_block<TILE, TRANSPOSE_A, TRANSPOSE_B>(mm_simt_part_of(work), thread, first_row, first_col,
                                                        sums);
}

/* For a batch: a block does all parts of its square of C, and adds them up as they would be if each were
 * another block's, so that the bits are the same. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(TILE::THREADS, 2)
    mm_simt_each(const __grid_constant__ struct mm_cuda_items batch) {
    extern __shared__ float4 mm_simt_slabs[];
    const struct mm_cuda_item *item = mm_cuda_item_of(batch);
    if (item == nullptr)
        return;
    const struct mm_product product = mm_cuda_product_of<TRANSPOSE_A, TRANSPOSE_B>(*item);
    const bool is_one_part = item->part_depth >= item->k;
    const unsigned first_row = blockIdx.y * TILE::ROWS;
    const unsigned first_col = blockIdx.x * TILE::COLS;
    const struct mm_simt_thread thread = mm_simt_this_thread<TILE>();
    struct mm_simt_sums<TILE> total = {};
    unsigned begin = 0;
    do {
        struct mm_simt_sums<TILE> sums;
        __syncthreads(); /* all have done with the part before */
        mm_simt_sum_up<TILE, TRANSPOSE_A, TRANSPOSE_B>(product, thread, first_row, first_col, begin,
                                                       min(item->k, begin + item->part_depth),
                                                       reinterpret_cast<float *>(mm_simt_slabs), sums);
#pragma unroll
        for (unsigned i = 0; i < TILE::EACH_ROWS; i++)
#pragma unroll
            for (unsigned j = 0; j < TILE::EACH_COLS; j++)
                total.at[i][j] = is_one_part ? sums.at[i][j] : total.at[i][j] + sums.at[i][j];
        begin += item->part_depth;
    } while (begin < item->k);
    mm_simt_store_block<TILE, TRANSPOSE_A, TRANSPOSE_B>(product.c, thread, first_row, first_col, total);
}

#endif
