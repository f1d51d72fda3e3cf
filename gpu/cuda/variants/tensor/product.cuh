/* The kernel of `tensor` and `tf32`. Read this page before you change the kernel.
 *
 * A block computes a tile of C, ROWS×COLS. Warpgroup 0 is the producer; the other one or two warpgroups are
 * consumers.
 *
 *      global memory                 shared memory                    registers
 *     ┌──────────────┐  producer   ┌──────────────────┐ consumers ┌──────────────────────────┐
 *     │ A, B         │────TMA─────►│ stage 0: A, B    │──wgmma───►│ consumer 0: 64×COLS sums │
 *     │              │             │ ...              │           │ consumer 1: 64×COLS sums │
 *     │              │             │ stage STAGES - 1 │           └────┬────────────────┬────┘
 *     │              │             ├──────────────────┤    epilogue    │                │
 *     │ C            │◄───TMA──────│ buffers of C     │◄───────────────┘                │
 *     │ partial sums │◄────────────────────────────────────────────────────────────────┘
 *     └──────────────┘              if the tile is shared
 *
 * Stage: 128 bytes along k of each row of A and column of B in the tile. Each consumer multiplies a stage
 * with four wgmma. Each stage has two mbarriers. The producer waits for `empty`, and then starts the TMA
 * loads, which complete at `full`. A consumer waits for `full`, issues its wgmma, and arrives at `empty` when
 * they are complete.
 *
 * Cluster: with two of the sizes, two blocks form a cluster, with tiles one below the other. So both blocks
 * need equal columns of B. Each producer loads half of these columns, and multicasts that half to both
 * blocks.
 *
 * Work: clusters compute whole tiles in rounds. If the last round has fewer tiles than clusters, several
 * clusters may share a tile: each computes a part of k (stream-K, or split-K if there are no whole tiles) and
 * stores partial sums. A second kernel, the fix-up, adds up the partial sums in the order of k.
 *
 *     product.cuh              the producer, the kernel
 *     wgmma.cuh                a tile's traits and its consumers, for all types but float64
 *     store.cuh                the epilogue
 *     float64.cu               float64: consumers that use mma.sync and store C from registers
 *     limbs.cu                 int32: the copies of the operands
 *     partial_sums.cu          the fix-up
 *     tensor.c, maps.c         the host: copies and launch; tensor maps
 *     way.c                    the choice of tile and schedule
 *     ../wgmma/                code that fp32_tensor uses too: roles and stages of a block, schedule, PTX
 *
 * The traits of a tile are a class T with
 *     A_MN_MAJOR, B_MN_MAJOR  whether the operands are MN-major, else K-major
 *     ROWS, COLS              rows and columns of the tile
 *     CONSUMERS, THREADS      consumers and threads of a block
 *     CLUSTER, RESIDENT       blocks in a cluster, and blocks on a multiprocessor
 *     EMPTY_ARRIVALS          consumers' arrivals after which a stage is empty
 *     PRODUCER_REGISTERS      registers that a thread of the producer keeps
 *     DEPTH                   elements of k in a stage
 *     A_BYTES, STAGE_BYTES    bytes of A in a stage, and bytes of a stage
 *     STAGES, SHARED_BYTES    stages, and bytes of dynamic shared memory
 *     LOADS_ADDEND            the producer loads the addend of whole tiles
 *     COUNTS_PRODUCTS         the kernel computes only the first *plan.products products, if that is not NULL
 *     HAS_LIMBS               the operands are limbs of int32 (mm_tensor_groups)
 *     IS_PLAIN                the kernel computes only plain products (mm_tensor_kernel)
 *     ROLES                   a class with
 *         full_arrivals(plan)             how often the producer arrives at a stage's `full`
 *         produce<T>(plan, shared, walk)  what the producer's threads run
 *         consume<T>(plan, shared, walk)  what the consumers' threads run */
#pragma once

#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/tensor/plan.h"
#include "gpu/cuda/variants/wgmma/block.cuh"

template <class T> struct mm_tensor_shared {
    mm_ring<T::STAGES> &ring;
    unsigned char *stages; /* for each stage A, then B; after all stages the buffers of C */
};

/* --- which block computes what ------------------------------------------------------------------- */

struct mm_tensor_tile {
    unsigned row;
    unsigned col;
    unsigned product; /* index of the product in its stack */
    unsigned a;       /* index of the product's A in its stack */
    unsigned b;       /* index of the product's B in its stack */
    unsigned addend;  /* index of the product's addend in its stack */
};

/* Returns the tile that block `rank` of a cluster computes. Tiles have rows×cols elements. If IS_PLAIN, the
 * product is no stack. */
