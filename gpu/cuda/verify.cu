/* The check of a product on the device (gpu/check/verify.h): three products of a matrix and a few vectors
 * in float64, each reading its matrix once. Few lines are cut into parts, for work on the whole chip. The
 * order of sums depends on the shape alone: the same C gives the same residual on any device. */
#include "gpu/cuda/device.h"
#include "gpu/check/verify.h"

namespace {

constexpr unsigned VECTORS = MM_VERIFY_VECTORS;
constexpr unsigned SUMS = MM_VERIFY_SUMS;
constexpr unsigned WARP = 32;
constexpr unsigned THREADS = 256;
constexpr unsigned JUDGES = 512;

/* As many blocks are enough for any chip, and fewer elements of a line are not worth a part of their own. */
constexpr size_t BLOCKS_ENOUGH = 1024;
constexpr size_t PART_MIN = 256;

/* op(X): `lines` lines of `length` elements, which follow each other, or of a transposed matrix lie `ld`
 * apart. */
struct operand {
    const float *data;
    size_t ld;
    size_t lines;
    size_t length;
    bool is_turned;
};

/* How its lines are cut. Sum s of line l over part p is sums[(p·SUMS + s)·lines + l]. */
struct cut {
    size_t parts;
    size_t part; /* elements of one; the last has fewer */
};

/* What the elements of a line of B and of C are multiplied by: x, made anew where it is needed rather than
 * read. Their last sum is that of squares. */
struct signs {
    uint64_t seed;

    __device__ void add(double (&sums)[SUMS], float element, size_t index) const {
        const uint64_t bits = mm_random_bits(seed, index);
        const double wide = static_cast<double>(element);
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++)
            sums[v] += (bits >> v & 1) != 0 ? -wide : wide;
        sums[VECTORS] += wide * wide;
    }
};

/* And those of a line of A, by what came of B. */
struct vectors {
    const double *data;
    size_t length;

    __device__ void add(double (&sums)[SUMS], float element, size_t index) const {
        const double wide = static_cast<double>(element);
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++)
            sums[v] += wide * data[v * length + index];
        sums[VECTORS] += fabs(wide) * data[VECTORS * length + index];
    }
};

__device__ size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Lines whose elements follow each other: a warp a line, each of its threads every 32nd element. */
template <typename FACTORS>
__global__ void __launch_bounds__(THREADS)
    sum_along(struct operand x, FACTORS by, struct cut cut, double *results) {
    const size_t line = static_cast<size_t>(blockIdx.x) * (THREADS / WARP) + threadIdx.x / WARP;
    const unsigned lane = threadIdx.x % WARP;
    const size_t first = blockIdx.y * cut.part;
    const size_t end = smaller(first + cut.part, x.length);
    double sums[SUMS] = {};
    if (line >= x.lines)
        return; /* and so does the whole warp */
    for (size_t index = first + lane; index < end; index += WARP)
        by.add(sums, x.data[line * x.ld + index], index);
#pragma unroll
    for (unsigned s = 0; s < SUMS; s++) {
        for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
            sums[s] += __shfl_xor_sync(0xffffffff, sums[s], distance);
        if (lane == 0)
            results[(blockIdx.y * SUMS + s) * x.lines + line] = sums[s];
    }
}

/* Lines that lie across the stored rows: a thread a line, so that a warp reads neighbours. */
template <typename FACTORS>
__global__ void __launch_bounds__(THREADS)
    sum_across(struct operand x, FACTORS by, struct cut cut, double *results) {
    const size_t line = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    const size_t first = blockIdx.y * cut.part;
    const size_t end = smaller(first + cut.part, x.length);
    double sums[SUMS] = {};
    if (line >= x.lines)
        return;
    for (size_t index = first; index < end; index++)
        by.add(sums, x.data[index * x.ld + line], index);
#pragma unroll
    for (unsigned s = 0; s < SUMS; s++)
        results[(blockIdx.y * SUMS + s) * x.lines + line] = sums[s];
}

/* Number `index` of the `count` sums of a whole matrix, over all parts of its lines. */
__device__ double total(const double *sums, size_t parts, size_t count, size_t index) {
    double sum = 0.0;
    for (size_t part = 0; part < parts; part++)
        sum += sums[part * count + index];
    return sum;
}

/* Adds the parts of B's sums up, in the place of the first, and makes norms of its sums of squares. */
__global__ void __launch_bounds__(THREADS) join(double *sums, size_t parts, size_t lines) {
    const size_t index = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    const size_t count = SUMS * lines;
    if (index >= count)
        return;
    const double sum = total(sums, parts, count, index);
    sums[index] = index < VECTORS * lines ? sum : sqrt(sum);
}

/* The sums of a product's rows: of C·x, and of A·(B·x). */
struct rows {
    const double *c;
    const double *a;
    size_t c_parts;
    size_t a_parts;
    size_t count;
};

