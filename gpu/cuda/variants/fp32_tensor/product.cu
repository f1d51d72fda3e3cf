/* fp32_tensor's product of two split operands. A block has a producer warpgroup and two consumer warpgroups.
 * In the producer one thread copies slabs into a ring of five stages, and three warps prepare the row and
 * column data of the epilogue. Each consumer computes 64×192 of C.
 *
 * A step is 64 of k: twelve wgmma. The small products low·high and high·low come first, so truncation costs
 * them little. The result is then promoted: added to float32 sums in registers. Meanwhile the other consumer
 * uses the tensor cores.
 *
 * A cluster's two blocks compute tiles one below the other. Each block loads its own slab of A, and
 * multicasts half of B's slab to both. This saves 30% of the L2 traffic, and so power, which limits an H200's
 * clock at 4096³. Tiles are 192 wide rather than 128, so each wgmma reads less shared memory per
 * multiplication.
 *
 * Stream-K: clusters take whole tiles round robin, and share the steps of the rest evenly. The cluster with a
 * tile's first step adds the partial sums of the others (fix-up). */
/* ptxas: spills product: words that a tile needs at its end; the loop over its steps touches none of them */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/hopper.cuh"
#include "gpu/cuda/variants/fp32_tensor/parts.h"

namespace {

constexpr unsigned EDGE = MM_FP32_EDGE;
constexpr unsigned WIDE = MM_FP32_WIDE;
constexpr unsigned CLUSTER = MM_FP32_CLUSTER;
constexpr unsigned SUMS = MM_FP32_SUMS;
constexpr unsigned THREADS = MM_FP32_PRODUCT_THREADS;
constexpr unsigned GROUP = 128;                           /* threads of a warpgroup */
constexpr unsigned CONSUMERS = MM_FP32_COMPUTING / GROUP; /* warpgroups */
constexpr unsigned ROWS = EDGE / CONSUMERS;               /* of C, that a consumer computes */

constexpr unsigned STAGES = 5; /* each holds a slab of both operands */
constexpr unsigned A_BYTES = EDGE * MM_FP32_LINE_BYTES;
constexpr unsigned B_BYTES = WIDE * MM_FP32_LINE_BYTES;
constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned ALIGNMENT = 1024; /* of the stages, for wgmma */

using line = mm_fp32_line;

/* Static shared memory: all but the stages. Its addresses are compile-time constants. */
struct static_shared {
    line lines[2][EDGE + WIDE]; /* of two tiles in turn: rows, then columns */
    uint64_t full[STAGES];      /* barriers: the stage's bytes have arrived */
    uint64_t empty[STAGES];     /* all four consumers of the cluster have read it */
    uint64_t lines_full[2];
    uint64_t lines_empty[2];
};

struct shared {
    static_shared &own;
    unsigned char *stages; /* STAGE_BYTES each: A's slab, then B's */
};

/* --- which cluster computes what ----------------------------------------------------------------- */

/* Steps of a cluster tile, from begin to end. */
struct work_tile {
    unsigned cluster_tile;
    unsigned begin;
    unsigned end;
};

/* First shared step of a cluster; for cluster == clusters, the end of the last share. A boundary fewer than
 * MIN steps from a tile's edge moves to that edge, so a share can be empty. */
__device__ unsigned share_begin(const mm_fp32_plan &plan, unsigned cluster) {
    constexpr unsigned MIN = MM_FP32_SHARE_MIN;
    const unsigned begin = cluster * plan.share + min(cluster, plan.longer_shares);
    const unsigned within = begin % plan.steps;
    if (within < MIN)
        return begin - within;
    return plan.steps - within < MIN ? begin - within + plan.steps : begin;
}

__device__ __forceinline__ unsigned my_cluster() {
    return blockIdx.x / CLUSTER;
}

__device__ __forceinline__ unsigned my_rank() {
    return blockIdx.x % CLUSTER;
}

/* A cluster's schedule. The copying thread, the preparing warps and the consumers each walk their own copy.
 * Fewer cluster tiles are shared than there are clusters, so 32 bits count their steps. */
struct tile_scheduler {
    unsigned cluster_tile; /* the next one that is not shared */
    unsigned at;           /* the next shared step */
    unsigned end;          /* of the cluster's share */
};

__device__ tile_scheduler scheduler_of(const mm_fp32_plan &plan) {
    return {my_cluster(), share_begin(plan, my_cluster()), share_begin(plan, my_cluster() + 1)};
}

__device__ bool next_work_tile(const mm_fp32_plan &plan, tile_scheduler &scheduler, work_tile &next) {
    if (scheduler.cluster_tile < plan.whole_cluster_tiles) {
        next = {scheduler.cluster_tile, 0, plan.steps};
        scheduler.cluster_tile += plan.clusters;
        return true;
    }
    if (scheduler.at >= scheduler.end)
        return false;
    next.cluster_tile = plan.whole_cluster_tiles + scheduler.at / plan.steps;
    next.begin = scheduler.at % plan.steps;
    next.end = min(next.begin + (scheduler.end - scheduler.at), plan.steps);
    scheduler.at += next.end - next.begin;
    return true;
}

/* A block's tile of C. */
struct tile {
    unsigned row;
    unsigned col;
};

/* Cluster tiles are ordered in bands of four rows, so clusters that run at the same time read the same
 * operands. */
__device__ tile tile_of(const mm_fp32_plan &plan, unsigned cluster_tile) {
    constexpr unsigned HEIGHT = 4;
    const unsigned group = cluster_tile / (HEIGHT * plan.cluster_tile_cols);
    const unsigned within = cluster_tile % (HEIGHT * plan.cluster_tile_cols);
    const unsigned height = min(HEIGHT, plan.cluster_tile_rows - group * HEIGHT);
    return {(group * HEIGHT + within % height) * CLUSTER + my_rank(), within / height};
}

/* --- the producer warpgroup ---------------------------------------------------------------------- */

/* The copying thread. */
__device__ void produce(const mm_fp32_plan &plan, const shared &shared, tile_scheduler scheduler) {
    constexpr unsigned B_HALF_BYTES = B_BYTES / CLUSTER;
    constexpr uint16_t BOTH = 3;
    unsigned stage = 0;
    unsigned round = 0;
    for (work_tile next; next_work_tile(plan, scheduler, next);) {
        const tile tile = tile_of(plan, next.cluster_tile);
        const size_t slabs = 2 * static_cast<size_t>(plan.steps);
        const unsigned char *a = plan.a + (tile.row * slabs + 2 * next.begin) * A_BYTES;
        const unsigned char *b =
            plan.b + (tile.col * slabs + 2 * next.begin) * B_BYTES + my_rank() * B_HALF_BYTES;
        for (unsigned slab = 2 * next.begin; slab < 2 * next.end; slab++, a += A_BYTES, b += B_BYTES) {
            unsigned char *to = shared.stages + stage * STAGE_BYTES;
            if (round > 0)
                mm_barrier_wait(&shared.own.empty[stage], (round - 1) % 2);
            /* STAGE_BYTES counts the half of B that the other block multicasts. It may arrive before this
             * expect: the phase cannot end without this arrival. */
            mm_barrier_expect(&shared.own.full[stage], STAGE_BYTES);
            mm_bulk_copy(to, a, A_BYTES, &shared.own.full[stage]);
            mm_bulk_copy_multicast(to + A_BYTES + my_rank() * B_HALF_BYTES, b, B_HALF_BYTES,
                                   &shared.own.full[stage], BOTH);
            if (++stage == STAGES) {
                stage = 0;
                round++;
            }
        }
    }
}

constexpr unsigned PREPARING_FIRST = 32; /* warp 0 has the copying thread */
constexpr unsigned PREPARING_THREADS = GROUP - PREPARING_FIRST;

/* The line's epilogue data. Past the last line: that of zeros, which are always certain. */
__device__ __forceinline__ line line_at(const unsigned *most, const unsigned long long *lost, unsigned index,
                                        size_t count, float factor) {
    return index < count ? mm_fp32_line_of(most[index], lost[index], factor) : mm_fp32_line_of(0, 0, factor);
}

/* The other warps of the producer. */
__device__ void prepare_lines(const mm_fp32_plan &plan, const shared &shared, tile_scheduler scheduler) {
    unsigned count = 0;
    for (work_tile next; next_work_tile(plan, scheduler, next);) {
        if (next.begin > 0)
            continue; /* another cluster runs the epilogue */
        const tile tile = tile_of(plan, next.cluster_tile);
        const unsigned set = count % 2;
        if (count >= 2)
            mm_barrier_wait(&shared.own.lines_empty[set], (count / 2 - 1) % 2);
        for (unsigned i = threadIdx.x - PREPARING_FIRST; i < EDGE; i += PREPARING_THREADS)
            shared.own.lines[set][i] =
                line_at(plan.max_a, plan.lost_a, tile.row * EDGE + i, plan.product.m, plan.threshold);
        for (unsigned i = threadIdx.x - PREPARING_FIRST; i < WIDE; i += PREPARING_THREADS)
            shared.own.lines[set][EDGE + i] =
                line_at(plan.max_b, plan.lost_b, tile.col * WIDE + i, plan.product.n, 1.0f);
        mm_barrier_arrive(&shared.own.lines_full[set]);
        count++;
    }
}

/* --- the consumer warpgroups --------------------------------------------------------------------- */

/* The thread's consumer warpgroup, and its index there. */
__device__ __forceinline__ unsigned my_group() {
    return threadIdx.x / GROUP - 1;
}

__device__ __forceinline__ unsigned my_thread() {
    return threadIdx.x % GROUP;
}

/* A consumer's position in the pipeline. */
struct pipeline_state {
    unsigned stage;
    unsigned parity;     /* of the stage's phase */
    unsigned tiles_done; /* epilogues that it has run */
};

__device__ __forceinline__ unsigned wait_for_slab(const shared &shared, pipeline_state &at) {
    const unsigned stage = at.stage;
    mm_barrier_wait(&shared.own.full[stage], at.parity);
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
    return stage;
}

/* Frees the stage in both blocks, since both fill it. wgmma groups belong to the warpgroup, so one thread
 * that has waited may arrive for all. */
__device__ __forceinline__ void release(const shared &shared, unsigned stage) {
    if (my_thread() < CLUSTER)
        mm_barrier_arrive_at(&shared.own.empty[stage], my_thread());
}

/* d = the products of 64 of k. */
__device__ __forceinline__ void multiply(float (&d)[SUMS], const shared &shared, unsigned first,
                                         unsigned second) {
    constexpr unsigned HIGH = 0; /* in units of 16 bytes, along a line */
    constexpr unsigned LOW = MM_FP32_LINE_BYTES / 2 / 16;
    constexpr unsigned NEXT = 2; /* 16 of k */
    const unsigned row = my_group() * ROWS * MM_FP32_LINE_BYTES;
    const unsigned char *slabs[2] = {shared.stages + first * STAGE_BYTES,
                                     shared.stages + second * STAGE_BYTES};
    const uint64_t a[2] = {mm_wgmma_descriptor(slabs[0] + row), mm_wgmma_descriptor(slabs[1] + row)};
    const uint64_t b[2] = {mm_wgmma_descriptor(slabs[0] + A_BYTES), mm_wgmma_descriptor(slabs[1] + A_BYTES)};
    mm_wgmma_fence(); /* orders the reads of d in the last step before these writes */
    mm_wgmma(d, a[0] + LOW, b[0] + HIGH);
    mm_wgmma_add(d, a[0] + HIGH, b[0] + LOW);
#pragma unroll
    for (unsigned i = 1; i < 4; i++) {
        const unsigned k = i % 2 * NEXT;
        mm_wgmma_add(d, a[i / 2] + LOW + k, b[i / 2] + HIGH + k);
        mm_wgmma_add(d, a[i / 2] + HIGH + k, b[i / 2] + LOW + k);
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned k = i % 2 * NEXT;
        mm_wgmma_add(d, a[i / 2] + HIGH + k, b[i / 2] + HIGH + k);
    }
    mm_wgmma_commit();
    mm_wgmma_wait();
    mm_wgmma_fence_registers(d);
}

/* The thread's sums in the workspace. At each quad neighbouring threads access neighbouring 16 bytes. */
__device__ __forceinline__ float4 *sums_at(float *memory, unsigned block) {
    return reinterpret_cast<float4 *>(memory) + (block * CONSUMERS + my_group()) * (SUMS / 4 * GROUP) +
           my_thread();
}

__device__ __forceinline__ void store(const float (&sums)[SUMS], float4 *to) {
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 4)
        to[i / 4 * GROUP] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
}

