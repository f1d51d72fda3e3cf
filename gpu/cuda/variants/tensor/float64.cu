/* tensor, for float64: the tensor cores of compute capability 9.0 multiply float64 itself, at twice the rate
 * of the float64 pipes, and round as these do. So unlike `fp32_tensor` this needs no splitting and no guard.
 *
 * One instruction of a warp (mma.sync) multiplies 16×8 of A by 8×8 of B and adds the product to 16×8 of C,
 * all in registers. The rest of the kernel feeds it. As in `warp_tiled`, a block computes a tile of C and
 * each warp a part of the tile, 64×32 of 128×128. At each step, 8 of k, a thread then reads 24 elements for
 * 16 instructions of its warp. It reads those of the next step while this one is multiplied.
 *
 * Loads: slabs of A and B, 16 or 32 of k, wait in a ring of stages in shared memory. They lie there as their
 * matrices are stored. Nothing is transposed, because a thread reads single elements and can read along
 * either side of a slab. Asynchronous copies refill the ring. They are of 16 bytes if all rows of the matrix
 * begin at multiples of 16 bytes, and else of 8, which suits every stride. Copies of 8 bytes are twice as
 * many, and pass through the L1 cache, in the way of the reads.
 *
 * Warps w and w + 4 share a tensor core. One starts its copies at the first step of a slab, the other half a
 * slab later. So one of the two always multiplies. (With copies spread over all steps 4096³ took 2.75 ms.)
 *
 * Edges: copies fill what lies past an edge with zeros, and the epilogue stores only what C has.
 *
 * Launch: a block for each tile of C. The tile suits the product (the table `candidates`): with large tiles
 * each element is loaded less often, with small ones a small C has blocks for the whole chip. If there are
 * too few tiles, a cluster of blocks computes each (split-K). Each block adds up a part of k. Then they read
 * each other's sums through shared memory and add them up in the order of k. So the shape of a product, and
 * of the stack that it may be part of, settles the bits of its result.
 *
 * Cost: one barrier a slab. A block of 128×128 has 256 threads of up to 237 registers and up to 160 KiB of
 * shared memory, so a multiprocessor runs one.
 *
 * Measured on an H100: 2.30 ms at 4096³ (cuBLAS 2.18) and 2.47 at 4095×4097×4099 (cuBLAS 3.25), where copies
 * are of 8 bytes. In registers alone the instruction reaches 63.5 TFLOP/s, and m16n8k4 60.5.
 *
 * Source: NVIDIA's PTX ISA has the layout of the operands ("Matrix Fragments for mma.m16n8k8"). */
#include "gpu/backend.h"
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants/wgmma/hopper.cuh"

namespace {

/* One instruction: C += A·B, A 16×8, B 8×8. Each matrix is spread over the 32 threads of the warp. With
 * group = lane / 4 and quarter = lane % 4 a thread has
 *     of A: (group, quarter), (group + 8, quarter), (group, quarter + 4) and (group + 8, quarter + 4)
 *     of B: (quarter, group) and (quarter + 4, group)
 *     of C: (group, 2·quarter) and the next in the row, then the same of row group + 8. */
constexpr unsigned MMA_ROWS = 16;
constexpr unsigned MMA_COLS = 8;
constexpr unsigned MMA_DEPTH = 8;

__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
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

    __device__ __forceinline__ loader(const struct mm_matrix &x, unsigned first_line, unsigned first_k) {
        is_pairwise = is_wide(x);
        if (is_pairwise)
            begin<2>(x, first_line);
        else
            begin<1>(x, first_line);
        from += K_MAJOR ? first_k : first_k * ld;
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
        constexpr unsigned COPIES = OPERAND::HEIGHT / ROWS;
        static_assert(TILE::THREADS_X % BREADTH == 0 && OPERAND::HEIGHT % ROWS == 0, "threads copy alike");
        const int depths = k_left - first_depth;
        const int count = K_MAJOR ? min(max(depths, 0), static_cast<int>(COUNT)) : left;
#pragma unroll
        for (unsigned i = 0; i < COPIES; i++) {
            const int row = static_cast<int>(i * ROWS);
            const int within = row < (K_MAJOR ? left : depths) ? count : 0;
            mm_copy_async<COUNT>(slab + to + i * ROWS * OPERAND::PITCH, from, WHOLE ? COUNT : within);
            from += stride;
        }
    }

