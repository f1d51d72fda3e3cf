/* Checks products on the device (gpu/check/verify.h): multiplies each matrix of a product by a few vectors.
 * The order of sums depends only on the shape, so a given C has the same residual on all devices. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/verify/rows.cuh"

namespace {

constexpr size_t BLOCKS_ENOUGH = 1024;
constexpr size_t PART_MIN = 256; /* a row of n elements has at most n / PART_MIN parts, rounded up */

struct operand operand_of(const struct mm_matrix *matrix, bool transpose) {
    if (transpose)
        return {matrix->data, matrix->ld, matrix->cols, matrix->rows, true};
    return {matrix->data, matrix->ld, matrix->rows, matrix->cols, false};
}

size_t line_blocks(const struct operand &x) {
    return mm_size_divide_up(x.lines, x.is_turned ? THREADS : THREADS / WARP);
}

struct cut cut_of(const struct operand &x) {
    const size_t wanted = x.lines == 0 ? 1 : BLOCKS_ENOUGH / line_blocks(x);
    const size_t most = mm_size_divide_up(x.length, PART_MIN);
    size_t parts = wanted < most ? wanted : most;
    if (parts == 0)
        parts = 1; /* a row without elements has one part with the sum 0 */
    return {parts, mm_size_divide_up(x.length, parts)};
}

/* A matrix, the division of its rows into parts, and the index of its first sum in the check's memory. */
struct summed {
    struct operand x;
    struct cut cut;
    size_t first;
};

struct plan {
    struct summed a, b, c, addend, bias;
    size_t count;
};

struct summed add_operand(struct plan *plan, const struct operand &x, size_t sums) {
    const struct summed added = {x, cut_of(x), plan->count};
    plan->count += added.cut.parts * sums * x.lines;
    return added;
}

/* Takes k from the product, and not from A and B. If alpha is 0, k is 0, so A and B are not read. */
struct plan plan_of(const struct mm_product *product, size_t sums) {
    struct plan plan = {};
    struct operand a = operand_of(&product->a, product->transpose_a);
    struct operand b = operand_of(&product->b, product->transpose_b);
    a.length = b.lines = product->k;
    plan.a = add_operand(&plan, a, sums);
    plan.b = add_operand(&plan, b, sums);
    plan.c = add_operand(&plan, operand_of(&product->c, false), sums);
    plan.addend = add_operand(&plan, operand_of(&product->addend, product->transpose_addend), sums);
    plan.bias = add_operand(&plan, operand_of(&product->bias, false), sums);
    return plan;
}

template <enum mm_dtype DTYPE, typename KIND, typename FACTORS>
cudaError_t sum(struct summed &of, FACTORS by, typename KIND::number *sums, cudaStream_t stream) {
    typename KIND::number *results = sums + of.first;
    void *arguments[] = {&of.x, &by, &of.cut, &results};
    const dim3 grid(static_cast<unsigned>(line_blocks(of.x)), static_cast<unsigned>(of.cut.parts));
    const void *kernel = of.x.is_turned ? reinterpret_cast<const void *>(sum_across<DTYPE, KIND, FACTORS>)
                                        : reinterpret_cast<const void *>(sum_along<DTYPE, KIND, FACTORS>);
    return cudaLaunchKernel(kernel, grid, dim3(THREADS), arguments, 0, stream);
}

/* Computes B·x and the norms of B's rows. The first kernel sums up parts of rows, the second kernel joins the
 * parts' sums. This is necessary because A is multiplied by the sums of whole rows of B. */
template <enum mm_dtype DTYPE, typename KIND>
cudaError_t sum_b(struct summed &b, uint64_t seed, typename KIND::number *sums, cudaStream_t stream) {
    if (b.x.lines == 0)
        return cudaSuccess;
    const typename KIND::of_b x = {seed};
    const cudaError_t code = sum<DTYPE, KIND>(b, x, sums, stream);
    if (code != cudaSuccess)
        return code;
    typename KIND::number *results = sums + b.first;
    void *arguments[] = {&results, &b.cut.parts, &b.x.lines};
    return cudaLaunchKernel(reinterpret_cast<const void *>(join<KIND>),
                            dim3(static_cast<unsigned>(mm_size_divide_up(b.x.lines, THREADS))), dim3(THREADS),
                            arguments, 0, stream);
}

/* Whether a product with operands of type `operand` can have a C of type `result`. */
constexpr bool may_be(enum mm_dtype operand, enum mm_dtype result) {
#define X(constant, name, type, word, sum, value, RESULT, OTHERS, ...)                                       \
    if (operand == constant)                                                                                 \
        return result == RESULT || ((OTHERS)&MM_DTYPE_BIT(result)) != 0;
    MM_DTYPE_TABLE(X)
#undef X
    return false;
}

