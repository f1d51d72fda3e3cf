/* The kernels of `tensor` for float64. wgmma does not multiply float64, so these kernels use mma.sync, whose
 * operands are in the registers of one warp. mma.sync rounds like ordinary float64 instructions, at twice the
 * rate.
 *
 * Each consumer warp computes a part of the block's tile, for example 64×32 of 128×128. In this example a
 * thread reads 24 elements from shared memory for 16 mma.sync. It reads early, to hide the latency. NVIDIA's
 * PTX ISA describes the layout of the operands ("Matrix Fragments for mma.m16n8k8"). */
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/tensor/store.cuh"

namespace {

/* One mma.sync: C += A·B, where A is 16×8 and B is 8×8. Each matrix is spread over the 32 threads of a warp.
 * Let group = lane / 4 and quarter = lane % 4. A thread then has these elements (row, column):
 *     of A: (group, quarter), (group + 8, quarter), (group, quarter + 4), (group + 8, quarter + 4)
 *     of B: (quarter, group), (quarter + 4, group)
 *     of C: (group, 2·quarter), (group, 2·quarter + 1), (group + 8, 2·quarter), (group + 8, 2·quarter + 1) */
constexpr unsigned MMA_ROWS = 16;
constexpr unsigned MMA_COLS = 8;

__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* --- which elements a thread reads.
 *
 * A line is a row of op(A) or a column of op(B). A stage stores 16 lines in 16 rows of 128 bytes. If the
 * operand is K-major, a row has the 16 elements of one line; otherwise it has the elements of all 16 lines at
 * one k. TMA swizzles the rows: the 16-byte chunk c of row r lies at position c ^ r % 8. To read without bank
 * conflicts, the code permutes the lines. Where the instruction expects line `group`, a thread reads line
 * line_of(group) of the 16. APART lines after this line the thread reads line group + 8 of A, or line `group`
 * of B for the next instruction. `store` permutes C to match. */

constexpr unsigned LINES = 16;
constexpr unsigned LINES_BYTES = LINES * MM_TENSOR_LINE_BYTES;

template <bool MN_MAJOR> constexpr unsigned APART = MN_MAJOR ? 4 : 1;

template <bool MN_MAJOR> __device__ __forceinline__ unsigned line_of(unsigned group) {
    return MN_MAJOR ? group % 2 + group / 2 % 2 * 8 + group / 4 * 2 : 2 * group;
}

/* Returns the byte offset of the thread's first element in a stage's 16 lines. */
template <bool MN_MAJOR> __device__ __forceinline__ unsigned offset_of(unsigned group, unsigned quarter) {
    const unsigned row = MN_MAJOR ? quarter : line_of<false>(group);
    const unsigned col = MN_MAJOR ? line_of<true>(group) : quarter;
    return row * MM_TENSOR_LINE_BYTES + (col / 2 ^ row % 8) * 16 + col % 2 * 8;
}

/* Reads one element at k = 8·step + 4·half + quarter. The element is from the line that lies apart·APART
 * lines after the thread's line. */
template <bool MN_MAJOR>
__device__ __forceinline__ double read(const unsigned char *lines, unsigned offset, unsigned step,
                                       unsigned half, unsigned apart) {
    const unsigned at = MN_MAJOR ? (offset ^ half * 64 ^ apart * 32) + step * 1024 + half * 512
                                 : (offset ^ step * 64 ^ half * 32 ^ apart * 16) + apart * 128;
    return *reinterpret_cast<const double *>(lines + at);
}

struct shape {
    unsigned rows, cols;
    unsigned warp_rows, warp_cols; /* rows and columns that a warp computes */
    unsigned resident;             /* blocks that fit on a multiprocessor */
};

constexpr shape shapes[] = {
    {32, 32, 16, 16, 3},   /* tiny */
    {64, 64, 32, 32, 2},   /* narrow */
    {128, 128, 64, 32, 1}, /* small */
};

/* The traits of a tile, which product.cuh explains. */
template <mm_tensor_size SIZE, bool IS_A_MN_MAJOR, bool IS_B_MN_MAJOR> struct tile {
    using ROLES = struct float64_roles;
    static constexpr bool LOADS_ADDEND = false;
    static constexpr bool COUNTS_PRODUCTS = true;
    static constexpr bool HAS_LIMBS = false;
    static constexpr bool IS_PLAIN = false;
    static constexpr shape SHAPE = shapes[SIZE];
    static constexpr bool A_MN_MAJOR = IS_A_MN_MAJOR;
    static constexpr bool B_MN_MAJOR = IS_B_MN_MAJOR;
    static constexpr unsigned ROWS = SHAPE.rows;
    static constexpr unsigned COLS = SHAPE.cols;
    static constexpr unsigned WARP_ROWS = SHAPE.warp_rows;
    static constexpr unsigned WARP_COLS = SHAPE.warp_cols;
    static constexpr unsigned WARPS_ACROSS = COLS / WARP_COLS;
    static constexpr unsigned WARPS = ROWS / WARP_ROWS * WARPS_ACROSS;
    static constexpr unsigned DOWN = WARP_ROWS / MMA_ROWS; /* a warp issues DOWN×ACROSS mma.sync per step */
    static constexpr unsigned ACROSS = WARP_COLS / MMA_COLS;
    static constexpr unsigned CONSUMERS = WARPS * 32 / MM_WARPGROUP;
    static constexpr unsigned THREADS = (1 + CONSUMERS) * MM_WARPGROUP;
    static constexpr unsigned CLUSTER = 1;
    static constexpr unsigned EMPTY_ARRIVALS = WARPS * 32;
    static constexpr unsigned PRODUCER_REGISTERS = 72; /* registers per thread, enough for `copy` */
    static constexpr unsigned RESIDENT = SHAPE.resident;
    static constexpr unsigned DEPTH = MM_TENSOR_LINE_BYTES / sizeof(double);
    static constexpr unsigned A_BYTES = ROWS * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned STAGE_BYTES = A_BYTES + COLS * MM_TENSOR_LINE_BYTES;
    /* Each block needs up to 2 KiB of shared memory besides its stages. With 2 KiB more for stages, the L1
     * cache was too small for `copy`: 4095×4099×4097 took 10% longer. */
    static constexpr unsigned STAGES = 222 * 1024 / RESIDENT / STAGE_BYTES;
    static constexpr unsigned SHARED_BYTES = STAGES * STAGE_BYTES;
    static_assert(WARPS * 32 % MM_WARPGROUP == 0 && ACROSS % 2 == 0, "whole warpgroups, and pairs to store");
};

template <class T> using warp_sums = double[T::DOWN][T::ACROSS][4];

/* --- the producer -------------------------------------------------------------------------------- */

/* Whether TMA cannot load A or B. If so, all threads of the producer copy the operand. */
__device__ __forceinline__ bool copies_by_threads(const mm_tensor_plan &plan) {
    return plan.unaligned_a.data != nullptr || plan.unaligned_b.data != nullptr;
}

/* Starts to copy 16 elements of k in COUNT lines, from line `line` and k = `depth` on. The copies have TMA's
 * layout, with zeros outside the matrix. Each thread copies one element of every eighth row. */
template <unsigned COUNT, bool MN_MAJOR>
__device__ __forceinline__ void copy(unsigned char *to, const mm_matrix &x, unsigned line, unsigned depth,
                                     unsigned matrix) {
    const unsigned row = threadIdx.x / 16, col = threadIdx.x % 16;
    const unsigned lines = static_cast<unsigned>(MN_MAJOR ? x.cols : x.rows);
    const unsigned depths = static_cast<unsigned>(MN_MAJOR ? x.rows : x.cols);
    const double *from = static_cast<const double *>(x.data) +
                         (matrix * x.rows + row + (MN_MAJOR ? depth : line)) * x.ld + col +
                         (MN_MAJOR ? line : depth);
    to += row * MM_TENSOR_LINE_BYTES + (col / 2 ^ row) * 16 + col % 2 * 8;
    line += MN_MAJOR ? col : row;
    depth += MN_MAJOR ? row : col;
#pragma unroll
    for (unsigned i = 0; i < COUNT / 8; i++) {
        const unsigned lines_on = MN_MAJOR ? i / 2 * LINES : i * 8, depths_on = MN_MAJOR ? i % 2 * 8 : 0;
        mm_copy_async<1>(reinterpret_cast<double *>(to) + i * (1024 / sizeof(double)),
                         MN_MAJOR ? from + depths_on * x.ld + lines_on : from + lines_on * x.ld,
                         line + lines_on < lines && depth + depths_on < depths);
    }
}

/* The producer's loop if TMA cannot load A or B. All threads of the producer run this loop. */
template <class T>
__device__ __forceinline__ void produce_each(const mm_tensor_plan &plan, const mm_tensor_shared<T> &shared,
                                             mm_tensor_walk walk) {
    walk = mm_tensor_walk_begin<T>(plan); /* warp 1 has no walk yet, because it initialised mbarriers */
    const bool maps_a = plan.unaligned_a.data == nullptr, maps_b = plan.unaligned_b.data == nullptr;
    const bool is_first = threadIdx.x == 0; /* only this thread uses TMA */
    mm_ring_state at = {0, 0};
    for (; !walk.is_over; mm_tensor_walk_next<T>(plan, walk)) {
        const mm_tensor_tile &tile = walk.tile;
        for (unsigned step = walk.work.begin; step < walk.work.end; step++) {
            const unsigned stage = mm_wait_empty(shared.ring, at), depth = step * T::DEPTH;
            unsigned char *to = shared.stages + stage * T::STAGE_BYTES;
            uint64_t *full = &shared.ring.full[stage];
            if (is_first)
                mm_mbarrier_arrive_expect(full, ((maps_a ? plan.a_lines : 0) + (maps_b ? plan.b_lines : 0)) *
                                                    MM_TENSOR_LINE_BYTES);
            if (!maps_a)
                copy<T::ROWS, T::A_MN_MAJOR>(to, plan.unaligned_a, tile.row, depth, tile.a);
            else if (is_first)
                mm_tensor_load<T::ROWS, 1, T::A_MN_MAJOR, T::DEPTH>(to, plan.a, plan.a_lines, tile.row, depth,
                                                                    tile.a, full);
            if (!maps_b)
                copy<T::COLS, T::B_MN_MAJOR>(to + T::A_BYTES, plan.unaligned_b, tile.col, depth, tile.b);
            else if (is_first)
                mm_tensor_load<T::COLS, 1, T::B_MN_MAJOR, T::DEPTH>(to + T::A_BYTES, plan.b, plan.b_lines,
                                                                    tile.col, depth, tile.b, full);
            mm_mbarrier_arrive_after_copies(full);
        }
    }
}

/* A consumer thread's elements of A and B for its next instructions, and where the thread reads them. */
template <class T> struct reader {
    mm_ring<T::STAGES> &ring;
    const unsigned char *of_a; /* the warp's lines of A in stage 0 */
    const unsigned char *of_b; /* the warp's lines of B in stage 0 */
    unsigned a_offset;
    unsigned b_offset;
    mm_ring_state at;
    unsigned stage;
    double a[2][4];
    double b[2][T::ACROSS][2];

    __device__ __forceinline__ void read_a(unsigned from, unsigned step, unsigned i, double (&to)[4]) {
#pragma unroll
        for (unsigned v = 0; v < 4; v++)
            to[v] = read<T::A_MN_MAJOR>(of_a + from * T::STAGE_BYTES + i * LINES_BYTES, a_offset, step, v / 2,
                                        v % 2);
    }

    /* Divides a step's elements of B into `count` equal parts, and reads part `index`. */
    __device__ __forceinline__ void read_b(unsigned from, unsigned step, unsigned index, unsigned count) {
#pragma unroll
        for (unsigned j = index * T::ACROSS / count; j < (index + 1) * T::ACROSS / count; j++)
#pragma unroll
            for (unsigned v = 0; v < 2; v++)
                b[step][j][v] = read<T::B_MN_MAJOR>(of_b + from * T::STAGE_BYTES + j / 2 * LINES_BYTES,
                                                    b_offset, step, v, j % 2);
    }

    __device__ __forceinline__ void begin() {
        stage = mm_wait_full(ring, at);
        read_a(stage, 0, 0, a[0]);
        read_b(stage, 0, 0, 1);
    }

    /* Multiplies a stage. If this is not the last stage, also reads the first elements of the next stage. */
    __device__ __forceinline__ void multiply_stage(warp_sums<T> &sums, bool is_last) {
        const unsigned own = stage;
#pragma unroll
        for (unsigned turn = 0; turn < 2 * T::DOWN; turn++) {
            const unsigned step = turn / T::DOWN, i = turn % T::DOWN;
            if (turn == T::DOWN && !is_last)
                stage = mm_wait_full(ring, at);
            if (turn + 1 < 2 * T::DOWN)
                read_a(own, (turn + 1) / T::DOWN, (turn + 1) % T::DOWN, a[(turn + 1) % 2]);
            else if (!is_last)
                read_a(stage, 0, 0, a[0]);
            if (step == 0)
                read_b(own, 1, i, T::DOWN);
            else if (!is_last)
                read_b(stage, 0, i, T::DOWN);
#pragma unroll
            for (unsigned j = 0; j < T::ACROSS; j++)
                multiply(sums[i][j], a[turn % 2], b[step][j]);
        }
        mm_async_proxy_fence(); /* orders this thread's reads before TMA's next writes to the stage */
        mm_mbarrier_arrive(&ring.empty[own]);
    }
};

/* Stores a warp's sums in C, beginning at (row, col). Two neighbours in a row of C come from one instruction
 * if B is MN-major, otherwise from two instructions. */
template <class T>
__device__ __forceinline__ void store(const mm_product &product, size_t row, size_t col,
                                      const warp_sums<T> &sums) {
    const unsigned lane = threadIdx.x % 32;
    row += line_of<T::A_MN_MAJOR>(lane / 4);
    col += line_of<T::B_MN_MAJOR>(lane % 4 * 2);
#pragma unroll
    for (unsigned i = 0; i < T::DOWN; i++)
#pragma unroll
        for (unsigned down = 0; down < 2; down++)
#pragma unroll
            for (unsigned j = 0; j < T::ACROSS; j += 2)
#pragma unroll
                for (unsigned across = 0; across < 2; across++) {
                    const double *x = sums[i][j] + 2 * down, *y = sums[i][j + 1] + 2 * down;
                    mm_store_neighbours(product, row + i * MMA_ROWS + down * APART<T::A_MN_MAJOR>,
                                        col + j * MMA_COLS + across * (T::B_MN_MAJOR ? APART<true> : 2),
                                        T::B_MN_MAJOR ? (across == 0 ? x : y)[0] : x[across],
                                        T::B_MN_MAJOR ? (across == 0 ? x : y)[1] : y[across]);
                }
}

/* Stores a warp's sums in C, or in the workspace if they are partial sums. A tile in the workspace is a dense
 * matrix. */
template <class T>
__device__ __forceinline__ void store_tile(const mm_tensor_plan &plan, const mm_tensor_walk &walk,
                                           unsigned row, unsigned col, const warp_sums<T> &sums) {
    if (mm_is_whole(plan, walk.work)) {
        const mm_product product = mm_tensor_item(plan, walk.tile);
        row += walk.tile.row;
        col += walk.tile.col;
        store<T>(product, row, col, sums);
        if (product.epilogue.is_set)
            mm_cuda_finish_warp<T::WARP_ROWS, T::WARP_COLS, double>(product, row, col);
        return;
    }
    mm_product partial = plan.product;
    partial.m = T::ROWS;
    partial.n = partial.c.ld = T::COLS;
    partial.c.dtype = MM_FLOAT64;
    partial.c.data = static_cast<double *>(plan.sums) +
                     static_cast<size_t>(mm_tensor_slot<T>(plan, walk.work)) * (T::ROWS * T::COLS);
    store<T>(partial, row, col, sums);
}

struct float64_roles {
    static __device__ __forceinline__ unsigned full_arrivals(const mm_tensor_plan &plan) {
        return copies_by_threads(plan) ? 1 + MM_WARPGROUP : 1;
    }

