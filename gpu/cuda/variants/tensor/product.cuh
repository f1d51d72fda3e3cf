/* The kernel of `tensor` and `tf32`. A type is its instruction, its layout in shared memory, and how its sums
 * become elements of C. Here stand the consumers of all types that wgmma multiplies; float64.cu has those of
 * float64.
 *
 * A block has a producer warpgroup, of which one thread copies boxes of both operands into a ring of stages,
 * and one or two consumer warpgroups, which compute 64 rows of C each. A stage has 128 bytes of k: four
 * instructions. They run while the consumer waits for the next stage, so the tensor cores always have work.
 *
 * The blocks of a cluster load a part of B's box each and multicast it to all. Clusters share the work by the
 * schedule of wgmma/schedule.h. A cluster stores its partial sums of a shared tile, and reduce.cu adds them
 * up.
 *
 * float8's tensor cores keep 14 bits of a sum. So the sum of each stage, 128 of k, is added to one in float32
 * registers (PROMOTES). */
#pragma once

#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/tensor/parts.h"
#include "gpu/cuda/variants/wgmma/block.cuh"
#include "gpu/sums.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* A consumer's rows of a part of C: 128 bytes of each. */
constexpr unsigned MM_C_BUFFER_BYTES = MM_CONSUMER_ROWS * MM_TENSOR_LINE_BYTES;

/* A type's kernel for one tile: CONSUMERS of 64 rows each, WIDE columns, blocks of CLUSTER, STAGES. TURNED
 * operands are not K-major. */
template <template <unsigned, bool, bool> class INSTRUCTION, typename SUM_TYPE, unsigned BYTES,
          bool IS_PROMOTED, unsigned GROUPS, unsigned COLS, unsigned BLOCKS, bool TURNED_A, bool TURNED_B>
struct mm_tensor_type {
    using wgmma = INSTRUCTION<COLS, TURNED_A, TURNED_B>;
    using SUM = SUM_TYPE;
    static constexpr bool PROMOTES = IS_PROMOTED;
    static constexpr bool A_TURNED = TURNED_A;
    static constexpr bool B_TURNED = TURNED_B;
    static constexpr unsigned CONSUMERS = GROUPS;
    static constexpr unsigned ROWS = CONSUMERS * MM_CONSUMER_ROWS;
    static constexpr unsigned THREADS = (1 + CONSUMERS) * MM_GROUP;
    static constexpr unsigned WIDE = COLS;
    static constexpr unsigned RESIDENT = 1; /* blocks of a multiprocessor */
    static constexpr unsigned CLUSTER = BLOCKS;
    static constexpr unsigned RELEASES = CONSUMERS * CLUSTER; /* of a stage */
    static constexpr unsigned PRODUCER_REGISTERS = 40;
    static constexpr unsigned SUMS = WIDE / 2; /* of a consumer thread */
    static constexpr unsigned DEPTH = MM_TENSOR_LINE_BYTES / BYTES;
    static constexpr unsigned A_BYTES = ROWS * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned B_BYTES = WIDE * MM_TENSOR_LINE_BYTES;
    static constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES;
    /* As many stages as two buffers of C for each consumer leave, then as many buffers as fit. With three
     * stages and more buffers 4096³ took 1% longer with bfloat16, and 8% with int8. */
    static constexpr unsigned LIMIT = 226 * 1024;
    static constexpr unsigned STAGES = (LIMIT - CONSUMERS * 2 * MM_C_BUFFER_BYTES) / STAGE_BYTES;
    static constexpr unsigned BUFFERS = (LIMIT - STAGES * STAGE_BYTES) / (CONSUMERS * MM_C_BUFFER_BYTES);
    static constexpr unsigned SHARED_BYTES = STAGES * STAGE_BYTES + CONSUMERS * BUFFERS * MM_C_BUFFER_BYTES;
};

static_assert(MM_CONSUMER_ROWS == MM_TENSOR_CONSUMER_ROWS, "the host knows them");

template <class T> struct mm_tensor_shared {
    mm_ring<T::STAGES> &ring;
    unsigned char *stages; /* STAGE_BYTES each: A's box, then B's; behind them the buffers of C */
};

/* --- which block computes what ------------------------------------------------------------------- */

