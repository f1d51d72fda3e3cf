/* fp32_tensor's product of two split operands. A block has three warpgroups. The first produces: one thread
 * copies slabs into five stages in shared memory as they become free, and three warps prepare what the
 * epilogue of a tile needs of its rows and columns. The other two warpgroups consume: each computes 64×192 of
 * C.
 *
 * A step is 64 of k: twelve products on the tensor cores, the small ones, low·high and high·low, before
 * high·high, so that little is cut off them. Then their sum is added to one in the threads' registers. While
 * one warpgroup does that, the other keeps the tensor cores busy.
 *
 * Two blocks of a cluster compute tiles below each other. Each has its own rows of op(A) copied, and one half
 * of the columns of op(B), to both. That saves 30% of the L2 traffic, and power, which limits the clock of an
 * H200 at 4096³. So a tile is 192 wide rather than 128: shared memory is read less for each product.
 *
 * Stream-K: whole tiles go round the clusters; the steps of the rest are shared evenly, and the cluster
 * that does a tile's first steps adds up the partial sums of the others (fix-up). */
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
constexpr unsigned GROUP = 128; /* threads of a warpgroup */
constexpr unsigned COMPUTING = MM_FP32_COMPUTING / GROUP;
constexpr unsigned ROWS = EDGE / COMPUTING; /* of C, that a warpgroup computes */

constexpr unsigned STAGES = 5; /* slabs of both operands under way */
constexpr unsigned A_BYTES = EDGE * MM_FP32_LINE_BYTES;
constexpr unsigned B_BYTES = WIDE * MM_FP32_LINE_BYTES;
constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned ALIGNMENT = 1024; /* of the stages, that the tensor cores want */

using line = mm_fp32_line;

/* A block's shared memory without the stages: their addresses are constants. */
struct small {
    line lines[2][EDGE + WIDE]; /* of two tiles in turn: their rows, their columns behind them */
    uint64_t full[STAGES];      /* barriers: the stage's bytes have come */
    uint64_t empty[STAGES];     /* all that read it are through, in both blocks */
    uint64_t lines_full[2];
    uint64_t lines_empty[2];
};

struct shared {
    small &own;
    unsigned char *stages; /* STAGE_BYTES each: A's slab, B's behind it */
};

/* --- which cluster computes what ----------------------------------------------------------------- */

/* Steps of a pair of tiles, from begin to end. */
struct work {
    unsigned pair;
    unsigned begin;
    unsigned end;
};

/* Where the cluster's part of the shared steps begins. For the number of clusters: where all parts end. No
 * part has less than MIN steps of a tile. */
__device__ unsigned part_of(const mm_fp32_plan &plan, unsigned cluster) {
    constexpr unsigned MIN = MM_FP32_SHARE_MIN;
    const unsigned part = cluster * plan.share + min(cluster, plan.longer_shares);
    const unsigned within = part % plan.steps;
    if (within < MIN)
        return part - within;
    return plan.steps - within < MIN ? part - within + plan.steps : part;
}

__device__ __forceinline__ unsigned my_cluster() {
    return blockIdx.x / CLUSTER;
}

__device__ __forceinline__ unsigned my_rank() {
    return blockIdx.x % CLUSTER;
}

/* A cluster's works, one after the other. Fewer pairs are shared than there are clusters, so an unsigned
 * counts their steps. */
struct works {
    unsigned pair; /* the next whole one */
    unsigned at;   /* of the steps that are shared */
    unsigned end;
};

__device__ works works_of(const mm_fp32_plan &plan) {
    return {my_cluster(), part_of(plan, my_cluster()), part_of(plan, my_cluster() + 1)};
}

__device__ bool next_work(const mm_fp32_plan &plan, works &all, work &next) {
    if (all.pair < plan.whole_pairs) {
        next = {all.pair, 0, plan.steps};
        all.pair += plan.clusters;
        return true;
    }
    if (all.at >= all.end)
        return false;
    next.pair = plan.whole_pairs + all.at / plan.steps;
    next.begin = all.at % plan.steps;
    next.end = min(next.begin + (all.end - all.at), plan.steps);
    all.at += next.end - next.begin;
    return true;
}

