/* tensor, for float64: the tensor cores of compute capability 9.0 multiply float64 itself, at twice the rate
 * of the float64 pipes, and round as these do. So unlike `fp32_tensor` this needs no splitting and no guard.
 *
 * One instruction of a warp (mma.sync) multiplies 16×4 of A by 4×8 of B and adds the product to 16×8 of C,
 * all in registers. The rest of the kernel feeds it. As in `warp_tiled`, a block computes a tile of C and
 * each warp a part of the tile, 64×32 of 128×128. At each step, 4 of k, a thread then reads 12 elements for
 * 16 instructions of its warp. It reads those of the next step while this one is multiplied.
 *
 * Loads: slabs of A and B, 16 of k, wait in a ring of stages in shared memory. They lie there as their
 * matrices are stored. Nothing is transposed, because a thread reads single elements and can read along
 * either side of a slab. Asynchronous copies refill the ring. They are of 16 bytes if all rows of the matrix
 * begin at multiples of 16 bytes, and else of 8, which suits every stride. Copies of 8 bytes are twice as
 * many, but the warps have issue slots to spare: an instruction keeps its tensor core busy for 16 cycles.
 *
 * Warps w and w + 4 share a tensor core. One starts its copies at the first step of a slab, the other half a
 * slab later. So one of the two always multiplies.
 *
 * Edges: copies fill what lies past an edge with zeros, and the epilogue stores only what C has.
 *
 * Launch: a block for each tile of C. The tile suits the product (the table `candidates`): with large tiles
 * each element is loaded less often, with small ones a small C has blocks for the whole chip. All tiles add
 * up k in the same order, so an element of C has the same bits in each.
 *
 * Cost: one barrier a slab. A block of 128×128 has 256 threads of up to 233 registers and up to 160 KiB of
 * shared memory, so a multiprocessor runs one. k is not split: a small C with a long k leaves most of the
 * chip idle.
 *
 * Source: NVIDIA's PTX ISA has the layout of the operands ("Matrix Fragments for mma.m16n8k4"). */
#include "gpu/backend.h"
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/kernel.cuh"

namespace {

/* One instruction: C += A·B, A 16×4, B 4×8. Each matrix is spread over the 32 threads of the warp. With
 * group = lane / 4 and quarter = lane % 4 a thread has
 *     of A: (group, quarter) and (group + 8, quarter)
 *     of B: (quarter, group)
 *     of C: (group, 2·quarter) and the next in the row, then the same of row group + 8. */
constexpr unsigned MMA_ROWS = 16;
constexpr unsigned MMA_COLS = 8;
constexpr unsigned MMA_DEPTH = 4;

__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[2], double b) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b));
}

/* Whether every row of X begins at a multiple of 16 bytes: then aligned pairs of it can be one access. */
__device__ __forceinline__ bool is_wide(const struct mm_matrix &x) {
    return reinterpret_cast<size_t>(x.data) % sizeof(double2) == 0 && x.ld % 2 == 0;
}

/* One operand of a tile. Its lines are the rows of op(A), or the columns of op(B). K_MAJOR: the elements of a
 * line are neighbours (A as it is, B transposed), in global and in shared memory. A slab has LINES lines and
 * DEPTH depths.
 *
 * Shared memory serves 16 threads at a time, by 16 banks of 8 bytes. These read 4 lines at 4 neighbouring
 * depths. Rows are padded by 4 elements, so they begin 4 banks apart, and the 16 elements lie in 16 banks. */
template <class TILE, bool IS_A, bool TRANSPOSED> struct operand {
    static constexpr bool K_MAJOR = IS_A != TRANSPOSED;
    static constexpr unsigned LINES = IS_A ? TILE::ROWS : TILE::COLS;
    static constexpr unsigned HEIGHT = K_MAJOR ? LINES : TILE::DEPTH; /* rows of a slab */
    static constexpr unsigned WIDTH = K_MAJOR ? TILE::DEPTH : LINES;
    static constexpr unsigned PITCH = WIDTH + 4;
    static constexpr unsigned ELEMENTS = HEIGHT * PITCH; /* with the padding */
    static_assert(PITCH % 16 == 4, "no bank conflicts");

    static constexpr __device__ __forceinline__ unsigned offset_of(unsigned line, unsigned depth) {
        return K_MAJOR ? line * PITCH + depth : depth * PITCH + line;
    }
};