/* A block's tile of C: its first row and column, and the matrices of the stack. */
struct mm_tensor_tile {
    unsigned row;
    unsigned col;
    unsigned product;
    unsigned a;
    unsigned b;
};

/* The tile of block `rank` in a cluster of `cluster` blocks. Tiles have so many rows and `wide` columns. */
__device__ __forceinline__ mm_tensor_tile mm_tensor_tile_of(const mm_tensor_plan &plan, unsigned cluster_tile,
                                                            unsigned cluster, unsigned rank, unsigned rows,
                                                            unsigned wide) {
    mm_tensor_tile tile = {};
    if (plan.rank > 0) {
        const unsigned each = plan.schedule.cluster_tile_rows * plan.schedule.cluster_tile_cols;
        unsigned left = tile.product = cluster_tile / each;
        cluster_tile %= each;
#pragma unroll 1
        for (unsigned dim = plan.rank; dim-- > 0;) {
            const unsigned at = dim == 0 ? left : left % plan.dims[dim];
            left /= plan.dims[dim];
            tile.a += at * plan.a_steps[dim];
            tile.b += at * plan.b_steps[dim];
        }
    }
    const mm_tile of_cluster = mm_cluster_tile_of(plan.schedule, cluster_tile);
    tile.row = (of_cluster.row * cluster + rank) * rows;
    tile.col = of_cluster.col * wide;
    return tile;
}

/* Of an element of C. */
__device__ __forceinline__ unsigned mm_tensor_c_bytes(enum mm_dtype dtype) {
    return dtype == MM_FLOAT64 ? 8 : dtype == MM_FLOAT16 || dtype == MM_BFLOAT16 ? 2 : 4;
}

/* What a block computes next. Each role walks its own copy. */
struct mm_tensor_walk {
    mm_tile_scheduler scheduler;
    mm_work_tile work;
    mm_tensor_tile tile;
    bool is_over; /* there is nothing more */
};

template <class T>
__device__ __forceinline__ void mm_tensor_step(const mm_tensor_plan &plan, mm_tensor_walk &walk) {
    walk.is_over = !mm_next_work_tile(plan.schedule, walk.scheduler, walk.work);
    if (!walk.is_over)
        walk.tile = mm_tensor_tile_of(plan, walk.work.cluster_tile, T::CLUSTER, blockIdx.x % T::CLUSTER,
                                      T::ROWS, T::WIDE);
}

template <class T> __device__ __forceinline__ mm_tensor_walk mm_tensor_walk_of(const mm_tensor_plan &plan) {
    mm_tensor_walk walk = {mm_scheduler_of(blockIdx.x / T::CLUSTER), {}, {}, false};
    mm_tensor_step<T>(plan, walk);
    return walk;
}

/* Where a cluster stores its partial sums of a shared tile. A part that continues a tile goes to the
 * cluster's slot, a tile's first part to the tile's slot. A cluster has at most one of each. */
template <class T>
__device__ __forceinline__ unsigned mm_tensor_slot(const mm_tensor_plan &plan, const mm_work_tile &work) {
    return work.begin > 0 ? blockIdx.x / T::CLUSTER
                          : plan.schedule.sharers + work.cluster_tile - plan.schedule.whole_cluster_tiles;
}

/* --- the producer -------------------------------------------------------------------------------- */

/* Copies lines of an operand from `line` on, at a depth; with BLOCKS > 1 to all blocks of the cluster. A part
 * of a stage has room for LINES, of which `lines` are copied: one box of a K-major operand, whose map has
 * boxes of that many, or squares of SQUARE. */
template <unsigned LINES, unsigned BLOCKS, bool TURNED, unsigned SQUARE>
__device__ __forceinline__ void mm_tensor_load(unsigned char *to, const CUtensorMap &map, unsigned lines,
                                               unsigned line, unsigned depth, unsigned matrix,
                                               uint64_t *barrier) {
    constexpr uint16_t ALL = (1u << BLOCKS) - 1;
    constexpr unsigned EACH = TURNED ? SQUARE : LINES;
#pragma unroll
    for (unsigned i = 0; i < LINES; i += EACH) {
        if (TURNED && i >= lines)
            break;
        const int x = static_cast<int>(TURNED ? line + i : depth);
        const int y = static_cast<int>(TURNED ? depth : line + i);
        unsigned char *at = to + i * MM_TENSOR_LINE_BYTES;
        if (BLOCKS == 1)
            mm_box_copy(at, &map, x, y, static_cast<int>(matrix), barrier);
        else
            mm_box_copy_multicast(at, &map, x, y, static_cast<int>(matrix), barrier, ALL);
    }
}

