/* fp64_tensor computes float64 products on Hopper's tensor cores for int8. Its error is at most float64's
 * bound for every element, and for most data smaller than cuBLAS's (docs/accuracy.md, with proofs).
 *
 * 1. Each row of op(A) and column of op(B) is multiplied by a power of two, and its elements are rounded to
 * integers of up to 59 bits (residues.cu).
 * 2. The integers are divided by 15 small numbers, the moduli. Their remainders, the residues, fit in int8.
 * 3. For each modulus the tensor cores multiply the residues. The kernel reduces each sum modulo the modulus
 * before it leaves the multiprocessor (modular.cu).
 * 4. The 15 residues of an element of C determine its integer (Chinese remainder theorem), because the moduli
 * multiply to more than twice the largest integer (chinese.cu).
 *
 * Scales depend on one operand alone. So from a stored operand's second product on, its residues are kept.
 * The pass `certify` proves, from counts of large elements, that no element of C can exceed the bound. If
 * that fails, or an element is NaN, infinite, huge or tiny, the kernels of `tensor` compute C.
 *
 * Cost: 15 bytes for each element of A, B and C.
 *
 * Source: K. Ozaki, Y. Uchino, T. Imamura, "Ozaki Scheme II" (2025, arXiv 2504.08009). */
#include "gpu/cuda/device.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/fp64_tensor/plan.h"
#include "gpu/cuda/variants/tensor/plan.h"
#include "gpu/cuda/variants/tensor/tensor.h"

#include <math.h>

/* --- memory -------------------------------------------------------------------------------------- */

/* Reserves an aligned range at the end of a piece of memory, and returns its offset. Nothing overflows,
 * because `fits` limits the shapes. */
static size_t reserve(size_t *end, size_t bytes) {
    enum { ALIGNMENT = 256 };
    const size_t begin = *end;
    *end = mm_size_round_up(begin + bytes, ALIGNMENT);
    return begin;
}

/* Offsets in the memory of an operand. The ranges that must be zeroed come first. */
struct operand_offsets {
    size_t seen;
    size_t counts;
    size_t zeros; /* end of the ranges that must be zeroed */
    size_t squares;
    size_t scales;
    size_t planes;
    size_t end;
};

static struct operand_offsets offsets_of(size_t lines, size_t k) {
    struct operand_offsets offsets = {.end = 0};
    offsets.seen = reserve(&offsets.end, sizeof(struct mm_fp64_seen));
    offsets.counts = reserve(&offsets.end, lines * sizeof(unsigned));
    offsets.zeros = offsets.end;
    offsets.squares = reserve(&offsets.end, lines * mm_size_divide_up(k, MM_FP64_CHUNK) * sizeof(double));
    offsets.scales = reserve(&offsets.end, lines * sizeof(double));
    offsets.planes = reserve(&offsets.end, lines * mm_size_round_up(k, MM_FP64_STEP) * MM_FP64_MODULI);
    return offsets;
}

/* Offsets in the workspace. */
struct offsets {
    size_t flags;
    size_t planes; /* residues of C */
    size_t native;
    size_t a; /* not used if the operand's residues are kept, as b */
    size_t b;
    size_t end;
};

struct sizes {
    struct mm_schedule schedule; /* of the product of residues */
    struct operand_offsets a;
    struct operand_offsets b;
    struct offsets offsets;
};

static struct sizes sizes_of(const struct mm_product *product, const struct mm_plan *native) {
    /* There are many tiles, so clusters share none. */
    const struct mm_fix_up_cost never = {.fixed = INFINITY};
    const size_t rows = mm_size_divide_up(product->m, MM_FP64_CLUSTER * MM_FP64_ROWS);
    const size_t cols = mm_size_divide_up(product->n, MM_FP64_COLS);
    struct sizes sizes = {.a = offsets_of(product->m, product->k), .b = offsets_of(product->n, product->k)};
    struct offsets *offsets = &sizes.offsets;
    sizes.schedule = mm_schedule_of(MM_FP64_MODULI, (unsigned)rows, (unsigned)cols,
                                    (unsigned)mm_size_divide_up(product->k, MM_FP64_STEP),
                                    native->device->multiprocessors / MM_FP64_CLUSTER, &never);
    offsets->flags = reserve(&offsets->end, sizeof(struct mm_fp64_flags));
    offsets->planes =
        reserve(&offsets->end, rows * cols * MM_FP64_MODULI * MM_FP64_CLUSTER * MM_FP64_ROWS * MM_FP64_COLS);
    offsets->native = reserve(&offsets->end, native->workspace_bytes);
    offsets->a = reserve(&offsets->end, sizes.a.end);
    offsets->b = reserve(&offsets->end, sizes.b.end);
    return sizes;
}

