/* fp32_tensor computes products with float32 accuracy on Hopper's tensor cores. At 4096³ on an H200, all its
 * passes together are four times as fast as cuBLAS's float32.
 *
 * Each element is scaled by a power of two for its row of op(A) or column of op(B), and split into two
 * float16, x = high + low. The tensor cores add up three of the four products of halves, because low·low is
 * below float32's precision. Three properties of the hardware reduce the accuracy:
 * 1. The tensor cores truncate addends to multiples of 2^-25 of the largest addend, and the sum to 24 bits.
 * So after each 64 elements of k the kernel adds the tensor cores' sum to a float32 sum in registers, with
 * rounding. After 8192 elements of k it starts another float32 sum.
 * 2. The smallest positive float16 is 2^-24. So elements below 2^-17 of the largest element in their row or
 * column lose bits of the low half.
 * 3. The tensor cores treat a subnormal float16 as if its exponent were -14. So a tiny product of this
 * float16 may truncate the other products of the instruction (P. Xie and others, MMA-Sim, arXiv 2511.10909).
 *
 * Properties 2 and 3 are the cost of float16's limited range. guard.h bounds this cost for each element of C.
 * Elements whose error may exceed float32's bound are recomputed in plain float32. The variant `simt`
 * computes the whole product if there are too many such elements (uncertain_max), if the cost may exceed
 * 2^-23 of C's norm, or if an operand has Inf or NaN.
 *
 * Cost: a copy of both operands in device memory, padded to tiles, and a pass that makes the copy (split.cu).
 * From a stored operand's second product on, its copy is kept. A block of the product kernel (product.cu) has
 * 384 threads of up to 240 registers and 211 KiB of shared memory.
 *
 * Source: H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the
 * FP32 theoretical peak performance" (2022). The authors also add up sums outside the tensor cores. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/variants/fp32_tensor/plan.h"
#include "gpu/cuda/variants/simt.h"
#include "gpu/cuda/variants.h"

const char *mm_cuda_fp32_tensor_missing(const struct mm_device *device) {
    return device->compute_capability == 90
               ? NULL
               : "its tensor core instructions are those of compute capability 9.0";
}

struct sizes {
    unsigned m;
    unsigned n;
    unsigned k;
    struct mm_schedule schedule;
    unsigned uncertain_max;
};

/* Returns the largest number of elements that are recomputed one by one. Up to about 1/256 of the elements,
 * this is cheaper than the whole product with simt. */
static unsigned uncertain_max(const struct mm_product *product) {
    enum { LEAST = 1024, MOST = 1 << 24 };
    const size_t many = product->m * product->n / 256;
    return (unsigned)(many < LEAST ? LEAST : many > MOST ? MOST : many);
}

/* The time of the fix-up, in steps of 64 elements of k in the product kernel. Measured on an H100. */
static const struct mm_fix_up_cost fix_up = {.fixed = 3.0, .each = 1.3};

enum { CLUSTER_ROWS = MM_FP32_CLUSTER * MM_FP32_ROWS };

static struct sizes sizes_of(const struct mm_product *product, const struct mm_device *device) {
    const struct mm_product whole = mm_product_whole(product);
    const struct mm_schedule schedule = mm_schedule_of(1, (unsigned)mm_size_divide_up(whole.m, CLUSTER_ROWS),
                                                       (unsigned)mm_size_divide_up(whole.n, MM_FP32_COLS),
                                                       (unsigned)mm_size_divide_up(product->k, MM_FP32_STEP),
                                                       device->multiprocessors / MM_FP32_CLUSTER, &fix_up);
    return (struct sizes){.m = (unsigned)product->m,
                          .n = (unsigned)product->n,
                          .k = (unsigned)product->k,
                          .schedule = mm_schedule_share(&schedule, product, CLUSTER_ROWS, MM_FP32_COLS),
                          .uncertain_max = uncertain_max(&whole)};
}

/* Returns the rows of op(A), padding included. */
static size_t a_lines_of(const struct sizes *sizes) {
    return (size_t)sizes->schedule.cluster_tile_rows * CLUSTER_ROWS;
}