/* Bypasses the L1 cache, which does not see what other multiprocessors write. */
__device__ __forceinline__ void add(float (&sums)[SUMS], const float4 *from) {
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 4) {
        const float4 x = __ldcg(&from[i / 4 * GROUP]);
        sums[i] += x.x;
        sums[i + 1] += x.y;
        sums[i + 2] += x.z;
        sums[i + 3] += x.w;
    }
}

__device__ __forceinline__ void clear(float (&sums)[SUMS]) {
#pragma unroll
    for (unsigned i = 0; i < SUMS; i++)
        sums[i] = 0.0f;
}

/* Adds up the steps. Every FLUSH_STEPS the running sum is flushed to the workspace and restarted, so no step
 * meets a far larger sum. */
__device__ __forceinline__ void compute(const mm_fp32_plan &plan, const shared &shared,
                                        const work_tile &work_tile, pipeline_state &at, float (&sums)[SUMS]) {
    float d[SUMS];
    bool is_flushed = false;
    clear(sums);
    for (unsigned step = work_tile.begin, since = 0; step < work_tile.end; step++, since++) {
        if (since == MM_FP32_FLUSH_STEPS) {
            float4 *stored = sums_at(plan.flushed, blockIdx.x);
            if (is_flushed)
                add(sums, stored);
            store(sums, stored);
            clear(sums);
            is_flushed = true;
            since = 0;
        }
        const unsigned first = wait_for_slab(shared, at);
        const unsigned second = wait_for_slab(shared, at);
        multiply(d, shared, first, second);
        release(shared, first);
        release(shared, second);
#pragma unroll
        for (unsigned i = 0; i < SUMS; i++)
            sums[i] += d[i];
    }
    if (is_flushed)
        add(sums, sums_at(plan.flushed, blockIdx.x));
}

