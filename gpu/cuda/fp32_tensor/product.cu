/* fp32_tensor's product of two split operands. A block has three warpgroups. The first feeds: one thread has
 * slabs copied into five places in shared memory as they become free, and three warps work out what the end
 * of a tile needs of its rows and columns. The others compute, each 64×192 of C.
 *
 * A step is 64 of k: twelve products on the tensor cores, which add up by themselves; the small ones,
 * low·high and high·low, come before high·high, so that little is cut off them. Then their sum is added to
 * one in the threads' registers. While one warpgroup does that, the other keeps the tensor cores busy.
 *
 * Two blocks of a cluster compute tiles below each other. Each has its own rows of op(A) copied, and one half
 * of the columns of op(B), to both. That takes a quarter off the traffic with the L2 cache, and power, for
 * want of which the clock of an H200 (700 W) fell from 1.98 to 1.5 GHz under drafts of this kernel. So a tile
 * is 192 wide rather than 128: shared memory is read less for each product (drafts at 8192³: 4.37
 * against 4.66 ms). Two sets of sums for the tensor cores, so that a warpgroup need not wait for its own,
 * gained 1% there.
 *
 * What it loses to those drafts it loses at the end of a tile, thousands of instructions that judge and
 * store, which have to be fetched for each tile. */
#include "gpu/cuda/fp32_tensor/hopper.cuh"
#include "gpu/cuda/fp32_tensor/parts.h"
#include "gpu/cuda/fp32_tensor/scale.cuh"

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
constexpr unsigned ALIGNMENT = 1024; /* that the tensor cores want */

/* What the end of a tile needs of a line: its share of the guard, and what its scale was. */
struct alignas(16) line {
    float lost;
    float most;
    int exponent;
};

struct shared {
    unsigned char *stages; /* STAGE_BYTES each: A's slab, B's behind it */
    uint64_t *full;        /* of each stage: its bytes have come */
    uint64_t *empty;       /* of each stage: all that read it are through, in both blocks */
    line (*lines)[EDGE + WIDE];
    uint64_t *lines_full; /* of either set of lines */
    uint64_t *lines_empty;
};

/* --- who computes what -------------------------------------------------------------------------------------
 */

/* Steps of a pair of tiles, from begin to end. */
struct work {
    unsigned pair;
    unsigned begin;
    unsigned end;
};

/* Where the cluster's part of the steps begins that are shared; that of the one past the last is the end.
 * Less than MIN steps of a tile are no one's part. */
__device__ unsigned long long part_of(const mm_fp32_plan &plan, unsigned cluster) {
    constexpr unsigned MIN = MM_FP32_SHARE_MIN;
    const unsigned pairs = plan.pair_rows * plan.pair_cols - plan.whole_pairs;
    const unsigned long long steps = static_cast<unsigned long long>(pairs) * plan.steps;
    const unsigned long long part = steps * cluster / plan.clusters;
    const unsigned within = static_cast<unsigned>(part % plan.steps);
    if (within < MIN)
        return part - within;
    return plan.steps - within < MIN ? part - within + plan.steps : part;
}

/* A cluster's works, one after the other. */
struct works {
    unsigned pair; /* the next whole one */
    unsigned long long at;
    unsigned long long end;
};

__device__ works works_of(const mm_fp32_plan &plan, unsigned cluster) {
    return {cluster, part_of(plan, cluster), part_of(plan, cluster + 1)};
}

__device__ bool take(const mm_fp32_plan &plan, works &all, work &next) {
    if (all.pair < plan.whole_pairs) {
        next = {all.pair, 0, plan.steps};
        all.pair += plan.clusters;
        return true;
    }
    if (all.at >= all.end)
        return false;
    next.pair = plan.whole_pairs + static_cast<unsigned>(all.at / plan.steps);
    next.begin = static_cast<unsigned>(all.at % plan.steps);
    const unsigned long long left = all.end - all.at;
    next.end = left < plan.steps - next.begin ? next.begin + static_cast<unsigned>(left) : plan.steps;
    all.at += next.end - next.begin;
    return true;
}

