/* naive: one thread for each element of C. The thread multiplies a row of A by a column of B, and loads both
 * from global memory. The 32 threads of a warp compute neighbours in a row of C. In each step along k they
 * load 32 neighbouring elements of B together. Such loads are called coalesced. If B is stored transposed,
 * they are not coalesced. docs/kernels.md has measured times. Source: NVIDIA's CUDA C++ Programming Guide. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

template <class ELEMENT> struct naive {
    /* A block is as wide as a warp, so each warp stays in one row of C. All eight warps of a block need the
     * same elements of B, so seven of them find these elements in the L1 cache. */
    static constexpr unsigned COLS = 32;
    static constexpr unsigned ROWS = 8;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = ROWS;

    using type = typename ELEMENT::type; /* for float32, `type` and `sum_type` are float */
    using sum_type = typename ELEMENT::sum_type;

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        const unsigned col = blockIdx.x * COLS + threadIdx.x;
        const unsigned row = blockIdx.y * ROWS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return; /* the last blocks may reach past C */

        /* The addresses of the thread's first elements, and the distances to its next elements. */
        const type *a = mm_element<TRANSPOSE_A, type>(product.a, row, 0);
        const type *b = mm_element<TRANSPOSE_B, type>(product.b, 0, col);
        const size_t a_stride = TRANSPOSE_A ? product.a.ld : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : product.b.ld;

        /* `value` converts an element to the type of the sums. */
        sum_type sum = 0;
        for (size_t i = 0; i < product.k; i++)
            sum = mm_cuda_multiply_add(ELEMENT::value(a[i * a_stride]), ELEMENT::value(b[i * b_stride]), sum);
        mm_store_c<ELEMENT>(product, row, col, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_naive, mm_cuda_plan_by_dtype<naive>)