/* A block's tile of C. */
struct tile {
    unsigned row;
    unsigned col;
};

/* Pairs go in groups of four rows, so clusters that run at the same time read the same operands. */
__device__ tile tile_of(const mm_fp32_plan &plan, unsigned pair) {
    constexpr unsigned HEIGHT = 4;
    const unsigned group = pair / (HEIGHT * plan.pair_cols);
    const unsigned within = pair % (HEIGHT * plan.pair_cols);
    const unsigned height = min(HEIGHT, plan.pair_rows - group * HEIGHT);
    return {(group * HEIGHT + within % height) * CLUSTER + my_rank(), within / height};
}

/* --- the producer warpgroup ---------------------------------------------------------------------- */

/* The thread that copies. */
__device__ void produce(const mm_fp32_plan &plan, const shared &shared, works all) {
    constexpr unsigned SHARE = B_BYTES / CLUSTER;
    constexpr uint16_t BOTH = 3;
    unsigned stage = 0;
    unsigned round = 0;
    for (work next; next_work(plan, all, next);) {
        const tile tile = tile_of(plan, next.pair);
        const size_t slabs = 2 * static_cast<size_t>(plan.steps);
        const unsigned char *a = plan.a + (tile.row * slabs + 2 * next.begin) * A_BYTES;
        const unsigned char *b = plan.b + (tile.col * slabs + 2 * next.begin) * B_BYTES + my_rank() * SHARE;
        for (unsigned slab = 2 * next.begin; slab < 2 * next.end; slab++, a += A_BYTES, b += B_BYTES) {
            unsigned char *to = shared.stages + stage * STAGE_BYTES;
            if (round > 0)
                mm_barrier_wait(&shared.own.empty[stage], (round - 1) % 2);
            mm_barrier_expect(&shared.own.full[stage], STAGE_BYTES);
            mm_bulk_copy(to, a, A_BYTES, &shared.own.full[stage]);
            mm_bulk_copy_to_all(to + A_BYTES + my_rank() * SHARE, b, SHARE, &shared.own.full[stage], BOTH);
            if (++stage == STAGES) {
                stage = 0;
                round++;
            }
        }
    }
}

constexpr unsigned FIRST_WARP = 32; /* has the thread that copies */
constexpr unsigned PREPARING = GROUP - FIRST_WARP;

/* The line as the epilogue needs it; past the last one that of zeros, which are certain. */
__device__ __forceinline__ line line_at(const unsigned *most, const unsigned long long *lost, unsigned index,
                                        size_t count, float factor) {
    return index < count ? mm_fp32_line_of(most[index], lost[index], factor) : mm_fp32_line_of(0, 0, factor);
}

/* The other warps of the producer. */
__device__ void prepare_lines(const mm_fp32_plan &plan, const shared &shared, works all) {
    unsigned count = 0;
    for (work next; next_work(plan, all, next);) {
        if (next.begin > 0)
            continue; /* another cluster ends the tile */
        const tile tile = tile_of(plan, next.pair);
        const unsigned set = count % 2;
        if (count >= 2)
            mm_barrier_wait(&shared.own.lines_empty[set], (count / 2 - 1) % 2);
        for (unsigned i = threadIdx.x - FIRST_WARP; i < EDGE; i += PREPARING)
            shared.own.lines[set][i] =
                line_at(plan.most_a, plan.lost_a, tile.row * EDGE + i, plan.product.m, plan.threshold);
        for (unsigned i = threadIdx.x - FIRST_WARP; i < WIDE; i += PREPARING)
            shared.own.lines[set][EDGE + i] =
                line_at(plan.most_b, plan.lost_b, tile.col * WIDE + i, plan.product.n, 1.0f);
        mm_barrier_arrive(&shared.own.lines_full[set]);
        count++;
    }
}

/* --- the consumer warpgroups --------------------------------------------------------------------- */

/* A thread's warpgroup among those that compute, and its place there. */
__device__ __forceinline__ unsigned my_group() {
    return threadIdx.x / GROUP - 1;
}