/* A block's tile of C. */
struct tile {
    unsigned row;
    unsigned col;
};

/* Pairs are taken in groups of four rows, so that clusters which are at work at the same time share what they
 * read. */
__device__ tile tile_of(const mm_fp32_plan &plan, unsigned pair, unsigned rank) {
    constexpr unsigned HEIGHT = 4;
    const unsigned group = pair / (HEIGHT * plan.pair_cols);
    const unsigned within = pair % (HEIGHT * plan.pair_cols);
    const unsigned height = min(HEIGHT, plan.pair_rows - group * HEIGHT);
    return {(group * HEIGHT + within % height) * CLUSTER + rank, within / height};
}

/* --- the first warpgroup -----------------------------------------------------------------------------------
 */

/* Its thread that copies. */
__device__ void feed(const mm_fp32_plan &plan, const shared &shared, works all, unsigned rank) {
    constexpr unsigned SHARE = B_BYTES / CLUSTER;
    constexpr uint16_t BOTH = 3;
    unsigned stage = 0;
    unsigned round = 0;
    for (work next; take(plan, all, next);) {
        const tile tile = tile_of(plan, next.pair, rank);
        const size_t slabs = 2 * static_cast<size_t>(plan.steps);
        const unsigned char *a = plan.a + (tile.row * slabs + 2 * next.begin) * A_BYTES;
        const unsigned char *b = plan.b + (tile.col * slabs + 2 * next.begin) * B_BYTES + rank * SHARE;
        for (unsigned slab = 2 * next.begin; slab < 2 * next.end; slab++, a += A_BYTES, b += B_BYTES) {
            unsigned char *to = shared.stages + stage * STAGE_BYTES;
            if (round > 0)
                mm_barrier_wait(&shared.empty[stage], (round - 1) % 2);
            mm_barrier_expect(&shared.full[stage], STAGE_BYTES);
            mm_bulk_copy(to, a, A_BYTES, &shared.full[stage]);
            mm_bulk_copy_to_all(to + A_BYTES + rank * SHARE, b, SHARE, &shared.full[stage], BOTH);
            if (++stage == STAGES) {
                stage = 0;
                round++;
            }
        }
    }
}

/* Rounded up, where that is on the safe side. A line's share of the bound is what it lost times the other's
 * largest, and the other way round; A's side has the guard's factors. */
__device__ line line_of(unsigned most, unsigned long long lost, float factor) {
    const int exponent = mm_fp32_exponent(most);
    line line;
    line.lost = __fmul_ru(__fmul_ru(__ull2float_ru(lost), MM_FP32_LOST_UNIT), factor);
    line.most = __fmul_ru(mm_fp32_unscaled(__uint_as_float(most), -exponent), factor);
    line.exponent = exponent;
    return line;
}

constexpr unsigned FIRST_WARP = 32; /* is left to the thread that copies */
constexpr unsigned DESCRIBING = GROUP - FIRST_WARP;

/* Its other warps. Past the edges of C lines are as the last, and nothing comes of them. */
__device__ void describe(const mm_fp32_plan &plan, const shared &shared, works all, unsigned rank) {
    const unsigned last_row = static_cast<unsigned>(plan.product.m) - 1;
    const unsigned last_col = static_cast<unsigned>(plan.product.n) - 1;
    unsigned count = 0;
    for (work next; take(plan, all, next);) {
        if (next.begin > 0)
            continue; /* others end it */
        const tile tile = tile_of(plan, next.pair, rank);
        const unsigned set = count % 2;
        if (count >= 2)
            mm_barrier_wait(&shared.lines_empty[set], (count / 2 - 1) % 2);
        for (unsigned i = threadIdx.x - FIRST_WARP; i < EDGE; i += DESCRIBING) {
            const unsigned row = min(tile.row * EDGE + i, last_row);
            shared.lines[set][i] = line_of(plan.most_a[row], plan.lost_a[row], plan.threshold);
        }
        for (unsigned i = threadIdx.x - FIRST_WARP; i < WIDE; i += DESCRIBING) {
            const unsigned col = min(tile.col * WIDE + i, last_col);
            shared.lines[set][EDGE + i] = line_of(plan.most_b[col], plan.lost_b[col], 1.0f);
        }
        mm_barrier_arrive(&shared.lines_full[set]);
        count++;
    }
}

