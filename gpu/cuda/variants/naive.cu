/* naive: one thread for each element of C. The thread multiplies a row of A by a column of B, and loads
 * both from global memory. The 32 threads of a warp compute neighbours in a row of C. At each step along k
 * they share one element of A and load 32 successive elements of B, so their loads are coalesced. If B is
 * stored transposed, the loads of B are not coalesced. docs/kernels.md has the figures. Source: the product
 * without shared memory in NVIDIA's CUDA C++ Programming Guide, here for any shape. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

template <class ELEMENT> struct naive {
    /* A block is as wide as a warp, so no warp spans two rows of C. It has eight rows, so eight warps load
     * the same lines of B soon after one another and find them in the L1 cache. */
    static constexpr unsigned COLS = 32;
    static constexpr unsigned ROWS = 8;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = ROWS;

    using type = typename ELEMENT::type;         /* float if the operands are float32 */
    using sum_type = typename ELEMENT::sum_type; /* float if the operands are float32 */

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        const unsigned col = blockIdx.x * COLS + threadIdx.x;
        const unsigned row = blockIdx.y * ROWS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return; /* the blocks at the edges reach past C */

        /* The thread's first elements, and the strides between its elements. */
        const type *a = mm_element<TRANSPOSE_A, type>(product.a, row, 0);
        const type *b = mm_element<TRANSPOSE_B, type>(product.b, 0, col);
        const size_t a_stride = TRANSPOSE_A ? product.a.ld : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : product.b.ld;

        /* Converts each element to the type of the sums, and the sum to C's type. */
        sum_type sum = 0;
        for (size_t i = 0; i < product.k; i++)
            sum = mm_cuda_multiply_add(ELEMENT::value(a[i * a_stride]), ELEMENT::value(b[i * b_stride]), sum);
        mm_store_c<ELEMENT>(product, row, col, sum);
    }
};

} // namespace

/* Plans `run`, compiled for the product's element type and transposes, on ⌈n/COLS⌉×⌈m/ROWS⌉ blocks. */
enum mm_status mm_cuda_naive(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    return mm_cuda_plan_by_dtype<naive>(product, plan, error);
}
