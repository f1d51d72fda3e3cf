/* tiled_strided_16: `tiled_16` told in sub-matrices. A sub-matrix is {width, height, stride, elements}: a
 * rectangle of a larger matrix that keeps that matrix's stride. Each block takes its square of C, and at
 * each step a square of A and one of B, cut to what the matrix has there; whoever holds such a view
 * can neither read nor write outside it, so that the edges need no thought further on, and a matrix
 * that lies in a larger one is no special case.
 *
 * It is no faster than `tiled_16`, whose memory traffic, sums and costs it has: 2 KiB of shared
 * memory a block, two barriers for every 16 of k. It pays some integer arithmetic for the clearer form.
 *
 * The squares of a block are sub-matrices in any case; a matrix that is one itself comes up in tests alone,
 * since jobs pack theirs on the way to the device.
 *
 * The form is that of the shared memory example of NVIDIA's CUDA C++ Programming Guide, with the edges
 * added. */
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 16;

template <typename ELEMENT> struct sub_matrix {
    unsigned width;  /* columns */
    unsigned height; /* rows */
    size_t stride;   /* elements from one row to the next */
    ELEMENT *elements;
};

/* What is left of `length` from `first` on, at most a tile. */
__device__ unsigned cut(size_t length, unsigned first) {
    return length - first < TILE ? static_cast<unsigned>(length - first) : TILE;
}

/* The tile of a stored matrix whose first element is (row, col), which the matrix has. */
template <typename ELEMENT>
__device__ sub_matrix<ELEMENT> take(const struct mm_matrix &x, unsigned row, unsigned col) {
    return {cut(x.cols, col), cut(x.rows, row), x.ld, static_cast<ELEMENT *>(x.data) + row * x.ld + col};
}

/* Copies a sub-matrix into a tile, one element a thread, as it is or turned; zeros fill up the tile.
 * Neighbouring threads read neighbouring elements either way. */
template <bool TURN> __device__ void stage(float (&tile)[TILE][TILE], const sub_matrix<const float> &sub) {
    float element = 0.0f;
    if (threadIdx.y < sub.height && threadIdx.x < sub.width)
        element = sub.elements[threadIdx.y * sub.stride + threadIdx.x];
    if (TURN)
        tile[threadIdx.x][threadIdx.y] = element;
    else
        tile[threadIdx.y][threadIdx.x] = element;
}

struct tiled_strided : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const sub_matrix<float> c_sub = take<float>(product.c, first_row, first_col);

        float sum = 0.0f;
        for (unsigned step = 0; step < product.k; step += TILE) {
            const auto a_sub = TRANSPOSE_A ? take<const float>(product.a, step, first_row)
                                           : take<const float>(product.a, first_row, step);
            const auto b_sub = TRANSPOSE_B ? take<const float>(product.b, first_col, step)
                                           : take<const float>(product.b, step, first_col);
            stage<TRANSPOSE_A>(a_tile, a_sub);
            stage<TRANSPOSE_B>(b_tile, b_sub);

            /* Each thread reads what others wrote: no one starts before all have written. */
            __syncthreads();

            /* Past k both tiles hold 0, and nothing is added there. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);

            /* The next step overwrites the tiles: no one goes on before all have read. */
            __syncthreads();
        }

        if (threadIdx.y < c_sub.height && threadIdx.x < c_sub.width)
            c_sub.elements[threadIdx.y * c_sub.stride + threadIdx.x] = sum;
    }
};

} // namespace

enum mm_status mm_cuda_tiled_strided_16(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    return mm_cuda_launch_by<tiled_strided>(product, lane, error);
}