template <bool IS_PLAIN = false>
__device__ __forceinline__ mm_tensor_tile mm_tensor_tile_of(const mm_tensor_plan &plan, unsigned cluster_tile,
                                                            unsigned cluster, unsigned rank, unsigned rows,
                                                            unsigned cols) {
    mm_tensor_tile tile = {};
    if (!IS_PLAIN && plan.rank > 0) {
        const unsigned each = plan.schedule.cluster_tile_rows * plan.schedule.cluster_tile_cols;
        unsigned left = tile.product = cluster_tile / each;
        cluster_tile %= each;
#pragma unroll 1
        for (unsigned dim = plan.rank; dim-- > 0;) {
            const unsigned at = dim == 0 ? left : left % plan.dims[dim];
            left /= plan.dims[dim];
            tile.a += at * plan.a_steps[dim];
            tile.b += at * plan.b_steps[dim];
            tile.addend += at * plan.addend_steps[dim];
        }
    }
    const mm_tile of_cluster = mm_cluster_tile_of(plan.schedule, cluster_tile);
    tile.row = (of_cluster.row * cluster + rank) * rows;
    tile.col = of_cluster.col * cols;
    return tile;
}

/* Returns the product of a stack to which the tile belongs, but with A and B of product 0. */
__device__ __forceinline__ mm_product mm_tensor_item(const mm_tensor_plan &plan, const mm_tensor_tile &tile) {
    mm_product product = plan.product;
    const mm_dtype dtype = product.c.dtype;
    const unsigned bytes = dtype == MM_FLOAT64 ? 8 : dtype == MM_FLOAT16 || dtype == MM_BFLOAT16 ? 2 : 4;
    const size_t c_bytes = product.m * product.n * bytes;
    product.c.data = static_cast<char *>(product.c.data) + tile.product * c_bytes;
    product.addend.data = static_cast<char *>(product.addend.data) + tile.addend * c_bytes;
    return product;
}

/* Progress through a block's work. The producer and each consumer have their own copy. */
struct mm_tensor_walk {
    mm_tile_scheduler scheduler;
    mm_work_tile work;
    mm_tensor_tile tile; /* the tile of C to which `work` belongs */
    bool is_over;
};

template <class T>
__device__ __forceinline__ void mm_tensor_walk_next(const mm_tensor_plan &plan, mm_tensor_walk &walk) {
    walk.is_over = !mm_next_work_tile<!T::IS_PLAIN>(plan.schedule, walk.scheduler, walk.work);
    if (!walk.is_over)
        walk.tile = mm_tensor_tile_of<T::IS_PLAIN>(plan, walk.work.cluster_tile, T::CLUSTER,
                                                   blockIdx.x % T::CLUSTER, T::ROWS, T::COLS);
    if constexpr (T::COUNTS_PRODUCTS)
        walk.is_over = walk.is_over || (plan.products != nullptr && walk.tile.product >= *plan.products);
}

template <class T>
__device__ __forceinline__ mm_tensor_walk mm_tensor_walk_begin(const mm_tensor_plan &plan) {
    mm_tensor_walk walk = {mm_scheduler_of(blockIdx.x / T::CLUSTER), {}, {}, false};
    mm_tensor_walk_next<T>(plan, walk);
    return walk;
}

/* Whether the work includes all steps of its tile. */
__device__ __forceinline__ bool mm_is_whole(const mm_tensor_plan &plan, const mm_work_tile &work) {
    return work.end - work.begin == plan.schedule.steps;
}

/* Returns the slot of the workspace for partial sums. Sums that include a tile's first step go to the tile's
 * slot. Other sums go to the cluster's slot; a cluster has such sums only in its first shared tile. */
template <class T>
__device__ __forceinline__ unsigned mm_tensor_slot(const mm_tensor_plan &plan, const mm_work_tile &work) {
    return work.begin > 0 ? blockIdx.x / T::CLUSTER
                          : plan.schedule.sharers + work.cluster_tile - plan.schedule.whole_cluster_tiles;
}

/* --- the producer -------------------------------------------------------------------------------- */

/* Starts to load `lines` rows of op(A) or columns of op(B), beginning at `line`, into all BLOCKS blocks of
 * the cluster. An MN-major operand takes one TMA load for each square of SQUARE × SQUARE elements. */
template <unsigned LINES, unsigned BLOCKS, bool MN_MAJOR, unsigned SQUARE>
__device__ __forceinline__ void mm_tensor_load(unsigned char *to, const CUtensorMap &map, unsigned lines,
                                               unsigned line, unsigned depth, unsigned matrix,
                                               uint64_t *barrier) {
    constexpr uint16_t ALL = (1u << BLOCKS) - 1;
    constexpr unsigned EACH = MN_MAJOR ? SQUARE : LINES;
#pragma unroll
    for (unsigned i = 0; i < LINES; i += EACH) {
        if (MN_MAJOR && i >= lines)
            break;
        const int x = static_cast<int>(MN_MAJOR ? line + i : depth);
        const int y = static_cast<int>(MN_MAJOR ? depth : line + i);
        unsigned char *at = to + i * MM_TENSOR_LINE_BYTES;
        if (BLOCKS == 1)
            mm_tma_load(at, &map, x, y, static_cast<int>(matrix), barrier);
        else
            mm_tma_load_multicast(at, &map, x, y, static_cast<int>(matrix), barrier, ALL);
    }
}

