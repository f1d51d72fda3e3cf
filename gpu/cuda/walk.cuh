/* A thread's way through an operand of a tiled product: one element of each tile along k, TILE×TILE threads a
 * block. What does not change on the way, the row or column it keeps to and where that ends, is worked out
 * once. For kernel files alone. */
#ifndef MM_GPU_CUDA_WALK_CUH
#define MM_GPU_CUDA_WALK_CUH

#include "gpu/matrix.h"

/* A line is a row of op(A) or a column of op(B). ALONG says that its elements are neighbours in memory (A as
 * it is, B transposed): then threads that are neighbours in x share a line, else they share a k. Either way
 * they read neighbours, so that the reads are coalesced. */
template <unsigned TILE, bool ALONG> struct mm_walk {
    const float *next; /* this thread's element of the next tile; past the end of X it points anywhere */
    size_t stride;     /* from one tile to the next */
    unsigned end;      /* where X has that element: in tiles that begin at a k below this one */

    __device__ __forceinline__ mm_walk(const struct mm_matrix &x, unsigned first_line) {
        const unsigned line = first_line + (ALONG ? threadIdx.y : threadIdx.x);
        const unsigned depth = ALONG ? threadIdx.x : threadIdx.y;
        const unsigned lines = static_cast<unsigned>(ALONG ? x.rows : x.cols);
        const unsigned k = static_cast<unsigned>(ALONG ? x.cols : x.rows);
        next = static_cast<const float *>(x.data) + (ALONG ? line * x.ld + depth : depth * x.ld + line);
        stride = ALONG ? TILE : TILE * x.ld;
        end = line < lines && depth < k ? k - depth : 0;
    }

    /* The element of the tile that begins at `step`, and on to the next; past an edge of X it is 0. */
    __device__ __forceinline__ float take(unsigned step) {
        const float element = step < end ? *next : 0.0f;
        next += stride;
        return element;
    }
};

#endif
