/* fp32_tensor: products of float32 accuracy on Hopper's tensor cores, at four times the rate of cuBLAS's
 * float32 at 4096³ on an H200, all passes included.
 *
 * Each element is scaled by a power of two for its row of op(A) or column of op(B), and split into two
 * float16, x = high + low. The tensor cores add up three of the four products of halves; low·low is beneath
 * float32. Three things stand between that and float32's accuracy:
 *
 * 1. The tensor cores truncate. They cut each addend to multiples of 2^-25 of the largest, and the sum to 24
 * bits, so the error grows with k. So every 64 of k the sum is added to one in registers by ordinary
 * arithmetic, which rounds; after 8192 of k another one begins.
 *
 * 2. float16 has a least quantum, 2^-24: elements below 2^-16 of their row's largest lose bits of their low
 * half.
 *
 * 3. The tensor cores take the exponent of a subnormal float16 for -14, so its product may have all others of
 * its instruction cut (P. Xie and others, MMA-Sim, arXiv 2511.10909).
 *
 * So each element of C is held against a bound of its error, which guard.h derives. Elements that are not
 * certified are computed again in plain float32. If these are more than one in 256 (and more than 1024), or
 * the operands have Inf or NaN, `simt` computes all. The reply tells the path.
 *
 * Cost: both operands once more in device memory, padded to tiles; a pass that reads and writes them
 * (split.cu); one block a multiprocessor, 384 threads of up to 240 registers, 211 KiB of shared memory
 * (product.cu). Each kernel begins while the one before it ends, since small products are mostly launches.
 *
 * Source: H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
 * the FP32 theoretical peak performance" (2022), which also adds up outside of the tensor cores. The guard
 * is our own. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants/fp32_tensor/parts.h"
#include "gpu/cuda/variants/simt.h"
#include "gpu/cuda/variants.h"

const char *mm_cuda_fp32_tensor_missing(const struct mm_device *device) {
    return device->compute_capability == 90
               ? NULL
               : "its tensor core instructions are those of compute capability 9.0";
}

/* --- sizes --------------------------------------------------------------------------------------- */

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
        .steps = (unsigned)mm_size_divide_up(product->k, MM_FP32_STEP),
        .pair_rows = (unsigned)mm_size_divide_up(product->m, MM_FP32_CLUSTER * MM_FP32_EDGE),
        .pair_cols = (unsigned)mm_size_divide_up(product->n, MM_FP32_WIDE),
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

/* --- the workspace ------------------------------------------------------------------------------- */

/* Offsets; what has to be zeros comes first. */
struct offsets {
    size_t notes;
    size_t arrived;
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

static struct offsets offsets_of(const struct sizes *sizes, const struct mm_plan *simt) {
    const size_t sums_bytes = sizeof(float) * MM_FP32_SUMS * MM_FP32_COMPUTING;
    const size_t blocks = (size_t)sizes->clusters * MM_FP32_CLUSTER;
    const size_t lines = (size_t)sizes->m + sizes->n;
    const size_t line_bytes = (size_t)sizes->steps * 2 * MM_FP32_LINE_BYTES;
    struct offsets offsets = {.is_good = true};
    offsets.notes = cut(&offsets, 1, sizeof(struct mm_fp32_notes));
    offsets.arrived = cut(&offsets, blocks, 2 * sizeof(unsigned));
    offsets.most = cut(&offsets, lines, sizeof(unsigned));
    offsets.lost = cut(&offsets, lines, sizeof(unsigned long long));
    offsets.zeros = offsets.end;
    offsets.uncertain = cut(&offsets, sizes->uncertain_max, sizeof(struct mm_fp32_place));
    offsets.partial = cut(&offsets, blocks, sums_bytes);
    offsets.folded = cut(&offsets, blocks, sums_bytes);
    offsets.a = cut(&offsets, a_lines_of(sizes), line_bytes);
    offsets.b = cut(&offsets, b_lines_of(sizes), line_bytes);
    offsets.simt = cut(&offsets, 1, simt->workspace_bytes);
    return offsets;
}

/* --- the kernels' arguments ---------------------------------------------------------------------- */

struct work {
    struct mm_fp32_operand a;
    struct mm_fp32_operand b;
    struct mm_fp32_plan plan;
};

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
    plan->arrived = (unsigned *)(void *)(scratch + offsets->arrived);
    plan->notes = work->a.notes;
    plan->uncertain = (struct mm_fp32_place *)(void *)(scratch + offsets->uncertain);
    plan->uncertain_max = sizes->uncertain_max;
    plan->threshold = mm_fp32_threshold(sizes->k);
}

/* --- the launch ---------------------------------------------------------------------------------- */

static struct mm_layout layout_of(const void *kernel, unsigned threads, size_t shared_bytes) {
    return (struct mm_layout){.kernel = kernel,
                              .threads_x = threads,
                              .threads_y = 1,
                              .follows = true,
                              .dynamic_shared_bytes = shared_bytes};
}