    /* The same of the next slab, past the edges zeros. k_left counts the k from this slab on. */
    __device__ __forceinline__ void next(double *slab, int k_left) {
        if (!is_pairwise)
            copy<1, false>(slab, k_left);
        else if (has_all_lines && k_left >= static_cast<int>(TILE::DEPTH))
            copy<2, true>(slab, k_left);
        else
            copy<2, false>(slab, k_left);
        if (K_MAJOR) /* back to the first row; else the next slab lies below */
            from += OPERAND::WIDTH - OPERAND::HEIGHT * ld;
    }
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
    static constexpr unsigned BLOCKS_MIN =
        1; /* left alone, the compiler spills for the sake of more blocks */
    static constexpr unsigned DOWN = WARP_ROWS / MMA_ROWS; /* instructions of a warp at a step */
    static constexpr unsigned ACROSS = WARP_COLS / MMA_COLS;
    static constexpr unsigned STEPS = DEPTH / MMA_DEPTH;
    static_assert(STEPS % 2 == 0 && DOWN >= 2, "steps take turns");

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static constexpr unsigned STAGE =
        operand<tile, true, TRANSPOSE_A>::ELEMENTS + operand<tile, false, TRANSPOSE_B>::ELEMENTS;

    /* Reads a thread's elements for the warp's instructions in row i, or in column j. a and b point to its
     * first elements in the slabs. */
    template <class A>
    static __device__ __forceinline__ void read_a(double (&to)[4], const double *a, unsigned step,
                                                  unsigned i) {
#pragma unroll
        for (unsigned v = 0; v < 4; v++)
            to[v] = a[A::offset_of(i * MMA_ROWS + v % 2 * 8, step * MMA_DEPTH + v / 2 * 4)];
    }
    template <class B>
    static __device__ __forceinline__ void read_b(double (&to)[2], const double *b, unsigned step,
                                                  unsigned j) {
#pragma unroll
        for (unsigned v = 0; v < 2; v++)
            to[v] = b[B::offset_of(j * MMA_COLS, step * MMA_DEPTH + v * 4)];
    }