__device__ __forceinline__ unsigned warpgroup_barrier() {
    return 1 + my_group();
}

/* Stores partial sums for another cluster. All threads have stored before one sets the flag. A cluster
 * publishes at most once, because only the first tile of its share can begin past step 0. So one slot a block
 * is enough. */
__device__ __forceinline__ void publish_partial(const mm_fp32_plan &plan, const float (&sums)[SUMS]) {
    store(sums, sums_at(plan.partial, blockIdx.x));
    __threadfence();
    mm_warpgroup_sync(warpgroup_barrier());
    if (my_thread() == 0)
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(
                         &plan.partial_ready[blockIdx.x * CONSUMERS + my_group()])
                     : "memory");
}

/* Adds another block's partial sums: one thread waits, then all read. A cluster publishes before it ever
 * waits. If blocks start in index order, at most one started cluster of a grid waits for clusters that have
 * not: the first of the tile that they share. All others end and free their multiprocessors. There are fewer
 * streams than cluster slots, so a slot is always freed. CUDA does not promise that order; with another one
 * this could wait for ever. */
__device__ __forceinline__ void add_partial(const mm_fp32_plan &plan, unsigned block, float (&sums)[SUMS]) {
    if (my_thread() == 0) {
        unsigned partial_ready = 0;
        while (partial_ready == 0)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(partial_ready)
                         : "l"(&plan.partial_ready[block * CONSUMERS + my_group()])
                         : "memory");
    }
    mm_warpgroup_sync(warpgroup_barrier());
    add(sums, sums_at(plan.partial, block));
}