template <class T>
__device__ __forceinline__ void mm_tensor_produce(const mm_tensor_plan &plan,
                                                  const mm_tensor_shared<T> &shared, mm_tensor_walk &walk) {
    constexpr unsigned PART = T::WIDE / T::CLUSTER; /* of B's columns */
    const unsigned rank = blockIdx.x % T::CLUSTER;
    mm_ring_state at = {0, 0};
    for (; !walk.is_over; mm_tensor_step<T>(plan, walk)) {
        const mm_tensor_tile &tile = walk.tile;
        for (unsigned step = walk.work.begin; step < walk.work.end; step++) {
            const unsigned stage = mm_wait_empty(shared.ring, at);
            unsigned char *to = shared.stages + stage * T::STAGE_BYTES;
            uint64_t *full = &shared.ring.full[stage];
            /* The other block's multicast counts too. It may arrive before this expect: the phase cannot end
             * without this arrival. */
            mm_barrier_expect(full, (plan.a_lines + T::CLUSTER * plan.b_lines) * MM_TENSOR_LINE_BYTES);
            mm_tensor_load<T::ROWS, 1, T::A_TURNED, T::DEPTH>(to, plan.a, plan.a_lines, tile.row,
                                                              step * T::DEPTH, tile.a, full);
            mm_tensor_load<PART, T::CLUSTER, T::B_TURNED, T::DEPTH>(
                to + T::A_BYTES + rank * PART * MM_TENSOR_LINE_BYTES, plan.b, plan.b_lines,
                tile.col + rank * PART, step * T::DEPTH, tile.b, full);
        }
    }
}

/* --- the consumers ------------------------------------------------------------------------------- */

/* Issues the products of a stage. The first one begins a sum, unless `adds`. */
template <class T>
__device__ __forceinline__ void mm_tensor_multiply(typename T::SUM (&d)[T::SUMS],
                                                   const mm_tensor_shared<T> &shared, unsigned stage,
                                                   bool adds) {
    constexpr unsigned K_MAJOR_NEXT = 2; /* in units of 16 bytes */
    constexpr unsigned TURNED_NEXT = 128;
    const unsigned char *at = shared.stages + stage * T::STAGE_BYTES;
    const uint64_t a =
        mm_wgmma_descriptor<!T::A_TURNED>(at + mm_my_consumer() * MM_CONSUMER_ROWS * MM_TENSOR_LINE_BYTES);
    const uint64_t b = mm_wgmma_descriptor<!T::B_TURNED>(at + T::A_BYTES);
    mm_wgmma_fence();
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t of_a = a + i * (T::A_TURNED ? TURNED_NEXT : K_MAJOR_NEXT);
        const uint64_t of_b = b + i * (T::B_TURNED ? TURNED_NEXT : K_MAJOR_NEXT);
        if (i > 0)
            T::wgmma::add(d, of_a, of_b);
        else if (T::PROMOTES)
            T::wgmma::begin(d, of_a, of_b);
        else
            T::wgmma::add_if(d, of_a, of_b, adds);
    }
    mm_wgmma_commit();
}

/* A stage is released once the next one's products are issued and its own are complete. */
template <class T>
__device__ __forceinline__ void mm_tensor_add_up(const mm_tensor_shared<T> &shared, const mm_work_tile &tile,
                                                 mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    unsigned before = 0;
    for (unsigned step = tile.begin; step < tile.end; step++) {
        const unsigned stage = mm_wait_full(shared.ring, at);
        mm_tensor_multiply<T>(sums, shared, stage, step > tile.begin);
        if (step > tile.begin) {
            mm_wgmma_wait<1>();
            mm_release<T::CLUSTER>(shared.ring, before);
        }
        before = stage;
    }
    mm_wgmma_wait<0>();
    mm_release<T::CLUSTER>(shared.ring, before);
    mm_wgmma_fence_registers(sums);
}