__device__ __forceinline__ unsigned my_thread() {
    return threadIdx.x % GROUP;
}

/* How far it has come. */
struct progress {
    unsigned stage;
    unsigned parity; /* of the stage's phase */
    unsigned ends;   /* tiles that it has ended */
};

__device__ __forceinline__ unsigned wait_for_slab(const shared &shared, progress &at) {
    const unsigned stage = at.stage;
    mm_barrier_wait(&shared.own.full[stage], at.parity);
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
    return stage;
}

/* Both blocks fill the stage. */
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
    const uint64_t a[2] = {mm_wgmma_operand(slabs[0] + row), mm_wgmma_operand(slabs[1] + row)};
    const uint64_t b[2] = {mm_wgmma_operand(slabs[0] + A_BYTES), mm_wgmma_operand(slabs[1] + A_BYTES)};
    mm_wgmma_fence();
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
    mm_wgmma_hold(d);
}

/* A warpgroup's sums in memory: neighbouring threads' fours are neighbours. */
__device__ __forceinline__ float4 *sums_at(float *memory, unsigned block) {
    return reinterpret_cast<float4 *>(memory) + (block * COMPUTING + my_group()) * (SUMS / 4 * GROUP) +
           my_thread();
}

__device__ __forceinline__ void store(const float (&sums)[SUMS], float4 *to) {
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 4)
        to[i / 4 * GROUP] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
}

/* Past the L1 cache, which does not know what other multiprocessors write. */
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