/* Computes C·x. Also calls sum_b for the addend and the bias. All three can have another type than A. */
template <enum mm_dtype DTYPE, typename KIND>
cudaError_t sum_c(struct plan &plan, enum mm_dtype c_dtype, uint64_t seed, typename KIND::number *sums,
                  cudaStream_t stream) {
    const typename KIND::of_c x = {seed};
    cudaError_t code = cudaErrorInvalidValue;
    switch (c_dtype) {
#define X(constant, ...)                                                                                     \
    case constant:                                                                                           \
        if constexpr (may_be(DTYPE, constant)) {                                                             \
            code = sum<constant, KIND>(plan.c, x, sums, stream);                                             \
            if (code == cudaSuccess)                                                                         \
                code = sum_b<constant, KIND>(plan.addend, seed, sums, stream);                               \
            if (code == cudaSuccess)                                                                         \
                code = sum_b<constant, KIND>(plan.bias, seed, sums, stream);                                 \
        }                                                                                                    \
        break;
        MM_DTYPE_TABLE(X)
#undef X
    default:
        break;
    }
    return code;
}

template <typename KIND>
cudaError_t compare_rows(const struct plan &plan, const struct mm_product *product,
                         enum mm_arithmetic arithmetic, uint64_t seed, struct mm_cuda_check_part part,
                         const typename KIND::number *sums, struct mm_lane *lane) {
    struct rows<typename KIND::number> rows = {};
    rows.c = sums + plan.c.first;
    rows.a = sums + plan.a.first;
    rows.addend = plan.addend.x.lines > 0 ? sums + plan.addend.first : NULL;
    rows.bias = plan.bias.x.lines > 0 ? sums + plan.bias.first : NULL;
    rows.c_parts = plan.c.cut.parts;
    rows.a_parts = plan.a.cut.parts;
    rows.count = plan.c.x.lines;
    struct mm_verify_bounds bounds = mm_verify_bounds_of(product, arithmetic);
    void *arguments[] = {&rows, &bounds, &seed, &part, &lane->verification};
    return cudaLaunchKernel(reinterpret_cast<const void *>(compare<KIND>), dim3(1), dim3(COMPARING),
                            arguments, 0, lane->stream);
}

template <enum mm_dtype DTYPE>
cudaError_t verify(const struct mm_product *product, enum mm_arithmetic arithmetic, void *memory,
                   uint64_t seed, struct mm_cuda_check_part part, struct mm_lane *lane) {
    using kind = typename kind_of<typename element<DTYPE>::sum>::type;
    typename kind::number *sums = static_cast<typename kind::number *>(memory);
    struct plan plan = plan_of(product, kind::SUMS);
    const typename kind::of_a b_by_x = {sums + plan.b.first, plan.b.x.lines};
    cudaError_t code = sum_b<DTYPE, kind>(plan.b, seed, sums, lane->stream);
    if (code == cudaSuccess)
        code = sum<DTYPE, kind>(plan.a, b_by_x, sums, lane->stream);
    if (code == cudaSuccess)
        code = sum_c<DTYPE, kind>(plan, product->c.dtype, seed, sums, lane->stream);
    return code == cudaSuccess ? compare_rows<kind>(plan, product, arithmetic, seed, part, sums, lane) : code;
}

template <enum mm_dtype DTYPE> size_t count_bytes(const struct mm_product *product) {
    using kind = typename kind_of<typename element<DTYPE>::sum>::type;
    return plan_of(product, kind::SUMS).count * sizeof(typename kind::number);
}

struct checker {
    cudaError_t (*verify)(const struct mm_product *product, enum mm_arithmetic arithmetic, void *memory,
                          uint64_t seed, struct mm_cuda_check_part part, struct mm_lane *lane);
    size_t (*count_bytes)(const struct mm_product *product);
};

const struct checker checkers[MM_DTYPE_COUNT] = {
#define X(constant, ...) {verify<constant>, count_bytes<constant>},
    MM_DTYPE_TABLE(X)
#undef X
};

} // namespace

size_t mm_cuda_verify_bytes(const struct mm_product *product) {
    const struct mm_product item = mm_product_item(product, 0);
    return checkers[product->a.dtype].count_bytes(&item);
}

enum mm_status mm_cuda_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                              size_t count, uint64_t seed, void *memory, struct mm_lane *lane,
                              struct mm_error *error) {
    cudaError_t code = cudaSuccess;
    for (size_t index = first; index < first + count && code == cudaSuccess; index++) {
        const struct mm_product item = mm_product_item(product, index);
        const struct mm_cuda_check_part part = {index * product->m, index == 0, false};
        code = checkers[product->a.dtype].verify(&item, arithmetic, memory, seed, part, lane);
    }
    return mm_cuda_status(lane->device, code, "checking a product", error);
}

enum mm_status mm_cuda_verify_tile(const struct mm_product *tile, enum mm_arithmetic arithmetic,
                                   struct mm_cuda_check_part part, uint64_t seed, void *memory,
                                   struct mm_lane *lane, struct mm_error *error) {
    const cudaError_t code = checkers[tile->a.dtype].verify(tile, arithmetic, memory, seed, part, lane);
    return mm_cuda_status(lane->device, code, "checking a tile", error);
}