/* --- the others --------------------------------------------------------------------------------------------
 */

/* Where a thread that computes stands. */
struct place {
    unsigned group;  /* among those that compute */
    unsigned thread; /* in it */
    unsigned stage;
    unsigned parity; /* of the stage's phase */
    unsigned ends;   /* tiles that it has ended */
};

__device__ __forceinline__ unsigned wait_for_slab(const shared &shared, place &at) {
    const unsigned stage = at.stage;
    mm_barrier_wait(&shared.full[stage], at.parity);
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
    return stage;
}

/* Both blocks fill the stage. */
__device__ __forceinline__ void leave(const shared &shared, const place &at, unsigned stage) {
    if (at.thread < CLUSTER)
        mm_barrier_arrive_at(&shared.empty[stage], at.thread);
}

/* d = the products of 64 of k. */
__device__ __forceinline__ void multiply(float (&d)[SUMS], const shared &shared, const place &at,
                                         unsigned first, unsigned second) {
    constexpr unsigned HIGH = 0; /* in units of 16 bytes, along a line */
    constexpr unsigned LOW = MM_FP32_LINE_BYTES / 2 / 16;
    constexpr unsigned NEXT = 2; /* 16 of k */
    const unsigned row = at.group * ROWS * MM_FP32_LINE_BYTES;
    const unsigned char *slabs[2] = {shared.stages + first * STAGE_BYTES,
                                     shared.stages + second * STAGE_BYTES};
    const uint64_t a[2] = {mm_wgmma_operand(slabs[0] + row), mm_wgmma_operand(slabs[1] + row)};
    const uint64_t b[2] = {mm_wgmma_operand(slabs[0] + A_BYTES), mm_wgmma_operand(slabs[1] + A_BYTES)};
    mm_wgmma_hold(d);
    mm_wgmma_fence();
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned k = i % 2 * NEXT;
        mm_wgmma(d, a[i / 2] + LOW + k, b[i / 2] + HIGH + k, i > 0);
        mm_wgmma(d, a[i / 2] + HIGH + k, b[i / 2] + LOW + k, true);
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned k = i % 2 * NEXT;
        mm_wgmma(d, a[i / 2] + HIGH + k, b[i / 2] + HIGH + k, true);
    }
    mm_wgmma_commit();
    mm_wgmma_wait();
    mm_wgmma_hold(d);
}

/* A warpgroup's sums in memory: neighbouring threads' fours are neighbours. */
__device__ __forceinline__ float4 *sums_at(float *memory, unsigned block, const place &at) {
    return reinterpret_cast<float4 *>(memory) + (block * COMPUTING + at.group) * (SUMS / 4 * GROUP) +
           at.thread;
}