/* Adds up the steps. A long sum is stored from time to time, so that no step is added to a far larger sum. */
__device__ __forceinline__ void compute(const mm_fp32_plan &plan, const shared &shared, const work &work,
                                        progress &at, float (&sums)[SUMS]) {
    float d[SUMS];
    bool is_folded = false;
    clear(sums);
    for (unsigned step = work.begin, since = 0; step < work.end; step++, since++) {
        if (since == MM_FP32_FOLD_STEPS) {
            float4 *stored = sums_at(plan.folded, blockIdx.x);
            if (is_folded)
                add(sums, stored);
            store(sums, stored);
            clear(sums);
            is_folded = true;
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
    if (is_folded)
        add(sums, sums_at(plan.folded, blockIdx.x));
}

__device__ __forceinline__ unsigned my_barrier() {
    return 1 + my_group();
}

/* Stores partial sums for another cluster. All threads have written before one arrives. */
__device__ __forceinline__ void publish_partial(const mm_fp32_plan &plan, const float (&sums)[SUMS]) {
    store(sums, sums_at(plan.partial, blockIdx.x));
    __threadfence();
    mm_warpgroup_sync(my_barrier());
    if (my_thread() == 0)
        asm volatile(
            "st.release.gpu.global.u32 [%0], 1;" ::"l"(&plan.arrived[blockIdx.x * COMPUTING + my_group()])
            : "memory");
}

/* Adds the partial sums of another block: one thread waits, then all read. The other block makes them
 * first, waiting for nobody. It may not have begun if other kernels hold multiprocessors. But blocks begin
 * in the order of their index, so only the last cluster of a grid that has begun can wait for one that has
 * not; all others end and make room for it, and there are fewer streams than clusters. */
__device__ __forceinline__ void add_partial(const mm_fp32_plan &plan, unsigned block, float (&sums)[SUMS]) {
    if (my_thread() == 0) {
        unsigned arrived = 0;
        while (arrived == 0)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(arrived)
                         : "l"(&plan.arrived[block * COMPUTING + my_group()])
                         : "memory");
    }
    mm_warpgroup_sync(my_barrier());
    add(sums, sums_at(plan.partial, block));
}

/* The later steps of a tile whose first this cluster did, from the clusters behind it, in order. */
__device__ __forceinline__ void fix_up(const mm_fp32_plan &plan, const work &work, float (&sums)[SUMS]) {
    const unsigned end = (work.pair - plan.whole_pairs + 1) * plan.steps;
    for (unsigned other = my_cluster() + 1; other < plan.clusters && part_of(plan, other) < end; other++)
        if (part_of(plan, other) < part_of(plan, other + 1))
            add_partial(plan, other * CLUSTER + my_rank(), sums);
}

__device__ __forceinline__ void note_uncertain(const mm_fp32_plan &plan, unsigned row, unsigned col) {
    if (*static_cast<volatile unsigned *>(&plan.notes->uncertain) > plan.uncertain_max)
        return; /* all will be computed again */
    const unsigned index = atomicAdd(&plan.notes->uncertain, 1u);
    if (index < plan.uncertain_max)
        plan.uncertain[index] = {row, col};
}

/* Where a thread's sums lie in its warpgroup's part of a tile: by twos along a row, the next two 8 rows
 * below, and so on every 8 columns. */
struct spot {
    unsigned row;
    unsigned col;
};

__device__ __forceinline__ spot spot_of(unsigned index) {
    const unsigned lane = my_thread() % 32;
    return {my_group() * ROWS + my_thread() / 32 * 16 + lane / 4 + index / 2 % 2 * 8,
            lane % 4 * 2 + index / 4 * 8 + index % 2};
}

/* The slow epilogue, for the few threads that need it: elements that are not certain, and scales that no
 * float holds. It reads the sums from memory, so the loop need not be unrolled. */
__device__ __forceinline__ void end_slowly(const mm_fp32_plan &plan, const line *lines, const tile &tile) {
    const mm_product &product = plan.product;
    const float *stored = reinterpret_cast<const float *>(sums_at(plan.folded, blockIdx.x));
#pragma unroll 1
    for (unsigned i = 0; i < SUMS; i++) {
        const spot spot = spot_of(i);
        const unsigned row = tile.row * EDGE + spot.row;
        const unsigned col = tile.col * WIDE + spot.col;
        const line &of_row = lines[spot.row];
        const line &of_col = lines[EDGE + spot.col];
        const float sum = __ldcg(&stored[i / 4 * (4 * GROUP) + i % 4]);
        if (row >= product.m || col >= product.n)
            continue;
        static_cast<float *>(product.c.data)[row * product.c.ld + col] =
            mm_fp32_unscaled(sum, of_row.exponent + of_col.exponent);
        if (!(fabsf(sum) >= mm_fp32_least(of_row, of_col)))
            note_uncertain(plan, row, col);
    }
}

/* Where a thread's first sums of its two rows go in C, and how many columns are left from there; 0 for
 * rows past C. */
struct corner {
    float *to[2];
    unsigned cols[2];
};

__device__ __forceinline__ corner corner_of(const mm_matrix &c, const tile &tile, const spot &first) {
    const unsigned row = tile.row * EDGE + first.row;
    const unsigned col = tile.col * WIDE + first.col;
    const unsigned left = col < c.cols ? static_cast<unsigned>(c.cols) - col : 0;
    float *to = static_cast<float *>(c.data) + row * c.ld + col;
    return {{to, to + 8 * c.ld}, {row < c.rows ? left : 0, row + 8 < c.rows ? left : 0}};
}

/* The fast epilogue: stores the sums without their scale, two at a time if `TWO`. Returns whether all were
 * certain and every scale is a float. The code is as long as there are sums, so each instruction counts:
 * fetching it takes longer than running it. */
template <bool TWO>
__device__ __forceinline__ bool end_quickly(const float (&sums)[SUMS], const line *lines, const spot &first,
                                            const corner &corner) {
    const line rows[2] = {lines[first.row], lines[first.row + 8]};
    const line *cols = lines + EDGE + first.col;
    int lowest = cols[0].exponent;
    int highest = cols[0].exponent;
    bool is_certain = true;
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 4) {
        const line pair[2] = {cols[i * 2], cols[i * 2 + 1]};
        lowest = min(lowest, min(pair[0].exponent, pair[1].exponent));
        highest = max(highest, max(pair[0].exponent, pair[1].exponent));
#pragma unroll
        for (unsigned down = 0; down < 2; down++) {
            float x[2];
#pragma unroll
            for (unsigned j = 0; j < 2; j++) {
                const float sum = sums[i + 2 * down + j];
                is_certain = is_certain && fabsf(sum) >= mm_fp32_least(rows[down], pair[j]);
                x[j] = sum * mm_fp32_power(rows[down].exponent + pair[j].exponent);
            }
            float *to = corner.to[down] + i * 2;
            if (TWO && i * 2 < corner.cols[down])
                *reinterpret_cast<float2 *>(to) = {x[0], x[1]};
            if (!TWO && i * 2 < corner.cols[down])
                to[0] = x[0];
            if (!TWO && i * 2 + 1 < corner.cols[down])
                to[1] = x[1];
        }
    }
    lowest += min(rows[0].exponent, rows[1].exponent);
    highest += max(rows[0].exponent, rows[1].exponent);
    return is_certain && lowest >= MM_FP32_POWER_MIN && highest <= MM_FP32_POWER_MAX;
}