static struct mm_layout product_layout(void) {
    return layout_of(mm_fp32_product_kernel, MM_FP32_PRODUCT_THREADS, mm_fp32_product_shared_bytes);
}

static struct mm_layout scan_layout(void) {
    struct mm_layout layout = layout_of(mm_fp32_scan_kernel, MM_FP32_SPLIT_THREADS, 0);
    layout.follows = false; /* it is the first */
    return layout;
}

static struct mm_layout split_layout(void) {
    return layout_of(mm_fp32_split_kernel, MM_FP32_SPLIT_THREADS, 0);
}

static struct mm_layout repair_layout(void) {
    return layout_of(mm_fp32_repair_kernel, MM_FP32_REPAIR_THREADS, 0);
}

static enum mm_status clear(const struct offsets *offsets, struct mm_lane *lane, struct mm_error *error) {
    const cudaError_t code = cudaMemsetAsync(lane->scratch, 0, offsets->zeros, lane->stream);
    return mm_cuda_status(lane->device, code, "clearing the workspace", error);
}

static enum mm_status split(struct work *work, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout scan = scan_layout();
    const struct mm_layout rest = split_layout();
    unsigned of_a = mm_fp32_scan_blocks(&work->a);
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
    const struct mm_layout product = product_layout();
    const struct mm_layout repair = repair_layout();
    const unsigned repairing = REPAIRING * lane->device->head.multiprocessors;
    void *arguments[] = {&work->plan, &lane->path};
    const enum mm_status status = mm_cuda_enqueue(
        &product, (dim3){work->plan.clusters * MM_FP32_CLUSTER, 1, 1}, arguments, lane, error);
    if (status != MM_OK)
        return status;
    return mm_cuda_enqueue(&repair, (dim3){repairing, 1, 1}, arguments, lane, error);
}

/* How `simt` computes the same product, if the device finds that it must. */
static struct mm_plan simt_plan_of(const struct mm_product *product, const struct mm_plan *plan) {
    struct mm_plan simt = {.device = plan->device, .variant = plan->variant};
    (void)mm_cuda_simt(product, &simt, NULL); /* it takes every shape */
    return simt;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct mm_plan simt = simt_plan_of(product, plan);
    const struct sizes sizes = sizes_of(product, plan->device);
    const struct offsets offsets = offsets_of(&sizes, &simt);
    struct work work = {.plan.product = *product};
    unsigned char *workspace = lane->scratch;
    place_operands(&work, &sizes, &offsets, workspace);
    place_plan(&work, &sizes, &offsets, workspace);
    enum mm_status status = clear(&offsets, lane, error);
    if (status == MM_OK)
        status = split(&work, lane, error);
    if (status == MM_OK)
        status = multiply(&work, lane, error);
    if (status == MM_OK)
        status = mm_cuda_simt_enqueue(&simt, product, lane, workspace + offsets.simt,
                                      &work.plan.notes->fallback, error);
    return status;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout layouts[] = {scan_layout(), split_layout(), plan->layout, repair_layout()};
    enum mm_status status = MM_OK;
    for (size_t index = 0; index < sizeof layouts / sizeof layouts[0] && status == MM_OK; index++)
        status = mm_cuda_load(&layouts[index], lane, error);
    const struct mm_plan simt = simt_plan_of(product, plan);
    return status == MM_OK ? mm_cuda_simt_prepare(&simt, product, lane, error) : status;
}

/* Lines are padded to whole tiles, and k to whole steps: for a few vectors that would be many times as
 * much. */
static bool is_mostly_padding(const struct mm_product *product, const struct offsets *offsets) {
    enum { TIMES_MAX = 8, BYTES_ANYWAY = 256 << 20 };
    const size_t operands = mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b);
    const size_t padded = offsets->simt - offsets->a;
    return padded > BYTES_ANYWAY && padded / TIMES_MAX > operands;
}

static enum mm_status launch_simt(const struct mm_plan *plan, const struct mm_product *product,
                                  struct mm_lane *lane, struct mm_error *error) {
    *lane->path = (struct mm_path){.kind = MM_PATH_SIMT};
    return mm_cuda_simt_enqueue(plan, product, lane, lane->scratch, NULL, error);
}

/* simt computes a product without depth, and one whose halves have no memory. */
enum mm_status mm_cuda_fp32_tensor(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    const struct mm_plan simt = simt_plan_of(product, plan);
    const struct sizes sizes = sizes_of(product, plan->device);
    const struct offsets offsets = offsets_of(&sizes, &simt);
    if (plan->is_frugal || product->k == 0 || !offsets.is_good || is_mostly_padding(product, &offsets)) {
        const enum mm_status status = mm_cuda_simt(product, plan, error);
        plan->launch = launch_simt;
        return status;
    }
    plan->launch = launch;
    plan->prepare = prepare;
    plan->layout = product_layout();
    plan->workspace_bytes = offsets.end;
    return MM_OK;
}
