/* tiled_strided_16: `tiled_16` (tiled.cu) written with sub-matrices. A sub-matrix is a rectangle of a larger
 * matrix, and its rows have the distance (stride) of the larger matrix's rows. A block uses a sub-matrix for
 * its square of C, and in each step one for A and one for B. Sub-matrices end at the borders of their matrix,
 * so code that uses them needs no other bounds checks. docs/lessons/4-strides.md explains strides, and
 * docs/kernels.md the cost. Source: NVIDIA's CUDA C++ Programming Guide. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 16;

struct sub_matrix {
    unsigned width;
    unsigned height;
    size_t stride; /* elements from one row to the next */
    const float *elements;
};

/* Returns the number of elements from index `first` to `length`, but at most TILE. */
__device__ unsigned cut(size_t length, unsigned first) {
    return length - first < TILE ? static_cast<unsigned>(length - first) : TILE;
}

/* Returns the square that begins at element (row, col), which must be inside the stored matrix. */
__device__ sub_matrix sub_matrix_at(const struct mm_matrix &x, unsigned row, unsigned col) {
    return {cut(x.cols, col), cut(x.rows, row), x.ld, static_cast<const float *>(x.data) + row * x.ld + col};
}

/* Copies a sub-matrix to a tile, transposed if TURN. Fills the other elements of the tile with zeros. */
template <bool TURN> __device__ void stage(float (&tile)[TILE][TILE], const sub_matrix &sub) {
    float element = 0.0f;
    if (threadIdx.y < sub.height && threadIdx.x < sub.width)
        element = sub.elements[threadIdx.y * sub.stride + threadIdx.x];
    (TURN ? tile[threadIdx.x][threadIdx.y] : tile[threadIdx.y][threadIdx.x]) = element;
}

struct tiled_strided : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const sub_matrix c_sub = sub_matrix_at(product.c, first_row, first_col);

        float sum = 0.0f;
        for (unsigned step = 0; step < product.k; step += TILE) {
            const auto a_sub = TRANSPOSE_A ? sub_matrix_at(product.a, step, first_row)
                                           : sub_matrix_at(product.a, first_row, step);
            const auto b_sub = TRANSPOSE_B ? sub_matrix_at(product.b, first_col, step)
                                           : sub_matrix_at(product.b, step, first_col);
            stage<TRANSPOSE_A>(a_tile, a_sub);
            stage<TRANSPOSE_B>(b_tile, b_sub);
            /* Wait until both tiles are complete, because threads read what other threads wrote. */
            __syncthreads();
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);
            /* Wait until all threads have read the tiles, because the next step overwrites them. */
            __syncthreads();
        }
        if (threadIdx.y < c_sub.height && threadIdx.x < c_sub.width)
            mm_store_c(product, size_t{first_row} + threadIdx.y, size_t{first_col} + threadIdx.x, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_tiled_strided_16, mm_cuda_plan_by<tiled_strided>)