    /* The first row and column of the block's tile. Blocks that run at the same time should load the same
     * lines, which are then in the L2 cache. So blocks, in the order in which they start, go through C in
     * bands of BAND rows of tiles, column by column in each. */
    static __device__ __forceinline__ void find_tile(const struct mm_product &product, unsigned tile_col,
                                                     unsigned *row, unsigned *col) {
        constexpr unsigned BAND = 1024 / ROWS;
        const unsigned rows = (static_cast<unsigned>(product.m) + ROWS - 1) / ROWS;
        const unsigned cols = (static_cast<unsigned>(product.n) + COLS - 1) / COLS;
        const unsigned index = blockIdx.y * cols + tile_col;
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

    /* Adds up the sums of the cluster's blocks, in their order, and stores them in C. Each block lays its
     * sums into its shared memory, for all. A thread has 2·DOWN rows of C, and each block does some of them.
     */
    static __device__ __forceinline__ void add_up(const struct mm_matrix &c, bool is_pairwise, unsigned row,
                                                  unsigned col, double2 *shared,
                                                  const double (&sums)[DOWN][ACROSS][4]) {
        double2 *const own = shared + threadIdx.x;
#pragma unroll
        for (unsigned i = 0; i < 2 * DOWN; i++)
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
                own[(i * ACROSS + j) * THREADS_X] =
                    make_double2(sums[i / 2][j][i % 2 * 2], sums[i / 2][j][i % 2 * 2 + 1]);
        mm_cluster_sync();
        const unsigned blocks = mm_cluster_blocks();
#pragma unroll 1
        for (unsigned i = mm_cluster_rank(); i < 2 * DOWN; i += blocks) {
            double total[ACROSS][2] = {};
#pragma unroll 1
            for (unsigned block = 0; block < blocks; block++)
#pragma unroll
                for (unsigned j = 0; j < ACROSS; j++) {
                    const double2 part = mm_cluster_read(own + (i * ACROSS + j) * THREADS_X, block);
                    total[j][0] += part.x;
                    total[j][1] += part.y;
                }
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
                store(c, is_pairwise, row + i * 8, col + j * MMA_COLS, total[j]);
        }
        mm_cluster_sync(); /* other blocks may still read this one's shared memory */
    }

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        using A = operand<tile, true, TRANSPOSE_A>;
        using B = operand<tile, false, TRANSPOSE_B>;
        constexpr unsigned STAGE_ELEMENTS = STAGE<TRANSPOSE_A, TRANSPOSE_B>;
        static_assert(STAGES * STAGE_ELEMENTS >= ROWS * COLS, "the slabs have room for all sums");
        extern __shared__ double2 mm_tensor_float64_slabs[];
        double *const slabs = reinterpret_cast<double *>(mm_tensor_float64_slabs);
        const unsigned blocks = mm_cluster_blocks();
        unsigned first_row;
        unsigned first_col;
        find_tile(product, blockIdx.x / blocks, &first_row, &first_col);

        /* The block's part of k, in whole slabs; the last blocks' may be shorter, or empty. */
        const unsigned k = static_cast<unsigned>(product.k);
        const unsigned part = ((k + DEPTH - 1) / DEPTH + blocks - 1) / blocks * DEPTH;
        const unsigned first_k = min(mm_cluster_rank() * part, k);
        int k_left = static_cast<int>(min(part, k - first_k)); /* counts from the slab that is multiplied */

        /* Where the thread's elements begin in the tile. */
        const unsigned warp = threadIdx.x / 32;
        const unsigned group = threadIdx.x % 32 / 4;
        const unsigned quarter = threadIdx.x % 4;
        const unsigned warp_row = warp / WARPS_ACROSS * WARP_ROWS;
        const unsigned warp_col = warp % WARPS_ACROSS * WARP_COLS;
        const double *const a = slabs + A::offset_of(warp_row + group, quarter);
        const double *const b = slabs + A::ELEMENTS + B::offset_of(warp_col + group, quarter);

        loader<tile, A> a_loader(product.a, first_row, first_k);
        loader<tile, B> b_loader(product.b, first_col, first_k);
        const auto copy = [&](double *slab, int left) {
            if (left > 0) {
                a_loader.next(slab, left);
                b_loader.next(slab + A::ELEMENTS, left);
            }
        };
#pragma unroll 1
        for (unsigned index = 0; index < STAGES - 1; index++) {
            copy(slabs + index * STAGE_ELEMENTS, k_left - static_cast<int>(index * DEPTH));
            mm_commit_copies(); /* past the last slab the group is empty, and counting goes on */
        }
        /* Each thread waits for its own copies of the first slab: past the barrier the slab is complete. */
        mm_wait_copies_pending<STAGES - 2>();
        __syncthreads();

        double sums[DOWN][ACROSS][4] = {};
        /* Elements of A are replaced as soon as they are used: those of row i - 1 while row i is multiplied.
         * Those of B are used by all rows, so there are two sets, of this step and of the next. */
        double of_a[DOWN][4];
        double of_b[2][ACROSS][2];
        unsigned stage = 0; /* where the slab that is multiplied begins */
        const unsigned copy_step = warp / 4 % 2 * (STEPS / 2);
#pragma unroll
        for (unsigned i = 0; i < DOWN - 1; i++)
            read_a<A>(of_a[i], a, 0, i);
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
            read_b<B>(of_b[0][j], b, 0, j);
#pragma unroll 1
        for (; k_left > 0; k_left -= static_cast<int>(DEPTH)) {
            double *const free_slab =
                slabs + (stage == 0 ? (STAGES - 1) * STAGE_ELEMENTS : stage - STAGE_ELEMENTS);
            /* Past k both operands are 0, so nothing is added. Zeros past m or n only reach sums that are
             * never stored. After the last slab this reads elements that are never used. */
#pragma unroll
            for (unsigned step = 0; step < STEPS; step++) {
                const unsigned next = (step + 1) % STEPS;
#pragma unroll
                for (unsigned i = 0; i < DOWN; i++) {
                    if (step == STEPS - 1 && i == 1) {
                        /* One barrier for two reasons. Each thread has waited for its own copies, so past it
                         * the next slab is complete. And all threads have read the last of this slab, so
                         * copies may overwrite it. */
                        mm_commit_copies();
                        mm_wait_copies_pending<STAGES - 2>();
                        __syncthreads();
                        stage = stage == (STAGES - 1) * STAGE_ELEMENTS ? 0 : stage + STAGE_ELEMENTS;
                    }
                    if (i == 0) {
                        read_a<A>(of_a[DOWN - 1], a + stage, step, DOWN - 1);
                    } else {
                        read_a<A>(of_a[i - 1], a + stage, next, i - 1);
#pragma unroll
                        for (unsigned j = (i - 1) * ACROSS / (DOWN - 1); j < i * ACROSS / (DOWN - 1); j++)
                            read_b<B>(of_b[(step + 1) % 2][j], b + stage, next, j);
                    }
#pragma unroll
                    for (unsigned j = 0; j < ACROSS; j++)
                        multiply(sums[i][j], of_a[i], of_b[step % 2][j]);
                    if (i == 0 && step % (STEPS / 2) == 0 && step == copy_step)
                        copy(free_slab, k_left - static_cast<int>((STAGES - 1) * DEPTH));
                }
            }
        }

        const bool is_pairwise = product.c.dtype == MM_FLOAT64 && is_wide(product.c);
        const unsigned row = first_row + warp_row + group;
        const unsigned col = first_col + warp_col + 2 * quarter;
        if (blocks > 1) {
            add_up(product.c, is_pairwise, row, col, mm_tensor_float64_slabs, sums);
            return;
        }
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
    unsigned depth;
    unsigned pairs;    /* of neighbouring sums in a row of a thread */
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
    return {TILE::ROWS, TILE::COLS, TILE::DEPTH, TILE::ACROSS, resident, rate, alone, layout_of<TILE>};
}

/* A step of k takes 8 bytes for each row and column of a tile. The L2 cache gives a multiprocessor about 24
 * bytes a cycle, so the smallest tile cannot be faster than 0.75 of the peak. */
constexpr struct candidate candidates[] = {
    candidate_of<tile<128, 128, 64, 32, 16, 4>>(1, 0.95f, 0.95f),
    candidate_of<tile<128, 64, 64, 32, 16, 3>>(2, 0.90f, 0.66f),
    candidate_of<tile<64, 64, 32, 32, 32, 3>>(2, 0.72f, 0.61f),
    candidate_of<tile<32, 32, 32, 8, 16, 4>>(4, 0.38f, 0.27f),
};

constexpr unsigned SPLITS_MAX = 8; /* CUDA guarantees clusters of 8 blocks */
constexpr unsigned PART_DEPTH_MIN =
    64;                               /* shorter parts of k are not worth a block, nor the place in a batch */
constexpr float SPLIT_MARGIN = 1.05f; /* k is split only if the estimate is better by this factor */

unsigned part_depth_of(const struct candidate *tile, const struct mm_product *product, unsigned splits) {
    const size_t slabs = mm_size_divide_up(product->k, tile->depth);
    return static_cast<unsigned>(mm_size_divide_up(slabs, splits)) * tile->depth;
}

/* Estimates the cycles of a product; the constants are from times measured on an H100. A multiprocessor runs
 * its blocks in waves of `resident`. The last wave may be too small to keep it busy, and each wave has a
 * fixed overhead. If k is split, a block also waits for the other blocks of its cluster and reads their sums,
 * one block after the other; and clusters of four blocks and more leave some multiprocessors idle. */
float cycles_of(const struct candidate *tile, const struct mm_product *product, unsigned splits,
                unsigned multiprocessors) {
    constexpr float WAVE_OVERHEAD = 4000.0f;    /* cycles before and after a block's multiplications */
    constexpr float CLUSTER_OVERHEAD = 2500.0f; /* the waits for other blocks */
    constexpr float EXCHANGE = 300.0f;          /* to read a pair of sums of one of them */
    constexpr float FMAS_PER_CYCLE = 128.0f;    /* of a multiprocessor */
    const size_t clusters = mm_size_divide_up(product->m, tile->rows) *
                            mm_size_divide_up(product->n, tile->cols) * mm_product_count(product);
    const unsigned usable = splits > 2 ? multiprocessors - multiprocessors / 8 : multiprocessors;
    const size_t at_once = usable < splits ? 1 : usable / splits;
    const size_t each = mm_size_divide_up(clusters, at_once); /* blocks of a multiprocessor */
    const float waves = static_cast<float>(each / tile->resident);
    const float rest = static_cast<float>(each % tile->resident);
    const float elements = static_cast<float>(tile->rows * tile->cols);
    const float depth = splits > 1 ? static_cast<float>(part_depth_of(tile, product, splits))
                                   : static_cast<float>(product->k);
    const float block = elements * depth / FMAS_PER_CYCLE;
    const float exchange = EXCHANGE * static_cast<float>(tile->pairs * (splits - 1));
    const float overhead = splits > 1 ? WAVE_OVERHEAD + CLUSTER_OVERHEAD : WAVE_OVERHEAD;
    float cycles = waves * (static_cast<float>(tile->resident) * (block / tile->rate + exchange) + overhead);
    if (rest > 0.0f)
        cycles += rest * (block / fminf(tile->rate, rest * tile->rate_alone) + exchange) + overhead;
    return cycles;
}

/* Whether the tile may have so many splits. A stack has blocks enough. */
bool may_split(const struct candidate *tile, const struct mm_product *product, unsigned splits) {
    return product->stack == nullptr && part_depth_of(tile, product, splits) >= PART_DEPTH_MIN;
}

} // namespace

