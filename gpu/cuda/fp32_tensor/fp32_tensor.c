/* fp32_tensor: products of float32 accuracy on Hopper's tensor cores, at four times the rate of cuBLAS's
 * float32 at 4096³ on an H200, all passes included (0.671 against 2.70 ms, `./dev bench kernels`).
 *
 * The idea: an element is split into two float16, x = high + low, once its row of op(A) or column of op(B) is
 * scaled by a power of two. Three of the four products of halves are added up by the tensor cores; low·low is
 * beneath float32. Two things stand between that and float32's accuracy, as measured by
 * tests/kernels/accumulator (H200, 2026-11-22).
 *
 * The first is that the tensor cores cut off. Sixteen products and the sum so far are added at once, each cut
 * to multiples of 2^-25 of the power of two in the largest of them; the sum is cut, not rounded, to 24 bits.
 * So the error grows with k, and with one sign: of U(0,1), 1.9e-7 at k = 64, 1.1e-6 at 256, 2.4e-5 at 4096.
 * Hence the sum is taken out every 64 of k, and added to one in registers by ordinary arithmetic, which
 * rounds: then it is 2.2e-7 at 4096. Every 16 would have 2.1e-7 there, and every 128 4.7e-7; at k = 131072
 * every 16 has 1.2e-6, 64 and 128 have 6.4e-7 and 6.1e-7, of many additions. So a sum of more than 8192 of k
 * is laid aside, and another begun.
 *
 * The second is that float16 has a least quantum, 2^-24. With its row's largest element in [2^13, 2^14), an
 * element below 2^-16 of that loses bits of its low half, which matters where nothing larger meets it. That
 * is not to be seen in the operands (U(-1,1) has such elements), so the result is judged.
 *
 * The guard. Let u = 2^-24, P = |op(A)|·|op(B)|, all in scaled units. What splitting leaves is
 * d = x - high - low. Where low is a normal float16, |d| <= 2^-23·|x| = 2u·|x|; for both operands together
 * with low·low (2^-22 = 4u) that is 8u·P. What is more is summed up over a row of op(A), Da, and a column of
 * op(B), Db: E = (1 + 2^-10)·(bmax·Da + amax·Db) bounds what it costs an element of C; the factor is for the
 * part of low·low that rounding up a low half adds. The tensor cores cost, for a step of t = min(k, 64) and
 * its w = ceil(t/16) instructions of high·high: u/2·P for each product that is cut, and 2.5u·P for each sum
 * that is, as one of the seventeen and at the end; those of the small products are 2^-11 of that, taken for
 * u/2. Adding up s = ceil(k/64) steps costs (s - 1)·u·P. Together |C - R| <= E + c·u·P with
 * c = 8.5 + t/2 + 2.5w + (s - 1). The contract grants (2k + 16)·u·P, so that E may be as large as
 * (2k + 16 - c)·u·P. P is not known, but P >= |R| >= |C| - E - c·u·P, so that it suffices if
 *
 *     |C| >= E·(1 + (1 + c·u) / ((2k + 16 - c)·u)),
 *
 * which the end of each tile judges for each element, rounding up. 2k + 16 - c is positive for every k. Who
 * is not certified is computed again in plain float32. Where these are more than one in 256 (and more than
 * 1024), or the operands have Inf or NaN, `simt` computes all. The reply tells the path.
 *
 * What it costs: both operands once more in the device's memory, padded to tiles (where that is short of it,
 * simt computes all); a pass that reads and
 * writes them; one block a multiprocessor, 384 threads of up to 240 registers, 211 KiB of shared memory. The
 * kernel is in product.cu, the pass before it in split.cu. Where there is little to do the kernels' starts
 * take most of the time, 29 µs for 228×240 · 240×112; so each begins while the one before it ends.
 *
 * Splitting float32 into two float16 for tensor cores is H. Ootomo's and R. Yokota's "Recovering single
 * precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance" (2022), which
 * adds up outside of the tensor cores as well. The guard is our own. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/fp32_tensor/parts.h"
#include "gpu/cuda/simt.h"
#include "gpu/cuda/variants.h"

const char *mm_cuda_fp32_tensor_missing(const struct mm_device *device) {
    return device->compute_capability == 90
               ? NULL
               : "its tensor core instructions are those of compute capability 9.0";
}

static unsigned divide_up(size_t number, unsigned by) {
    return (unsigned)((number + by - 1) / by);
}

/* --- how much there is to do -------------------------------------------------------------------------------
 */