/* Returns the columns of op(B), padding included. */
static size_t b_lines_of(const struct sizes *sizes) {
    return (size_t)sizes->schedule.cluster_tile_cols * MM_FP32_COLS;
}

/* --- the workspace ------------------------------------------------------------------------------- */

/* Offsets in the workspace. The ranges that must be zeroed come first. */
struct offsets {
    size_t flags;
    size_t max;
    size_t lost;
    size_t ready;
    size_t costs;
    size_t zeros; /* end of the ranges that must be zeroed */
    size_t uncertain;
    size_t partial;
    size_t flushed;
    size_t simt;
    size_t a; /* not used if the operand's halves are kept, as b */
    size_t b;
    size_t end;
    bool is_good; /* the workspace's size fits in a size_t */
};

/* Reserves an aligned range at the end of the workspace, and returns its offset. */
static size_t reserve(struct offsets *offsets, size_t count, size_t each) {
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
    const size_t sums_bytes = sizeof(float) * MM_FP32_SUMS * MM_FP32_CONSUMER_THREADS;
    const size_t blocks = (size_t)sizes->schedule.clusters * MM_FP32_CLUSTER;
    const size_t lines = (size_t)sizes->m + sizes->n;
    const size_t line_bytes = (size_t)sizes->schedule.steps * 2 * MM_FP32_LINE_BYTES;
    struct offsets offsets = {.is_good = true};
    offsets.flags = reserve(&offsets, 1, sizeof(struct mm_fp32_flags));
    offsets.max = reserve(&offsets, lines, sizeof(unsigned));
    offsets.lost = reserve(&offsets, lines, sizeof(unsigned long long));
    offsets.ready = reserve(&offsets, blocks * MM_CONSUMERS, sizeof(unsigned));
    offsets.costs = reserve(&offsets, blocks * MM_FP32_CONSUMER_WARPS, sizeof(struct mm_fp32_cost));
    offsets.zeros = offsets.end;
    offsets.uncertain = reserve(&offsets, sizes->uncertain_max, sizeof(struct mm_fp32_position));
    offsets.partial = reserve(&offsets, blocks, sums_bytes);
    offsets.flushed = reserve(&offsets, blocks, sums_bytes);
    offsets.simt = reserve(&offsets, 1, simt->workspace_bytes);
    offsets.a = reserve(&offsets, a_lines_of(sizes), line_bytes);
    offsets.b = reserve(&offsets, b_lines_of(sizes), line_bytes);
    return offsets;
}

/* Offsets in the memory in which a stored operand's split copy is kept. The ranges that must be zeroed come
 * first. */
struct kept {
    size_t flags;
    size_t max;
    size_t lost;
    size_t zeros;
    size_t tiles;
    size_t end;
};

static struct kept kept_of(size_t lines, size_t padded, size_t steps) {
    struct offsets offsets = {.is_good = true}; /* stays true, because even the workspace fits in a size_t */
    struct kept kept = {.flags = reserve(&offsets, 1, sizeof(struct mm_fp32_flags))};
    kept.max = reserve(&offsets, lines, sizeof(unsigned));
    kept.lost = reserve(&offsets, lines, sizeof(unsigned long long));
    kept.zeros = offsets.end;
    kept.tiles = reserve(&offsets, padded, steps * 2 * MM_FP32_LINE_BYTES);
    kept.end = offsets.end;
    return kept;
}

/* --- the kernels' arguments ---------------------------------------------------------------------- */

struct kernel_arguments {
    struct mm_fp32_operand a;
    struct mm_fp32_operand b;
    struct mm_fp32_plan plan;
    bool is_kept[2];  /* whether the halves of A and B are kept with the stored operand */
    bool is_split[2]; /* whether an earlier job has already split A and B */
};