    template <class T>
    static __device__ __forceinline__ void produce(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk &walk) {
        if (copies_by_threads(plan))
            produce_each<T>(plan, shared, walk);
        else if (threadIdx.x == 0)
            mm_tensor_produce<T>(plan, shared, walk);
    }

    template <class T>
    static __device__ __forceinline__ void consume(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk walk) {
        const unsigned warp = threadIdx.x / 32 - MM_WARPGROUP / 32;
        const unsigned group = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;
        const unsigned row = warp / T::WARPS_ACROSS * T::WARP_ROWS;
        const unsigned col = warp % T::WARPS_ACROSS * T::WARP_COLS;
        reader<T> from = {shared.ring,
                          shared.stages + row * MM_TENSOR_LINE_BYTES,
                          shared.stages + T::A_BYTES + col * MM_TENSOR_LINE_BYTES,
                          offset_of<T::A_MN_MAJOR>(group, quarter),
                          offset_of<T::B_MN_MAJOR>(group, quarter),
                          {0, 0},
                          0,
                          {},
                          {}};
        walk =
            mm_tensor_walk_begin<T>(plan); /* computed again, because keeping the walk would take registers */
        for (; !walk.is_over; mm_tensor_walk_next<T>(plan, walk)) {
            warp_sums<T> sums = {};
            from.begin();
#pragma unroll 1
            for (unsigned step = walk.work.begin + 1; step < walk.work.end; step++)
                from.multiply_stage(sums, false);
            from.multiply_stage(sums, true);
            store_tile<T>(plan, walk, row, col, sums);
        }
    }
};

template <mm_tensor_size SIZE> void add(mm_tensor_kernels &kernels) {
    kernels.of[SIZE][0][0] = mm_tensor_kernel_of<tile<SIZE, false, false>>();
    kernels.of[SIZE][0][1] = mm_tensor_kernel_of<tile<SIZE, false, true>>();
    kernels.of[SIZE][1][0] = mm_tensor_kernel_of<tile<SIZE, true, false>>();
    kernels.of[SIZE][1][1] = mm_tensor_kernel_of<tile<SIZE, true, true>>();
}

mm_tensor_kernels kernels_of() {
    mm_tensor_kernels kernels = {};
    add<MM_TENSOR_TINY>(kernels);
    add<MM_TENSOR_NARROW>(kernels);
    add<MM_TENSOR_SMALL>(kernels);
    kernels.threads_copy = true;
    return kernels;
}

} // namespace

const mm_tensor_kernels mm_tensor_float64 = kernels_of();