struct sizes {
    unsigned m;
    unsigned n;
    unsigned k;
    unsigned steps;
    unsigned pair_rows;
    unsigned pair_cols;
    unsigned clusters;
    unsigned uncertain_max;
};

/* One element in 256 is cheaper to compute again than all. */
static unsigned uncertain_max(const struct mm_product *product) {
    enum { LEAST = 1024, MOST = 1 << 24 };
    const size_t many = product->m * product->n / 256;
    return (unsigned)(many < LEAST ? LEAST : many > MOST ? MOST : many);
}

/* As many as the device has room for, but none without steps enough to be worth it. */
static unsigned clusters_of(size_t pairs, unsigned steps, const struct mm_device *device) {
    const size_t parts = steps < 2 * MM_FP32_SHARE_MIN ? pairs : pairs * (steps / MM_FP32_SHARE_MIN);
    const unsigned room = device->multiprocessors / MM_FP32_CLUSTER;
    return parts < room ? (unsigned)parts : room;
}

static struct sizes sizes_of(const struct mm_product *product, const struct mm_device *device) {
    struct sizes sizes = {
        .m = (unsigned)product->m,
        .n = (unsigned)product->n,
        .k = (unsigned)product->k,
        .steps = divide_up(product->k, MM_FP32_STEP),
        .pair_rows = divide_up(product->m, MM_FP32_CLUSTER * MM_FP32_EDGE),
        .pair_cols = divide_up(product->n, MM_FP32_WIDE),
        .uncertain_max = uncertain_max(product),
    };
    sizes.clusters = clusters_of((size_t)sizes.pair_rows * sizes.pair_cols, sizes.steps, device);
    return sizes;
}

/* Lines of op(A) and op(B) with what is padding. */
static size_t a_lines_of(const struct sizes *sizes) {
    return (size_t)sizes->pair_rows * MM_FP32_CLUSTER * MM_FP32_EDGE;
}

static size_t b_lines_of(const struct sizes *sizes) {
    return (size_t)sizes->pair_cols * MM_FP32_WIDE;
}

/* --- where everything lies in the scratch memory
 * ------------------------------------------------------------ */

/* Offsets; what has to be zeros comes first. */
struct offsets {
    size_t notes;
    size_t told;
    size_t most;
    size_t lost;
    size_t zeros; /* where they end */
    size_t uncertain;
    size_t partial;
    size_t folded;
    size_t a;
    size_t b;
    size_t simt;
    size_t end;
    bool is_good; /* all of it fits a size_t */
};

/* Begins a piece behind the others. */
static size_t cut(struct offsets *offsets, size_t count, size_t each) {
    enum { ALIGNMENT = 256 };
    const size_t begin = offsets->end;
    size_t bytes = 0;
    offsets->is_good = offsets->is_good && !__builtin_mul_overflow(count, each, &bytes) &&
                       mm_size_add(offsets->end, bytes, &offsets->end) &&
                       mm_size_add(offsets->end, ALIGNMENT - 1, &offsets->end);
    offsets->end = offsets->end / ALIGNMENT * ALIGNMENT;
    return begin;
}

static struct offsets offsets_of(const struct sizes *sizes, const struct mm_product *product,
                                 const struct mm_lane *lane) {
    const size_t sums_bytes = sizeof(float) * MM_FP32_SUMS * MM_FP32_COMPUTING;
    const size_t blocks = (size_t)sizes->clusters * MM_FP32_CLUSTER;
    const size_t lines = (size_t)sizes->m + sizes->n;
    const size_t line_bytes = (size_t)sizes->steps * 2 * MM_FP32_LINE_BYTES;
    struct offsets offsets = {.is_good = true};
    offsets.notes = cut(&offsets, 1, sizeof(struct mm_fp32_notes));
    offsets.told = cut(&offsets, blocks, 2 * sizeof(unsigned));
    offsets.most = cut(&offsets, lines, sizeof(unsigned));
    offsets.lost = cut(&offsets, lines, sizeof(unsigned long long));
    offsets.zeros = offsets.end;
    offsets.uncertain = cut(&offsets, sizes->uncertain_max, sizeof(struct mm_fp32_place));
    offsets.partial = cut(&offsets, blocks, sums_bytes);
    offsets.folded = cut(&offsets, blocks, sums_bytes);
    offsets.a = cut(&offsets, a_lines_of(sizes), line_bytes);
    offsets.b = cut(&offsets, b_lines_of(sizes), line_bytes);
    offsets.simt = cut(&offsets, 1, mm_cuda_simt_layout(product, lane).scratch_bytes);
    return offsets;
}

/* --- what the kernels are told
 * ------------------------------------------------------------------------------ */

