/* Applies epilogues on the device. For kernel files only. */
#pragma once

#include "gpu/cuda/variants/element.cuh"

__device__ __forceinline__ float mm_cuda_scale(const union mm_scale &scale, float) {
    return scale.of_float;
}
__device__ __forceinline__ double mm_cuda_scale(const union mm_scale &scale, double) {
    return scale.of_double;
}
__device__ __forceinline__ uint32_t mm_cuda_scale(const union mm_scale &scale, uint32_t) {
    return scale.of_uint32_t;
}

/* Gives the functions of epilogues (gpu/product/epilogue.h) one name for all types of sums. */
#define MM_CUDA_EPILOGUE(SUM)                                                                                \
    template <bool IS_SUM>                                                                                   \
    __device__ __forceinline__ SUM mm_cuda_load(enum mm_dtype dtype, const void *elements, size_t index,     \
                                                SUM) {                                                       \
        return IS_SUM ? __ldg(static_cast<const SUM *>(elements) + index)                                    \
                      : mm_load_##SUM(dtype, elements, index);                                               \
    }                                                                                                        \
    __device__ __forceinline__ SUM mm_cuda_apply(const struct mm_terms &terms, SUM sum, SUM addend,          \
                                                 SUM bias) {                                                 \
        const SUM x = mm_combine_##SUM(&terms.epilogue, sum, terms.addend == nullptr ? nullptr : &addend,    \
                                       terms.bias == nullptr ? nullptr : &bias);                             \
        return mm_activated_##SUM(terms.epilogue.activation, x);                                             \
    }
MM_CUDA_EPILOGUE(float)
MM_CUDA_EPILOGUE(double)
MM_CUDA_EPILOGUE(uint32_t)
MM_CUDA_EPILOGUE(uint64_t)

/* Applies the epilogue to the sums of COUNT elements of an m×n C. row(i) and col(i) return the row and the
 * column of element i. First loads the addends and biases of all elements, because each load takes hundreds
 * of cycles. If IS_SUM, the addend and the bias have the type of the sums. */
template <bool IS_SUM, unsigned COUNT, typename SUM, typename ROW, typename COL>
__device__ __forceinline__ void mm_cuda_finish_sums(const struct mm_terms &terms, size_t m, size_t n,
                                                    SUM (&sums)[COUNT], ROW row, COL col) {
    SUM addend[COUNT] = {};
    SUM bias[COUNT] = {};
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        const bool is_inside = row(i) < m && col(i) < n;
        if (is_inside && terms.addend != nullptr)
            addend[i] =
                mm_cuda_load<IS_SUM>(terms.dtype, terms.addend,
                                     row(i) * terms.addend_row_step + col(i) * terms.addend_col_step, SUM());
        if (is_inside && terms.bias != nullptr)
            bias[i] = mm_cuda_load<IS_SUM>(terms.dtype, terms.bias, col(i), SUM());
    }
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        sums[i] = mm_cuda_apply(terms, sums[i], addend[i], bias[i]);
}

/* WIDTH neighbours in a row, which one access loads or stores. */
template <typename SUM, unsigned WIDTH> struct alignas(sizeof(SUM) * WIDTH) mm_cuda_group {
    SUM elements[WIDTH];
};

/* Applies the epilogue to ROWS×COLS elements of C, from (row, col) on, in which the warp's threads have
 * stored sums. Each lane computes a few groups at a time, one below another. An absent term is -0, which
 * changes no bit of a sum. */
