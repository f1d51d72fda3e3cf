/* `tensor` multiplies each element type with Hopper's tensor core instruction for the type. `tf32` first
 * rounds float32 to tf32, which has 11 significant bits.
 *
 * The instruction, wgmma, reads both operands from shared memory. Blocks compute tiles of C (product.cuh).
 * way.c chooses the size of the tiles, from 64×64 to 256×256 for two blocks, and whether several blocks share
 * a tile.
 *
 * TMA, the copy engine, loads boxes of a matrix into shared memory. TMA needs matrices and rows that begin at
 * multiples of 16 bytes, so other operands are copied first. wgmma reads 16-bit types K-major or MN-major,
 * and other types only K-major, so their MN-major operands are transposed first. From a stored operand's
 * second product on, its copy is kept. float64 needs no copies, because float64.cu uses another instruction.
 * int32 has no instruction: its operands are copied as bytes, and 10 products of bytes add up to C (plan.h).
 *
 * Small products of elements of 1 or 2 bytes share launches, by a simpler kernel (small.cu).
 *
 * Cost: a block needs up to 224 KiB of shared memory, and 384 threads with up to 232 registers.
 *
 * Sources: CUTLASS's Hopper kernels for the division of labour between warps; M. Osama and others, "Stream-K"
 * (2023) for the schedule. */
#include "gpu/device/backend.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/passes.h"
#include "gpu/cuda/variants/tensor/plan.h"
#include "gpu/cuda/variants/tensor/tensor.h"

#include <assert.h>

/* --- what to launch ------------------------------------------------------------------------------ */

/* These sizes are in bytes. TMA needs matrices and rows that begin at multiples of ALIGNMENT. Rows of copies
 * begin at cache lines, because 4095×4097×4099 of bfloat16 otherwise took 1.3 times as long. */
enum { ALIGNMENT = 16, CACHE_LINE = 128 };

struct type {
    const struct mm_tensor_kernels *kernels;
    CUtensorMapDataType element;
};