/* Adds the partial sums of the clusters that computed the tile's later steps, in order. An empty share
 * published none. */
__device__ __forceinline__ void fix_up(const mm_fp32_plan &plan, const work_tile &work_tile,
                                       float (&sums)[SUMS]) {
    const unsigned end = (work_tile.cluster_tile - plan.whole_cluster_tiles + 1) * plan.steps;
    for (unsigned other = my_cluster() + 1; other < plan.clusters && share_begin(plan, other) < end; other++)
        if (share_begin(plan, other) < share_begin(plan, other + 1))
            add_partial(plan, other * CLUSTER + my_rank(), sums);
}

__device__ __forceinline__ void note_uncertain(const mm_fp32_plan &plan, unsigned row, unsigned col) {
    if (*static_cast<volatile unsigned *>(&plan.flags->uncertain) > plan.uncertain_max)
        return; /* simt will compute everything */
    const unsigned index = atomicAdd(&plan.flags->uncertain, 1u);
    if (index < plan.uncertain_max)
        plan.uncertain[index] = {row, col};
}

/* Where wgmma's accumulator fragment puts a thread's sums in the tile: two neighbours of a row, two more 8
 * rows down, repeated every 8 columns. */
struct fragment_position {
    unsigned row;
    unsigned col;
};

__device__ __forceinline__ fragment_position fragment_position_of(unsigned index) {
    const unsigned lane = my_thread() % 32;
    return {my_group() * ROWS + my_thread() / 32 * 16 + lane / 4 + index / 2 % 2 * 8,
            lane % 4 * 2 + index / 4 * 8 + index % 2};
}

