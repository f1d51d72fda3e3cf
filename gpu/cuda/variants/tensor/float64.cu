/* The kernels of float64. wgmma does not multiply it, but the tensor cores do: by an instruction of a warp
 * (mma.sync), whose operands lie in registers. They round as the float64 pipes do, at twice their rate, so
 * unlike `fp32_tensor` this needs no splitting and no guard. The stages, the producer and the walk over C are
 * product.cuh's.
 *
 * Each warp of a consumer computes a part of the block's tile, of 128×128 for example 64×32. A stage has 16
 * of k, which are two steps of the instruction. At each step a thread reads 24 elements from shared memory
 * for 16 instructions of its warp: those of A one row of instructions ahead, and those of B one step ahead.
 *
 * Source: NVIDIA's PTX ISA has the layout of the operands ("Matrix Fragments for mma.m16n8k8"). */
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/tensor/store.cuh"

namespace {

/* One instruction: C += A·B, A 16×8, B 8×8. Each matrix is spread over the 32 threads of the warp. With
 * group = lane / 4 and quarter = lane % 4 a thread has
 *     of A: (group, quarter), (group + 8, quarter), (group, quarter + 4) and (group + 8, quarter + 4)
 *     of B: (quarter, group) and (quarter + 4, group)
 *     of C: (group, 2·quarter) and the next in the row, then the same of row group + 8. */
constexpr unsigned MMA_ROWS = 16;
constexpr unsigned MMA_COLS = 8;

__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* --- which thread reads what.
 *
 * 16 lines of an operand (rows of op(A), columns of op(B)) have 16 rows of 128 bytes in a stage: a row for
 * each line, or for each k if the operand is TURNED. The copy engine swaps the eight 16-byte parts of a row:
 * part p of row r lies at p ^ r % 8. Shared memory serves 16 threads at a time, that is four groups. To serve
 * them at once, it has to read from 16 different places of 8 bytes in the rows.
 *
 * So the instruction's line `group` is line_of(group) of the 16. The line APART lines further is A's line
 * group + 8, or line `group` of B's next instruction. */

constexpr unsigned LINES = 16;
constexpr unsigned LINES_BYTES = LINES * MM_TENSOR_LINE_BYTES;

template <bool TURNED> constexpr unsigned APART = TURNED ? 4 : 1;

template <bool TURNED> __device__ __forceinline__ unsigned line_of(unsigned group) {
    return TURNED ? group % 2 + group / 2 % 2 * 8 + group / 4 * 2 : 2 * group;
}

/* Where a thread reads first in 16 lines. */
template <bool TURNED> __device__ __forceinline__ unsigned offset_of(unsigned group, unsigned quarter) {
    const unsigned row = TURNED ? quarter : line_of<false>(group);
    const unsigned col = TURNED ? line_of<true>(group) : quarter;
    return row * MM_TENSOR_LINE_BYTES + (col / 2 ^ row % 8) * 16 + col % 2 * 8;
}

/* Reads the element at k = 8·step + 4·half + quarter, of the line or of the one `apart`. */
template <bool TURNED>
__device__ __forceinline__ double read(const unsigned char *lines, unsigned offset, unsigned step,
                                       unsigned half, unsigned apart) {
    const unsigned at = TURNED ? (offset ^ half * 64 ^ apart * 32) + step * 1024 + half * 512
                               : (offset ^ step * 64 ^ half * 32 ^ apart * 16) + apart * 128;
    return *reinterpret_cast<const double *>(lines + at);
}

/* --- a type, as product.cuh wants it: the block's tile, and what a warp computes of it. */

struct float64_roles;

/* RESIDENT blocks share a multiprocessor. */
template <unsigned ROWS_, unsigned WIDE_, unsigned WARP_ROWS_, unsigned WARP_COLS_, unsigned RESIDENT_,
          bool A_TURNED_, bool B_TURNED_>
struct tile {
    using ROLES = struct float64_roles;
    static constexpr bool A_TURNED = A_TURNED_;
    static constexpr bool B_TURNED = B_TURNED_;
    static constexpr unsigned ROWS = ROWS_;
    static constexpr unsigned WIDE = WIDE_;
    static constexpr unsigned WARP_ROWS = WARP_ROWS_;
    static constexpr unsigned WARP_COLS = WARP_COLS_;
    static constexpr unsigned WARPS_ACROSS = WIDE / WARP_COLS;
    static constexpr unsigned WARPS = ROWS / WARP_ROWS * WARPS_ACROSS;
    static constexpr unsigned DOWN = WARP_ROWS / MMA_ROWS; /* instructions of a warp at a step */
    static constexpr unsigned ACROSS = WARP_COLS / MMA_COLS;
    static constexpr unsigned CONSUMERS = WARPS * 32 / MM_GROUP;
    static constexpr unsigned THREADS = (1 + CONSUMERS) * MM_GROUP;
    static constexpr unsigned CLUSTER = 1;
    static constexpr unsigned RELEASES = WARPS * 32;   /* each thread has read */
    static constexpr unsigned PRODUCER_REGISTERS = 72; /* for `copy` */
    static constexpr unsigned RESIDENT = RESIDENT_;
    static constexpr unsigned DEPTH = MM_TENSOR_LINE_BYTES / sizeof(double);
    static constexpr unsigned A_BYTES = ROWS * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned B_BYTES = WIDE * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES;
    /* A multiprocessor has 228 KiB, of which each block takes up to 2 for itself and the ring. One block
     * alone could have 224, but then too little is left as L1 cache for `copy`: 4095×4099×4097 took 1.1 times
     * as long. */
    static constexpr unsigned STAGES = 222 * 1024 / RESIDENT / STAGE_BYTES;
    static constexpr unsigned SHARED_BYTES = STAGES * STAGE_BYTES;
    static_assert(WARPS * 32 % MM_GROUP == 0 && ACROSS % 2 == 0, "whole warpgroups, and pairs to store");
};

template <class T> using warp_sums = double[T::DOWN][T::ACROSS][4];

/* --- the producer -------------------------------------------------------------------------------- */

/* Whether the copy engine cannot take one of the operands. Then all threads of the producer copy. */
__device__ __forceinline__ bool copies_by_threads(const mm_tensor_plan &plan) {
    return plan.unaligned_a.data != nullptr || plan.unaligned_b.data != nullptr;
}

/* Copies COUNT lines of an unaligned operand, from a line and a depth on, to where the copy engine would put
 * them, with zeros past the edges. Each thread copies an element of every eighth row. */
template <unsigned COUNT, bool TURNED>
__device__ __forceinline__ void copy(unsigned char *to, const mm_matrix &x, unsigned line, unsigned depth,
                                     unsigned matrix) {
    const unsigned row = threadIdx.x / 16, col = threadIdx.x % 16;
    const unsigned lines = static_cast<unsigned>(TURNED ? x.cols : x.rows);
    const unsigned depths = static_cast<unsigned>(TURNED ? x.rows : x.cols);
    const double *from = static_cast<const double *>(x.data) +
                         (matrix * x.rows + row + (TURNED ? depth : line)) * x.ld + col +
                         (TURNED ? line : depth);
    to += row * MM_TENSOR_LINE_BYTES + (col / 2 ^ row) * 16 + col % 2 * 8;
    line += TURNED ? col : row;
    depth += TURNED ? row : col;
#pragma unroll
    for (unsigned i = 0; i < COUNT / 8; i++) {
        const unsigned lines_on = TURNED ? i / 2 * LINES : i * 8, depths_on = TURNED ? i % 2 * 8 : 0;
        mm_copy_async<1>(reinterpret_cast<double *>(to) + i * (1024 / sizeof(double)),
                         TURNED ? from + depths_on * x.ld + lines_on : from + lines_on * x.ld,
                         line + lines_on < lines && depth + depths_on < depths);
    }
}

template <class T>
__device__ __forceinline__ void produce_each(const mm_tensor_plan &plan, const mm_tensor_shared<T> &shared,
                                             mm_tensor_walk walk) {
    walk = mm_tensor_walk_of<T>(plan); /* warp 1 has not found it */
    const bool maps_a = plan.unaligned_a.data == nullptr, maps_b = plan.unaligned_b.data == nullptr;
    const bool is_first = threadIdx.x == 0; /* which tells the copy engine */
    mm_ring_state at = {0, 0};
    for (; !walk.is_over; mm_tensor_step<T>(plan, walk)) {
        const mm_tensor_tile &tile = walk.tile;
        for (unsigned step = walk.work.begin; step < walk.work.end; step++) {
            const unsigned stage = mm_wait_empty(shared.ring, at), depth = step * T::DEPTH;
            unsigned char *to = shared.stages + stage * T::STAGE_BYTES;
            uint64_t *full = &shared.ring.full[stage];
            if (is_first)
                mm_barrier_expect(full, ((maps_a ? plan.a_lines : 0) + (maps_b ? plan.b_lines : 0)) *
                                            MM_TENSOR_LINE_BYTES);
            if (!maps_a)
                copy<T::ROWS, T::A_TURNED>(to, plan.unaligned_a, tile.row, depth, tile.a);
            else if (is_first)
                mm_tensor_load<T::ROWS, 1, T::A_TURNED, T::DEPTH>(to, plan.a, plan.a_lines, tile.row, depth,
                                                                  tile.a, full);
            if (!maps_b)
                copy<T::WIDE, T::B_TURNED>(to + T::A_BYTES, plan.unaligned_b, tile.col, depth, tile.b);
            else if (is_first)
                mm_tensor_load<T::WIDE, 1, T::B_TURNED, T::DEPTH>(to + T::A_BYTES, plan.b, plan.b_lines,
                                                                  tile.col, depth, tile.b, full);
            mm_barrier_arrive_behind_copies(full);
        }
    }
}

/* --- the consumers ------------------------------------------------------------------------------- */

/* A thread's elements for the next instructions, and where they come from. */
template <class T> struct reader {
    mm_ring<T::STAGES> &ring;
    const unsigned char *of_a; /* the warp's lines, in the first stage */
    const unsigned char *of_b;
    unsigned a_offset;
    unsigned b_offset;
    mm_ring_state at;
    unsigned stage;
    double a[2][4];
    double b[2][T::ACROSS][2];

    __device__ __forceinline__ void read_a(unsigned from, unsigned step, unsigned i, double (&to)[4]) {
#pragma unroll
        for (unsigned v = 0; v < 4; v++)
            to[v] = read<T::A_TURNED>(of_a + from * T::STAGE_BYTES + i * LINES_BYTES, a_offset, step, v / 2,
                                      v % 2);
    }

    /* Part `part` of `parts`, of a warp's lines of B at a step. */
    __device__ __forceinline__ void read_b(unsigned from, unsigned step, unsigned part, unsigned parts) {
#pragma unroll
        for (unsigned j = part * T::ACROSS / parts; j < (part + 1) * T::ACROSS / parts; j++)
#pragma unroll
            for (unsigned v = 0; v < 2; v++)
                b[step][j][v] = read<T::B_TURNED>(of_b + from * T::STAGE_BYTES + j / 2 * LINES_BYTES,
                                                  b_offset, step, v, j % 2);
    }

    __device__ __forceinline__ void begin() {
        stage = mm_wait_full(ring, at);
        read_a(stage, 0, 0, a[0]);
        read_b(stage, 0, 0, 1);
    }

    /* Multiplies a stage, and meanwhile reads the first elements of the next one, unless this is the last. */
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
        mm_async_proxy_fence(); /* what was read here comes before what the copy engine writes here next */
        mm_barrier_arrive(&ring.empty[own]);
    }
};

