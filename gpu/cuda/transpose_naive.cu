/* transpose naive: one thread an element, read and written once. It is what the other transposes are compared
 * with, and shows why a transpose is no copy: whichever way the threads lie, one of the two matrices is
 * walked across its rows. Here a warp's 32 threads read neighbours in a row of A, one 128-byte line, and
 * write down a column of C, each into a line of its own: 32 transactions, of which each moves 4 or 8 of the
 * 32 bytes that memory is written by at least. The L2 cache mends part of it, where the threads beside in C
 * write the rest of those bytes soon. It costs no shared memory and no barrier.
 *
 * It is the first step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/kernel.cuh"

namespace {

struct naive {
    /* As tall as a warp is long, so that no warp spans two rows of A. */
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

enum mm_status mm_cuda_transpose_naive(const struct mm_product *product, struct mm_lane *lane,
                                       struct mm_error *error) {
    return mm_cuda_transpose_by<naive>(product, lane, error);
}