/* The same, with the sum of each stage added to `sums`. Meanwhile the other consumer uses the tensor cores.
 */
template <class T>
__device__ __forceinline__ void mm_tensor_promote(const mm_tensor_shared<T> &shared, const mm_work_tile &tile,
                                                  mm_ring_state &at, typename T::SUM (&sums)[T::SUMS]) {
    typename T::SUM d[T::SUMS];
#pragma unroll
    for (unsigned i = 0; i < T::SUMS; i++)
        sums[i] = 0;
    for (unsigned step = tile.begin; step < tile.end; step++) {
        const unsigned stage = mm_wait_full(shared.ring, at);
        mm_tensor_multiply<T>(d, shared, stage, false);
        mm_wgmma_wait<0>();
        mm_wgmma_fence_registers(d);
        mm_release<T::CLUSTER>(shared.ring, stage);
#pragma unroll
        for (unsigned i = 0; i < T::SUMS; i++)
            sums[i] += d[i];
    }
}

/* --- the epilogue -------------------------------------------------------------------------------- */

/* A consumer stages its rows of C part by part in its buffers, so one is filled while others are copied to C.
 * A buffer has 64 lines of 128 bytes, swizzled as the copy engine expects it. */

template <typename BYTE>
__device__ __forceinline__ BYTE *mm_staged_at(BYTE *staged, unsigned row, unsigned byte) {
    return staged + row * MM_TENSOR_LINE_BYTES + ((byte / 16 ^ row % 8) * 16) + byte % 16;
}

/* Two neighbours of a row as elements of 2 bytes. */
__device__ __forceinline__ uint32_t mm_narrow_pair(bool is_bfloat16, float first, float second) {
    uint32_t pair;
    if (is_bfloat16)
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    else
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return pair;
}

/* Stages 64 columns of 2 bytes, from sum FIRST of the thread on. An stmatrix stores 16 rows × 16 columns of a
 * warp; thread i gives the address of 8 elements in row i % 16. */
template <unsigned FIRST, unsigned COUNT>
__device__ __forceinline__ void mm_stage_narrow(unsigned char *staged, bool is_bfloat16,
                                                const float (&sums)[COUNT]) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = mm_my_thread() / 32 * 16 + lane % 16;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint32_t pairs[4];
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            pairs[j] =
                mm_narrow_pair(is_bfloat16, sums[FIRST + 8 * i + 2 * j], sums[FIRST + 8 * i + 2 * j + 1]);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         mm_shared_address(mm_staged_at(staged, row, i * 32 + lane / 16 * 16))),
                     "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                     : "memory");
    }
}

template <unsigned FIRST, unsigned COUNT>
__device__ __forceinline__ void mm_stage_narrow(unsigned char *, bool, const uint32_t (&)[COUNT]) {
    /* sums of whole numbers are not narrowed */
}

/* Stages 32 columns of 4 bytes. */
template <unsigned FIRST, typename SUM, unsigned COUNT>
__device__ __forceinline__ void mm_stage_wide(unsigned char *staged, const SUM (&sums)[COUNT]) {
    struct alignas(8) pair {
        SUM sums[2];
    };
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < 16; i += 2) {
        const unsigned row = mm_my_thread() / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        *reinterpret_cast<pair *>(mm_staged_at(staged, row, i / 4 * 32 + lane % 4 * 8)) = {
            {sums[FIRST + i], sums[FIRST + i + 1]}};
    }
}

/* --- to a C that the copy engine does not take. Its rows begin anywhere, so 16 aligned bytes of C are taken
 * from two lines of what is staged. The last bytes of a part's row may end no such chunk; then they are
 * copied with the next part, of whose columns they are the neighbours. */

constexpr unsigned MM_CHUNK = 16; /* bytes */

/* Where a part of C is staged, and the part to the left of it. */
struct mm_staged_part {
    const unsigned char *part;
    const unsigned char *left;
    bool is_first; /* of the tile: there is none to the left */
    bool is_last;
};