/* The slow epilogue stores all of the thread's sums again. It runs if one of them is not certain or a scale
 * is no normal float. It reads the sums from memory, so the loop need not be unrolled. */
__device__ __forceinline__ void epilogue_slow(const mm_fp32_plan &plan, const line *lines, const tile &tile) {
    const mm_product &product = plan.product;
    const float *stored = reinterpret_cast<const float *>(sums_at(plan.flushed, blockIdx.x));
#pragma unroll 1
    for (unsigned i = 0; i < SUMS; i++) {
        const fragment_position fragment_position = fragment_position_of(i);
        const unsigned row = tile.row * EDGE + fragment_position.row;
        const unsigned col = tile.col * WIDE + fragment_position.col;
        const line &of_row = lines[fragment_position.row];
        const line &of_col = lines[EDGE + fragment_position.col];
        const float sum = __ldcg(&stored[i / 4 * (4 * GROUP) + i % 4]);
        if (row >= product.m || col >= product.n)
            continue;
        static_cast<float *>(product.c.data)[row * product.c.ld + col] =
            mm_fp32_unscaled(sum, of_row.exponent + of_col.exponent);
        if (!(fabsf(sum) >= mm_fp32_least(of_row, of_col)))
            note_uncertain(plan, row, col);
    }
}

/* Where the thread's two rows begin in C, and the columns left from there; 0 for a row past C. */
struct destination {
    float *to[2];
    unsigned cols[2];
};

__device__ __forceinline__ destination destination_of(const mm_matrix &c, const tile &tile,
                                                      const fragment_position &first) {
    const unsigned row = tile.row * EDGE + first.row;
    const unsigned col = tile.col * WIDE + first.col;
    const unsigned left = col < c.cols ? static_cast<unsigned>(c.cols) - col : 0;
    float *to = static_cast<float *>(c.data) + row * c.ld + col;
    return {{to, to + 8 * c.ld}, {row < c.rows ? left : 0, row + 8 < c.rows ? left : 0}};
}

/* The fast epilogue: undoes the scale of the sums and stores them, two at a time if `TWO`. Returns whether
 * all were certain and every scale is a normal float. It is fully unrolled and bound by instruction fetches,
 * so each instruction counts. */
template <bool TWO>
__device__ __forceinline__ bool epilogue_fast(const float (&sums)[SUMS], const line *lines,
                                              const fragment_position &first,
                                              const destination &destination) {
    const line rows[2] = {lines[first.row], lines[first.row + 8]};
    const line *cols = lines + EDGE + first.col;
    int lowest = cols[0].exponent;
    int highest = cols[0].exponent;
    bool is_certain = true;
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 4) {
        const line col_lines[2] = {cols[i * 2], cols[i * 2 + 1]};
        lowest = min(lowest, min(col_lines[0].exponent, col_lines[1].exponent));
        highest = max(highest, max(col_lines[0].exponent, col_lines[1].exponent));
#pragma unroll
        for (unsigned down = 0; down < 2; down++) {
            float x[2];
#pragma unroll
            for (unsigned j = 0; j < 2; j++) {
                const float sum = sums[i + 2 * down + j];
                is_certain = is_certain && fabsf(sum) >= mm_fp32_least(rows[down], col_lines[j]);
                x[j] = sum * mm_fp32_power_of_two(rows[down].exponent + col_lines[j].exponent);
            }
            float *to = destination.to[down] + i * 2;
            if (TWO && i * 2 < destination.cols[down])
                *reinterpret_cast<float2 *>(to) = {x[0], x[1]};
            if (!TWO && i * 2 < destination.cols[down])
                to[0] = x[0];
            if (!TWO && i * 2 + 1 < destination.cols[down])
                to[1] = x[1];
        }
    }
    lowest += min(rows[0].exponent, rows[1].exponent);
    highest += max(rows[0].exponent, rows[1].exponent);
    return is_certain && lowest >= MM_FP32_POWER_MIN && highest <= MM_FP32_POWER_MAX;
}

