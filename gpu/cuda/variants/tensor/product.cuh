/* The kernel of `tensor` and `tf32`: which block computes what, how its producer fills the stages, and the
 * roles of its threads. What consumers do is wgmma.cuh's, and float64.cu's.
 *
 * A block has a producer warpgroup, of which one thread copies boxes of both operands into a ring of stages,
 * and one or two consumer warpgroups, which compute the block's tile of C. A stage has 128 bytes of k.
 *
 * The blocks of a cluster load a part of B's box each and multicast it to all. Clusters share the work by the
 * schedule of wgmma/schedule.h. A cluster stores its partial sums of a shared tile, and partial_sums.cu
 * adds them up.
 *
 * A type T is a class with
 *     A_TURNED, B_TURNED    whether the operands are not K-major
 *     ROWS, WIDE            rows and columns of a block's tile
 *     CONSUMERS, THREADS    warpgroups that multiply, threads of a block
 *     CLUSTER               blocks of a cluster, one below the other
 *     RESIDENT              blocks of a multiprocessor
 *     RELEASES              arrivals that empty a stage, in all blocks of the cluster
 *     PRODUCER_REGISTERS    what a thread of the producer keeps
 *     DEPTH                 elements of k in a stage
 *     A_BYTES, STAGE_BYTES, STAGES, SHARED_BYTES
 *     ROLES                 a class with
 *         arrivals(plan)    how often the producer arrives at a stage's barrier `full`
 *         produce<T>(plan, shared, walk), consume<T>(plan, shared, walk)
 *                           what the warpgroups run */
#pragma once

#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/tensor/parts.h"
#include "gpu/cuda/variants/wgmma/block.cuh"

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

/* --- the kernel ---------------------------------------------------------------------------------- */

/* One warp initialises the barriers. Meanwhile the others find the block's first tile. That is so much of a
 * small product's time that it is not left until the operands are there. */
template <class T>
__global__ void __cluster_dims__(T::CLUSTER, 1, 1) __launch_bounds__(T::THREADS, T::RESIDENT)
    mm_tensor_product(const __grid_constant__ mm_tensor_plan plan) {
    constexpr unsigned START = 65536 / T::RESIDENT / T::THREADS / 8 * 8;
    constexpr bool MOVES_REGISTERS = START < 255;
    static_assert(START > T::PRODUCER_REGISTERS && (START - T::PRODUCER_REGISTERS) / T::CONSUMERS % 8 == 0,
                  "what setmaxnreg takes");
    using ROLES = typename T::ROLES;
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

template <class T> mm_tensor_kernel mm_tensor_kernel_of() {
    return {reinterpret_cast<const void *>(mm_tensor_product<T>),
            T::ROWS,
            T::WIDE,
            T::THREADS,
            T::CLUSTER,
            T::RESIDENT,
            T::SHARED_BYTES};
}