/* The 16 bytes that begin `ahead` bytes before line chunk `chunk` of a row. */
__device__ __forceinline__ uint4 mm_staged_chunk(const mm_staged_part &staged, unsigned row, unsigned chunk,
                                                 unsigned ahead) {
    constexpr unsigned CHUNKS = MM_TENSOR_LINE_BYTES / MM_CHUNK;
    const unsigned skipped = MM_CHUNK - ahead; /* of the chunk before */
    const uint4 x = *reinterpret_cast<const uint4 *>(
        mm_staged_at(chunk > 0 ? staged.part : staged.left, row, (chunk + CHUNKS - 1) % CHUNKS * MM_CHUNK));
    const uint4 y = *reinterpret_cast<const uint4 *>(mm_staged_at(staged.part, row, chunk * MM_CHUNK));
    uint32_t words[9] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w, 0};
#pragma unroll
    for (unsigned step = 4; step > 0; step /= 2)
        if ((skipped / 4 & step) != 0)
#pragma unroll
            for (unsigned i = 0; i + step < 9; i++)
                words[i] = words[i + step];
    const unsigned bits = skipped % 4 * 8;
    return {__funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
            __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits)};
}

/* Copies bytes from `at` to `end` of a row to the row of C whose part begins at `to`. */
template <typename ELEMENT>
__device__ __forceinline__ void mm_copy_elements(const unsigned char *staged, unsigned row, int at, int end,
                                                 unsigned char *to) {
#pragma unroll 1
    for (; at < end; at += sizeof(ELEMENT))
        *reinterpret_cast<ELEMENT *>(to + at) =
            *reinterpret_cast<const ELEMENT *>(mm_staged_at(staged, row, static_cast<unsigned>(at)));
}

/* Copies a consumer's part of C, whose first element is at `row` and `col`. Eight threads share a row. */
template <typename ELEMENT>
__device__ __forceinline__ void mm_copy_staged(const mm_staged_part &staged, const mm_matrix &c, size_t row,
                                               size_t col) {
    constexpr int LINE = MM_TENSOR_LINE_BYTES;
    constexpr unsigned CHUNKS = LINE / MM_CHUNK;
    if (col >= c.cols)
        return;
    const size_t left_bytes = (c.cols - col) * sizeof(ELEMENT);
    const int bytes = left_bytes < LINE ? static_cast<int>(left_bytes) : LINE;
    const bool is_last = staged.is_last || left_bytes <= LINE;
    const unsigned chunk = mm_my_thread() % CHUNKS;
#pragma unroll 1
    for (unsigned down = mm_my_thread() / CHUNKS; down < MM_CONSUMER_ROWS && row + down < c.rows;
         down += MM_GROUP / CHUNKS) {
        unsigned char *to =
            static_cast<unsigned char *>(c.data) + ((row + down) * c.ld + col) * sizeof(ELEMENT);
        const unsigned ahead = static_cast<unsigned>(reinterpret_cast<size_t>(to) % MM_CHUNK);
        const int begin = static_cast<int>(chunk * MM_CHUNK) - static_cast<int>(ahead);
        const int end = begin + static_cast<int>(MM_CHUNK);
        if (end <= bytes && (begin >= 0 || !staged.is_first)) {
            *reinterpret_cast<uint4 *>(to + begin) = mm_staged_chunk(staged, down, chunk, ahead);
        } else {
            if (begin < 0 && !staged.is_first)
                mm_copy_elements<ELEMENT>(staged.left, down, LINE + begin, LINE, to - LINE);
            mm_copy_elements<ELEMENT>(staged.part, down, max(begin, 0), min(end, bytes), to);
        }
        if (is_last && chunk == CHUNKS - 1)
            mm_copy_elements<ELEMENT>(staged.part, down, end, bytes, to);
    }
}

/* --- to any C */

/* Copies a consumer's part of C. All threads of the consumer have written it. */
__device__ __forceinline__ void mm_store_staged(const mm_tensor_plan &plan, const mm_staged_part &staged,
                                                unsigned row, unsigned col, unsigned product,
                                                bool is_narrow) {
    if (plan.maps_c) {
        if (mm_my_thread() == 0)
            mm_box_store(&plan.of_c, static_cast<int>(col), static_cast<int>(row), static_cast<int>(product),
                         staged.part);
        return;
    }
    mm_matrix c = plan.c;
    c.data = static_cast<char *>(c.data) + product * plan.c_step * (is_narrow ? 2 : 4);
    if (is_narrow)
        mm_copy_staged<uint16_t>(staged, c, row, col);
    else
        mm_copy_staged<uint32_t>(staged, c, row, col);
}