/* The epilogue of a tile: judges the scaled sums and stores them. */
__device__ __forceinline__ void end_tile(const mm_fp32_plan &plan, const shared &shared, progress &at,
                                         const tile &tile, const float (&sums)[SUMS]) {
    const mm_matrix &c = plan.product.c;
    const unsigned set = at.ends % 2;
    const line *lines = shared.own.lines[set];
    const spot first = spot_of(0);
    const corner corner = corner_of(c, tile, first);
    const bool by_two = c.ld % 2 == 0 && c.cols % 2 == 0 && reinterpret_cast<size_t>(c.data) % 8 == 0;
    mm_barrier_wait(&shared.own.lines_full[set], at.ends / 2 % 2);
    const bool is_over = by_two ? end_quickly<true>(sums, lines, first, corner)
                                : end_quickly<false>(sums, lines, first, corner);
    if (!is_over) {
        store(sums, sums_at(plan.folded, blockIdx.x));
        __threadfence_block(); /* what it reads there it reads past the L1 cache */
        end_slowly(plan, lines, tile);
    }
    mm_warpgroup_sync(my_barrier()); /* all have read the lines */
    if (my_thread() == 0)
        mm_barrier_arrive(&shared.own.lines_empty[set]);
    at.ends++;
}

__device__ void consume(const mm_fp32_plan &plan, const shared &shared, works all) {
    progress at = {0, 0, 0};
    float sums[SUMS];
    for (work next; next_work(plan, all, next);) {
        compute(plan, shared, next, at, sums);
        if (next.begin > 0) {
            publish_partial(plan, sums);
            continue;
        }
        if (next.end < plan.steps)
            fix_up(plan, next, sums);
        end_tile(plan, shared, at, tile_of(plan, next.pair), sums);
    }
}

/* The registers of a block are redistributed: a consumer thread holds its sums and the tensor cores'. The
 * block has 168 for each thread; asking for more than others have released waits for ever. */
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ mm_fp32_plan plan) {
    extern __shared__ __align__(ALIGNMENT) unsigned char dynamic[];
    __shared__ small own;
    const shared shared = {own, dynamic};
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < STAGES; stage++) {
            mm_barrier_init(&shared.own.full[stage], 1);
            mm_barrier_init(&shared.own.empty[stage], COMPUTING * CLUSTER);
        }
        for (unsigned set = 0; set < 2; set++) {
            mm_barrier_init(&shared.own.lines_full[set], PREPARING);
            mm_barrier_init(&shared.own.lines_empty[set], COMPUTING);
        }
        mm_barriers_made();
    }
    __syncwarp();
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    mm_cluster_sync(); /* before that nobody may arrive at a barrier */
    if (plan.notes->fallback != 0)
        return; /* of all blocks alike */
    if (threadIdx.x < GROUP) {
        static_assert(GROUP * 24 + COMPUTING * GROUP * 240 <= THREADS * 168, "the registers that there are");
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0)
            produce(plan, shared, works_of(plan));
        else if (threadIdx.x >= FIRST_WARP)
            prepare_lines(plan, shared, works_of(plan));
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(plan, shared, works_of(plan));
    }
    mm_cluster_sync(); /* the other may still copy to this block, or arrive here */
}

} // namespace

const void *const mm_fp32_product_kernel = reinterpret_cast<const void *>(product);
const size_t mm_fp32_product_shared_bytes = STAGES * STAGE_BYTES;
