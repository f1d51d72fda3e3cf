/* Checks products on the device (gpu/check/verify.h): computes C·x and A·(B·x) for a few random vectors x,
 * and compares the results. The order of additions is fixed, so all devices get the same residual. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/verify/rows.cuh"

namespace {

constexpr size_t BLOCKS_ENOUGH = 1024; /* enough to keep any chip busy */
constexpr size_t PART_MIN = 256;       /* rows of a matrix are not divided into shorter parts */

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

/* The three matrices, and the offsets of their sums in the check's memory, counted in sums. */
struct plan {
    struct operand a, b, c;
    struct cut a_cut, b_cut, c_cut;
    size_t b_sums, c_sums; /* offsets of the sums of B and of C; the sums of A are at offset 0 */
    size_t count;
};

struct plan plan_of(const struct mm_product *product, size_t sums) {
    struct plan plan = {};
    plan.a = operand_of(&product->a, product->transpose_a);
    plan.b = operand_of(&product->b, product->transpose_b);
    plan.c = operand_of(&product->c, false);
    plan.a_cut = cut_of(plan.a);
    plan.b_cut = cut_of(plan.b);
    plan.c_cut = cut_of(plan.c);
    plan.b_sums = plan.a_cut.parts * sums * plan.a.lines;
    plan.c_sums = plan.b_sums + plan.b_cut.parts * sums * plan.b.lines;
    plan.count = plan.c_sums + plan.c_cut.parts * sums * plan.c.lines;
    return plan;
}

template <enum mm_dtype DTYPE, typename KIND, typename FACTORS>
cudaError_t sum(struct operand &x, FACTORS by, struct cut &cut, typename KIND::number *results,
                cudaStream_t stream) {
    void *arguments[] = {&x, &by, &cut, &results};
    const dim3 grid(static_cast<unsigned>(line_blocks(x)), static_cast<unsigned>(cut.parts));
    const void *kernel = x.is_turned ? reinterpret_cast<const void *>(sum_across<DTYPE, KIND, FACTORS>)
                                     : reinterpret_cast<const void *>(sum_along<DTYPE, KIND, FACTORS>);
    return cudaLaunchKernel(kernel, grid, dim3(THREADS), arguments, 0, stream);
}

/* Computes B·x and the norms of B's rows. Rows are computed in parts. For B, the parts' sums are added up
 * here, because every row of A is multiplied by the sums of whole rows of B. */
template <enum mm_dtype DTYPE, typename KIND>
cudaError_t sum_b(struct plan &plan, uint64_t seed, typename KIND::number *results, cudaStream_t stream) {
    if (plan.b.lines == 0)
        return cudaSuccess;
    const typename KIND::of_b x = {seed};
    const cudaError_t code = sum<DTYPE, KIND>(plan.b, x, plan.b_cut, results, stream);
    if (code != cudaSuccess)
        return code;
    void *arguments[] = {&results, &plan.b_cut.parts, &plan.b.lines};
    return cudaLaunchKernel(reinterpret_cast<const void *>(join<KIND>),
                            dim3(static_cast<unsigned>(mm_size_divide_up(plan.b.lines, THREADS))),
                            dim3(THREADS), arguments, 0, stream);
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

/* Computes C·x. C can have another type than the operands, so this is a switch. */
template <enum mm_dtype DTYPE, typename KIND>
cudaError_t sum_c(struct plan &plan, enum mm_dtype c_dtype, uint64_t seed, typename KIND::number *results,
                  cudaStream_t stream) {
    const typename KIND::of_c x = {seed};
    switch (c_dtype) {
#define X(constant, ...)                                                                                     \
    case constant:                                                                                           \
        if constexpr (may_be(DTYPE, constant))                                                               \
            return sum<constant, KIND>(plan.c, x, plan.c_cut, results, stream);                              \
        break;
        MM_DTYPE_TABLE(X)
#undef X
    default:
        break;
    }
    return cudaErrorInvalidValue;
}

template <typename KIND>
cudaError_t compare_rows(const struct plan &plan, const struct mm_product *product,
                         enum mm_arithmetic arithmetic, uint64_t seed, size_t first_row,
                         const typename KIND::number *sums, struct mm_lane *lane) {
    struct rows<typename KIND::number> rows = {
        sums + plan.c_sums, sums, plan.c_cut.parts, plan.a_cut.parts, plan.c.lines
    };
    struct mm_verify_bounds bounds = mm_verify_bounds_of(product, arithmetic);
    void *arguments[] = {&rows, &bounds, &seed, &first_row, &lane->verification};
    return cudaLaunchKernel(reinterpret_cast<const void *>(compare<KIND>), dim3(1), dim3(COMPARING),
                            arguments, 0, lane->stream);
}

template <enum mm_dtype DTYPE>
cudaError_t verify(const struct mm_product *product, enum mm_arithmetic arithmetic, void *memory,
                   uint64_t seed, size_t first_row, struct mm_lane *lane) {
    using kind = typename kind_of<typename element<DTYPE>::sum>::type;
    typename kind::number *sums = static_cast<typename kind::number *>(memory);
    struct plan plan = plan_of(product, kind::SUMS);
    const typename kind::of_a b_by_x = {sums + plan.b_sums, plan.b.lines};
    cudaError_t code = sum_b<DTYPE, kind>(plan, seed, sums + plan.b_sums, lane->stream);
    if (code == cudaSuccess)
        code = sum<DTYPE, kind>(plan.a, b_by_x, plan.a_cut, sums, lane->stream);
    if (code == cudaSuccess)
        code = sum_c<DTYPE, kind>(plan, product->c.dtype, seed, sums + plan.c_sums, lane->stream);
    return code == cudaSuccess ? compare_rows<kind>(plan, product, arithmetic, seed, first_row, sums, lane)
                               : code;
}

template <enum mm_dtype DTYPE> size_t count_bytes(const struct mm_product *product) {
    using kind = typename kind_of<typename element<DTYPE>::sum>::type;
    return plan_of(product, kind::SUMS).count * sizeof(typename kind::number);
}

struct checker {
    cudaError_t (*verify)(const struct mm_product *product, enum mm_arithmetic arithmetic, void *memory,
                          uint64_t seed, size_t first_row, struct mm_lane *lane);
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
        code = checkers[product->a.dtype].verify(&item, arithmetic, memory, seed, index * product->m, lane);
    }
    return mm_cuda_status(lane->device, code, "checking a product", error);
}