/* Copies a thread's part of each slab, slab by slab along k. Each thread copies some elements of one column,
 * a fixed number of rows apart. */
template <class TILE, class OPERAND> struct loader {
    static constexpr bool K_MAJOR = OPERAND::K_MAJOR;

    const double *from; /* the thread's next copy */
    size_t ld;
    size_t stride;      /* from one copy to the next */
    unsigned to;        /* where the first goes in a slab */
    int first_depth;    /* of the first */
    int left;           /* K_MAJOR: lines from the first copy's on; else elements of a copy that exist */
    bool is_pairwise;   /* copies have two elements */
    bool has_all_lines; /* no line of the block lies past the edge */

    __device__ __forceinline__ loader(const struct mm_matrix &x, unsigned first_line) {
        is_pairwise = is_wide(x);
        if (is_pairwise)
            begin<2>(x, first_line);
        else
            begin<1>(x, first_line);
    }

    template <unsigned COUNT>
    __device__ __forceinline__ void begin(const struct mm_matrix &x, unsigned first_line) {
        constexpr unsigned BREADTH = OPERAND::WIDTH / COUNT; /* copies of a row */
        const unsigned row = threadIdx.x / BREADTH;
        const unsigned col = threadIdx.x % BREADTH * COUNT;
        const int lines = static_cast<int>(static_cast<unsigned>(K_MAJOR ? x.rows : x.cols) - first_line);
        ld = x.ld;
        from = static_cast<const double *>(x.data) + (K_MAJOR ? first_line + row : row) * ld +
               (K_MAJOR ? col : first_line + col);
        stride = TILE::THREADS_X / BREADTH * ld;
        to = row * OPERAND::PITCH + col;
        first_depth = static_cast<int>(K_MAJOR ? col : row);
        left = K_MAJOR ? lines - static_cast<int>(row)
                       : min(max(lines - static_cast<int>(col), 0), static_cast<int>(COUNT));
        has_all_lines = lines >= static_cast<int>(OPERAND::LINES);
    }

    /* Starts the thread's copies of a slab. WHOLE: all of it exists. */
    template <unsigned COUNT, bool WHOLE> __device__ __forceinline__ void copy(double *slab, int k_left) {
        constexpr unsigned BREADTH = OPERAND::WIDTH / COUNT;
        constexpr unsigned ROWS = TILE::THREADS_X / BREADTH; /* at a time */
        static_assert(TILE::THREADS_X % BREADTH == 0 && OPERAND::HEIGHT % ROWS == 0, "threads copy alike");
        const int depths = k_left - first_depth;
        const int count = K_MAJOR ? min(max(depths, 0), static_cast<int>(COUNT)) : left;
#pragma unroll
        for (unsigned row = 0; row < OPERAND::HEIGHT; row += ROWS) {
            const int within = static_cast<int>(row) < (K_MAJOR ? left : depths) ? count : 0;
            mm_copy_async<COUNT>(slab + to + row * OPERAND::PITCH, from, WHOLE ? COUNT : within);
            from += stride;
        }
    }

    /* The same of the next slab, past the edges zeros. k_left counts the k from this slab on. */
    __device__ __forceinline__ void next(double *slab, int k_left) {
        const bool is_whole = has_all_lines && k_left >= static_cast<int>(TILE::DEPTH);
        if (is_pairwise && is_whole)
            copy<2, true>(slab, k_left);
        else if (is_pairwise)
            copy<2, false>(slab, k_left);
        else if (is_whole)
            copy<1, true>(slab, k_left);
        else
            copy<1, false>(slab, k_left);
        if (K_MAJOR) /* back to the first row; else the next slab lies below */
            from += OPERAND::WIDTH - OPERAND::HEIGHT * ld;
    }
};

