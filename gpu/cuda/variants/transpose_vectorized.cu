/* transpose vectorized: `padded` with accesses of 16 bytes, called vectors here: four elements of 4 bytes, or
 * two of 8. A thread loads four vectors, one below the other, which are a 4×4 square of elements. The columns
 * of that square are vectors of C's rows. Turning it costs nothing: it only decides which register is stored
 * where. (Of elements of 8 bytes, a thread turns four squares of 2×2.) The vectors pass through a 64×64 tile
 * in shared memory, only so that whole warps load and store along rows, 256 or 512 bytes at a time.
 *
 *        square of A         turned in registers, staged      stored as a row of C
 *        a b c d             a e i m    in row 0 of the tile  a e i m . . .
 *        e f g h             b f j n    in row 1
 *        i j k l             c g k o    in row 2
 *        m n o p             d h l p    in row 3
 *
 * It is faster for two reasons. A quarter of the instructions move the same bytes. And a thread has 64 or 128
 * bytes in flight instead of 16 or 32. To keep memory of 4.8 TB/s busy that answers after most of a
 * microsecond, each of 132 multiprocessors must have some 20 KiB in flight at any time.
 *
 * Banks: padding would break the alignment of the vectors. So the tile is swizzled: within each of its rows
 * the vectors change places, by an exclusive or with a number that changes from one row of squares to the
 * next. One access to all 32 banks is the 16 bytes of eight threads, and these eight always meet different
 * places.
 *
 * Edges: vectors need a matrix that begins at a multiple of 16 bytes and has rows of a multiple of 16 bytes,
 * and a whole 64×64 square. Else elements go one by one, by neighbouring threads. The kernel decides that for
 * A and for C each; the branch is the same for all threads of a block. Elements of 1 and 2 bytes are always
 * loaded one by one: their squares would be 16×16 and 8×8, and a tile has too few of these for its threads.
 *
 * Launch: ⌈n/64⌉×⌈m/64⌉ blocks of 256 threads for a C of m×n.
 *
 * Cost: a barrier and 16 or 32 KiB of shared memory (4 or 8 for elements of 1 or 2 bytes). Measured on an
 * H200: 97% of the speed of a copy at 16384² float32; `padded` 88%.
 *
 * Source: NVIDIA's "CUDA Pro Tip: Increase Performance with Vectorized Memory Access". Its CUTLASS swizzles
 * shared memory likewise. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned EDGE = 64; /* of a block's square of C */
constexpr unsigned THREADS = 256;
constexpr unsigned PLACES = 8; /* of vectors side by side in the 32 banks */

/* 16 bytes of neighbours, which one access loads or stores. */
template <typename ELEMENT> struct alignas(16) vector {
    static constexpr unsigned LENGTH = 16 / sizeof(ELEMENT);
    ELEMENT elements[LENGTH];
};

/* The square of C. Within its rows the vectors are swizzled. */
template <typename ELEMENT> struct tile {
    static constexpr unsigned LENGTH = vector<ELEMENT>::LENGTH;
    static constexpr unsigned VECTORS = EDGE / LENGTH; /* of a row */
    vector<ELEMENT> vectors[EDGE][VECTORS];

    __device__ vector<ELEMENT> &at(unsigned row, unsigned index) {
        return vectors[row][index ^ row / LENGTH % PLACES];
    }
    __device__ ELEMENT &element(unsigned row, unsigned col) {
        return at(row, col / LENGTH).elements[col % LENGTH];
    }
};

/* Whether every row of X begins at a multiple of 16 bytes: then aligned vectors of it can be one access. */
template <typename ELEMENT> __device__ bool is_wide(const struct mm_matrix &x) {
    return reinterpret_cast<size_t>(x.data) % 16 == 0 && x.ld % vector<ELEMENT>::LENGTH == 0;
}

/* Loads the square of A from (row, col) on, which must be whole, and stages it turned. A warp loads along
 * rows of A and writes vectors of one column of the tile, LENGTH rows apart: here the swizzle is needed. */