static void place_operands(struct kernel_arguments *arguments, const struct sizes *sizes,
                           const struct offsets *offsets, unsigned char *scratch) {
    const struct mm_product *product = &arguments->plan.product;
    unsigned *max = (unsigned *)(void *)(scratch + offsets->max);
    unsigned long long *lost = (unsigned long long *)(void *)(scratch + offsets->lost);
    const struct mm_fp32_operand both = {.k = sizes->k,
                                         .steps = sizes->schedule.steps,
                                         .flags = (struct mm_fp32_flags *)(void *)(scratch + offsets->flags)};
    arguments->a = arguments->b = both;
    arguments->a.from = product->a.data;
    arguments->a.ld = product->a.ld;
    arguments->a.lines = sizes->m;
    arguments->a.padded = (unsigned)a_lines_of(sizes);
    arguments->a.tile_lines = MM_FP32_ROWS;
    arguments->a.k_contiguous = !product->transpose_a;
    arguments->a.tiles = scratch + offsets->a;
    arguments->a.max = max;
    arguments->a.lost = lost;
    arguments->b.from = product->b.data;
    arguments->b.ld = product->b.ld;
    arguments->b.lines = sizes->n;
    arguments->b.padded = (unsigned)b_lines_of(sizes);
    arguments->b.tile_lines = MM_FP32_COLS;
    arguments->b.k_contiguous = product->transpose_b;
    arguments->b.tiles = scratch + offsets->b;
    arguments->b.max = max + sizes->m;
    arguments->b.lost = lost + sizes->m;
}

static enum mm_status clear(void *memory, size_t bytes, struct mm_lane *lane, struct mm_error *error) {
    const cudaError_t code = cudaMemsetAsync(memory, 0, bytes, lane->stream);
    return mm_cuda_status(lane->device, code, "clearing the workspace", error);
}

/* If the operand is stored, its halves go to memory that is kept with the operand, instead of the workspace.
 * The key of this memory contains `lines` and k, because a stack and its first matrix begin at one address.
 */
static enum mm_status keep_operand(struct kernel_arguments *arguments, unsigned slot, struct mm_lane *lane,
                                   struct mm_error *error) {
    struct mm_fp32_operand *operand = slot == 0 ? &arguments->a : &arguments->b;
    const struct kept kept = kept_of(operand->lines, operand->padded, operand->steps);
    const uint64_t key = (uint64_t)operand->lines << 32 | (uint64_t)operand->k << 1 | operand->k_contiguous;
    unsigned char *memory =
        mm_cuda_acquire_derived(lane, slot, operand->from, key, kept.end, &arguments->is_split[slot]);
    if (memory == NULL)
        return MM_OK;
    arguments->is_kept[slot] = true;
    operand->flags = (struct mm_fp32_flags *)(void *)(memory + kept.flags);
    operand->max = (unsigned *)(void *)(memory + kept.max);
    operand->lost = (unsigned long long *)(void *)(memory + kept.lost);
    operand->tiles = memory + kept.tiles;
    return arguments->is_split[slot] ? MM_OK : clear(memory, kept.zeros, lane, error);
}

static void place_plan(struct kernel_arguments *arguments, const struct sizes *sizes,
                       const struct offsets *offsets, unsigned char *scratch) {
    struct mm_fp32_plan *plan = &arguments->plan;
    plan->a = arguments->a.tiles;
    plan->b = arguments->b.tiles;
    plan->max_a = arguments->a.max;
    plan->max_b = arguments->b.max;
    plan->lost_a = arguments->a.lost;
    plan->lost_b = arguments->b.lost;
    plan->schedule = sizes->schedule;
    plan->partial.sums = (float *)(void *)(scratch + offsets->partial);
    plan->partial.ready = (unsigned *)(void *)(scratch + offsets->ready);
    plan->costs = (struct mm_fp32_cost *)(void *)(scratch + offsets->costs);
    plan->flushed = (float *)(void *)(scratch + offsets->flushed);
    plan->flags = (struct mm_fp32_flags *)(void *)(scratch + offsets->flags);
    plan->a_flags = arguments->a.flags;
    plan->b_flags = arguments->b.flags;
    plan->uncertain = (struct mm_fp32_position *)(void *)(scratch + offsets->uncertain);
    plan->uncertain_max = sizes->uncertain_max;
    plan->threshold = mm_fp32_threshold(sizes->k);
    plan->range_share = mm_fp32_range_share(sizes->k);
}

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
    layout.follows = false; /* no kernel of this product precedes it */
    return layout;
}