enum mm_status mm_cuda_tensor_float64(const struct mm_product *product, struct mm_plan *plan,
                                      struct mm_error *error) {
    const unsigned multiprocessors = plan->device->multiprocessors > 0 ? plan->device->multiprocessors : 1;
    const struct candidate *best = candidates;
    unsigned best_splits = 1;
    float least = INFINITY;
    if (product->tile > best->cols)
        return mm_fail_field(error, MM_UNSUPPORTED, "tile",
                             "tensor of float64 has tiles of 32, 64 and %u, not of %u", best->cols,
                             product->tile);
    for (const struct candidate &tile : candidates)
        for (unsigned splits = 1; splits == 1 || (splits <= SPLITS_MAX && may_split(&tile, product, splits));
             splits *= 2) {
            const float cycles = cycles_of(&tile, product, splits, multiprocessors);
            const float estimate = splits > 1 ? cycles * SPLIT_MARGIN : cycles;
            if (estimate >= least || (product->tile != 0 && tile.cols != product->tile))
                continue;
            best = &tile;
            best_splits = splits;
            least = estimate;
        }
    plan->layout = best->layout_of(product);
    if (best_splits > 1) {
        plan->layout.cluster = best_splits;
        plan->layout.split_depth = part_depth_of(best, product, best_splits);
        plan->layout.batch_kernel = nullptr; /* products of a batch may differ in k */
    }
    return MM_OK;
}
