/* How kernels multiply and add elements, and store sums in C. For kernel files only. */
#pragma once

#include "gpu/product/product.h"

/* Returns a·b + sum, rounded once. Integers wrap around. */
__device__ __forceinline__ float mm_cuda_multiply_add(float a, float b, float sum) {
    return fmaf(a, b, sum);
}
__device__ __forceinline__ double mm_cuda_multiply_add(double a, double b, double sum) {
    return fma(a, b, sum);
}
__device__ __forceinline__ uint32_t mm_cuda_multiply_add(uint32_t a, uint32_t b, uint32_t sum) {
    return a * b + sum;
}
__device__ __forceinline__ uint64_t mm_cuda_multiply_add(uint64_t a, uint64_t b, uint64_t sum) {
    return a * b + sum;
}

/* Gives the functions of epilogues (gpu/product/epilogue.h) one name for all types of sums. Kernels with
 * wgmma cannot call functions, so they set CALLS to false. Then the activation must be none or relu. */
#define MM_CUDA_EPILOGUE(SUM, ACTIVATED)                                                                     \
    template <bool IS_SUM>                                                                                   \
    __device__ __forceinline__ SUM mm_cuda_load(enum mm_dtype dtype, const void *elements, size_t index,     \
                                                SUM) {                                                       \
        return IS_SUM ? __ldg(static_cast<const SUM *>(elements) + index)                                    \
                      : mm_load_##SUM(dtype, elements, index);                                               \
    }                                                                                                        \
    template <bool CALLS>                                                                                    \
    __device__ __forceinline__ SUM mm_cuda_apply(const struct mm_terms &terms, SUM sum, SUM addend,          \
                                                 SUM bias) {                                                 \
        const SUM x = mm_combine_##SUM(&terms.epilogue, sum, terms.addend == nullptr ? nullptr : &addend,    \
                                       terms.bias == nullptr ? nullptr : &bias);                             \
        return ACTIVATED;                                                                                    \
    }
#define MM_CUDA_ACTIVATED(SUM)                                                                               \
    (CALLS ? mm_activated_##SUM(terms.epilogue.activation, x)                                                \
     : terms.epilogue.activation == MM_ACTIVATION_RELU && x <= 0 ? 0                                         \
                                                                 : x)
MM_CUDA_EPILOGUE(float, MM_CUDA_ACTIVATED(float))
MM_CUDA_EPILOGUE(double, MM_CUDA_ACTIVATED(double))
MM_CUDA_EPILOGUE(uint32_t, mm_activated_uint32_t(terms.epilogue.activation, x))

/* Applies the epilogue to the sums of COUNT elements of C. row(i) and col(i) return the row and the column of
 * element i. First loads the addends and biases of all elements, because each load takes hundreds of cycles.
 * If IS_SUM, the addend and the bias have the type of the sums. */
template <bool CALLS, bool IS_SUM, unsigned COUNT, typename SUM, typename ROW, typename COL>
__device__ __forceinline__ void mm_cuda_finish(const struct mm_product &product, SUM (&sums)[COUNT], ROW row,
                                               COL col) {
    const struct mm_terms terms = mm_product_terms(&product);
    SUM addend[COUNT] = {};
    SUM bias[COUNT] = {};
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        const bool is_inside = row(i) < product.m && col(i) < product.n;
        if (is_inside && terms.addend != nullptr)
            addend[i] =
                mm_cuda_load<IS_SUM>(terms.dtype, terms.addend,
                                     row(i) * terms.addend_row_step + col(i) * terms.addend_col_step, SUM());
        if (is_inside && terms.bias != nullptr)
            bias[i] = mm_cuda_load<IS_SUM>(terms.dtype, terms.bias, col(i), SUM());
    }
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        sums[i] = mm_cuda_apply<CALLS>(terms, sums[i], addend[i], bias[i]);
}

/* Applies the epilogue in place to ROWS×COLS elements of C, from (row, col) on, in which the warp's threads
 * have stored sums of C's type. Each lane has AT_ONCE elements in flight. A short loop over memory is faster
 * here than unrolled code over registers: a block runs the code once, and must fetch it first. */
template <unsigned ROWS, unsigned COLS, unsigned AT_ONCE, typename SUM>
__device__ __forceinline__ void mm_cuda_finish_stored(const struct mm_product &product, size_t row,
                                                      size_t col) {
    constexpr unsigned WIDTH = COLS < 32 ? COLS : 32;
    constexpr unsigned APART = 32 / WIDTH; /* rows between two elements of a lane */
    static_assert(COLS % WIDTH == 0 && ROWS % (APART * AT_ONCE) == 0, "every lane has whole steps");
    const struct mm_terms terms = mm_product_terms(&product);
    const unsigned lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll 1
    for (unsigned step = 0; step < COLS / WIDTH * (ROWS / APART / AT_ONCE); step++) {
        const size_t first = row + step % (ROWS / APART / AT_ONCE) * (APART * AT_ONCE) + lane / WIDTH;
        const size_t at = col + step / (ROWS / APART / AT_ONCE) * WIDTH + lane % WIDTH;
        const unsigned rows =
            first < product.m && at < product.n ? static_cast<unsigned>(product.m - first) : 0;
        SUM *const c = static_cast<SUM *>(product.c.data) + first * product.c.ld + at;
        const SUM *const from = static_cast<const SUM *>(terms.addend) + first * terms.addend_row_step +
                                at * terms.addend_col_step;
        SUM sums[AT_ONCE] = {};
        SUM addend[AT_ONCE] = {};
        SUM bias = 0;
        if (rows > 0 && terms.bias != nullptr)
            bias = __ldg(static_cast<const SUM *>(terms.bias) + at);
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (i * APART < rows)
                sums[i] = c[i * APART * product.c.ld];
        if (terms.addend != nullptr)
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++)
                if (i * APART < rows)
                    addend[i] = __ldg(from + i * APART * terms.addend_row_step);
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (i * APART < rows)
                c[i * APART * product.c.ld] = mm_cuda_apply<false>(terms, sums[i], addend[i], bias);
    }
}