/* The epilogue of a tile: judges the scaled sums and stores them. */
__device__ __forceinline__ void epilogue(const mm_fp32_plan &plan, const shared &shared, pipeline_state &at,
                                         const tile &tile, const float (&sums)[SUMS]) {
    const mm_matrix &c = plan.product.c;
    const unsigned set = at.tiles_done % 2;
    const line *lines = shared.own.lines[set];
    const fragment_position first = fragment_position_of(0);
    const destination destination = destination_of(c, tile, first);
    const bool by_two = c.ld % 2 == 0 && c.cols % 2 == 0 && reinterpret_cast<size_t>(c.data) % 8 == 0;
    mm_barrier_wait(&shared.own.lines_full[set], at.tiles_done / 2 % 2);
    const bool is_done = by_two ? epilogue_fast<true>(sums, lines, first, destination)
                                : epilogue_fast<false>(sums, lines, first, destination);
    if (!is_done) {
        store(sums, sums_at(plan.flushed, blockIdx.x));
        __threadfence_block(); /* not needed: each thread reads back only its own stores */
        epilogue_slow(plan, lines, tile);
    }
    mm_warpgroup_sync(warpgroup_barrier()); /* all threads have read the lines */
    if (my_thread() == 0)
        mm_barrier_arrive(&shared.own.lines_empty[set]);
    at.tiles_done++;
}

__device__ void consume(const mm_fp32_plan &plan, const shared &shared, tile_scheduler scheduler) {
    pipeline_state at = {0, 0, 0};
    float sums[SUMS];
    for (work_tile next; next_work_tile(plan, scheduler, next);) {
        compute(plan, shared, next, at, sums);
        if (next.begin > 0) {
            publish_partial(plan, sums);
            continue;
        }
        if (next.end < plan.steps)
            fix_up(plan, next, sums);
        epilogue(plan, shared, at, tile_of(plan, next.cluster_tile), sums);
    }
}

/* Consumers get more registers than the 168 that each thread starts with: a thread holds 96 sums and 96 wgmma
 * results. setmaxnreg waits for ever if it asks for more than were released. */
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ mm_fp32_plan plan) {
    extern __shared__ __align__(ALIGNMENT) unsigned char dynamic[];
    __shared__ static_shared own;
    const shared shared = {own, dynamic};
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < STAGES; stage++) {
            mm_barrier_init(&shared.own.full[stage], 1);
            mm_barrier_init(&shared.own.empty[stage], CONSUMERS * CLUSTER);
        }
        for (unsigned set = 0; set < 2; set++) {
            mm_barrier_init(&shared.own.lines_full[set], PREPARING_THREADS);
            mm_barrier_init(&shared.own.lines_empty[set], CONSUMERS);
        }
        mm_barriers_init_fence();
    }
    __syncwarp(); /* barrier.cluster is .aligned: whole warps arrive */
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    mm_cluster_sync(); /* the barriers of both blocks are initialised */
    if (mm_fp32_is_unsplit(plan))
        return; /* all blocks do */
    if (threadIdx.x < GROUP) {
        static_assert(GROUP * 24 + CONSUMERS * GROUP * 240 <= THREADS * 168, "the registers that there are");
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0)
            produce(plan, shared, scheduler_of(plan));
        else if (threadIdx.x >= PREPARING_FIRST)
            prepare_lines(plan, shared, scheduler_of(plan));
        __syncwarp(); /* the idle lanes of warp 0 wait for the copying thread */
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(plan, shared, scheduler_of(plan));
    }
    mm_cluster_sync(); /* the other block may still copy to this one, or arrive at its barriers */
}

} // namespace

const void *const mm_fp32_product_kernel = reinterpret_cast<const void *>(product);
const size_t mm_fp32_product_shared_bytes = STAGES * STAGE_BYTES;
