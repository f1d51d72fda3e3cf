/* Makes two kernels from a variant's code for one block: a kernel for a single product or transposition, and
 * a kernel for a batch. Both kernels compute identical bits. For kernel files only.
 *
 * A variant defines a type with these members:
 *     ROWS, COLS            rows and columns of C that a block computes
 *     THREADS_X, THREADS_Y  threads of a block
 *     run                   the code for one block: run<TRANSPOSE_A, TRANSPOSE_B>(product), or
 *                           run<ELEMENT>(product) for a transposition
 * The grid has ⌈n/COLS⌉×⌈m/ROWS⌉ blocks, and every block that calls `run` has at least one element of C.
 * mm_cuda_launch (launch.c) launches the kernel. A grid may have at most 65535 blocks along y, so
 * mm_cuda_launch splits a larger C into several launches. */
#pragma once

#include "gpu/cuda/batch.h"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/element.cuh"

/* Defines the `plan` function of a variant. The second argument is the function in this file that plans the
 * kernel, such as mm_cuda_plan_by<KERNEL>. */
#define MM_CUDA_PLAN(function, ...)                                                                          \
    enum mm_status function(const struct mm_product *product, struct mm_plan *plan,                          \
                            struct mm_error *error) {                                                        \
        return __VA_ARGS__(product, plan, error);                                                            \
    }

/* Sizes of a kernel in which each thread of a square block computes one element of C. */
template <unsigned EDGE> struct mm_cuda_square {
    static constexpr unsigned ROWS = EDGE;
    static constexpr unsigned COLS = EDGE;
    static constexpr unsigned THREADS_X = EDGE;
    static constexpr unsigned THREADS_Y = EDGE;
};

/* Returns the address of element (row, col) of X, or of X transposed if TRANSPOSE. Offsets have 64 bits,
 * because a matrix may have more than 2³² elements. */
template <bool TRANSPOSE, typename TYPE = float>
__device__ __forceinline__ const TYPE *mm_element(const struct mm_matrix &x, unsigned row, unsigned col) {
    return static_cast<const TYPE *>(x.data) + (TRANSPOSE ? col * x.ld + row : row * x.ld + col);
}

template <class KERNEL, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(KERNEL::THREADS_X *KERNEL::THREADS_Y)
    mm_cuda_one(const __grid_constant__ struct mm_product product) {
    KERNEL::template run<TRANSPOSE_A, TRANSPOSE_B>(product);
}

__device__ __forceinline__ struct mm_matrix mm_cuda_dense(const void *data, unsigned rows, unsigned cols) {
    struct mm_matrix matrix = {};
    matrix.data = const_cast<void *>(data);
    matrix.rows = rows;
    matrix.cols = matrix.ld = cols;
    return matrix; /* dtype stays unset, because the kernel is compiled for one type */
}

/* Returns the product that this block computes. For a stack, returns item 0. Returns NULL if the block is
 * outside C. */
__device__ __forceinline__ const struct mm_cuda_item *mm_cuda_item_of(const struct mm_cuda_items &batch) {
    const struct mm_cuda_item &item = batch.items[batch.stack.rank == 0 ? blockIdx.z : 0];
    const bool is_past = blockIdx.y * batch.block_rows >= item.m || blockIdx.x * batch.block_cols >= item.n;
    return is_past ? nullptr : &item;
}

__device__ __forceinline__ void mm_cuda_move(struct mm_matrix *matrix, size_t bytes) {
    matrix->data = static_cast<char *>(matrix->data) + bytes;
}

/* Moves the addresses of the matrices from the stack's first product to the block's product. */
__device__ __forceinline__ void mm_cuda_move_on(const struct mm_cuda_stack &stack,
                                                struct mm_product *product) {
    if (stack.rank == 0)
        return;
    const size_t index = stack.first + blockIdx.z;
    size_t left = index;
#pragma unroll 1
    for (unsigned dim = stack.rank - 1; dim > 0; dim--) {
        const size_t at = left % stack.dims[dim];
        mm_cuda_move(&product->a, at * stack.a_steps[dim]);
        mm_cuda_move(&product->b, at * stack.b_steps[dim]);
        left /= stack.dims[dim];
    }
    mm_cuda_move(&product->a, left * stack.a_steps[0]);
    mm_cuda_move(&product->b, left * stack.b_steps[0]);
    mm_cuda_move(&product->c, index * stack.c_step);
}

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ __forceinline__ struct mm_product mm_cuda_product_of(const struct mm_cuda_items &batch,
                                                                const struct mm_cuda_item &item) {
    struct mm_product product = {};
    product.m = item.m;
    product.n = item.n;
    product.k = item.k;
    product.a = mm_cuda_dense(item.a, TRANSPOSE_A ? item.k : item.m, TRANSPOSE_A ? item.m : item.k);
    product.b = mm_cuda_dense(item.b, TRANSPOSE_B ? item.n : item.k, TRANSPOSE_B ? item.k : item.n);
    product.c = mm_cuda_dense(item.c, item.m, item.n);
    product.c.dtype = item.c_dtype;
    product.tile = batch.tile;
    mm_cuda_move_on(batch.stack, &product);
    return product;
}