/* --- the kernels' arguments ---------------------------------------------------------------------- */

struct call {
    const struct sizes *sizes;
    struct mm_fp64_plan plan;
    bool is_kept[2];  /* whether the residues of A and B are kept with the stored operand */
    bool is_ready[2]; /* whether an earlier job has computed the residues of A and B */
};

static void place_operand(struct mm_fp64_operand *operand, const struct operand_offsets *offsets,
                          unsigned char *memory) {
    operand->seen = (struct mm_fp64_seen *)(void *)(memory + offsets->seen);
    operand->counts = (unsigned *)(void *)(memory + offsets->counts);
    operand->squares = (double *)(void *)(memory + offsets->squares);
    operand->scales = (double *)(void *)(memory + offsets->scales);
    operand->planes = (int8_t *)(memory + offsets->planes);
}

/* Places operand `slot` in memory that is kept with it if it is stored, or else in the workspace. The key of
 * this memory contains `lines` and k, because a stack and its first matrix begin at one address. Bit 62
 * distinguishes it from keys of `tensor` and fp32_tensor. */
static enum mm_status prepare_operand(struct call *call, unsigned slot, struct mm_lane *lane,
                                      struct mm_error *error) {
    struct mm_fp64_operand *operand = slot == 0 ? &call->plan.a : &call->plan.b;
    const struct operand_offsets *offsets = slot == 0 ? &call->sizes->a : &call->sizes->b;
    const uint64_t key = UINT64_C(1) << 62 | (uint64_t)operand->lines << 24 | (uint64_t)operand->k << 1 |
                         operand->k_contiguous;
    unsigned char *memory =
        mm_cuda_acquire_derived(lane, slot, operand->from, key, offsets->end, &call->is_ready[slot]);
    call->is_kept[slot] = memory != NULL;
    if (memory == NULL)
        memory =
            (unsigned char *)lane->scratch + (slot == 0 ? call->sizes->offsets.a : call->sizes->offsets.b);
    place_operand(operand, offsets, memory);
    if (call->is_ready[slot])
        return MM_OK;
    const cudaError_t code = cudaMemsetAsync(memory, 0, offsets->zeros, lane->stream);
    return mm_cuda_status(lane->device, code, "clearing the workspace", error);
}

static struct call call_of(const struct mm_product *product, const struct sizes *sizes,
                           const struct mm_lane *lane) {
    unsigned char *workspace = lane->scratch;
    const unsigned k = (unsigned)product->k;
    const unsigned k_bytes = (unsigned)mm_size_round_up(k, MM_FP64_STEP);
    struct call call = {.sizes = sizes,
                        .plan = {.a = {.from = product->a.data,
                                       .ld = product->a.ld,
                                       .lines = (unsigned)product->m,
                                       .k = k,
                                       .k_contiguous = !product->transpose_a,
                                       .k_bytes = k_bytes},
                                 .b = {.from = product->b.data,
                                       .ld = product->b.ld,
                                       .lines = (unsigned)product->n,
                                       .k = k,
                                       .k_contiguous = product->transpose_b,
                                       .k_bytes = k_bytes},
                                 .product = *product,
                                 .schedule = sizes->schedule,
                                 .planes = workspace + sizes->offsets.planes,
                                 .flags = (struct mm_fp64_flags *)(void *)(workspace + sizes->offsets.flags),
                                 .path = lane->path,
                                 .merges_path = mm_cuda_merges_paths(&lane->bands)}};
    mm_fp64_set_limits(&call.plan);
    return call;
}

/* --- launches ------------------------------------------------------------------------------------ */

static struct mm_layout layout_of(const void *kernel, unsigned threads, size_t shared_bytes) {
    return (struct mm_layout){
        .kernel = kernel, .threads_x = threads, .threads_y = 1, .dynamic_shared_bytes = shared_bytes};
}

static struct mm_layout product_layout(void) {
    return layout_of(mm_fp64_product_kernel, MM_FP64_PRODUCT_THREADS, mm_fp64_product_shared_bytes);
}