/* One block judges all rows, which are little beside the matrices, and adds up what its threads have seen. */
__global__ void __launch_bounds__(JUDGES)
    judge(struct rows rows, struct mm_verify_bounds bounds, uint64_t seed, struct mm_verification *result) {
    __shared__ struct mm_verification seen[JUDGES];
    const size_t sums = rows.count * SUMS;
    struct mm_verification mine = {};
    for (size_t row = threadIdx.x; row < rows.count; row += JUDGES) {
        struct mm_verify_sums of_row = {};
        for (unsigned v = 0; v < VECTORS; v++) {
            const size_t at = v * rows.count + row;
            mm_verify_add(&of_row, total(rows.c, rows.c_parts, sums, at),
                          total(rows.a, rows.a_parts, sums, at));
        }
        mm_verify_row(&mine, &bounds, row, &of_row,
                      total(rows.a, rows.a_parts, sums, VECTORS * rows.count + row));
    }
    seen[threadIdx.x] = mine;
    for (unsigned half = JUDGES / 2; half > 0; half /= 2) {
        __syncthreads(); /* what is merged next is there, and nobody reads what was */
        if (threadIdx.x < half)
            mm_verify_merge(&seen[threadIdx.x], &seen[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
        seen[0].is_done = true;
        seen[0].seed = seed;
        *result = seen[0];
    }
}

struct operand operand_of(const struct mm_matrix *matrix, bool transpose) {
    const float *data = static_cast<const float *>(matrix->data);
    if (transpose)
        return {data, matrix->ld, matrix->cols, matrix->rows, true};
    return {data, matrix->ld, matrix->rows, matrix->cols, false};
}

size_t line_blocks(const struct operand &x) {
    return mm_size_divide_up(x.lines, x.is_turned ? THREADS : THREADS / WARP);
}

struct cut cut_of(const struct operand &x) {
    const size_t wanted = x.lines == 0 ? 1 : BLOCKS_ENOUGH / line_blocks(x);
    const size_t most = mm_size_divide_up(x.length, PART_MIN);
    size_t parts = wanted < most ? wanted : most;
    if (parts == 0)
        parts = 1; /* also of lines without elements, whose sums are 0 */
    return {parts, mm_size_divide_up(x.length, parts)};
}

/* The three matrices, and where their sums lie in the memory of the check. */
struct plan {
    struct operand a, b, c;
    struct cut a_cut, b_cut, c_cut;
    double *a_sums, *b_sums, *c_sums;
    size_t count; /* of numbers in all */
};

struct plan plan_of(const struct mm_product *product, void *memory) {
    struct plan plan = {};
    plan.a = operand_of(&product->a, product->transpose_a);
    plan.b = operand_of(&product->b, product->transpose_b);
    plan.c = operand_of(&product->c, false);
    plan.a_cut = cut_of(plan.a);
    plan.b_cut = cut_of(plan.b);
    plan.c_cut = cut_of(plan.c);
    const size_t a_count = plan.a_cut.parts * SUMS * plan.a.lines;
    const size_t b_count = plan.b_cut.parts * SUMS * plan.b.lines;
    plan.count = a_count + b_count + plan.c_cut.parts * SUMS * plan.c.lines;
    plan.a_sums = static_cast<double *>(memory);
    plan.b_sums = plan.a_sums + a_count;
    plan.c_sums = plan.b_sums + b_count;
    return plan;
}

template <typename FACTORS>
cudaError_t sum(struct operand &x, FACTORS by, struct cut &cut, double *results, cudaStream_t stream) {
    void *arguments[] = {&x, &by, &cut, &results};
    const dim3 grid(static_cast<unsigned>(line_blocks(x)), static_cast<unsigned>(cut.parts));
    const void *kernel = x.is_turned ? reinterpret_cast<const void *>(sum_across<FACTORS>)
                                     : reinterpret_cast<const void *>(sum_along<FACTORS>);
    return cudaLaunchKernel(kernel, grid, dim3(THREADS), arguments, 0, stream);
}

/* B·x and the norms, whose parts are joined, since each row of A reads all of them. */
cudaError_t sum_b(struct plan &plan, struct signs x, cudaStream_t stream) {
    const size_t count = SUMS * plan.b.lines;
    if (count == 0)
        return cudaSuccess;
    const cudaError_t code = sum(plan.b, x, plan.b_cut, plan.b_sums, stream);
    if (code != cudaSuccess)
        return code;
    void *arguments[] = {&plan.b_sums, &plan.b_cut.parts, &plan.b.lines};
    return cudaLaunchKernel(reinterpret_cast<const void *>(join),
                            dim3(static_cast<unsigned>(mm_size_divide_up(count, THREADS))), dim3(THREADS),
                            arguments, 0, stream);
}

cudaError_t judge_rows(const struct plan &plan, const struct mm_product *product, uint64_t seed,
                       struct mm_lane *lane) {
    struct rows rows = {plan.c_sums, plan.a_sums, plan.c_cut.parts, plan.a_cut.parts, plan.c.lines};
    struct mm_verify_bounds bounds = mm_verify_bounds_of(product);
    void *arguments[] = {&rows, &bounds, &seed, &lane->verification};
    return cudaLaunchKernel(reinterpret_cast<const void *>(judge), dim3(1), dim3(JUDGES), arguments, 0,
                            lane->stream);
}

} // namespace

size_t mm_cuda_verify_bytes(const struct mm_product *product) {
    return plan_of(product, nullptr).count * sizeof(double);
}

enum mm_status mm_cuda_verify(const struct mm_product *product, void *memory, struct mm_lane *lane,
                              struct mm_error *error) {
    struct plan plan = plan_of(product, memory);
    const struct signs x = {mm_verify_seed()};
    const struct vectors b_by_x = {plan.b_sums, plan.b.lines};
    cudaError_t code = sum_b(plan, x, lane->stream);
    if (code == cudaSuccess)
        code = sum(plan.a, b_by_x, plan.a_cut, plan.a_sums, lane->stream);
    if (code == cudaSuccess)
        code = sum(plan.c, x, plan.c_cut, plan.c_sums, lane->stream);
    if (code == cudaSuccess)
        code = judge_rows(plan, product, x.seed, lane);
    return mm_cuda_status(lane->device, code, "checking a product", error);
}
