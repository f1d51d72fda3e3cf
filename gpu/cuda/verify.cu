/* The check of a product on the device (gpu/check/verify.h): three products of a matrix and a few vectors,
 * each reading its matrix once. Few lines are cut into parts, for work on the whole chip. The order of sums
 * depends on the shape alone: the same C gives the same residual on any device. */
#include "gpu/cuda/device.h"
#include "gpu/check/verify.h"

namespace {

constexpr unsigned VECTORS = MM_VERIFY_VECTORS;
constexpr unsigned WARP = 32;
constexpr unsigned THREADS = 256;
constexpr unsigned JUDGES = 512;

/* As many blocks are enough for any chip, and fewer elements of a line are not worth a part of their own. */
constexpr size_t BLOCKS_ENOUGH = 1024;
constexpr size_t PART_MIN = 256;

/* An element type: in C, what its sums are, and what an element is worth. */
template <enum mm_dtype DTYPE> struct element;
#define X(constant, name, TYPE, word, SUM, value, ...)                                                       \
    template <> struct element<constant> {                                                                   \
        using type = TYPE;                                                                                   \
        using sum = SUM;                                                                                     \
        static __device__ SUM worth(TYPE x) {                                                                \
            return static_cast<SUM>(value(x));                                                               \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

/* op(X): `lines` lines of `length` elements, which follow each other, or of a transposed matrix lie `ld`
 * apart. */
struct operand {
    const void *data;
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

/* A kind of numbers has SUMS sums of a line; says how those of two parts are merged, and how the sums of B
 * become norms; and has the factors of B and C, which are x, made anew where they are needed rather than
 * read, and the factors of A, which are the sums of B. */

/* Sums in float64. */
struct real {
    using number = double;
    static constexpr unsigned SUMS = MM_VERIFY_SUMS;
    static constexpr unsigned LAST = SUMS - 1;

    static __device__ void merge(double (&sums)[SUMS], const double (&others)[SUMS]) {
#pragma unroll
        for (unsigned s = 0; s < SUMS; s++)
            sums[s] += others[s];
    }

    static __device__ void make_norms(double (&sums)[SUMS]) {
        sums[LAST] = sqrt(sums[LAST]);
    }

    static __device__ double difference(const double (&c)[SUMS], const double (&a)[SUMS], unsigned v) {
        return c[v] - a[v];
    }

    struct of_b {
        uint64_t seed;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
            const uint64_t bits = mm_random_bits(seed, index);
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++)
                sums[v] += (bits >> v & 1) != 0 ? -wide : wide;
            sums[LAST] += wide * wide;
        }
    };
    using of_c = of_b;

    struct of_a {
        const double *data;
        size_t length;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++)
                sums[v] += wide * data[v * length + index];
            sums[LAST] += fabs(wide) * data[LAST * length + index];
        }
    };
};

/* Sums of float64s, in twice the precision. */
struct precise {
    using number = double;
    static constexpr unsigned SUMS = MM_VERIFY_PRECISE_SUMS;
    static constexpr unsigned LARGEST = SUMS - 2;
    static constexpr unsigned LAST = SUMS - 1;