/* Parts of C from FIRST, the sum of a thread, on. */
template <class T, bool IS_NARROW, unsigned FIRST>
__device__ __forceinline__ void mm_tensor_store(const mm_tensor_plan &plan, unsigned char *staged,
                                                const mm_tensor_tile &tile,
                                                const typename T::SUM (&sums)[T::SUMS]) {
    if constexpr (FIRST < T::SUMS) {
        constexpr unsigned EACH = IS_NARROW ? 32 : 16; /* sums of a thread */
        constexpr unsigned PART = FIRST / EACH;
        unsigned char *at = staged + PART % T::BUFFERS * MM_C_BUFFER_BYTES;
        const unsigned char *left = PART == 0 ? at : staged + (PART - 1) % T::BUFFERS * MM_C_BUFFER_BYTES;
        /* The last copy from this buffer has read it. The last tile may have ended with any buffer. */
        if (PART == 0 || PART >= T::BUFFERS) {
            if (mm_my_thread() == 0)
                mm_box_stores_wait<PART == 0 ? 0 : T::BUFFERS - 1>();
            mm_consumer_sync();
        }
        if constexpr (IS_NARROW)
            mm_stage_narrow<FIRST>(at, plan.c.dtype == MM_BFLOAT16, sums);
        else
            mm_stage_wide<FIRST>(at, sums);
        mm_async_proxy_fence();
        mm_consumer_sync();
        mm_store_staged(plan, {at, left, PART == 0, FIRST + EACH == T::SUMS},
                        tile.row + mm_my_consumer() * MM_CONSUMER_ROWS, tile.col + FIRST * 2, tile.product,
                        IS_NARROW);
        mm_tensor_store<T, IS_NARROW, FIRST + EACH>(plan, staged, tile, sums);
    }
}

template <class T>
__device__ __forceinline__ void
mm_tensor_epilogue(const mm_tensor_plan &plan, const mm_tensor_shared<T> &shared, const mm_tensor_tile &tile,
                   const typename T::SUM (&sums)[T::SUMS]) {
    unsigned char *staged =
        shared.stages + T::STAGES * T::STAGE_BYTES + mm_my_consumer() * (T::BUFFERS * MM_C_BUFFER_BYTES);
    const bool is_narrow = plan.c.dtype == MM_FLOAT16 || plan.c.dtype == MM_BFLOAT16;
    if (is_narrow)
        mm_tensor_store<T, true, 0>(plan, staged, tile, sums);
    else
        mm_tensor_store<T, false, 0>(plan, staged, tile, sums);
}

/* What a block's roles run. */
struct mm_wgmma_roles {
    /* How often the producer arrives at a stage's barrier `full`. */
    static __device__ __forceinline__ unsigned arrivals(const mm_tensor_plan &) {
        return 1;
    }

    template <class T>
    static __device__ __forceinline__ void produce(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk &walk) {
        if (threadIdx.x == 0)
            mm_tensor_produce<T>(plan, shared, walk);
    }

    template <class T>
    static __device__ __forceinline__ void consume(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk walk) {
        if (T::SUMS > 64)
            walk = mm_tensor_walk_of<T>(plan); /* found again, it takes fewer registers */
        mm_ring_state at = {0, 0};
        typename T::SUM sums[T::SUMS] = {};
        for (; !walk.is_over; mm_tensor_step<T>(plan, walk)) {
            const mm_work_tile &work = walk.work;
            if constexpr (T::PROMOTES)
                mm_tensor_promote<T>(shared, work, at, sums);
            else
                mm_tensor_add_up<T>(shared, work, at, sums);
            if (work.end - work.begin < plan.schedule.steps)
                mm_store_sums(sums,
                              mm_sums_at<T::SUMS, T::CONSUMERS>(static_cast<typename T::SUM *>(plan.sums),
                                                                mm_tensor_slot<T>(plan, work) * T::CLUSTER +
                                                                    blockIdx.x % T::CLUSTER));
            else
                mm_tensor_epilogue<T>(plan, shared, walk.tile, sums);
        }
        if (mm_my_thread() == 0)
            mm_box_stores_wait<0>(); /* a block keeps its shared memory until it was read */
        __syncwarp();                /* whole warps arrive at the barrier behind */
    }
};