/* Passes over the operands. */
enum { SCAN, SCALE, RESIDUES, PASSES };

static struct mm_layout pass_layout(unsigned pass) {
    const void *const kernels[PASSES] = {mm_fp64_scan_kernel, mm_fp64_scale_kernel, mm_fp64_residue_kernel};
    return layout_of(kernels[pass], MM_FP64_THREADS, pass == RESIDUES ? mm_fp64_residue_shared_bytes : 0);
}

/* Returns how many blocks a pass has for an operand. Each block works on some lines and a range of k. */
static unsigned pass_blocks(unsigned pass, const struct mm_fp64_operand *operand) {
    const struct {
        size_t lines, k;
    } each[PASSES][2] = {[SCAN] = {{32, MM_FP64_CHUNK}, {MM_FP64_THREADS / 32, MM_FP64_CHUNK}},
                         [SCALE] = {{MM_FP64_THREADS, MM_FP64_K_MAX}, {MM_FP64_THREADS, MM_FP64_K_MAX}},
                         [RESIDUES] = {{32, MM_FP64_TURN_K}, {1, 4 * MM_FP64_THREADS}}};
    const size_t lines = each[pass][operand->k_contiguous].lines, k = each[pass][operand->k_contiguous].k;
    return (unsigned)(mm_size_divide_up(operand->lines, lines) * mm_size_divide_up(operand->k, k));
}

/* Computes the residues of operands that are not ready, and then decides who computes C. */
static enum mm_status find_residues(struct call *call, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout certify = layout_of(mm_fp64_certify_kernel, MM_FP64_CERTIFY_THREADS, 0);
    struct mm_fp64_plan *plan = &call->plan;
    void *arguments[] = {plan};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < PASSES && status == MM_OK; index++) {
        const struct mm_layout layout = pass_layout(index);
        plan->blocks_of_a = call->is_ready[0] ? 0 : pass_blocks(index, &plan->a);
        const unsigned blocks = plan->blocks_of_a + (call->is_ready[1] ? 0 : pass_blocks(index, &plan->b));
        if (blocks > 0)
            status = mm_cuda_enqueue(&layout, (dim3){blocks, 1, 1}, arguments, lane, error);
    }
    for (unsigned slot = 0; slot < 2 && status == MM_OK; slot++)
        if (call->is_kept[slot] && !call->is_ready[slot])
            status =
                mm_cuda_status(lane->device, mm_cuda_note_derived(lane, slot), "computing residues", error);
    return status == MM_OK ? mm_cuda_enqueue(&certify, (dim3){1, 1, 1}, arguments, lane, error) : status;
}

static enum mm_status map_planes(const struct mm_fp64_operand *operand, unsigned lines, CUtensorMap *map,
                                 struct mm_lane *lane, struct mm_error *error) {
    const struct mm_matrix planes = {.data = operand->planes,
                                     .rows = (size_t)MM_FP64_MODULI * operand->lines,
                                     .cols = operand->k,
                                     .ld = operand->k_bytes,
                                     .dtype = MM_INT8};
    return mm_cuda_map(lane, CU_TENSOR_MAP_DATA_TYPE_UINT8, &planes, MM_FP64_MODULI, lines, map, error);
}

/* Multiplies the residues as a stack of products, and computes C from the results. */
static enum mm_status multiply(struct call *call, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout product = product_layout();
    const struct mm_layout chinese = layout_of(mm_fp64_chinese_kernel, MM_FP64_THREADS, 0);
    const struct mm_schedule *schedule = &call->plan.schedule;
    struct mm_tensor_plan plan = {.schedule = *schedule,
                                  .rows = MM_FP64_ROWS,
                                  .cols = MM_FP64_COLS,
                                  .cluster = MM_FP64_CLUSTER,
                                  .a_lines = mm_tensor_lines(call->plan.a.lines, MM_FP64_ROWS, 0),
                                  .b_lines =
                                      mm_tensor_lines(call->plan.b.lines, MM_FP64_COLS / MM_FP64_CLUSTER, 0),
                                  .sums = (unsigned char *)lane->scratch + call->sizes->offsets.planes,
                                  .products = &call->plan.flags->moduli,
                                  .rank = 1,
                                  .dims = {MM_FP64_MODULI},
                                  .a_steps = {1},
                                  .b_steps = {1}};
    void *of_product[] = {&plan}, *of_chinese[] = {&call->plan};
    enum mm_status status = map_planes(&call->plan.a, plan.a_lines, &plan.a, lane, error);
    if (status == MM_OK)
        status = map_planes(&call->plan.b, plan.b_lines, &plan.b, lane, error);
    if (status == MM_OK)
        status = mm_cuda_enqueue(&product, (dim3){schedule->clusters * MM_FP64_CLUSTER, 1, 1}, of_product,
                                 lane, error);
    const unsigned tiles = schedule->cluster_tile_rows * schedule->cluster_tile_cols * MM_FP64_CLUSTER;
    return status == MM_OK ? mm_cuda_enqueue(&chinese, (dim3){tiles, 1, 1}, of_chinese, lane, error) : status;
}

