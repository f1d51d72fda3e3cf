/* The kernel that multiplies two split operands. A block has a producer warpgroup and two consumer
 * warpgroups. One thread of the producer loads slabs into a ring of five stages by TMA. Three warps of the
 * producer prepare what the epilogue needs of rows and columns. Each consumer computes 64×192 of C.
 *
 * A step multiplies 64 elements of k with twelve wgmma. The small products low·high and high·low come first,
 * before the sum is large, because wgmma truncates small addends of a large sum. The consumer then adds the
 * step's sums to float32 sums in registers, while the other consumer uses the tensor cores.
 *
 * The two blocks of a cluster compute tiles one below the other. Each block multicasts half of B's slab to
 * both blocks. This saves 30% of the L2 traffic, and also power, which limits an H200's clock at 4096³. */
/* ptxas: spills product: words that a tile needs only after the loop over its steps */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/epilogue.cuh"
#include "gpu/cuda/variants/fp32_tensor/plan.h"
#include "gpu/cuda/variants/wgmma/block.cuh"

namespace {

constexpr unsigned CLUSTER = MM_FP32_CLUSTER;
constexpr unsigned THREADS = MM_FP32_PRODUCT_THREADS;

constexpr unsigned PRODUCER_REGISTERS = 24; /* per thread; a consumer's thread has 240 */
constexpr unsigned STAGES = 5;              /* each stage has a slab of A and a slab of B */
constexpr unsigned A_BYTES = ROWS * MM_FP32_LINE_BYTES;
constexpr unsigned B_BYTES = COLS * MM_FP32_LINE_BYTES;
constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned ALIGNMENT = 1024; /* bytes; wgmma needs this alignment of stages */

using wgmma = mm_wgmma_float16::instruction<COLS, false, false>;

/* Static shared memory has compile-time addresses, unlike the stages. */
struct static_shared {
    line lines[2][ROWS + COLS]; /* data of two tiles: rows, then columns */
    mm_ring<STAGES> ring;
    uint64_t lines_full[2];  /* mbarriers: the lines are prepared */
    uint64_t lines_empty[2]; /* mbarriers: both consumers have read the lines */
    column_peaks peaks[2][PREPARING_WARPS];
    unsigned cluster; /* the cluster's number in the schedule; set in the cluster's first block */
};

struct shared {
    static_shared &own;
    unsigned char *stages; /* for each stage: A's slab, then B's slab */
};

/* --- which block computes what ------------------------------------------------------------------- */

__device__ __forceinline__ unsigned my_rank() {
    return blockIdx.x % CLUSTER;
}

/* Returns the block's index in partial.sums and `flushed`. `cluster` is the number of its cluster. */
__device__ __forceinline__ unsigned slot_of(unsigned cluster) {
    return cluster * CLUSTER + my_rank();
}

/* Returns the cluster's number in the schedule. Clusters get their numbers in the order in which they start,
 * the highest number first. A cluster waits only for partial sums of clusters with higher numbers. Those
 * clusters have started already and store partial sums before they wait, so no cluster waits for ever. */
__device__ __forceinline__ unsigned next_cluster(const mm_fp32_plan &plan) {
    return plan.schedule.clusters - 1 - atomicAdd(&plan.flags->tickets, 1u);
}

__device__ mm_tile tile_of(const mm_fp32_plan &plan, unsigned cluster_tile) {
    const mm_tile tile = mm_cluster_tile_of(plan.schedule, cluster_tile);
    return {tile.row * CLUSTER + my_rank(), tile.col};
}

/* --- the producer warpgroup ---------------------------------------------------------------------- */

/* Loads slabs. One thread of the producer runs this. */
__device__ void produce(const mm_fp32_plan &plan, const shared &shared, mm_tile_scheduler scheduler) {
    constexpr unsigned B_HALF_BYTES = B_BYTES / CLUSTER;
    constexpr uint16_t BOTH = 3;
    mm_ring_state at = {0, 0};
    for (mm_work_tile next; mm_next_work_tile(plan.schedule, scheduler, next);) {
        const mm_tile tile = tile_of(plan, next.cluster_tile);
        const size_t slabs = 2 * static_cast<size_t>(plan.schedule.steps);
        const unsigned char *a = plan.a + (tile.row * slabs + 2 * next.begin) * A_BYTES;
        const unsigned char *b =
            plan.b + (tile.col * slabs + 2 * next.begin) * B_BYTES + my_rank() * B_HALF_BYTES;
        for (unsigned slab = 2 * next.begin; slab < 2 * next.end; slab++, a += A_BYTES, b += B_BYTES) {
            const unsigned stage = mm_wait_empty(shared.own.ring, at);
            unsigned char *to = shared.stages + stage * STAGE_BYTES;
            /* STAGE_BYTES includes the half of B that the other block multicasts. That half may arrive before
             * this call, because the phase ends only after this thread has arrived. */
            mm_mbarrier_arrive_expect(&shared.own.ring.full[stage], STAGE_BYTES);
            mm_tma_load_bulk(to, a, A_BYTES, &shared.own.ring.full[stage]);
            mm_tma_load_bulk_multicast(to + A_BYTES + my_rank() * B_HALF_BYTES, b, B_HALF_BYTES,
                                       &shared.own.ring.full[stage], BOTH);
        }
    }
}

/* Returns a line for the epilogue. A line outside C counts as zeros, so its sums are certified. */
__device__ __forceinline__ line line_at(const unsigned *most, const unsigned long long *lost, unsigned index,
                                        size_t count, float factor) {
    return index < count ? mm_fp32_line_of(most[index], lost[index], factor) : mm_fp32_line_of(0, 0, factor);
}

/* Returns the largest x in the warp. No x may be negative. */
__device__ __forceinline__ float largest_of_warp(float x) {
    return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(x)));
}