struct work {
    struct mm_fp32_operand a;
    struct mm_fp32_operand b;
    struct mm_fp32_plan plan;
};

/* The factor of E, and 2^-22 more, for its own rounding. */
static float threshold_of(const struct sizes *sizes) {
    const double unit = 0x1p-24;
    const unsigned depth = sizes->k < MM_FP32_STEP ? sizes->k : MM_FP32_STEP;
    const double c = 8.5 + depth / 2.0 + 2.5 * divide_up(depth, 16) + (sizes->steps - 1.0);
    const double slack = (2.0 * sizes->k + 16.0 - c) * unit;
    return (float)((1.0 + 0x1p-10) * (1.0 + (1.0 + c * unit) / slack) * (1.0 + 0x1p-22));
}

static void place_operands(struct work *work, const struct sizes *sizes, const struct offsets *offsets,
                           unsigned char *scratch) {
    const struct mm_product *product = &work->plan.product;
    unsigned *most = (unsigned *)(void *)(scratch + offsets->most);
    unsigned long long *lost = (unsigned long long *)(void *)(scratch + offsets->lost);
    const struct mm_fp32_operand both = {.k = sizes->k,
                                         .steps = sizes->steps,
                                         .notes = (struct mm_fp32_notes *)(void *)(scratch + offsets->notes)};
    work->a = work->b = both;
    work->a.from = product->a.data;
    work->a.ld = product->a.ld;
    work->a.lines = sizes->m;
    work->a.padded = (unsigned)a_lines_of(sizes);
    work->a.tile_lines = MM_FP32_EDGE;
    work->a.along = !product->transpose_a;
    work->a.tiles = scratch + offsets->a;
    work->a.most = most;
    work->a.lost = lost;
    work->b.from = product->b.data;
    work->b.ld = product->b.ld;
    work->b.lines = sizes->n;
    work->b.padded = (unsigned)b_lines_of(sizes);
    work->b.tile_lines = MM_FP32_WIDE;
    work->b.along = product->transpose_b;
    work->b.tiles = scratch + offsets->b;
    work->b.most = most + sizes->m;
    work->b.lost = lost + sizes->m;
}

static void place_plan(struct work *work, const struct sizes *sizes, const struct offsets *offsets,
                       unsigned char *scratch) {
    struct mm_fp32_plan *plan = &work->plan;
    const unsigned pairs = sizes->pair_rows * sizes->pair_cols;
    plan->a = work->a.tiles;
    plan->b = work->b.tiles;
    plan->most_a = work->a.most;
    plan->most_b = work->b.most;
    plan->lost_a = work->a.lost;
    plan->lost_b = work->b.lost;
    plan->steps = sizes->steps;
    plan->pair_rows = sizes->pair_rows;
    plan->pair_cols = sizes->pair_cols;
    plan->clusters = sizes->clusters;
    plan->whole_pairs = pairs / sizes->clusters * sizes->clusters;
    plan->share = (pairs - plan->whole_pairs) * sizes->steps / sizes->clusters;
    plan->longer_shares = (pairs - plan->whole_pairs) * sizes->steps % sizes->clusters;
    plan->partial = (float *)(void *)(scratch + offsets->partial);
    plan->folded = (float *)(void *)(scratch + offsets->folded);
    plan->told = (unsigned *)(void *)(scratch + offsets->told);
    plan->notes = work->a.notes;
    plan->uncertain = (struct mm_fp32_place *)(void *)(scratch + offsets->uncertain);
    plan->uncertain_max = sizes->uncertain_max;
    plan->threshold = threshold_of(sizes);
}

/* --- the launch
 * --------------------------------------------------------------------------------------------- */

static struct mm_cuda_layout layout_of(const void *kernel, unsigned threads, size_t shared_bytes) {
    return (struct mm_cuda_layout){.kernel = kernel,
                                   .block_rows = MM_FP32_EDGE,
                                   .block_cols = MM_FP32_WIDE,
                                   .threads_x = threads,
                                   .threads_y = 1,
                                   .follows = true,
                                   .dynamic_shared_bytes = shared_bytes};
}

static struct mm_cuda_layout product_layout(void) {
    return layout_of(mm_fp32_product_kernel, MM_FP32_PRODUCT_THREADS, mm_fp32_product_shared_bytes);
}

static enum mm_status clear(const struct offsets *offsets, struct mm_lane *lane, struct mm_error *error) {
    if (lane->purpose != MM_CUDA_RUN)
        return MM_OK;
    const cudaError_t code = cudaMemsetAsync(lane->scratch, 0, offsets->zeros, lane->stream);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "clearing scratch memory", error);
    return MM_OK;
}