/* Stores a warp's sums. The first belongs at (row, col) of C. Neighbours are sums of one instruction if B is
 * TURNED, and else of two. */
template <class T>
__device__ __forceinline__ void store(const mm_matrix &c, size_t row, size_t col, const warp_sums<T> &sums) {
    const unsigned lane = threadIdx.x % 32;
    row += line_of<T::A_TURNED>(lane / 4);
    col += line_of<T::B_TURNED>(lane % 4 * 2);
#pragma unroll
    for (unsigned i = 0; i < T::DOWN; i++)
#pragma unroll
        for (unsigned down = 0; down < 2; down++)
#pragma unroll
            for (unsigned j = 0; j < T::ACROSS; j += 2)
#pragma unroll
                for (unsigned across = 0; across < 2; across++) {
                    const double *x = sums[i][j] + 2 * down, *y = sums[i][j + 1] + 2 * down;
                    mm_store_neighbours(c, row + i * MMA_ROWS + down * APART<T::A_TURNED>,
                                        col + j * MMA_COLS + across * (T::B_TURNED ? APART<true> : 2),
                                        T::B_TURNED ? (across == 0 ? x : y)[0] : x[across],
                                        T::B_TURNED ? (across == 0 ? x : y)[1] : y[across]);
                }
}

/* Stores the sums in C, or in the workspace if they are those of a part of k. There the rows of a tile lie
 * one behind another. */