static const struct type *type_of(enum mm_dtype dtype) {
    static const struct type types[MM_DTYPE_COUNT] = {
        [MM_FLOAT32] = {&mm_tensor_tf32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32},
        [MM_FLOAT64] = {&mm_tensor_float64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64},
        [MM_FLOAT16] = {&mm_tensor_float16, CU_TENSOR_MAP_DATA_TYPE_UINT16},
        [MM_BFLOAT16] = {&mm_tensor_bfloat16, CU_TENSOR_MAP_DATA_TYPE_UINT16},
        [MM_FLOAT8_E4M3FN] = {&mm_tensor_float8_e4m3fn, CU_TENSOR_MAP_DATA_TYPE_UINT8},
        [MM_FLOAT8_E5M2] = {&mm_tensor_float8_e5m2, CU_TENSOR_MAP_DATA_TYPE_UINT8},
        [MM_INT8] = {&mm_tensor_int8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
        [MM_UINT8] = {&mm_tensor_uint8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
        [MM_BOOL] = {&mm_tensor_uint8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
        [MM_INT32] = {&mm_tensor_int32, CU_TENSOR_MAP_DATA_TYPE_UINT8},
    };
    return &types[dtype];
}

/* An operand of a product, or of all products of a stack. */
struct operand {
    struct mm_matrix stored;
    struct mm_matrix matrix; /* what the kernel reads: `stored`, or the copy */
    size_t matrices;         /* how many matrices lie one below another in `matrix` */
    unsigned square;         /* size of a TMA box of an MN-major operand; 0 if K-major */
    bool is_unaligned;       /* TMA cannot load the operand, so the kernel's threads load it */
    bool is_copied;
    bool is_transposed;
    bool is_split; /* the copy has the limbs of int32 (mm_tensor_groups) */
    bool descends; /* its planes begin with the most significant limbs */
};

static struct operand split_operand_of(const struct mm_matrix *stored, size_t matrices, bool is_k_major) {
    const size_t k = is_k_major ? stored->cols : stored->rows / matrices;
    const size_t lines = is_k_major ? stored->rows : matrices * stored->cols;
    const size_t cols = (size_t)MM_TENSOR_LIMBS * mm_tensor_groups_of(k).depth;
    return (struct operand){.stored = *stored,
                            .matrix = mm_matrix_dense(MM_UINT8, lines, cols, NULL),
                            .matrices = matrices,
                            .is_copied = true,
                            .is_transposed = !is_k_major,
                            .is_split = true};
}

static struct operand operand_of(const struct mm_matrix *stored, size_t matrices, bool is_k_major,
                                 const struct mm_tensor_kernels *kernels) {
    const bool needs_k_major = kernels->of[MM_TENSOR_TINY][1][1].kernel == NULL;
    const size_t bytes = mm_dtype_bytes(stored->dtype);
    const size_t rows = stored->rows / matrices;
    const bool is_aligned = mm_cuda_is_aligned(stored);
    struct operand operand = {.stored = *stored, .matrix = *stored, .matrices = matrices};
    if (stored->dtype == MM_INT32)
        return split_operand_of(stored, matrices, is_k_major);
    operand.is_transposed = needs_k_major && !is_k_major;
    operand.square = is_k_major || needs_k_major ? 0 : (unsigned)(MM_TENSOR_LINE_BYTES / bytes);
    operand.is_unaligned = !is_aligned && kernels->threads_copy;
    operand.is_copied = operand.is_transposed || !(is_aligned || kernels->threads_copy);
    if (!operand.is_copied)
        return operand;
    operand.matrix.rows = matrices * (operand.is_transposed ? stored->cols : rows);
    operand.matrix.cols = operand.is_transposed ? rows : stored->cols;
    operand.matrix.ld =
        mm_size_round_up(operand.matrix.cols * bytes, matrices > 1 ? ALIGNMENT : CACHE_LINE) / bytes;
    operand.matrix.data = NULL;
    return operand;
}

static size_t copy_bytes(const struct operand *operand) {
    return operand->is_copied ? mm_cuda_aligned(operand->matrix.rows * operand->matrix.ld *
                                                mm_dtype_bytes(operand->matrix.dtype))
                              : 0;
}

struct call {
    const struct type *type;
    const struct mm_tensor_kernel *kernel;
    struct operand a;
    struct operand b;
    struct mm_schedule schedule;
    bool maps_c;
    bool is_plain; /* mm_tensor_kernel */
    size_t sums_bytes;
    size_t bytes; /* bytes of the workspace: partial sums, then copies of A and of B */
};

static struct call call_of(const struct mm_plan *plan, const struct mm_product *product) {
    struct call call = {.type = type_of(product->a.dtype)};
    const struct mm_tensor_kernels *kernels = call.type->kernels;
    call.a = operand_of(&product->a, mm_matrices_of_a(product), !product->transpose_a, kernels);
    call.b = operand_of(&product->b, mm_matrices_of_b(product), product->transpose_b, kernels);
    call.b.descends = call.b.is_split;
    const struct mm_tensor_way way = mm_tensor_way_of(plan, product, kernels);
    call.kernel = &kernels->of[way.size][call.a.square > 0][call.b.square > 0];
    call.schedule = way.schedule;
    /* TMA writes 16 bytes at a time, even past the end of a row. So threads must store C if the size of its
     * rows is not a multiple of 16 bytes. */
    call.maps_c = !kernels->threads_copy && mm_cuda_is_aligned(&product->c) &&
                  product->n * mm_dtype_bytes(product->c.dtype) % ALIGNMENT == 0;
    call.is_plain = call.maps_c && call.schedule.sharers == 0 && product->stack == NULL &&
                    !product->epilogue.is_set && product->c.dtype == mm_dtype_result(product->a.dtype);
    call.sums_bytes = (size_t)(way.schedule.sharers + mm_shared_tiles(&way.schedule)) *
                      mm_tensor_sums_bytes(product, call.kernel);
    call.bytes = call.sums_bytes + copy_bytes(&call.a) + copy_bytes(&call.b);
    return call;
}

/* --- tensor maps --------------------------------------------------------------------------------- */

/* Encodes *map, or sets *unaligned if TMA cannot load the operand. A K-major box has `lines` rows. */
static enum mm_status map_operand(struct mm_lane *lane, const struct type *type,
                                  const struct operand *operand, unsigned lines, CUtensorMap *map,
                                  struct mm_matrix *unaligned, struct mm_error *error) {
    if (!operand->is_unaligned)
        return mm_cuda_map(lane, type->element, &operand->matrix, operand->matrices,
                           operand->square > 0 ? operand->square : lines, map, error);
    *unaligned = operand->matrix;
    unaligned->rows /= operand->matrices;
    return MM_OK;
}

/* Encodes a tensor map of C or of the addend, in boxes of 128 bytes × the rows of a consumer. */
static enum mm_status map_result(struct mm_lane *lane, const struct mm_matrix *matrix, size_t count,
                                 CUtensorMap *map, struct mm_error *error) {
    const bool is_narrow = mm_dtype_bytes(matrix->dtype) == 2;
    return mm_cuda_map(lane, is_narrow ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       matrix, count, MM_CONSUMER_ROWS, map, error);
}

/* Encodes the tensor maps of C and of the addend, if TMA can copy them. */
static enum mm_status map_results(struct mm_lane *lane, const struct type *type,
                                  const struct mm_product *product, struct mm_tensor_plan *plan,
                                  struct mm_error *error) {
    const struct mm_matrix *addend = &product->addend;
    const size_t addends = product->stack == NULL ? 1 : product->stack->addend_count;
    enum mm_status status = MM_OK;
    if (plan->maps_c)
        status = map_result(lane, &product->c, mm_product_count(product), &plan->of_c, error);
    if (status == MM_OK && plan->product.addend.rows > 0 && !type->kernels->threads_copy)
        status = map_result(lane, addend, addends, &plan->of_addend, error);
    return status;
}

static enum mm_status copy_operand(mm_plan_step *run, const struct mm_device *device,
                                   const struct operand *operand, struct mm_lane *lane,
                                   struct mm_error *error) {
    return mm_cuda_copy_operand(run, device, &operand->stored, operand->matrices, operand->is_transposed,
                                &operand->matrix, lane, error);
}

static enum mm_status split_operand(const struct operand *operand, struct mm_lane *lane,
                                    struct mm_error *error) {
    const struct mm_layout layout = mm_tensor_split_layout();
    const size_t matrices = operand->is_transposed ? operand->matrices : 1;
    struct mm_tensor_split split = {
        .from = operand->stored,
        .to = operand->matrix.data,
        .matrices = matrices,
        .lines = (unsigned)(operand->matrix.rows / matrices),
        .k = (unsigned)(operand->is_transposed ? operand->stored.rows / matrices : operand->stored.cols),
        .depth = (unsigned)(operand->matrix.cols / MM_TENSOR_LIMBS),
        .is_k_major = !operand->is_transposed,
        .descends = operand->descends};
    void *arguments[] = {&split};
    return mm_cuda_enqueue(&layout, (dim3){mm_tensor_split_blocks(&split), 1, 1}, arguments, lane, error);
}

/* Copies the operand if TMA or wgmma cannot read it. If the operand is stored, the copy goes to memory that
 * is kept with the operand. Otherwise it goes to the workspace. */
static enum mm_status place_copy(const struct mm_device *device, struct operand *operand, unsigned slot,
                                 void *workspace, struct mm_lane *lane, struct mm_error *error) {
    /* Bit 63 distinguishes this key from keys of fp32_tensor. The rows distinguish a stack from one of its
     * products. */
    const uint64_t key = UINT64_C(1) << 63 | (uint64_t)operand->matrix.rows << 2 |
                         (uint64_t)operand->descends << 1 | operand->is_transposed;
    bool is_filled = false;
    if (!operand->is_copied)
        return MM_OK;
    void *kept =
        mm_cuda_acquire_derived(lane, slot, operand->stored.data, key, copy_bytes(operand), &is_filled);
    operand->matrix.data = kept != NULL ? kept : workspace;
    if (is_filled)
        return MM_OK;
    const enum mm_status status = operand->is_split
                                      ? split_operand(operand, lane, error)
                                      : copy_operand(mm_plan_launch, device, operand, lane, error);
    return status != MM_OK || kept == NULL
               ? status
               : mm_cuda_status(lane->device, mm_cuda_note_derived(lane, slot), "copying an operand", error);
}

static struct mm_layout layout_of(const struct call *call) {
    const struct mm_tensor_kernel *kernel = call->kernel;
    return (struct mm_layout){.kernel = call->is_plain ? kernel->plain : kernel->kernel,
                              .threads_x = kernel->threads,
                              .threads_y = 1,
                              .follows = true,
                              .dynamic_shared_bytes = kernel->shared_bytes};
}

static struct mm_layout reduce_layout_of(const struct call *call) {
    return (struct mm_layout){.kernel = mm_tensor_reduce_of(call->a.matrix.dtype),
                              .threads_x = MM_TENSOR_REDUCE_THREADS,
                              .threads_y = 1,
                              .follows = true};
}

static enum mm_status reduce(const struct call *call, void **arguments, struct mm_lane *lane,
                             struct mm_error *error) {
    const struct mm_layout layout = reduce_layout_of(call);
    const dim3 grid = {mm_shared_tiles(&call->schedule) * call->kernel->cluster,
                       call->kernel->rows * call->kernel->cols / (4 * MM_TENSOR_REDUCE_THREADS), 1};
    return mm_cuda_enqueue(&layout, grid, arguments, lane, error);
}

static void place_stack(const struct mm_stack *stack, struct mm_tensor_plan *plan) {
    plan->rank = stack->rank;
    for (unsigned dim = 0; dim < stack->rank; dim++) {
        plan->dims[dim] = (unsigned)stack->dims[dim];
        plan->a_steps[dim] = (unsigned)stack->a_steps[dim];
        plan->b_steps[dim] = (unsigned)stack->b_steps[dim];
        plan->addend_steps[dim] = (unsigned)stack->addend_steps[dim];
    }
}

static enum mm_status multiply(const struct call *call, const struct mm_product *product,
                               struct mm_lane *lane, void *sums, const unsigned *products,
                               struct mm_error *error) {
    const struct mm_layout layout = layout_of(call);
    const unsigned cluster = call->kernel->cluster;
    struct mm_tensor_plan plan = {
        .maps_c = call->maps_c,
        .schedule = call->schedule,
        .rows = call->kernel->rows,
        .cols = call->kernel->cols,
        .cluster = cluster,
        .a_lines = mm_tensor_lines(product->m, call->kernel->rows, call->a.square),
        .b_lines = mm_tensor_lines(product->n, call->kernel->cols / cluster, call->b.square),
        .sums = sums,
        .products = products,
        .groups = mm_tensor_groups_of(product->k),
        .product = mm_product_item(product, 0)};
    void *arguments[] = {&plan};
    if (product->stack != NULL)
        place_stack(product->stack, &plan);
    if (!product->epilogue.is_set)
        plan.product.addend.rows = plan.product.bias.rows = 0;
    enum mm_status status =
        map_operand(lane, call->type, &call->a, plan.a_lines, &plan.a, &plan.unaligned_a, error);
    if (status == MM_OK)
        status = map_operand(lane, call->type, &call->b, plan.b_lines, &plan.b, &plan.unaligned_b, error);
    if (status == MM_OK)
        status = map_results(lane, call->type, product, &plan, error);
    const dim3 grid = {call->schedule.clusters * cluster, 1, 1};
    if (status == MM_OK)
        status = mm_cuda_enqueue(&layout, grid, arguments, lane, error);
    return status == MM_OK && call->schedule.sharers > 0 ? reduce(call, arguments, lane, error) : status;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    struct call call = call_of(plan, product);
    char *workspace = (char *)lane->scratch + call.sums_bytes;
    enum mm_status status = place_copy(plan->device, &call.a, 0, workspace, lane, error);
    if (status == MM_OK)
        status = place_copy(plan->device, &call.b, 1, workspace + copy_bytes(&call.a), lane, error);
    return status == MM_OK ? multiply(&call, product, lane, lane->scratch, NULL, error) : status;
}

/* Needs no copies, because the kernels for float64 load operands that TMA cannot load. */
enum mm_status mm_cuda_tensor_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                      struct mm_lane *lane, void *workspace, const unsigned *products,
                                      struct mm_error *error) {
    const struct call call = call_of(plan, product);
    assert(product->a.dtype == MM_FLOAT64 && !call.a.is_copied && !call.b.is_copied);
    return multiply(&call, product, lane, workspace, products, error);
}

static enum mm_status prepare_copy(const struct mm_device *device, const struct operand *operand,
                                   struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout split = mm_tensor_split_layout();
    if (operand->is_split)
        return mm_cuda_load(&split, lane, error);
    return operand->is_copied ? copy_operand(mm_cuda_prepare, device, operand, lane, error) : MM_OK;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product one = mm_product_item(product, 0);
    const struct call call = call_of(plan, plan->launch_stack != NULL ? product : &one);
    const struct mm_layout second = reduce_layout_of(&call);
    struct mm_layout layout = layout_of(&call);
    enum mm_status status = mm_cuda_load(&layout, lane, error);
    layout.kernel = call.kernel->kernel; /* for a C whose address proves to be unaligned */
    if (status == MM_OK && call.is_plain)
        status = mm_cuda_load(&layout, lane, error);
    if (status == MM_OK && call.schedule.sharers > 0)
        status = mm_cuda_load(&second, lane, error);
    if (status == MM_OK)
        status = prepare_copy(plan->device, &call.a, lane, error);
    return status == MM_OK ? prepare_copy(plan->device, &call.b, lane, error) : status;
}

/* Whether one launch can compute a whole stack. One launch cannot if the rows of a transposed copy need
 * padding, because mm_cuda_copy_operand transposes stacks only into dense matrices. */
static bool is_stackable(const struct call *call) {
    return (!call->a.is_transposed || call->a.matrix.ld == call->a.matrix.cols) &&
           (!call->b.is_transposed || call->b.matrix.ld == call->b.matrix.cols);
}

/* Whether the number of cluster tiles of all products fits in 31 bits. */
static bool is_countable(const struct mm_product *product) {
    const struct mm_tensor_kernel *kernel = &type_of(product->a.dtype)->kernels->of[MM_TENSOR_TINY][0][0];
    const size_t each = mm_size_divide_up(product->m, (size_t)kernel->cluster * kernel->rows) *
                        mm_size_divide_up(product->n, kernel->cols);
    return mm_product_count(product) * each <= INT32_MAX;
}

/* Whether the kernels can apply the product's epilogue. They support no activation but none and relu, and for
 * float64 operands no float32 C. The kernels of wgmma load the addend by TMA. They load two elements of the
 * bias at once. */
static bool finishes(const struct mm_product *product) {
    const struct mm_matrix *addend = &product->addend;
    const size_t row_bytes = product->n * mm_dtype_bytes(product->c.dtype);
    if (product->epilogue.activation > MM_ACTIVATION_RELU)
        return false;
    if (product->a.dtype == MM_FLOAT64)
        return product->c.dtype == MM_FLOAT64;
    return product->n % 2 == 0 && (uintptr_t)product->bias.data % 8 == 0 &&
           (addend->rows == 0 ||
            (!product->transpose_addend && mm_cuda_is_aligned(addend) && row_bytes % ALIGNMENT == 0));
}

/* Whether the kernel for small products computes this product. A request chooses this kernel by tile 16. No
 * share is a small product, because small products are not cut. */
static bool is_small(const struct mm_product *product) {
    return product->tile == 0 ? product->whole.m == 0 && mm_cuda_tensor_is_small(product)
                              : product->tile == 16 && mm_dtype_bytes(product->a.dtype) <= 2;
}

enum mm_status mm_cuda_tensor(const struct mm_product *product, struct mm_plan *plan,
                              struct mm_error *error) {
    if (!is_small(product) && !mm_tensor_has_tile(type_of(product->a.dtype)->kernels, product->tile))
        return mm_fail_field(error, MM_UNSUPPORTED, "tile",
                             "%s of %s has no tiles of %u; choose 32, 64 or 128", plan->variant->name,
                             mm_dtype_name(product->a.dtype), product->tile);
    if (product->k == 0 || (product->a.dtype == MM_INT32 && product->k > MM_TENSOR_LIMBS_K_MAX))
        return mm_cuda_tiled_16(product, plan, error);
    if (is_small(product)) {
        plan->layout = mm_tensor_small_layout(product);
        return MM_OK;
    }
    const struct mm_product one = mm_product_item(product, 0);
    if (!is_countable(product))
        return mm_fail(error, MM_UNSUPPORTED, "%s computes results of up to %d tiles; choose tiled_16",
                       plan->variant->name, INT32_MAX);
    const struct call call = call_of(plan, product);
    const bool is_at_once = product->stack != NULL && is_stackable(&call);
    const struct call each = product->stack == NULL || is_at_once ? call : call_of(plan, &one);
    plan->launch = launch;
    plan->finishes = finishes(product);
    plan->launch_stack = is_at_once ? mm_cuda_launch_whole : NULL;
    plan->prepare = prepare;
    plan->layout = layout_of(&each);
    plan->workspace_bytes = each.bytes;
    plan->kept.bytes[0] = copy_bytes(&each.a);
    plan->kept.bytes[1] = copy_bytes(&each.b);
    plan->kept.workspace_bytes = each.sums_bytes;
    plan->cuts =
        mm_schedule_cuts(&each.schedule, (size_t)each.kernel->cluster * each.kernel->rows, each.kernel->cols);
    return MM_OK;
}