__device__ __forceinline__ void lay(const float (&sums)[SUMS], float4 *to) {
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

/* Adds up the steps. A long sum is laid aside from time to time, so that what is added never is small beside
 * it by far. */
__device__ __forceinline__ void compute(const mm_fp32_plan &plan, const shared &shared, const work &work,
                                        place &at, float (&sums)[SUMS]) {
    float d[SUMS];
    bool is_folded = false;
    clear(sums);
    for (unsigned step = work.begin, since = 0; step < work.end; step++, since++) {
        if (since == MM_FP32_FOLD_STEPS) {
            float4 *aside = sums_at(plan.folded, blockIdx.x, at);
            if (is_folded)
                add(sums, aside);
            lay(sums, aside);
            clear(sums);
            is_folded = true;
            since = 0;
        }
        const unsigned first = wait_for_slab(shared, at);
        const unsigned second = wait_for_slab(shared, at);
        multiply(d, shared, at, first, second);
        leave(shared, at, first);
        leave(shared, at, second);
#pragma unroll
        for (unsigned i = 0; i < SUMS; i++)
            sums[i] += d[i];
    }
    if (is_folded)
        add(sums, sums_at(plan.folded, blockIdx.x, at));
}

__device__ __forceinline__ unsigned barrier_of(const place &at) {
    return 1 + at.group;
}

/* All threads have written before one tells it. */
__device__ __forceinline__ void tell(const mm_fp32_plan &plan, const place &at, const float (&sums)[SUMS]) {
    lay(sums, sums_at(plan.partial, blockIdx.x, at));
    __threadfence();
    mm_warpgroup_sync(barrier_of(at));
    if (at.thread == 0)
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(&plan.told[blockIdx.x * COMPUTING + at.group])
                     : "memory");
}

/* One waits, and all read after it. The other's partial sums are the first thing that it makes, waiting for
 * nobody. It may not have begun, where other kernels hold multiprocessors. But blocks begin in the order of
 * their index, so that of a grid only the last cluster that has begun can wait for one that has not; all
 * others end, and make room for it, and there are fewer lanes than clusters. */
__device__ __forceinline__ void hear(const mm_fp32_plan &plan, const place &at, unsigned block,
                                     float (&sums)[SUMS]) {
    if (at.thread == 0) {
        unsigned told = 0;
        while (told == 0)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(told)
                         : "l"(&plan.told[block * COMPUTING + at.group])
                         : "memory");
    }
    mm_warpgroup_sync(barrier_of(at));
    add(sums, sums_at(plan.partial, block, at));
}

/* The later steps of a tile whose first this cluster did, from the clusters behind it, in order. */
__device__ __forceinline__ void hear_all(const mm_fp32_plan &plan, const work &work, const place &at,
                                         unsigned cluster, unsigned rank, float (&sums)[SUMS]) {
    const unsigned long long end =
        static_cast<unsigned long long>(work.pair - plan.whole_pairs + 1) * plan.steps;
    for (unsigned other = cluster + 1; other < plan.clusters && part_of(plan, other) < end; other++)
        if (part_of(plan, other) < part_of(plan, other + 1))
            hear(plan, at, other * CLUSTER + rank, sums);
}

__device__ __forceinline__ void note_uncertain(const mm_fp32_plan &plan, unsigned row, unsigned col) {
    if (*static_cast<volatile unsigned *>(&plan.notes->uncertain) > plan.uncertain_max)
        return; /* all will be computed again */
    const unsigned index = atomicAdd(&plan.notes->uncertain, 1u);
    if (index < plan.uncertain_max)
        plan.uncertain[index] = {row, col};
}

/* A thread's sums lie by twos along a row: in rows `lane / 4` and 8 below, columns `lane % 4 · 2`, and so on
 * every 8 columns. They are judged as they are, and stored without their scale. */
