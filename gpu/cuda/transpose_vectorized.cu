/* transpose vectorized: `padded` by accesses of 16 bytes. A thread reads four such pieces, one below the
 * other, a 4×4 square of elements of 4 bytes; turned, its columns are pieces of C's rows. Turning it costs
 * nothing: it is a matter of which register is which. (Of elements of 8 bytes it reads four squares of 2×2.)
 * The pieces go through a tile of 64×64 only so that whole warps read and write along rows, 256 or 512 bytes
 * at a time.
 *
 * It is faster for two reasons. A quarter of the instructions move the same bytes. And a thread has 64 or 128
 * bytes under way where it had 16 or 32: to keep memory of 4.8 TB/s busy, whose answer takes most of a
 * microsecond, each of 132 multiprocessors must have some 20 KiB under way at any time.
 *
 * Padding would break the pieces' alignment. So the tile is swizzled instead: within each of its rows the
 * pieces change places, by an exclusive or with a number that changes from one row of squares to the next,
 * and the eight threads whose 16 bytes make up one access to all 32 banks always meet eight different places.
 *
 * Global memory can be accessed by 16 bytes only where a matrix begins at a multiple of 16 bytes and its rows
 * are a multiple of 16 bytes long; else, and at the ends of C, elements go one by one, by neighbouring
 * threads. The kernel judges that for itself, for A and for C each, since the branch is the same for all
 * threads of a block. It costs a barrier and 16 or 32 KiB of shared memory.
 *
 * The idea is in NVIDIA's "CUDA Pro Tip: Increase Performance with Vectorized Memory Access"; its CUTLASS
 * swizzles shared memory likewise. */
#include "gpu/cuda/kernel.cuh"

namespace {

constexpr unsigned EDGE = 64; /* of a block's square of C */
constexpr unsigned THREADS = 256;
constexpr unsigned PLACES = 8; /* pieces that the 32 banks hold side by side */

/* 16 bytes of neighbours, which are read and written at once. */
template <typename ELEMENT> struct alignas(16) piece {
    static constexpr unsigned LENGTH = 16 / sizeof(ELEMENT);
    ELEMENT elements[LENGTH];
};

/* C's square, its rows in pieces that are swizzled. */
template <typename ELEMENT> struct tile {
    static constexpr unsigned LENGTH = piece<ELEMENT>::LENGTH;
    static constexpr unsigned PIECES = EDGE / LENGTH; /* of a row */
    piece<ELEMENT> pieces[EDGE][PIECES];

    __device__ piece<ELEMENT> &at(unsigned row, unsigned index) {
        return pieces[row][index ^ row / LENGTH % PLACES];
    }
    __device__ ELEMENT &element(unsigned row, unsigned col) {
        return at(row, col / LENGTH).elements[col % LENGTH];
    }
};

template <typename ELEMENT> __device__ bool is_wide(const struct mm_matrix &x) {
    return reinterpret_cast<size_t>(x.data) % 16 == 0 && x.ld % piece<ELEMENT>::LENGTH == 0;
}

/* Reads the square of A whose first element is (row, col), which is whole. A warp reads along rows of A and
 * writes pieces of one column of the tile, LENGTH rows apart: there the swizzle is needed. */
template <typename ELEMENT>
__device__ void load(tile<ELEMENT> &to, const struct mm_matrix &a, unsigned row, unsigned col) {
    constexpr unsigned LENGTH = tile<ELEMENT>::LENGTH;
    constexpr unsigned PIECES = tile<ELEMENT>::PIECES;
    constexpr unsigned SQUARES = PIECES * PIECES / THREADS; /* of a thread */
    const ELEMENT *from = static_cast<const ELEMENT *>(a.data) + row * a.ld + col;
    const unsigned x = threadIdx.x % PIECES;
    piece<ELEMENT> squares[SQUARES][LENGTH];

    /* Reads before writes, so that they are under way together. */
#pragma unroll
    for (unsigned s = 0; s < SQUARES; s++) {
        const unsigned y = threadIdx.x / PIECES + s * (THREADS / PIECES);
        const ELEMENT *line = from + y * LENGTH * a.ld + x * LENGTH;
#pragma unroll
        for (unsigned i = 0; i < LENGTH; i++)
            squares[s][i] = *reinterpret_cast<const piece<ELEMENT> *>(line + i * a.ld);
    }
#pragma unroll
    for (unsigned s = 0; s < SQUARES; s++) {
        const unsigned y = threadIdx.x / PIECES + s * (THREADS / PIECES);
#pragma unroll
        for (unsigned j = 0; j < LENGTH; j++) {
            piece<ELEMENT> turned;
#pragma unroll
            for (unsigned i = 0; i < LENGTH; i++)
                turned.elements[i] = squares[s][i].elements[j];
            to.at(x * LENGTH + j, y) = turned;
        }
    }
}

/* The same, element by element, as far as A goes; zeros past its edges, which are never stored. */
template <typename ELEMENT>
__device__ void load_narrow(tile<ELEMENT> &to, const struct mm_matrix &a, unsigned row, unsigned col) {
    constexpr unsigned STEP = THREADS / EDGE;
    const unsigned x = threadIdx.x % EDGE;
    const unsigned y = threadIdx.x / EDGE;
    const ELEMENT *from = static_cast<const ELEMENT *>(a.data);
    ELEMENT elements[EDGE / STEP];

    /* Stepped, rather than worked out for each. It may lie past the end of A. */
    size_t index = (row + y) * a.ld + col + x;
#pragma unroll
    for (unsigned i = 0; i < EDGE / STEP; i++, index += STEP * a.ld)
        elements[i] = row + y + i * STEP < a.rows && col + x < a.cols ? from[index] : 0;
#pragma unroll
    for (unsigned i = 0; i < EDGE / STEP; i++)
        to.element(x, y + i * STEP) = elements[i];
}

/* Writes the tile to the square of C whose first element is (row, col), which is whole. */
template <typename ELEMENT>
__device__ void store(const struct mm_matrix &c, tile<ELEMENT> &from, unsigned row, unsigned col) {
    constexpr unsigned LENGTH = tile<ELEMENT>::LENGTH;
    constexpr unsigned PIECES = tile<ELEMENT>::PIECES;
    ELEMENT *to = static_cast<ELEMENT *>(c.data) + row * c.ld + col;
    const unsigned x = threadIdx.x % PIECES;
#pragma unroll
    for (unsigned step = 0; step < EDGE; step += THREADS / PIECES) {
        const unsigned y = step + threadIdx.x / PIECES;
        *reinterpret_cast<piece<ELEMENT> *>(&to[y * c.ld + x * LENGTH]) = from.at(y, x);
    }
}

/* The same, element by element, as far as C goes. */
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

        if (whole && is_wide<ELEMENT>(product.a))
            load(square, product.a, col, row);
        else
            load_narrow(square, product.a, col, row);

        /* Each thread takes what others wrote: no one goes on before all have written. */
        __syncthreads();

        if (whole && is_wide<ELEMENT>(product.c))
            store(product.c, square, row, col);
        else
            store_narrow(product.c, square, row, col);
    }
};

} // namespace

enum mm_status mm_cuda_transpose_vectorized(const struct mm_product *product, struct mm_lane *lane,
                                            struct mm_error *error) {
    return mm_cuda_transpose_by<vectorized>(product, lane, error);
}