template <typename ELEMENT>
__device__ void stage(tile<ELEMENT> &to, const struct mm_matrix &a, unsigned row, unsigned col) {
    constexpr unsigned LENGTH = tile<ELEMENT>::LENGTH;
    constexpr unsigned VECTORS = tile<ELEMENT>::VECTORS;
    constexpr unsigned SQUARES = VECTORS * VECTORS / THREADS; /* of a thread */
    const ELEMENT *from = static_cast<const ELEMENT *>(a.data) + row * a.ld + col;
    const unsigned x = threadIdx.x % VECTORS;
    vector<ELEMENT> squares[SQUARES][LENGTH];

    /* All loads first, so they are in flight together. */
#pragma unroll
    for (unsigned s = 0; s < SQUARES; s++) {
        const unsigned y = threadIdx.x / VECTORS + s * (THREADS / VECTORS);
        const ELEMENT *line = from + y * LENGTH * a.ld + x * LENGTH;
#pragma unroll
        for (unsigned i = 0; i < LENGTH; i++)
            squares[s][i] = *reinterpret_cast<const vector<ELEMENT> *>(line + i * a.ld);
    }
#pragma unroll
    for (unsigned s = 0; s < SQUARES; s++) {
        const unsigned y = threadIdx.x / VECTORS + s * (THREADS / VECTORS);
#pragma unroll
        for (unsigned j = 0; j < LENGTH; j++) {
            vector<ELEMENT> turned;
#pragma unroll
            for (unsigned i = 0; i < LENGTH; i++)
                turned.elements[i] = squares[s][i].elements[j];
            to.at(x * LENGTH + j, y) = turned;
        }
    }
}

/* The same element by element, as far as A goes. Past its edges it stages zeros, which are never stored. */
template <typename ELEMENT>
__device__ void stage_narrow(tile<ELEMENT> &to, const struct mm_matrix &a, unsigned row, unsigned col) {
    constexpr unsigned STEP = THREADS / EDGE;
    const unsigned x = threadIdx.x % EDGE;
    const unsigned y = threadIdx.x / EDGE;
    const ELEMENT *from = static_cast<const ELEMENT *>(a.data);
    ELEMENT elements[EDGE / STEP];

    /* Each index is the one before plus a stride. It may lie past the end of A. */
    size_t index = (row + y) * a.ld + col + x;
#pragma unroll
    for (unsigned i = 0; i < EDGE / STEP; i++, index += STEP * a.ld)
        elements[i] = row + y + i * STEP < a.rows && col + x < a.cols ? from[index] : 0;
#pragma unroll
    for (unsigned i = 0; i < EDGE / STEP; i++)
        to.element(x, y + i * STEP) = elements[i];
}

/* Stores the tile in the square of C from (row, col) on, which must be whole. */
template <typename ELEMENT>
__device__ void store(const struct mm_matrix &c, tile<ELEMENT> &from, unsigned row, unsigned col) {
    constexpr unsigned LENGTH = tile<ELEMENT>::LENGTH;
    constexpr unsigned VECTORS = tile<ELEMENT>::VECTORS;
    ELEMENT *to = static_cast<ELEMENT *>(c.data) + row * c.ld + col;
    const unsigned x = threadIdx.x % VECTORS;
#pragma unroll
    for (unsigned step = 0; step < EDGE; step += THREADS / VECTORS) {
        const unsigned y = step + threadIdx.x / VECTORS;
        *reinterpret_cast<vector<ELEMENT> *>(&to[y * c.ld + x * LENGTH]) = from.at(y, x);
    }
}

/* The same element by element, as far as C goes. */
template <typename ELEMENT>
__device__ void store_narrow(const struct mm_matrix &c, tile<ELEMENT> &from, unsigned row, unsigned col) {
    ELEMENT *to = static_cast<ELEMENT *>(c.data);
    const unsigned x = threadIdx.x % EDGE;
#pragma unroll
    for (unsigned step = 0; step < EDGE; step += THREADS / EDGE) {
        const unsigned y = step + threadIdx.x / EDGE;
        if (row + y < c.rows && col + x < c.cols)
            to[(row + y) * c.ld + col + x] = from.element(y, x);
    }
}

struct vectorized {
    static constexpr unsigned ROWS = EDGE;
    static constexpr unsigned COLS = EDGE;
    static constexpr unsigned THREADS_X = THREADS;
    static constexpr unsigned THREADS_Y = 1;

    template <typename ELEMENT> static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ tile<ELEMENT> square;
        const unsigned row = blockIdx.y * EDGE; /* of C */
        const unsigned col = blockIdx.x * EDGE;
        const bool whole = row + EDGE <= product.m && col + EDGE <= product.n;

        if constexpr (sizeof(ELEMENT) < 4)
            stage_narrow(square, product.a, col, row);
        else if (whole && is_wide<ELEMENT>(product.a))
            stage(square, product.a, col, row);
        else
            stage_narrow(square, product.a, col, row);

        /* Each thread reads what others staged: none may read before all have written. */
        __syncthreads();

        if (whole && is_wide<ELEMENT>(product.c))
            store(product.c, square, row, col);
        else
            store_narrow(product.c, square, row, col);
    }
};

} // namespace

enum mm_status mm_cuda_transpose_vectorized(const struct mm_product *product, struct mm_plan *plan,
                                            struct mm_error *error) {
    return mm_cuda_plan_transpose_by<vectorized>(product, plan, error);
}