/* Returns a plan without `launch` if `tensor` cannot compute the product. */
static struct mm_plan native_plan_of(const struct mm_product *product, const struct mm_plan *plan) {
    struct mm_plan native = {.device = plan->device, .variant = plan->variant};
    (void)mm_cuda_tensor(product, &native, NULL);
    return native;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct mm_plan native = native_plan_of(product, plan);
    const struct sizes sizes = sizes_of(product, &native);
    struct call call = call_of(product, &sizes, lane);
    enum mm_status status = MM_OK;
    for (unsigned slot = 0; slot < 2 && status == MM_OK; slot++)
        status = prepare_operand(&call, slot, lane, error);
    if (status == MM_OK)
        status = find_residues(&call, lane, error);
    if (status == MM_OK)
        status = multiply(&call, lane, error);
    if (status == MM_OK)
        status = mm_cuda_tensor_enqueue(&native, product, lane,
                                        (unsigned char *)lane->scratch + sizes.offsets.native,
                                        &call.plan.flags->natives, error);
    return status;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product one = mm_product_item(product, 0);
    const struct mm_plan native = native_plan_of(&one, plan);
    const struct mm_layout layouts[] = {
        pass_layout(SCAN),     pass_layout(SCALE),
        pass_layout(RESIDUES), layout_of(mm_fp64_certify_kernel, MM_FP64_CERTIFY_THREADS, 0),
        plan->layout,          layout_of(mm_fp64_chinese_kernel, MM_FP64_THREADS, 0)};
    enum mm_status status = MM_OK;
    for (size_t index = 0; index < sizeof layouts / sizeof layouts[0] && status == MM_OK; index++)
        status = mm_cuda_load(&layouts[index], lane, error);
    return status == MM_OK ? native.prepare(&native, &one, lane, error) : status;
}

static enum mm_status launch_native(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error) {
    *lane->path = (struct mm_path){.kind = MM_PATH_NATIVE};
    return mm_cuda_tensor_enqueue(plan, product, lane, lane->scratch, NULL, error);
}

/* `tensor` itself may leave the product to a tiled kernel, which has blocks of rows. */
static enum mm_status plan_native(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    const enum mm_status status = mm_cuda_tensor(product, plan, error);
    if (status == MM_OK && product->stack == NULL && plan->layout.block_rows == 0)
        plan->launch = launch_native;
    return status;
}

/* Whether the kernels can count elements of k, blocks and tiles. */
static bool fits(const struct mm_product *product) {
    enum { LINES_MAX = 1 << 20 };
    return product->k > 0 && product->k < MM_FP64_K_MAX && product->m <= LINES_MAX && product->n <= LINES_MAX;
}

/* Plans the product with `tensor` if k is 0 or a dimension too large, or if `tensor` leaves the product to a
 * variant that cannot follow. Launches each product of a stack separately. */
enum mm_status mm_cuda_fp64_tensor(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    const struct mm_product one = mm_product_item(product, 0);
    const struct mm_plan native = native_plan_of(&one, plan);
    if (!fits(&one) || native.launch == NULL)
        return plan_native(product, plan, error);
    plan->launch = launch;
    plan->finishes = native.finishes;
    plan->prepare = prepare;
    plan->layout = product_layout();
    const struct sizes sizes = sizes_of(&one, &native);
    plan->workspace_bytes = sizes.offsets.end;
    plan->kept.bytes[0] = sizes.a.end;
    plan->kept.bytes[1] = sizes.b.end;
    plan->kept.workspace_bytes = sizes.offsets.a;
    return MM_OK;
}