template <unsigned ROWS, unsigned COLS, unsigned WIDTH, typename SUM>
__device__ __forceinline__ void mm_cuda_finish_groups(const struct mm_product &product, unsigned row,
                                                      unsigned col) {
    using group = mm_cuda_group<SUM, WIDTH>;
    constexpr unsigned IN_ROW = COLS / WIDTH;
    constexpr unsigned ACROSS = IN_ROW % 32 == 0 ? 32 : IN_ROW % 16 == 0 ? 16 : 8; /* lanes along a row */
    constexpr unsigned APART = 32 / ACROSS;             /* rows between two groups of a lane */
    constexpr unsigned MOST = sizeof(SUM) == 4 ? 8 : 2; /* for float64, more code took longer to fetch */
    constexpr unsigned GROUPS = ROWS / APART < MOST ? ROWS / APART : MOST;
    static_assert(COLS % (ACROSS * WIDTH) == 0 && ROWS % (APART * GROUPS) == 0, "every lane has whole steps");
    const struct mm_terms terms = mm_product_terms(&product);
    const SUM alpha = mm_cuda_scale(terms.epilogue.alpha, SUM());
    const SUM beta = terms.addend == nullptr ? 1 : mm_cuda_scale(terms.epilogue.beta, SUM());
    const bool is_relu = terms.epilogue.activation == MM_ACTIVATION_RELU;
    const unsigned lane = threadIdx.x % 32;
    const size_t addend_step = APART * terms.addend_row_step;
    const size_t c_step = APART * product.c.ld;
    group absent;
#pragma unroll
    for (unsigned j = 0; j < WIDTH; j++)
        absent.elements[j] = -SUM();
#pragma unroll 1
    for (unsigned right = lane % ACROSS * WIDTH; right < COLS; right += ACROSS * WIDTH)
#pragma unroll 1
        for (unsigned down = lane / ACROSS; down < ROWS; down += APART * GROUPS) {
            const size_t first = size_t{row} + down, at = size_t{col} + right;
            const unsigned rows =
                first < product.m && at < product.n ? static_cast<unsigned>(product.m - first) : 0;
            auto *c = static_cast<SUM *>(product.c.data) + first * product.c.ld + at;
            const auto *addend = static_cast<const SUM *>(terms.addend) + first * terms.addend_row_step +
                                 at * terms.addend_col_step;
            const auto *bias = static_cast<const SUM *>(terms.bias) + at;
            group sums[GROUPS], addends[GROUPS], biases = absent;
            if (rows > 0 && terms.bias != nullptr)
                biases = *reinterpret_cast<const group *>(bias);
#pragma unroll
            for (unsigned i = 0; i < GROUPS; i++) {
                sums[i] = addends[i] = absent;
                if (i * APART < rows)
                    sums[i] = *reinterpret_cast<const group *>(c + i * c_step);
                if (i * APART < rows && terms.addend != nullptr)
                    addends[i] = *reinterpret_cast<const group *>(addend + i * addend_step);
            }
#pragma unroll
            for (unsigned i = 0; i < GROUPS; i++) {
#pragma unroll
                for (unsigned j = 0; j < WIDTH; j++) {
                    SUM &x = sums[i].elements[j];
                    x = mm_cuda_multiply_add(beta, addends[i].elements[j], alpha * x) + biases.elements[j];
                    x = is_relu && x <= 0 ? 0 : x;
                }
                if (i * APART < rows)
                    *reinterpret_cast<group *>(c + i * c_step) = sums[i];
            }
        }
}

/* Whether every group of 16 bytes is aligned in C, the addend and the bias, and n is a multiple of the
 * group's width. */
template <typename SUM> __device__ __forceinline__ bool mm_cuda_has_groups(const struct mm_product &product) {
    constexpr unsigned WIDTH = 16 / sizeof(SUM);
    const auto is_aligned = [](const struct mm_matrix &x) {
        return x.rows == 0 ||
               (reinterpret_cast<size_t>(x.data) % 16 == 0 && (x.rows == 1 || x.ld % WIDTH == 0));
    };
    return product.n % WIDTH == 0 && is_aligned(product.c) && is_aligned(product.addend) &&
           is_aligned(product.bias) && !(product.addend.rows > 0 && product.transpose_addend);
}

/* Applies the epilogue to ROWS×COLS elements of C, from (row, col) on, in which the warp's threads have
 * stored sums. The activation must be none or relu. A short loop over memory is faster than unrolled code
 * over registers: a block runs the code once, and must fetch it first. */
template <unsigned ROWS, unsigned COLS, typename SUM>
__device__ __forceinline__ void mm_cuda_finish_warp(const struct mm_product &product, unsigned row,
                                                    unsigned col) {
    __syncwarp();
    if (mm_cuda_has_groups<SUM>(product))
        mm_cuda_finish_groups<ROWS, COLS, 16 / sizeof(SUM), SUM>(product, row, col);
    else
        mm_cuda_finish_groups<ROWS, COLS, 1, SUM>(product, row, col);
}

/* Applies the epilogue to ROWS×COLS elements of C, from (row, col) on, in which the block's THREADS threads
 * have stored sums. The block is one-dimensional. */
template <unsigned ROWS, unsigned COLS, unsigned THREADS>
__device__ __forceinline__ void mm_cuda_finish_block(const struct mm_product &product, unsigned row,
                                                     unsigned col) {
    struct mm_terms terms = mm_product_terms(&product);
    terms.dtype = MM_FLOAT32;
    __syncthreads();
#pragma unroll 1
    for (unsigned index = threadIdx.x; index < ROWS * COLS; index += THREADS) {
        const size_t at_row = size_t{row} + index / COLS, at_col = size_t{col} + index % COLS;
        float *c = static_cast<float *>(product.c.data) + at_row * product.c.ld + at_col;
        if (at_row < product.m && at_col < product.n)
            *c = mm_finish_float(&terms, at_row, at_col, *c);
    }
}