    static __device__ void merge(double (&sums)[SUMS], const double (&others)[SUMS]) {
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++) {
            mm_exact_add(&sums[v], &sums[VECTORS + v], others[v]);
            sums[VECTORS + v] += others[VECTORS + v];
        }
        sums[LARGEST] = fmax(sums[LARGEST], others[LARGEST]);
        sums[LAST] += others[LAST];
    }

    static __device__ void make_norms(double (&sums)[SUMS]) {
        sums[LAST] = sqrt(sums[LARGEST]) * sqrt(sums[LAST]);
    }

    static __device__ double difference(const double (&c)[SUMS], const double (&a)[SUMS], unsigned v) {
        return (c[v] - a[v]) + (c[VECTORS + v] - a[VECTORS + v]);
    }

    static __device__ void add_signed(double (&sums)[SUMS], double wide, uint64_t bits) {
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++)
            mm_exact_add(&sums[v], &sums[VECTORS + v], (bits >> v & 1) != 0 ? -wide : wide);
    }

    struct of_b {
        uint64_t seed;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
            add_signed(sums, wide, mm_random_bits(seed, index));
            sums[LARGEST] = fmax(sums[LARGEST], fabs(wide));
            sums[LAST] += fabs(wide);
        }
    };

    struct of_c {
        uint64_t seed;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
            add_signed(sums, wide, mm_random_bits(seed, index));
            sums[LAST] += wide * wide;
        }
    };

    struct of_a {
        const double *data;
        size_t length;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++)
                mm_exact_add_product(&sums[v], &sums[VECTORS + v], wide, data[v * length + index],
                                     data[(VECTORS + v) * length + index]);
            sums[LAST] += fabs(wide) * data[LAST * length + index];
        }
    };
};

/* Whole numbers, modulo 2^32 or 2^64. */
template <typename WORD> struct words {
    using number = WORD;
    static constexpr unsigned SUMS = MM_VERIFY_WORDS;

    static __device__ void merge(WORD (&sums)[SUMS], const WORD (&others)[SUMS]) {
#pragma unroll
        for (unsigned s = 0; s < SUMS; s++)
            sums[s] += others[s];
    }

    static __device__ void make_norms(WORD (&)[SUMS]) {
    }

    struct of_b {
        uint64_t seed;

        __device__ void add(WORD (&sums)[SUMS], WORD wide, size_t index) const {
#pragma unroll
            for (unsigned s = 0; s < SUMS; s++)
                sums[s] += wide * static_cast<WORD>(mm_verify_word(seed, s, index));
        }
    };
    using of_c = of_b;

    struct of_a {
        const WORD *data;
        size_t length;

        __device__ void add(WORD (&sums)[SUMS], WORD wide, size_t index) const {
#pragma unroll
            for (unsigned s = 0; s < SUMS; s++)
                sums[s] += wide * data[s * length + index];
        }
    };
};

/* The kind that a type of sums takes. */
template <typename SUM> struct kind_of;
template <> struct kind_of<float> { using type = real; };
template <> struct kind_of<double> { using type = precise; };
template <> struct kind_of<uint32_t> { using type = words<uint32_t>; };
template <> struct kind_of<uint64_t> { using type = words<uint64_t>; };

__device__ size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Lines whose elements follow each other: a warp a line, each of its threads every 32nd element. */
template <enum mm_dtype DTYPE, typename KIND, typename FACTORS>
__global__ void __launch_bounds__(THREADS)
    sum_along(struct operand x, FACTORS by, struct cut cut, typename KIND::number *results) {
    using number = typename KIND::number;
    const size_t line = static_cast<size_t>(blockIdx.x) * (THREADS / WARP) + threadIdx.x / WARP;
    const unsigned lane = threadIdx.x % WARP;
    const size_t first = blockIdx.y * cut.part;
    const size_t end = smaller(first + cut.part, x.length);
    number sums[KIND::SUMS] = {};
    if (line >= x.lines)
        return; /* and so does the whole warp */
    const typename element<DTYPE>::type *data =
        static_cast<const typename element<DTYPE>::type *>(x.data) + line * x.ld;
    for (size_t index = first + lane; index < end; index += WARP)
        by.add(sums, static_cast<number>(element<DTYPE>::worth(data[index])), index);
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        number others[KIND::SUMS];
#pragma unroll
        for (unsigned s = 0; s < KIND::SUMS; s++)
            others[s] = __shfl_xor_sync(0xffffffff, sums[s], distance);
        KIND::merge(sums, others);
    }
    if (lane != 0)
        return;