__device__ __forceinline__ void end_tile(const mm_fp32_plan &plan, const shared &shared, place &at,
                                         const tile &tile, const float (&sums)[SUMS]) {
    const mm_matrix &c = plan.product.c;
    const unsigned lane = at.thread % 32;
    const unsigned row_within = at.group * ROWS + at.thread / 32 * 16 + lane / 4;
    const unsigned col_within = lane % 4 * 2;
    const unsigned set = at.ends % 2;
    const bool wide = c.ld % 2 == 0 && reinterpret_cast<size_t>(c.data) % sizeof(float2) == 0;
    mm_barrier_wait(&shared.lines_full[set], at.ends / 2 % 2);
    const line *rows = &shared.lines[set][row_within];
    const line *cols = &shared.lines[set][EDGE + col_within];
#pragma unroll
    for (unsigned i = 0; i < SUMS; i += 2) {
        const unsigned down = i / 2 % 2 * 8;
        const unsigned across = i / 4 * 8;
        const unsigned row = tile.row * EDGE + row_within + down;
        const unsigned col = tile.col * WIDE + col_within + across;
        const line of_row = rows[down];
        float x[2];
#pragma unroll
        for (unsigned j = 0; j < 2; j++) {
            const line of_col = cols[across + j];
            const float least = __fmaf_ru(of_row.lost, of_col.most, __fmul_ru(of_row.most, of_col.lost));
            x[j] = mm_fp32_unscaled(sums[i + j], of_row.exponent + of_col.exponent);
            if (!(fabsf(sums[i + j]) >= least) && row < plan.product.m && col + j < plan.product.n)
                note_uncertain(plan, row, col + j);
        }
        float *to = static_cast<float *>(c.data) + row * c.ld + col;
        if (row >= plan.product.m || col >= plan.product.n)
            continue;
        if (wide && col + 1 < plan.product.n)
            *reinterpret_cast<float2 *>(to) = {x[0], x[1]};
        else {
            to[0] = x[0];
            if (col + 1 < plan.product.n)
                to[1] = x[1];
        }
    }
    mm_warpgroup_sync(barrier_of(at)); /* all have read the lines before one tells it */
    if (at.thread == 0)
        mm_barrier_arrive(&shared.lines_empty[set]);
    at.ends++;
}

__device__ void compute_all(const mm_fp32_plan &plan, const shared &shared, works all, unsigned cluster,
                            unsigned rank) {
    place at = {threadIdx.x / GROUP - 1, threadIdx.x % GROUP, 0, 0, 0};
    float sums[SUMS];
    for (work next; take(plan, all, next);) {
        compute(plan, shared, next, at, sums);
        if (next.begin > 0) {
            tell(plan, at, sums);
            continue;
        }
        if (next.end < plan.steps)
            hear_all(plan, next, at, cluster, rank, sums);
        end_tile(plan, shared, at, tile_of(plan, next.pair, rank), sums);
    }
}

/* The registers of a block are dealt anew: a thread that computes has its sums and the tensor cores' to keep.
 */
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ mm_fp32_plan plan) {
    extern __shared__ unsigned char dynamic[];
    __shared__ uint64_t barriers[2 * STAGES + 4];
    __shared__ line lines[2][EDGE + WIDE];
    if (plan.notes->fallback != 0)
        return; /* of all blocks alike */
    unsigned char *aligned = dynamic + (ALIGNMENT - mm_shared_address(dynamic) % ALIGNMENT) % ALIGNMENT;
    const shared shared = {
        aligned, barriers, barriers + STAGES, lines, barriers + 2 * STAGES, barriers + 2 * STAGES + 2};
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < STAGES; stage++) {
            mm_barrier_init(&shared.full[stage], 1);
            mm_barrier_init(&shared.empty[stage], COMPUTING * CLUSTER);
        }
        for (unsigned set = 0; set < 2; set++) {
            mm_barrier_init(&shared.lines_full[set], DESCRIBING);
            mm_barrier_init(&shared.lines_empty[set], COMPUTING);
        }
        mm_barriers_made();
    }
    mm_cluster_sync(); /* before that no one may arrive at a barrier */
    const unsigned rank = mm_cluster_rank();
    const unsigned cluster = blockIdx.x / CLUSTER;
    if (threadIdx.x < GROUP) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            feed(plan, shared, works_of(plan, cluster), rank);
        else if (threadIdx.x >= FIRST_WARP)
            describe(plan, shared, works_of(plan, cluster), rank);
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        compute_all(plan, shared, works_of(plan, cluster), cluster, rank);
    }
    mm_cluster_sync(); /* the other may still copy to this block, or arrive here */
}

} // namespace

const void *const mm_fp32_product_kernel = reinterpret_cast<const void *>(product);
const size_t mm_fp32_product_shared_bytes = STAGES * STAGE_BYTES + ALIGNMENT;