/* Fetches the tile's part of the addend into the L2 cache, where the consumers will find it. */
__device__ void fetch_addend(const mm_product &product, const mm_tile &tile) {
    constexpr unsigned EACH = 128 / sizeof(float); /* elements of a cache line */
    const mm_matrix &addend = product.addend;
    if (!product.epilogue.is_set || addend.rows == 0 || product.transpose_addend)
        return;
#pragma unroll 1
    for (unsigned i = threadIdx.x - PREPARING_FIRST; i < ROWS * (COLS / EACH); i += PREPARING_THREADS) {
        const size_t row = size_t{tile.row} * ROWS + i % ROWS;
        const size_t col = size_t{tile.col} * COLS + i / ROWS * EACH;
        if (row < product.m && col < product.n)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const float *>(addend.data) +
                                                          row * addend.ld + col));
    }
}

/* Prepares each tile's rows and columns for the epilogue. Warps 1 to 3 of the producer run this. */
__device__ void prepare_lines(const mm_fp32_plan &plan, const shared &shared, mm_tile_scheduler scheduler) {
    unsigned count = 0;
    for (mm_work_tile next; mm_next_work_tile(plan.schedule, scheduler, next);) {
        if (next.begin > 0)
            continue; /* another cluster runs the epilogue of this tile */
        const mm_tile tile = tile_of(plan, next.cluster_tile);
        const unsigned set = count % 2;
        if (count >= 2)
            mm_mbarrier_wait(&shared.own.lines_empty[set], (count / 2 - 1) % 2);
        for (unsigned i = threadIdx.x - PREPARING_FIRST; i < ROWS; i += PREPARING_THREADS)
            shared.own.lines[set][i] =
                line_at(plan.max_a, plan.lost_a, tile.row * ROWS + i, plan.product.m, plan.threshold);
        column_peaks peaks = {0.0f, 0.0f};
        for (unsigned i = threadIdx.x - PREPARING_FIRST; i < COLS; i += PREPARING_THREADS) {
            const line col = line_at(plan.max_b, plan.lost_b, tile.col * COLS + i, plan.product.n, 1.0f);
            shared.own.lines[set][ROWS + i] = col;
            peaks.largest = fmaxf(peaks.largest, unscaled_up(col.largest, col.exponent));
            peaks.lost = fmaxf(peaks.lost, unscaled_up(col.lost, col.exponent));
        }
        peaks = {largest_of_warp(peaks.largest), largest_of_warp(peaks.lost)};
        if (threadIdx.x % 32 == 0)
            shared.own.peaks[set][threadIdx.x / 32 - 1] = peaks;
        mm_mbarrier_arrive(&shared.own.lines_full[set]);
        fetch_addend(plan.product, tile);
        count++;
    }
}