static struct mm_layout split_layout(void) {
    return layout_of(mm_fp32_split_kernel, MM_FP32_SPLIT_THREADS, 0);
}

static struct mm_layout repair_layout(void) {
    return layout_of(mm_fp32_repair_kernel, MM_FP32_REPAIR_THREADS, 0);
}

/* Enqueues a kernel that scans or splits operands. Skips operands that an earlier job has split. */
static enum mm_status run_split(struct kernel_arguments *arguments, const struct mm_layout *layout,
                                unsigned (*blocks_of)(const struct mm_fp32_operand *), struct mm_lane *lane,
                                struct mm_error *error) {
    unsigned of_a = arguments->is_split[0] ? 0 : blocks_of(&arguments->a);
    const unsigned blocks = of_a + (arguments->is_split[1] ? 0 : blocks_of(&arguments->b));
    void *pointers[] = {&arguments->a, &arguments->b, &of_a};
    return blocks == 0 ? MM_OK : mm_cuda_enqueue(layout, (dim3){blocks, 1, 1}, pointers, lane, error);
}

static enum mm_status split(struct kernel_arguments *arguments, struct mm_lane *lane,
                            struct mm_error *error) {
    const struct mm_layout scan = scan_layout(), rest = split_layout();
    enum mm_status status = run_split(arguments, &scan, mm_fp32_scan_blocks, lane, error);
    if (status == MM_OK)
        status = run_split(arguments, &rest, mm_fp32_split_blocks, lane, error);
    for (unsigned slot = 0; slot < 2 && status == MM_OK; slot++)
        if (arguments->is_kept[slot] && !arguments->is_split[slot])
            status =
                mm_cuda_status(lane->device, mm_cuda_note_derived(lane, slot), "splitting an operand", error);
    return status;
}

/* Whether the repair kernel may start before the product kernel ends. An early start saves a microsecond. But
 * in a large product all repair blocks would run on the few multiprocessors that become free first. For
 * example, at 4096³ repairing 170 elements then took 0.10 ms instead of 0.02 ms (H200). */
static bool repair_follows(const struct mm_product *product) {
    return (double)product->m * (double)product->n * (double)product->k < 0x1p33;
}

static enum mm_status multiply(struct kernel_arguments *arguments, struct mm_lane *lane,
                               struct mm_error *error) {
    enum { REPAIRING = 4 };
    struct mm_layout product = product_layout();
    struct mm_layout repair = repair_layout();
    const unsigned repairing = REPAIRING * lane->device->head.multiprocessors;
    void *pointers[] = {&arguments->plan, &lane->path};
    /* If an earlier job split both operands, no kernel precedes the product kernel: a memset does. */
    product.follows = !(arguments->is_split[0] && arguments->is_split[1]);
    repair.follows = repair_follows(&arguments->plan.product);
    const enum mm_status status = mm_cuda_enqueue(
        &product, (dim3){arguments->plan.schedule.clusters * MM_FP32_CLUSTER, 1, 1}, pointers, lane, error);
    if (status != MM_OK)
        return status;
    return mm_cuda_enqueue(&repair, (dim3){repairing, 1, 1}, pointers, lane, error);
}