/* A thread's elements of its warp's operands at one step of k. */
template <class TILE> struct fragments {
    double a[TILE::DOWN][2];
    double b[TILE::ACROSS];
};

/* A kernel (kernel.cuh), by the shape of its block. */
template <unsigned ROWS_, unsigned COLS_, unsigned WARP_ROWS, unsigned WARP_COLS, unsigned DEPTH_,
          unsigned STAGES_>
struct tile {
    static constexpr unsigned ROWS = ROWS_;
    static constexpr unsigned COLS = COLS_;
    static constexpr unsigned DEPTH = DEPTH_;   /* of a slab, along k */
    static constexpr unsigned STAGES = STAGES_; /* one is multiplied, the others are being copied */
    static constexpr unsigned WARPS_ACROSS = COLS / WARP_COLS;
    static constexpr unsigned THREADS_X = ROWS / WARP_ROWS * WARPS_ACROSS * 32;
    static constexpr unsigned THREADS_Y = 1;
    static constexpr unsigned DOWN = WARP_ROWS / MMA_ROWS; /* instructions of a warp at a step */
    static constexpr unsigned ACROSS = WARP_COLS / MMA_COLS;
    static constexpr unsigned STEPS = DEPTH / MMA_DEPTH;
    static_assert(STEPS % 4 == 0 && ACROSS % DOWN == 0, "steps take turns");

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static constexpr unsigned STAGE =
        operand<tile, true, TRANSPOSE_A>::ELEMENTS + operand<tile, false, TRANSPOSE_B>::ELEMENTS;

    /* Reads the fragment of A of the warp's instructions in row i, and an equal share of those of B. a and b
     * point to the thread's first elements in the slabs. */
    template <class A, class B>
    static __device__ __forceinline__ void read(fragments<tile> &to, const double *a, const double *b,
                                                unsigned step, unsigned i) {
        constexpr unsigned SHARE = ACROSS / DOWN;
#pragma unroll
        for (unsigned half = 0; half < 2; half++)
            to.a[i][half] = a[A::offset_of(i * MMA_ROWS + half * 8, step * MMA_DEPTH)];
#pragma unroll
        for (unsigned j = i * SHARE; j < (i + 1) * SHARE; j++)
            to.b[j] = b[B::offset_of(j * MMA_COLS, step * MMA_DEPTH)];
    }

    /* The first row and column of the block's tile. Blocks that run at the same time should load the same
     * lines, which are then in the L2 cache. So blocks, in the order in which they start, go through C in
     * bands of BAND rows of tiles, column by column in each. */
    static __device__ __forceinline__ void find_tile(const struct mm_product &product, unsigned *row,
                                                     unsigned *col) {
        constexpr unsigned BAND = 1024 / ROWS;
        const unsigned rows = (static_cast<unsigned>(product.m) + ROWS - 1) / ROWS;
        const unsigned cols = (static_cast<unsigned>(product.n) + COLS - 1) / COLS;
        const unsigned index = blockIdx.y * cols + blockIdx.x;
        const unsigned band = index / (BAND * cols) * BAND;
        const unsigned height = min(BAND, rows - band);
        *row = (band + index % (BAND * cols) % height) * ROWS;
        *col = index % (BAND * cols) / height * COLS;
    }

    /* Stores a thread's pair of neighbours in C, except past its edges. */
    static __device__ __forceinline__ void store(const struct mm_matrix &c, bool is_pairwise, unsigned row,
                                                 unsigned col, const double *sums) {
        const size_t index = row * c.ld + col;
        if (row >= c.rows)
            return;
        if (is_pairwise && col + 1 < c.cols) {
            *reinterpret_cast<double2 *>(static_cast<double *>(c.data) + index) =
                make_double2(sums[0], sums[1]);
            return;
        }
#pragma unroll
        for (unsigned i = 0; i < 2; i++)
            if (col + i < c.cols)
                mm_store_double(c.dtype, c.data, index + i, sums[i]);
    }

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        using A = operand<tile, true, TRANSPOSE_A>;
        using B = operand<tile, false, TRANSPOSE_B>;
        constexpr unsigned STAGE_ELEMENTS = STAGE<TRANSPOSE_A, TRANSPOSE_B>;
        extern __shared__ double2 mm_tensor_float64_slabs[];
        double *const slabs = reinterpret_cast<double *>(mm_tensor_float64_slabs);
        unsigned first_row;
        unsigned first_col;
        find_tile(product, &first_row, &first_col);