#pragma unroll
    for (unsigned s = 0; s < KIND::SUMS; s++)
        results[(blockIdx.y * KIND::SUMS + s) * x.lines + line] = sums[s];
}

/* Lines that lie across the stored rows: a thread a line, so that a warp reads neighbours. */
template <enum mm_dtype DTYPE, typename KIND, typename FACTORS>
__global__ void __launch_bounds__(THREADS)
    sum_across(struct operand x, FACTORS by, struct cut cut, typename KIND::number *results) {
    using number = typename KIND::number;
    const size_t line = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    const size_t first = blockIdx.y * cut.part;
    const size_t end = smaller(first + cut.part, x.length);
    number sums[KIND::SUMS] = {};
    if (line >= x.lines)
        return;
    const typename element<DTYPE>::type *data =
        static_cast<const typename element<DTYPE>::type *>(x.data) + line;
    for (size_t index = first; index < end; index++)
        by.add(sums, static_cast<number>(element<DTYPE>::worth(data[index * x.ld])), index);
#pragma unroll
    for (unsigned s = 0; s < KIND::SUMS; s++)
        results[(blockIdx.y * KIND::SUMS + s) * x.lines + line] = sums[s];
}

/* The sums of a line over all its parts. */
template <typename KIND>
__device__ void add_parts(typename KIND::number (&sums)[KIND::SUMS], const typename KIND::number *results,
                          size_t parts, size_t lines, size_t line) {
    for (size_t part = 0; part < parts; part++) {
        typename KIND::number others[KIND::SUMS];
#pragma unroll
        for (unsigned s = 0; s < KIND::SUMS; s++)
            others[s] = results[(part * KIND::SUMS + s) * lines + line];
        KIND::merge(sums, others);
    }
}

/* Adds the parts of B's sums up, in the place of the first, and makes norms. */
template <typename KIND>
__global__ void __launch_bounds__(THREADS) join(typename KIND::number *results, size_t parts, size_t lines) {
    const size_t line = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    typename KIND::number sums[KIND::SUMS] = {};
    if (line >= lines)
        return;
    add_parts<KIND>(sums, results, parts, lines, line);
    KIND::make_norms(sums);
#pragma unroll
    for (unsigned s = 0; s < KIND::SUMS; s++)
        results[s * lines + line] = sums[s];
}

/* The sums of a product's rows: of C·x, and of A·(B·x). */
template <typename NUMBER> struct rows {
    const NUMBER *c;
    const NUMBER *a;
    size_t c_parts;
    size_t a_parts;
    size_t count;
};

template <typename KIND>
__device__ void judge_row(const struct rows<double> &rows, const struct mm_verify_bounds &bounds, size_t row,
                          struct mm_verification *seen) {
    double c[KIND::SUMS] = {}, a[KIND::SUMS] = {};
    struct mm_verify_sums of_row = {};
    add_parts<KIND>(c, rows.c, rows.c_parts, rows.count, row);
    add_parts<KIND>(a, rows.a, rows.a_parts, rows.count, row);
    for (unsigned v = 0; v < VECTORS; v++)
        mm_verify_add(&of_row, KIND::difference(c, a, v), a[v]);
    mm_verify_row(seen, &bounds, row, &of_row, a[KIND::LAST], c[KIND::LAST]);
}

/* A vector at a time, since there are many. */
template <typename KIND, typename WORD>
__device__ void judge_row(const struct rows<WORD> &rows, const struct mm_verify_bounds &, size_t row,
                          struct mm_verification *seen) {
    bool is_wrong = false;
    for (unsigned s = 0; s < KIND::SUMS; s++) {
        WORD difference = 0;
        for (size_t part = 0; part < rows.c_parts; part++)
            difference += rows.c[(part * KIND::SUMS + s) * rows.count + row];
        for (size_t part = 0; part < rows.a_parts; part++)
            difference -= rows.a[(part * KIND::SUMS + s) * rows.count + row];
        is_wrong = is_wrong || difference != 0;
    }
    mm_verify_words_row(seen, row, is_wrong);
}