/* Returns the plan with which `simt` computes the product if a kernel sets the fallback flag. */
static struct mm_plan simt_plan_of(const struct mm_product *product, const struct mm_plan *plan) {
    struct mm_plan simt = {.device = plan->device, .variant = plan->variant};
    (void)mm_cuda_simt(product, &simt, NULL); /* simt supports every shape, so this cannot fail */
    return simt;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct mm_plan simt = simt_plan_of(product, plan);
    const struct sizes sizes = sizes_of(product, plan->device);
    const struct offsets offsets = offsets_of(&sizes, &simt);
    struct kernel_arguments arguments = {.plan.product = *product,
                                         .plan.merges_path = mm_cuda_merges_paths(&lane->bands)};
    unsigned char *workspace = lane->scratch;
    place_operands(&arguments, &sizes, &offsets, workspace);
    enum mm_status status = clear(workspace, offsets.zeros, lane, error);
    for (unsigned slot = 0; slot < 2 && status == MM_OK; slot++)
        status = keep_operand(&arguments, slot, lane, error);
    place_plan(&arguments, &sizes, &offsets, workspace);
    if (status == MM_OK)
        status = split(&arguments, lane, error);
    if (status == MM_OK)
        status = multiply(&arguments, lane, error);
    if (status == MM_OK)
        status = mm_cuda_simt_enqueue(&simt, product, lane, workspace + offsets.simt,
                                      &arguments.plan.flags->fallback, error);
    return status;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout layouts[] = {scan_layout(), split_layout(), plan->layout, repair_layout()};
    enum mm_status status = MM_OK;
    for (size_t index = 0; index < sizeof layouts / sizeof layouts[0] && status == MM_OK; index++)
        status = mm_cuda_load(&layouts[index], lane, error);
    const struct mm_product one = mm_product_item(product, 0);
    const struct mm_plan simt = simt_plan_of(&one, plan);
    return status == MM_OK ? mm_cuda_simt_prepare(&simt, &one, lane, error) : status;
}

/* Whether padding would make the split operands many times larger than the stored operands. Split operands
 * consist of whole tiles, so this happens if a matrix has few rows or columns. */
static bool is_mostly_padding(const struct mm_product *product, const struct offsets *offsets) {
    enum { TIMES_MAX = 8, BYTES_ANYWAY = 256 << 20 };
    const size_t operands = mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b);
    const size_t padded = offsets->end - offsets->a;
    return padded > BYTES_ANYWAY && padded / TIMES_MAX > operands;
}

static enum mm_status launch_simt(const struct mm_plan *plan, const struct mm_product *product,
                                  struct mm_lane *lane, struct mm_error *error) {
    *lane->path = (struct mm_path){.kind = MM_PATH_SIMT};
    return mm_cuda_simt_enqueue(plan, product, lane, lane->scratch, NULL, error);
}

static enum mm_status plan_simt(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    const struct mm_product one = mm_product_item(product, 0);
    const enum mm_status status = mm_cuda_simt(&one, plan, error);
    plan->launch = launch_simt;
    plan->cuts = (struct mm_cuts){0}; /* a share of the product might be computed by tensor cores */
    if (product->stack != NULL)
        plan->layout.batch_kernel = NULL;
    return status;
}

/* Plans the product with simt if k is 0 or the workspace would be too large. Launches each product of a stack
 * separately. */
enum mm_status mm_cuda_fp32_tensor(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    const struct mm_product one = mm_product_item(product, 0);
    const struct mm_plan simt = simt_plan_of(&one, plan);
    if (product->k == 0)
        return plan_simt(product, plan, error);
    const struct sizes sizes = sizes_of(&one, plan->device);
    const struct offsets offsets = offsets_of(&sizes, &simt);
    if (!offsets.is_good || (product->whole.m == 0 && is_mostly_padding(&one, &offsets)))
        return plan_simt(product, plan, error);
    plan->launch = launch;
    plan->finishes = product->epilogue.activation <= MM_ACTIVATION_RELU;
    plan->prepare = prepare;
    plan->layout = product_layout();
    plan->workspace_bytes = offsets.end;
    plan->kept.bytes[0] = kept_of(sizes.m, a_lines_of(&sizes), sizes.schedule.steps).end;
    plan->kept.bytes[1] = kept_of(sizes.n, b_lines_of(&sizes), sizes.schedule.steps).end;
    plan->kept.workspace_bytes = offsets.a;
    if (simt.cuts.rows > 0)
        plan->cuts = mm_schedule_cuts(&sizes.schedule, CLUSTER_ROWS, MM_FP32_COLS);
    return MM_OK;
}