template <class KERNEL, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(KERNEL::THREADS_X *KERNEL::THREADS_Y)
    mm_cuda_each(const __grid_constant__ struct mm_cuda_items batch) {
    const struct mm_cuda_item *item = mm_cuda_item_of(batch);
    if (item == nullptr)
        return;
    const struct mm_product product = mm_cuda_product_of<TRANSPOSE_A, TRANSPOSE_B>(batch, *item);
    KERNEL::template run<TRANSPOSE_A, TRANSPOSE_B>(product);
}

template <class KERNEL, typename ELEMENT>
__global__ void __launch_bounds__(KERNEL::THREADS_X *KERNEL::THREADS_Y)
    mm_cuda_transpose_one(const __grid_constant__ struct mm_product product) {
    KERNEL::template run<ELEMENT>(product);
}

template <class KERNEL, typename ELEMENT>
__global__ void __launch_bounds__(KERNEL::THREADS_X *KERNEL::THREADS_Y)
    mm_cuda_transpose_each(const __grid_constant__ struct mm_cuda_items batch) {
    const struct mm_cuda_item *item = mm_cuda_item_of(batch);
    if (item == nullptr)
        return;
    struct mm_product product = {};
    product.m = item->m;
    product.n = item->n;
    product.a = mm_cuda_dense(item->a, item->n, item->m);
    product.c = mm_cuda_dense(item->c, item->m, item->n);
    product.transpose_a = true;
    mm_cuda_move_on(batch.stack, &product);
    KERNEL::template run<ELEMENT>(product);
}

template <class KERNEL> struct mm_layout mm_layout_over() {
    struct mm_layout layout = {};
    layout.block_rows = KERNEL::ROWS;
    layout.block_cols = KERNEL::COLS;
    layout.threads_x = KERNEL::THREADS_X;
    layout.threads_y = KERNEL::THREADS_Y;
    return layout;
}

/* Returns the variant's block sizes, and its kernels for the product's transposes. */
template <class KERNEL> struct mm_layout mm_layout_of(const struct mm_product *product) {
    static const mm_cuda_kernel ones[2][2] = {
        {mm_cuda_one<KERNEL, false, false>, mm_cuda_one<KERNEL, false, true>},
        {mm_cuda_one<KERNEL, true, false>, mm_cuda_one<KERNEL, true, true>}};
    static void (*const each[2][2])(struct mm_cuda_items) = {
        {mm_cuda_each<KERNEL, false, false>, mm_cuda_each<KERNEL, false, true>},
        {mm_cuda_each<KERNEL, true, false>, mm_cuda_each<KERNEL, true, true>}};
    struct mm_layout layout = mm_layout_over<KERNEL>();
    layout.kernel = mm_cuda_pick(ones, product);
    layout.batch_kernel = reinterpret_cast<const void *>(each[product->transpose_a][product->transpose_b]);
    return layout;
}

/* The `plan` function of a variant for one element type. */
template <class KERNEL>
enum mm_status mm_cuda_plan_by(const struct mm_product *product, struct mm_plan *plan,
                               struct mm_error *error) {
    (void)error;
    plan->layout = mm_layout_of<KERNEL>(product);
    return MM_OK;
}

/* The `plan` function of a variant for all element types. KERNEL takes an mm_cuda_element (element.cuh). */
template <template <class ELEMENT> class KERNEL>
enum mm_status mm_cuda_plan_by_dtype(const struct mm_product *product, struct mm_plan *plan,
                                     struct mm_error *error) {
    static struct mm_layout (*const layout_of[MM_DTYPE_COUNT])(const struct mm_product *product) = {
#define X(constant, ...) mm_layout_of<KERNEL<mm_cuda_element<constant>>>,
        MM_DTYPE_TABLE(X)
#undef X
    };
    const bool is_float32 = product->a.dtype == MM_FLOAT32 && product->c.dtype == MM_FLOAT32;
    (void)error;
    plan->layout =
        is_float32 ? mm_layout_of<KERNEL<mm_cuda_float32>>(product) : layout_of[product->a.dtype](product);
    return MM_OK;
}

template <class KERNEL, typename ELEMENT> struct mm_layout mm_transpose_layout_of() {
    struct mm_layout layout = mm_layout_over<KERNEL>();
    layout.kernel = reinterpret_cast<const void *>(mm_cuda_transpose_one<KERNEL, ELEMENT>);
    layout.batch_kernel = reinterpret_cast<const void *>(mm_cuda_transpose_each<KERNEL, ELEMENT>);
    layout.reads_once = true;
    return layout;
}

/* The `plan` function of a transposition. The kernel copies elements as unsigned integers, because
 * floating-point instructions could change NaNs and subnormal numbers. */
template <class KERNEL>
enum mm_status mm_cuda_plan_transpose_by(const struct mm_product *product, struct mm_plan *plan,
                                         struct mm_error *error) {
    static const struct mm_layout layouts[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word, ...) mm_transpose_layout_of<KERNEL, word>(),
        MM_DTYPE_TABLE(X)
#undef X
    };
    (void)error;
    mm_cuda_plan_transposition(&layouts[product->a.dtype], product, plan);
    return MM_OK;
}