/* --- the consumer warpgroups --------------------------------------------------------------------- */

/* Sets d to the sums of a step. The step's two slabs are in stages `first` and `second`. */
__device__ __forceinline__ void multiply(float (&d)[SUMS], const shared &shared, unsigned first,
                                         unsigned second) {
    constexpr unsigned HIGH = 0; /* offsets of halves in a line, in units of 16 bytes */
    constexpr unsigned LOW = MM_FP32_LINE_BYTES / 2 / 16;
    constexpr unsigned NEXT = 2; /* offset of the next 16 elements of k */
    const unsigned row = mm_my_consumer() * MM_CONSUMER_ROWS * MM_FP32_LINE_BYTES;
    const unsigned char *slabs[2] = {shared.stages + first * STAGE_BYTES,
                                     shared.stages + second * STAGE_BYTES};
    const uint64_t a[2] = {mm_wgmma_descriptor<false>(slabs[0] + row),
                           mm_wgmma_descriptor<false>(slabs[1] + row)};
    const uint64_t b[2] = {mm_wgmma_descriptor<false>(slabs[0] + A_BYTES),
                           mm_wgmma_descriptor<false>(slabs[1] + A_BYTES)};
    mm_wgmma_fence(); /* orders the previous step's reads of d before wgmma */
    wgmma::begin(d, a[0] + LOW, b[0] + HIGH);
    wgmma::add(d, a[0] + HIGH, b[0] + LOW);
#pragma unroll
    for (unsigned i = 1; i < 4; i++) {
        const unsigned k = i % 2 * NEXT;
        wgmma::add(d, a[i / 2] + LOW + k, b[i / 2] + HIGH + k);
        wgmma::add(d, a[i / 2] + HIGH + k, b[i / 2] + LOW + k);
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned k = i % 2 * NEXT;
        wgmma::add(d, a[i / 2] + HIGH + k, b[i / 2] + HIGH + k);
    }
    mm_wgmma_commit();
    mm_wgmma_wait<0>();
    mm_wgmma_fence_registers(d);
}

__device__ __forceinline__ void clear(float (&sums)[SUMS]) {
#pragma unroll
    for (unsigned i = 0; i < SUMS; i++)
        sums[i] = 0.0f;
}

/* Adds up the steps of a tile. After every MM_FP32_FLUSH_STEPS steps, adds the sums to the workspace and
 * starts again at 0, so no step is added to a far larger sum. */
__device__ __forceinline__ void compute(const mm_fp32_plan &plan, const shared &shared, unsigned slot,
                                        const mm_work_tile &work_tile, mm_ring_state &at,
                                        float (&sums)[SUMS]) {
    float d[SUMS];
    bool is_flushed = false;
    clear(sums);
    for (unsigned step = work_tile.begin, since = 0; step < work_tile.end; step++, since++) {
        if (since == MM_FP32_FLUSH_STEPS) {
            mm_four_sums<float> *stored = mm_sums_at<SUMS>(plan.flushed, slot);
            if (is_flushed)
                mm_add_sums(sums, stored);
            mm_store_sums(sums, stored);
            clear(sums);
            is_flushed = true;
            since = 0;
        }
        const unsigned first = mm_wait_full(shared.own.ring, at);
        const unsigned second = mm_wait_full(shared.own.ring, at);
        multiply(d, shared, first, second);
        mm_release<CLUSTER>(shared.own.ring, first);
        mm_release<CLUSTER>(shared.own.ring, second);
#pragma unroll
        for (unsigned i = 0; i < SUMS; i++)
            sums[i] += d[i];
    }
    if (is_flushed)
        mm_add_sums<SUMS>(sums, mm_sums_at<SUMS>(plan.flushed, slot));
}

/* Stores partial sums for another cluster, and sets `ready` after all threads have stored them. */
__device__ __forceinline__ void publish(const mm_fp32_partial &partial, unsigned slot,
                                        const float (&sums)[SUMS]) {
    mm_store_sums(sums, mm_sums_at<SUMS>(partial.sums, slot));
    __threadfence();
    mm_consumer_sync();
    if (mm_my_thread() == 0)
        asm volatile(
            "st.release.gpu.global.u32 [%0], 1;" ::"l"(&partial.ready[slot * MM_CONSUMERS + mm_my_consumer()])
            : "memory");
}