/* One warp initialises the barriers. Meanwhile the others find the block's first tile. That is so much of a
 * small product's time that it is not left until the operands are there. */
template <class T, class ROLES>
__global__ void __cluster_dims__(T::CLUSTER, 1, 1) __launch_bounds__(T::THREADS, T::RESIDENT)
    mm_tensor_product(const __grid_constant__ mm_tensor_plan plan) {
    constexpr unsigned START = 65536 / T::RESIDENT / T::THREADS / 8 * 8;
    constexpr bool MOVES_REGISTERS = START < 255;
    static_assert(START > T::PRODUCER_REGISTERS && (START - T::PRODUCER_REGISTERS) / T::CONSUMERS % 8 == 0,
                  "what setmaxnreg takes");
    extern __shared__ __align__(1024) unsigned char stages[];
    __shared__ mm_ring<T::STAGES> ring;
    const mm_tensor_shared<T> shared = {ring, stages};
    mm_tensor_walk walk;
    mm_let_kernel_behind_begin();
    if (threadIdx.x / 32 == 1) {
        if (threadIdx.x == 32) {
            mm_ring_init(ring, T::RELEASES, ROLES::arrivals(plan));
            mm_barriers_init_fence();
        }
    } else {
        if (threadIdx.x == 0) {
            mm_prefetch_map(&plan.a);
            mm_prefetch_map(&plan.b);
        } else if (threadIdx.x == MM_GROUP && plan.maps_c) {
            mm_prefetch_map(&plan.of_c);
        }
        walk = mm_tensor_walk_of<T>(plan);
    }
    __syncwarp(); /* barrier.cluster is .aligned: whole warps arrive */
    mm_wait_for_kernel_before();
    if (T::CLUSTER > 1)
        mm_cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x < MM_GROUP) {
        if constexpr (MOVES_REGISTERS)
            mm_become_producer<T::PRODUCER_REGISTERS>();
        ROLES::template produce<T>(plan, shared, walk);
        __syncwarp(); /* the idle lanes of warp 0 wait for the copying thread */
    } else {
        if constexpr (MOVES_REGISTERS)
            mm_become_consumer<T::PRODUCER_REGISTERS, START, T::CONSUMERS>();
        ROLES::template consume<T>(plan, shared, walk);
    }
    if (T::CLUSTER > 1)
        mm_cluster_sync(); /* another block may still copy to this one, or arrive at its barriers */
}

template <class T, class ROLES = mm_wgmma_roles> mm_tensor_kernel mm_tensor_kernel_of() {
    return {reinterpret_cast<const void *>(mm_tensor_product<T, ROLES>),
            T::ROWS,
            T::WIDE,
            T::THREADS,
            T::CLUSTER,
            T::RESIDENT,
            T::SHARED_BYTES};
}

/* A type's kernels. COLS: the columns of a large tile. */
template <template <unsigned, bool, bool> class INSTRUCTION, typename SUM, unsigned BYTES, bool PROMOTES,
          unsigned COLS>
mm_tensor_kernels mm_tensor_kernels_of() {
    mm_tensor_kernels kernels = {};
    auto &tiny = kernels.of[MM_TENSOR_TINY];
    auto &narrow = kernels.of[MM_TENSOR_NARROW];
    auto &small = kernels.of[MM_TENSOR_SMALL];
    auto &medium = kernels.of[MM_TENSOR_MEDIUM];
    auto &large = kernels.of[MM_TENSOR_LARGE];
#define MM_BOTH(a, b)                                                                                        \
    tiny[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 1, 64, 1, a, b>>();   \
    narrow[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, 64, 1, a, b>>(); \
    small[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, 128, 1, a, b>>(); \
    medium[a][b] =                                                                                           \
        mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, 192, 1, a, b>>();           \
    large[a][b] = mm_tensor_kernel_of<mm_tensor_type<INSTRUCTION, SUM, BYTES, PROMOTES, 2, COLS, 2, a, b>>()
    MM_BOTH(false, false);
    if constexpr (BYTES == 2) {
        MM_BOTH(false, true);
        MM_BOTH(true, false);
        MM_BOTH(true, true);
    }
#undef MM_BOTH
    return kernels;
}