static enum mm_status split(struct work *work, struct mm_lane *lane, struct mm_error *error) {
    struct mm_cuda_layout scan = layout_of(mm_fp32_scan_kernel, MM_FP32_SPLIT_THREADS, 0);
    const struct mm_cuda_layout rest = layout_of(mm_fp32_split_kernel, MM_FP32_SPLIT_THREADS, 0);
    unsigned of_a = mm_fp32_scan_blocks(&work->a);
    scan.follows = false;
    void *arguments[] = {&work->a, &work->b, &of_a};
    unsigned blocks = of_a + mm_fp32_scan_blocks(&work->b);
    const enum mm_status status = mm_cuda_enqueue(&scan, (dim3){blocks, 1, 1}, arguments, lane, error);
    if (status != MM_OK)
        return status;
    of_a = mm_fp32_split_blocks(&work->a);
    blocks = of_a + mm_fp32_split_blocks(&work->b);
    if (blocks == 0)
        return MM_OK;
    return mm_cuda_enqueue(&rest, (dim3){blocks, 1, 1}, arguments, lane, error);
}

static enum mm_status multiply(struct work *work, struct mm_lane *lane, struct mm_error *error) {
    enum { REPAIRING = 4 }; /* blocks a multiprocessor, which cost little where there is nothing to do */
    const struct mm_cuda_layout product = product_layout();
    const struct mm_cuda_layout repair = layout_of(mm_fp32_repair_kernel, MM_FP32_REPAIR_THREADS, 0);
    const unsigned repairing = REPAIRING * lane->device->head.multiprocessors;
    void *arguments[] = {&work->plan, &lane->path};
    const enum mm_status status = mm_cuda_enqueue(
        &product, (dim3){work->plan.clusters * MM_FP32_CLUSTER, 1, 1}, arguments, lane, error);
    if (status != MM_OK)
        return status;
    return mm_cuda_enqueue(&repair, (dim3){repairing, 1, 1}, arguments, lane, error);
}

static enum mm_status enqueue(const struct mm_product *product, const struct sizes *sizes,
                              const struct offsets *offsets, struct mm_lane *lane, struct mm_error *error) {
    struct work work = {.plan.product = *product};
    unsigned char *scratch = lane->scratch;
    place_operands(&work, sizes, offsets, scratch);
    place_plan(&work, sizes, offsets, scratch);
    enum mm_status status = clear(offsets, lane, error);
    if (status == MM_OK)
        status = split(&work, lane, error);
    if (status == MM_OK)
        status = multiply(&work, lane, error);
    if (status == MM_OK)
        status =
            mm_cuda_simt_enqueue(product, lane, scratch + offsets->simt, &work.plan.notes->fallback, error);
    return status;
}

/* Lines are padded to whole tiles, and k to whole steps. Of a few vectors that would make many times as much.
 */
static bool is_mostly_padding(const struct mm_product *product, const struct offsets *offsets) {
    enum { TIMES_MAX = 8, BYTES_ANYWAY = 256 << 20 };
    const size_t operands = mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b);
    const size_t padded = offsets->simt - offsets->a;
    return padded > BYTES_ANYWAY && padded / TIMES_MAX > operands;
}

/* simt alone, from its own layout to its path. */
static enum mm_status leave_to_simt(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    if (lane->purpose == MM_CUDA_RUN)
        *lane->path = (struct mm_path){.kind = MM_PATH_SIMT};
    return mm_cuda_simt(product, lane, error);
}

/* Without depth there is nothing to split. */
enum mm_status mm_cuda_fp32_tensor(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error) {
    const enum mm_status status = mm_cuda_judge_dimensions(product, error);
    if (status != MM_OK)
        return status;
    if (product->k == 0)
        return leave_to_simt(product, lane, error);
    const struct sizes sizes = sizes_of(product, &lane->device->head);
    const struct offsets offsets = offsets_of(&sizes, product, lane);
    if (!offsets.is_good || is_mostly_padding(product, &offsets))
        return leave_to_simt(product, lane, error);
    if (lane->purpose == MM_CUDA_RUN && lane->scratch_bytes < offsets.end)
        return leave_to_simt(product, lane, error);
    if (lane->purpose != MM_CUDA_DESCRIBE)
        return enqueue(product, &sizes, &offsets, lane, error);
    lane->noted = product_layout();
    lane->noted.scratch_bytes = offsets.end;
    lane->noted.scratch_saved_bytes = offsets.end - mm_cuda_simt_layout(product, lane).scratch_bytes;
    return MM_OK;
}