template <class T>
__device__ __forceinline__ void store_tile(const mm_tensor_plan &plan, const mm_tensor_walk &walk,
                                           unsigned row, unsigned col, const warp_sums<T> &sums) {
    mm_matrix c = plan.c;
    if (walk.work.end - walk.work.begin == plan.schedule.steps) {
        c.data = static_cast<char *>(c.data) + walk.tile.product * plan.c_step * mm_tensor_c_bytes(c.dtype);
        store<T>(c, walk.tile.row + row, walk.tile.col + col, sums);
        return;
    }
    c.data = static_cast<double *>(plan.sums) +
             static_cast<size_t>(mm_tensor_slot<T>(plan, walk.work)) * (T::ROWS * T::WIDE);
    c.rows = T::ROWS;
    c.cols = c.ld = T::WIDE;
    c.dtype = MM_FLOAT64;
    store<T>(c, row, col, sums);
}

struct float64_roles {
    static __device__ __forceinline__ unsigned arrivals(const mm_tensor_plan &plan) {
        return copies_by_threads(plan) ? 1 + MM_GROUP : 1;
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
        const unsigned warp = threadIdx.x / 32 - MM_GROUP / 32;
        const unsigned group = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;
        const unsigned row = warp / T::WARPS_ACROSS * T::WARP_ROWS;
        const unsigned col = warp % T::WARPS_ACROSS * T::WARP_COLS;
        reader<T> from = {shared.ring,
                          shared.stages + row * MM_TENSOR_LINE_BYTES,
                          shared.stages + T::A_BYTES + col * MM_TENSOR_LINE_BYTES,
                          offset_of<T::A_TURNED>(group, quarter),
                          offset_of<T::B_TURNED>(group, quarter),
                          {0, 0},
                          0,
                          {},
                          {}};
        walk = mm_tensor_walk_of<T>(plan); /* found again, it takes fewer registers */
        for (; !walk.is_over; mm_tensor_step<T>(plan, walk)) {
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

template <unsigned ROWS, unsigned WIDE, unsigned WARP_ROWS, unsigned WARP_COLS, unsigned RESIDENT>
void add(mm_tensor_kernel (&kernels)[2][2]) {
#define MM_ADD(a, b)                                                                                         \
    kernels[a][b] = mm_tensor_kernel_of<tile<ROWS, WIDE, WARP_ROWS, WARP_COLS, RESIDENT, a, b>>()
    MM_ADD(false, false);
    MM_ADD(false, true);
    MM_ADD(true, false);
    MM_ADD(true, true);
#undef MM_ADD
}

mm_tensor_kernels kernels_of() {
    mm_tensor_kernels kernels = {};
    add<32, 32, 16, 16, 3>(kernels.of[MM_TENSOR_TINY]);
    add<64, 64, 32, 32, 2>(kernels.of[MM_TENSOR_NARROW]);
    add<128, 128, 64, 32, 1>(kernels.of[MM_TENSOR_SMALL]);
    kernels.threads_copy = true;
    return kernels;
}

} // namespace

const mm_tensor_kernels mm_tensor_float64 = kernels_of();