        /* Where the thread's elements begin in the tile. */
        const unsigned warp = threadIdx.x / 32;
        const unsigned group = threadIdx.x % 32 / 4;
        const unsigned quarter = threadIdx.x % 4;
        const unsigned warp_row = warp / WARPS_ACROSS * WARP_ROWS;
        const unsigned warp_col = warp % WARPS_ACROSS * WARP_COLS;
        const double *const a = slabs + A::offset_of(warp_row + group, quarter);
        const double *const b = slabs + A::ELEMENTS + B::offset_of(warp_col + group, quarter);

        loader<tile, A> a_loader(product.a, first_row);
        loader<tile, B> b_loader(product.b, first_col);
        const auto copy = [&](double *slab, int left) {
            if (left > 0) {
                a_loader.next(slab, left);
                b_loader.next(slab + A::ELEMENTS, left);
            }
        };
        int k_left = static_cast<int>(product.k); /* counts from the slab that is multiplied */
#pragma unroll 1
        for (unsigned index = 0; index < STAGES - 1; index++) {
            copy(slabs + index * STAGE_ELEMENTS, k_left - static_cast<int>(index * DEPTH));
            mm_commit_copies(); /* past the last slab the group is empty, and counting goes on */
        }
        /* Each thread waits for its own copies of the first slab: past the barrier the slab is complete. */
        mm_wait_copies_pending<STAGES - 2>();
        __syncthreads();

        double sums[DOWN][ACROSS][4] = {};
        fragments<tile> fragment[2]; /* of this step and of the next */
        unsigned stage = 0;          /* where the slab that is multiplied begins */
        const unsigned copy_step = warp / 4 % 2 * (STEPS / 2);
#pragma unroll
        for (unsigned i = 0; i < DOWN; i++)
            read<A, B>(fragment[0], a, b, 0, i);
#pragma unroll 1
        for (; k_left > 0; k_left -= static_cast<int>(DEPTH)) {
            double *const free_slab =
                slabs + (stage == 0 ? (STAGES - 1) * STAGE_ELEMENTS : stage - STAGE_ELEMENTS);
#pragma unroll
            for (unsigned step = 0; step < STEPS; step++) {
                if (step == STEPS - 1) {
                    /* One barrier for two reasons. Each thread has waited for its own copies, so past it the
                     * next slab is complete. And all threads have read the last of this slab, so copies may
                     * overwrite it. */
                    mm_commit_copies();
                    mm_wait_copies_pending<STAGES - 2>();
                    __syncthreads();
                    stage = stage == (STAGES - 1) * STAGE_ELEMENTS ? 0 : stage + STAGE_ELEMENTS;
                }
                /* Past k both operands are 0, so nothing is added. Zeros past m or n only reach sums that are
                 * never stored. After the last slab this reads elements that are never used. */
#pragma unroll
                for (unsigned i = 0; i < DOWN; i++) {
                    read<A, B>(fragment[(step + 1) % 2], a + stage, b + stage, (step + 1) % STEPS, i);
#pragma unroll
                    for (unsigned j = 0; j < ACROSS; j++)
                        multiply(sums[i][j], fragment[step % 2].a[i], fragment[step % 2].b[j]);
                }
                if (step % (STEPS / 2) == 0 && step == copy_step)
                    copy(free_slab, k_left - static_cast<int>((STAGES - 1) * DEPTH));
            }
        }