/* Waits until another block has stored its partial sums, and adds them to `sums`. */
__device__ __forceinline__ void add_partial(const mm_fp32_partial &partial, unsigned slot,
                                            float (&sums)[SUMS]) {
    if (mm_my_thread() == 0) {
        const unsigned *flag = &partial.ready[slot * MM_CONSUMERS + mm_my_consumer()];
        unsigned ready = 0;
        while (ready == 0)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(flag) : "memory");
    }
    mm_consumer_sync();
    mm_add_sums(sums, mm_sums_at<SUMS>(partial.sums, slot));
}

/* Adds the partial sums of all clusters that computed later steps of the tile, in the order of steps. */
__device__ __forceinline__ void fix_up(const mm_fp32_plan &plan, unsigned cluster_tile, float (&sums)[SUMS]) {
    const mm_sharers sharers =
        mm_sharers_of(&plan.schedule, cluster_tile - plan.schedule.whole_cluster_tiles);
    for (unsigned cluster = sharers.first; cluster < sharers.end; cluster++)
        add_partial(plan.partial, slot_of(cluster), sums);
}

__device__ void consume(const mm_fp32_plan &plan, const shared &shared, mm_tile_scheduler scheduler) {
    mm_ring_state at = {0, 0};
    unsigned tiles_done = 0;
    float sums[SUMS];
    for (mm_work_tile next; mm_next_work_tile(plan.schedule, scheduler, next);) {
        const unsigned slot = slot_of(scheduler.cluster);
        compute(plan, shared, slot, next, at, sums);
        if (next.begin > 0) {
            publish(plan.partial, slot, sums);
            continue;
        }
        if (next.end < plan.schedule.steps)
            fix_up(plan, next.cluster_tile, sums);
        const unsigned set = tiles_done % 2;
        mm_mbarrier_wait(&shared.own.lines_full[set], tiles_done / 2 % 2);
        epilogue(plan, shared.own.lines[set], shared.own.peaks[set], slot, tile_of(plan, next.cluster_tile),
                 sums);
        mm_consumer_sync(); /* wait until all threads have read the lines */
        if (mm_my_thread() == 0)
            mm_mbarrier_arrive(&shared.own.lines_empty[set]);
        tiles_done++;
    }
}

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ mm_fp32_plan plan) {
    extern __shared__ __align__(ALIGNMENT) unsigned char dynamic[];
    __shared__ static_shared own;
    const shared shared = {own, dynamic};
    if (threadIdx.x == 0) {
        mm_ring_init(shared.own.ring, MM_CONSUMERS * CLUSTER);
        for (unsigned set = 0; set < 2; set++) {
            mm_mbarrier_init(&shared.own.lines_full[set], PREPARING_THREADS);
            mm_mbarrier_init(&shared.own.lines_empty[set], MM_CONSUMERS);
        }
        mm_mbarrier_init_fence();
        if (my_rank() == 0)
            shared.own.cluster = next_cluster(plan); /* needs no wait: only this kernel uses tickets */
    }
    __syncwarp(); /* mm_cluster_sync needs whole warps */
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    mm_cluster_sync(); /* the mbarriers of both blocks and the cluster's number must be set */
    if (mm_fp32_is_unsplit(plan))
        return; /* all blocks return here, so none waits for another */
    const mm_tile_scheduler scheduler = mm_scheduler_of(mm_cluster_load(&shared.own.cluster, 0));
    if (threadIdx.x < MM_WARPGROUP) {
        mm_release_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            produce(plan, shared, scheduler);
        else if (threadIdx.x >= PREPARING_FIRST)
            prepare_lines(plan, shared, scheduler);
        __syncwarp(); /* the idle lanes of warp 0 wait for the thread that uses TMA */
    } else {
        mm_acquire_registers<PRODUCER_REGISTERS>();
        consume(plan, shared, scheduler);
    }
    mm_cluster_sync(); /* wait, because the other block may still write to this block's shared memory */
}

} // namespace

const void *const mm_fp32_product_kernel = reinterpret_cast<const void *>(product);
const size_t mm_fp32_product_shared_bytes = STAGES * STAGE_BYTES;