/* An element type of A and B, as a template parameter of kernels:
 * `type` is the C type of elements, and `sum_type` the type of sums.
 * `value` converts an element to sum_type without loss.
 * `store` applies the epilogue to a sum, rounds the sum to C's type, and stores it at (row, col). C's type is
 * known only at run time. */
template <enum mm_dtype DTYPE> struct mm_cuda_element;

#define X(constant, name, TYPE, word, SUM, VALUE, ...)                                                       \
    template <> struct mm_cuda_element<constant> {                                                           \
        using type = TYPE;                                                                                   \
        using sum_type = SUM;                                                                                \
        static __device__ __forceinline__ sum_type value(type element) {                                     \
            return static_cast<sum_type>(VALUE(element));                                                    \
        }                                                                                                    \
        static __device__ __forceinline__ void store(const struct mm_product &product, size_t row,           \
                                                     size_t col, sum_type sum) {                             \
            mm_store_c_##SUM(&product, row, col, sum);                                                       \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

/* float32 operands with a float32 C. This case is frequent, so it has its own kernels without checks of C's
 * type. */
struct mm_cuda_float32 : mm_cuda_element<MM_FLOAT32> {
    static __device__ __forceinline__ void store(const struct mm_product &product, size_t row, size_t col,
                                                 float sum) {
        if (product.epilogue.is_set) {
            const struct mm_terms terms = mm_product_terms(&product);
            sum = mm_finish_one_float(&terms, row, col, sum);
        }
        static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
    }
};

/* Stores a sum as element (row, col) of C, which must be inside C. */
template <class ELEMENT = mm_cuda_float32>
__device__ __forceinline__ void mm_store_c(const struct mm_product &product, size_t row, size_t col,
                                           typename ELEMENT::sum_type sum) {
    ELEMENT::store(product, row, col, sum);
}

/* Stores a sum as element (row, col) of C, or does nothing if this position is outside C. */
template <class ELEMENT = mm_cuda_float32>
__device__ __forceinline__ void mm_store_c_guarded(const struct mm_product &product, unsigned row,
                                                   unsigned col, typename ELEMENT::sum_type sum) {
    if (row < product.m && col < product.n)
        mm_store_c<ELEMENT>(product, row, col, sum);
}

/* Applies the epilogue to four sums, and stores them in a row of C, at columns col, col + step and so on.
 * `to` is the address of the element at column `col`. Drops sums outside C. Not inlined, because the code is
 * long and a thread may store dozens of sums. */
__device__ __noinline__ static inline void mm_finish_four(const struct mm_terms &terms, float *to, size_t row,
                                                          unsigned col, unsigned step, size_t n,
                                                          float4 four) {
    const float sums[] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (unsigned j = 0; j < 4; j++)
        if (col + j * step < n)
            to[j * step] = mm_finish_float(&terms, row, col + j * step, sums[j]);
}

template <unsigned STEP>
__device__ __forceinline__ void mm_store_four(const struct mm_product &product, unsigned row, unsigned col,
                                              const float *sums) {
    const struct mm_terms terms = mm_product_terms(&product);
    mm_finish_four(terms, static_cast<float *>(product.c.data) + row * product.c.ld + col, row, col, STEP,
                   product.n, make_float4(sums[0], sums[1], sums[2], sums[3]));
}

/* Stores sums in a row of C, at columns col, col + STEP and so on. Drops sums outside C. */
template <unsigned STEP, unsigned COUNT>
__device__ __forceinline__ void mm_store_c_row(const struct mm_product &product, unsigned row, unsigned col,
                                               const float (&sums)[COUNT]) {
    static_assert(COUNT % 4 == 0, "sums are finished four at a time");
    float *to = static_cast<float *>(product.c.data) + row * product.c.ld + col;
    if (row >= product.m)
        return;
#pragma unroll
    for (unsigned j = 0; j < COUNT; j += 4)
        if (product.epilogue.is_set)
            mm_store_four<STEP>(product, row, col + j * STEP, &sums[j]);
#pragma unroll
    for (unsigned j = 0; j < COUNT; j++)
        if (!product.epilogue.is_set && col + j * STEP < product.n)
            to[j * STEP] = sums[j];
}
