/* transpose naive: each thread loads and stores one element. The kernel shows why a transposition costs more
 * than a copy. A warp loads 32 neighbours in a row of A, and stores them in a column of C, which lies in 32
 * cache lines. docs/lessons/7-transposition.md explains the cost. Source: the first step of NVIDIA's "An
 * Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

struct naive {
    /* A block has as many rows of C as a warp has threads, so each warp stays in one row of A. */
    static constexpr unsigned ROWS = 32;
    static constexpr unsigned COLS = 8;
    static constexpr unsigned THREADS_X = ROWS;
    static constexpr unsigned THREADS_Y = COLS;

    template <typename ELEMENT> static __device__ __forceinline__ void run(const struct mm_product &product) {
        const unsigned row = blockIdx.y * ROWS + threadIdx.x;
        const unsigned col = blockIdx.x * COLS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return;
        const ELEMENT *a = static_cast<const ELEMENT *>(product.a.data);
        ELEMENT *c = static_cast<ELEMENT *>(product.c.data);
        c[row * product.c.ld + col] = a[col * product.a.ld + row];
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_transpose_naive, mm_cuda_plan_transpose_by<naive>)