/* Whether elements of C have 2 bytes. Elements of a plain product's C have 2 bytes if elements of A have. */
template <class T> __device__ __forceinline__ bool mm_is_narrow(const mm_tensor_plan &plan) {
    if (T::IS_PLAIN)
        return T::DEPTH * 2 == MM_TENSOR_LINE_BYTES;
    return plan.product.c.dtype == MM_FLOAT16 || plan.product.c.dtype == MM_BFLOAT16;
}

constexpr unsigned MM_C_BUFFER_BYTES = MM_CONSUMER_ROWS * MM_TENSOR_LINE_BYTES;

/* How the addend of a tile lies in the ring's stages. The addend is divided into parts like those of C. A
 * stage has EACH parts of each consumer. Part p of consumer c has index p % EACH * CONSUMERS + c in its
 * stage. */
template <class T, bool IS_NARROW> struct mm_addend_parts {
    static constexpr unsigned PARTS = T::SUMS / (IS_NARROW ? 32 : 16);
    static constexpr unsigned FIT = T::STAGE_BYTES / MM_C_BUFFER_BYTES / T::CONSUMERS;
    static constexpr unsigned EACH = FIT < PARTS ? FIT : PARTS; /* parts of a consumer in one stage */
    static constexpr unsigned COLS = MM_TENSOR_LINE_BYTES / (IS_NARROW ? 2 : 4); /* columns of a part */
};

/* Loads a tile's addend into the ring stages that follow the stages of the tile's last step of k. One thread
 * of the producer runs it. */
template <class T, bool IS_NARROW>
__device__ __forceinline__ void mm_produce_addend_parts(const mm_tensor_plan &plan,
                                                        const mm_tensor_shared<T> &shared,
                                                        const mm_tensor_tile &tile, mm_ring_state &at) {
    using parts = mm_addend_parts<T, IS_NARROW>;
#pragma unroll 1
    for (unsigned first = 0; first < parts::PARTS; first += parts::EACH) {
        const unsigned stage = mm_wait_empty(shared.ring, at);
        const unsigned count = min(parts::EACH, parts::PARTS - first) * T::CONSUMERS;
        uint64_t *full = &shared.ring.full[stage];
        mm_mbarrier_arrive_expect(full, count * MM_C_BUFFER_BYTES);
#pragma unroll 1
        for (unsigned i = 0; i < count; i++)
            mm_tma_load(shared.stages + stage * T::STAGE_BYTES + i * MM_C_BUFFER_BYTES, &plan.of_addend,
                        static_cast<int>(tile.col + (first + i / T::CONSUMERS) * parts::COLS),
                        static_cast<int>(tile.row + i % T::CONSUMERS * MM_CONSUMER_ROWS),
                        static_cast<int>(tile.addend), full);
    }
}

template <class T>
__device__ __forceinline__ void mm_produce_addend(const mm_tensor_plan &plan,
                                                  const mm_tensor_shared<T> &shared,
                                                  const mm_tensor_tile &tile, mm_ring_state &at) {
    if (mm_is_narrow<T>(plan))
        mm_produce_addend_parts<T, true>(plan, shared, tile, at);
    else
        mm_produce_addend_parts<T, false>(plan, shared, tile, at);
}

/* Where a step begins along k in the stored lines, in elements. */
struct mm_tensor_depths {
    unsigned a;
    unsigned b;
};

/* The last step of a group may read past the last plane of B. TMA then loads zeros, so the planes of A that
 * do not belong to the group add nothing. */
template <class T>
__device__ __forceinline__ mm_tensor_depths mm_tensor_depths_of(const mm_tensor_plan &plan, unsigned step) {
    if constexpr (!T::HAS_LIMBS)
        return {step * T::DEPTH, step * T::DEPTH};
    const mm_tensor_groups &groups = plan.groups;
    unsigned group = 0;
#pragma unroll
    for (unsigned i = 1; i < MM_TENSOR_LIMBS; i++)
        group += step >= groups.begin[i];
    const unsigned depth = (step - groups.begin[group]) * T::DEPTH;
    return {depth, depth + group * groups.depth};
}