template <typename KIND>
__device__ void merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (KIND::SUMS == MM_VERIFY_WORDS)
        mm_verify_merge_words(into, rows);
    else
        mm_verify_merge(into, rows);
}

/* One block judges all rows, which are little beside the matrices, and adds up what its threads have seen.
 * The rows count from `first_row`; those before it, of the same stack, are in the result. */
template <typename KIND>
__global__ void __launch_bounds__(JUDGES, 1)
    judge(struct rows<typename KIND::number> rows, struct mm_verify_bounds bounds, uint64_t seed,
          size_t first_row, struct mm_verification *result) {
    __shared__ struct mm_verification seen[JUDGES / 2]; /* all would be too much for a block */
    struct mm_verification mine = {};
    for (size_t row = threadIdx.x; row < rows.count; row += JUDGES)
        judge_row<KIND>(rows, bounds, row, &mine);
    for (unsigned half = JUDGES / 2; half > 0; half /= 2) {
        if (threadIdx.x >= half && threadIdx.x < 2 * half)
            seen[threadIdx.x - half] = mine;
        __syncthreads(); /* what is merged next is there */
        if (threadIdx.x < half)
            merge<KIND>(&mine, &seen[threadIdx.x]);
        __syncthreads(); /* nobody reads it any more */
    }
    if (threadIdx.x == 0) {
        struct mm_verification all = {};
        if (first_row > 0)
            all = *result;
        mine.row += first_row;
        merge<KIND>(&all, &mine);
        all.is_done = true;
        all.seed = seed;
        *result = all;
    }
}

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
        parts = 1; /* also of lines without elements, whose sums are 0 */
    return {parts, mm_size_divide_up(x.length, parts)};
}

/* The three matrices, and where their sums lie in the memory of the check, counted in sums. */
struct plan {
    struct operand a, b, c;
    struct cut a_cut, b_cut, c_cut;
    size_t b_sums, c_sums; /* those of A lie at 0 */
    size_t count;          /* of sums in all */
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

/* B·x and the norms, whose parts are joined, since each row of A reads all of them. */
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

/* Whether products whose operands have one type may have a result of the other. */
constexpr bool may_be(enum mm_dtype operand, enum mm_dtype result) {
#define X(constant, name, type, word, sum, value, RESULT, OTHERS, ...)                                       \
    if (operand == constant)                                                                                 \
        return result == RESULT || ((OTHERS)&MM_DTYPE_BIT(result)) != 0;
    MM_DTYPE_TABLE(X)
#undef X
    return false;
}

/* C·x. C may have another type than the operands. */
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
cudaError_t judge_rows(const struct plan &plan, const struct mm_product *product,
                       enum mm_arithmetic arithmetic, uint64_t seed, size_t first_row,
                       const typename KIND::number *sums, struct mm_lane *lane) {
    struct rows<typename KIND::number> rows = {
        sums + plan.c_sums, sums, plan.c_cut.parts, plan.a_cut.parts, plan.c.lines
    };
    struct mm_verify_bounds bounds = mm_verify_bounds_of(product, arithmetic);
    void *arguments[] = {&rows, &bounds, &seed, &first_row, &lane->verification};
    return cudaLaunchKernel(reinterpret_cast<const void *>(judge<KIND>), dim3(1), dim3(JUDGES), arguments, 0,
                            lane->stream);
}

/* Enqueues the check. */
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
    return code == cudaSuccess ? judge_rows<kind>(plan, product, arithmetic, seed, first_row, sums, lane)
                               : code;
}

template <enum mm_dtype DTYPE> size_t count_bytes(const struct mm_product *product) {
    using kind = typename kind_of<typename element<DTYPE>::sum>::type;
    return plan_of(product, kind::SUMS).count * sizeof(typename kind::number);
}

/* The functions of a type. */
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