        const bool is_pairwise = product.c.dtype == MM_FLOAT64 && is_wide(product.c);
        const unsigned row = first_row + warp_row + group;
        const unsigned col = first_col + warp_col + 2 * quarter;
#pragma unroll
        for (unsigned i = 0; i < 2 * DOWN; i++)
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
                store(product.c, is_pairwise, row + i * 8, col + j * MMA_COLS, &sums[i / 2][j][i % 2 * 2]);
    }
};

/* A tile as the host sees it, and how fast it is. */
struct candidate {
    unsigned rows;
    unsigned cols;
    unsigned resident; /* blocks that fit on a multiprocessor */
    float rate;        /* of a multiprocessor's peak, with so many blocks */
    float rate_alone;  /* and with one */
    struct mm_layout (*layout_of)(const struct mm_product *product);
};

template <class TILE> struct mm_layout layout_of(const struct mm_product *product) {
    static constexpr unsigned stage_elements[2][2] = {
        {TILE::template STAGE<false, false>, TILE::template STAGE<false, true>},
        {TILE::template STAGE<true, false>, TILE::template STAGE<true, true>}};
    struct mm_layout layout = mm_layout_of<TILE>(product);
    layout.dynamic_shared_bytes =
        TILE::STAGES * stage_elements[product->transpose_a][product->transpose_b] * sizeof(double);
    return layout;
}

template <class TILE> constexpr struct candidate candidate_of(unsigned resident, float rate, float alone) {
    return {TILE::ROWS, TILE::COLS, resident, rate, alone, layout_of<TILE>};
}

constexpr struct candidate candidates[] = {
    candidate_of<tile<128, 128, 64, 32, 16, 4>>(1, 0.94f, 0.94f),
    candidate_of<tile<128, 64, 64, 32, 16, 3>>(2, 0.93f, 0.75f),
    candidate_of<tile<64, 64, 32, 32, 16, 3>>(3, 0.75f, 0.50f),
    candidate_of<tile<32, 32, 16, 16, 16, 4>>(5, 0.40f, 0.15f),
};

/* Estimates the cycles of a product. A multiprocessor runs its blocks in waves of `resident`. The last wave
 * may be too small to keep it busy, and each wave has a fixed overhead. */
float cycles_of(const struct candidate *tile, const struct mm_product *product, unsigned multiprocessors) {
    constexpr float WAVE_OVERHEAD = 4000.0f; /* cycles before and after a block's multiplications */
    constexpr float FMAS_PER_CYCLE = 128.0f; /* of a multiprocessor */
    const size_t blocks = mm_size_divide_up(product->m, tile->rows) *
                          mm_size_divide_up(product->n, tile->cols) * mm_product_count(product);
    const size_t each = mm_size_divide_up(blocks, multiprocessors); /* of a multiprocessor */
    const float waves = static_cast<float>(each / tile->resident);
    const float rest = static_cast<float>(each % tile->resident);
    const float block =
        static_cast<float>(tile->rows * tile->cols) * static_cast<float>(product->k) / FMAS_PER_CYCLE;
    float cycles = waves * (static_cast<float>(tile->resident) * block / tile->rate + WAVE_OVERHEAD);
    if (rest > 0.0f)
        cycles += rest * block / fminf(tile->rate, rest * tile->rate_alone) + WAVE_OVERHEAD;
    return cycles;
}

} // namespace

enum mm_status mm_cuda_tensor_float64(const struct mm_product *product, struct mm_plan *plan,
                                      struct mm_error *error) {
    const unsigned multiprocessors = plan->device->multiprocessors > 0 ? plan->device->multiprocessors : 1;
    const struct candidate *best = candidates;
    if (product->tile > best->cols)
        return mm_fail_field(error, MM_UNSUPPORTED, "tile", "tensor of float64 has tiles of %u, not of %u",
                             best->cols, product->tile);
    for (const struct candidate &tile : candidates)
        if (product->tile == 0 &&
            cycles_of(&tile, product, multiprocessors) < cycles_of(best, product, multiprocessors))
            best = &tile;
    plan->layout = best->layout_of(product);
    return MM_OK;
}