/* The producer's loop, which one thread runs. */
template <class T>
__device__ __forceinline__ void mm_tensor_produce(const mm_tensor_plan &plan,
                                                  const mm_tensor_shared<T> &shared, mm_tensor_walk &walk) {
    constexpr unsigned OWN = T::COLS / T::CLUSTER; /* columns of B that this block loads */
    const unsigned rank = blockIdx.x % T::CLUSTER;
    mm_ring_state at = {0, 0};
    for (; !walk.is_over; mm_tensor_walk_next<T>(plan, walk)) {
        const mm_tensor_tile &tile = walk.tile;
        for (unsigned step = walk.work.begin; step < walk.work.end; step++) {
            const unsigned stage = mm_wait_empty(shared.ring, at);
            unsigned char *to = shared.stages + stage * T::STAGE_BYTES;
            uint64_t *full = &shared.ring.full[stage];
            const mm_tensor_depths depths = mm_tensor_depths_of<T>(plan, step);
            /* The expected bytes include the half of B that the other block multicasts. That half may arrive
             * before this call, because the phase ends only after this thread has arrived. */
            mm_mbarrier_arrive_expect(full,
                                      (plan.a_lines + T::CLUSTER * plan.b_lines) * MM_TENSOR_LINE_BYTES);
            mm_tensor_load<T::ROWS, 1, T::A_MN_MAJOR, T::DEPTH>(to, plan.a, plan.a_lines, tile.row, depths.a,
                                                                tile.a, full);
            mm_tensor_load<OWN, T::CLUSTER, T::B_MN_MAJOR, T::DEPTH>(
                to + T::A_BYTES + rank * OWN * MM_TENSOR_LINE_BYTES, plan.b, plan.b_lines,
                tile.col + rank * OWN, depths.b, tile.b, full);
        }
        if constexpr (T::LOADS_ADDEND)
            if (plan.product.addend.rows > 0 && mm_is_whole(plan, walk.work))
                mm_produce_addend(plan, shared, tile, at);
    }
}

/* Warp 1 initialises the mbarriers while the other warps compute the block's first tile. The wait for the
 * previous kernel comes later, because this work takes a large part of a small product's time. */
template <class T>
__global__ void __cluster_dims__(T::CLUSTER, 1, 1) __launch_bounds__(T::THREADS, T::RESIDENT)
    mm_tensor_product(const __grid_constant__ mm_tensor_plan plan) {
    constexpr unsigned START = 65536 / T::RESIDENT / T::THREADS / 8 * 8;
    constexpr bool MOVES_REGISTERS = START < 255;
    static_assert(START > T::PRODUCER_REGISTERS && (START - T::PRODUCER_REGISTERS) / T::CONSUMERS % 8 == 0,
                  "setmaxnreg takes multiples of 8");
    using ROLES = typename T::ROLES;
    extern __shared__ __align__(1024) unsigned char stages[];
    __shared__ mm_ring<T::STAGES> ring;
    const mm_tensor_shared<T> shared = {ring, stages};
    mm_tensor_walk walk;
    mm_trigger_dependent_launch();
    if (threadIdx.x / 32 == 1) {
        if (threadIdx.x == 32) {
            mm_ring_init(ring, T::EMPTY_ARRIVALS, ROLES::full_arrivals(plan));
            mm_mbarrier_init_fence();
        }
    } else {
        if (threadIdx.x == 0) {
            mm_tma_prefetch_map(&plan.a);
            mm_tma_prefetch_map(&plan.b);
        } else if (threadIdx.x == MM_WARPGROUP && plan.maps_c) {
            mm_tma_prefetch_map(&plan.of_c);
        }
        walk = mm_tensor_walk_begin<T>(plan);
    }
    __syncwarp(); /* mm_cluster_sync needs whole warps */
    mm_wait_for_kernel_before();
    if (T::CLUSTER > 1)
        mm_cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x < MM_WARPGROUP) {
        if constexpr (MOVES_REGISTERS)
            mm_release_registers<T::PRODUCER_REGISTERS>();
        ROLES::template produce<T>(plan, shared, walk);
        __syncwarp(); /* the idle lanes of warp 0 wait for the thread that uses TMA */
    } else {
        if constexpr (MOVES_REGISTERS)
            mm_acquire_registers<T::PRODUCER_REGISTERS, START, T::CONSUMERS>();
        ROLES::template consume<T>(plan, shared, walk);
    }
    if (T::CLUSTER > 1)
        mm_cluster_sync(); /* wait, because another block may still write to this block's shared memory */
}

template <class T> mm_tensor_kernel mm_tensor_kernel_of() {
    return {reinterpret_cast<const void *>(mm_tensor_product<T>),
            T::ROWS,
            T::COLS,
            T::THREADS,
            T::CLUSTER,
            T::RESIDENT,
            T::SHARED_BYTES,
            nullptr};
}
