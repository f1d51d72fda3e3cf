/* Kernels for the harness to find: `tiled_16` again, and `tiled_async` with its tile, wrong in one way each
 * and right in every other. They are rows like any variant's, to be run by mm_backend.measure, and stand
 * in no backend's table.
 *
 * What each does wrong shows on: missing_barrier, any k > 0 (and n > 14 where B is transposed);
 * dropped_bound, n that is no multiple of 16, by up to 15 elements after the end of each row of C, the last
 * row included (so let C be followed by at least 15 guard words); wrong_stride, an A whose rows are longer
 * than its columns; aligned_operand, a B whose address 16 does not divide; lost_last_slab, k that is no
 * multiple of 16; missing_wait, any k > 0; stale_slab, k > 16. */
#include "gpu/cuda/async.cuh"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"

namespace {

enum flaw {
    MISSING_BARRIER,
    DROPPED_BOUND,
    WRONG_STRIDE,
    ALIGNED_OPERAND,
    LOST_LAST_SLAB,
    MISSING_WAIT,
    STALE_SLAB
};

constexpr unsigned TILE = 16;

template <bool TRANSPOSE>
__device__ void load(float (&tile)[TILE][TILE], const struct mm_matrix &x, size_t ld, unsigned row,
                     unsigned col) {
    const unsigned stored_row = (TRANSPOSE ? col : row) + threadIdx.y;
    const unsigned stored_col = (TRANSPOSE ? row : col) + threadIdx.x;
    float element = 0.0f;
    if (stored_row < x.rows && stored_col < x.cols)
        element = static_cast<const float *>(x.data)[stored_row * ld + stored_col];
    if (TRANSPOSE)
        tile[threadIdx.x][threadIdx.y] = element;
    else
        tile[threadIdx.y][threadIdx.x] = element;
}

/* Without the barrier a block may still be lucky. So its last warp is late by about 10 µs, and what
 * the others then read in place of its elements is NaN, not what an earlier launch left there. */
__device__ void prepare_race(float (&a_tile)[TILE][TILE], float (&b_tile)[TILE][TILE]) {
    a_tile[threadIdx.y][threadIdx.x] = b_tile[threadIdx.y][threadIdx.x] = __int_as_float(0x7fffffff);
    __syncthreads();
    const long long begin = clock64();
    while (threadIdx.y >= TILE - 2 && clock64() - begin < 20000) {
    }
}

template <enum flaw FLAW, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(TILE *TILE) broken(const __grid_constant__ struct mm_product product) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const unsigned row = blockIdx.y * TILE + threadIdx.y;
    const unsigned col = blockIdx.x * TILE + threadIdx.x;
    const size_t lda = FLAW == WRONG_STRIDE ? product.a.cols : product.a.ld;
    struct mm_matrix b = product.b;
    if (FLAW == ALIGNED_OPERAND)
        b.data = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(b.data) / 16 * 16);
    const size_t depth = FLAW == LOST_LAST_SLAB ? product.k / TILE * TILE : product.k;
    if (FLAW == MISSING_BARRIER)
        prepare_race(a_tile, b_tile);

    float sum = 0.0f;
    for (unsigned step = 0; step < depth; step += TILE) {
        load<TRANSPOSE_A>(a_tile, product.a, lda, blockIdx.y * TILE, step);
        load<TRANSPOSE_B>(b_tile, b, b.ld, step, blockIdx.x * TILE);
        if (FLAW != MISSING_BARRIER)
            __syncthreads();
        for (unsigned i = 0; i < TILE; i++)
            sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < product.m && (FLAW == DROPPED_BOUND || col < product.n))
        static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
}

template <bool TRANSPOSE>
__device__ void fetch(float (&tile)[TILE][TILE], const struct mm_matrix &x, unsigned row, unsigned col) {
    const unsigned stored_row = (TRANSPOSE ? col : row) + threadIdx.y;
    const unsigned stored_col = (TRANSPOSE ? row : col) + threadIdx.x;
    mm_copy_async<1>(TRANSPOSE ? &tile[threadIdx.x][threadIdx.y] : &tile[threadIdx.y][threadIdx.x],
                     static_cast<const float *>(x.data) + stored_row * x.ld + stored_col,
                     stored_row < x.rows && stored_col < x.cols ? 1 : 0);
}

/* As `tiled_async`. Its faults are those of copies that run meanwhile: read before they have come (NaN
 * stands there till then), and not begun for the last step, which finds the tiles of the one before. */
template <enum flaw FLAW, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(TILE *TILE)
    broken_async(const __grid_constant__ struct mm_product product) {
    __shared__ float a_tile[2][TILE][TILE];
    __shared__ float b_tile[2][TILE][TILE];
    const unsigned first_row = blockIdx.y * TILE;
    const unsigned first_col = blockIdx.x * TILE;
    const unsigned row = first_row + threadIdx.y;
    const unsigned col = first_col + threadIdx.x;
    a_tile[0][threadIdx.y][threadIdx.x] = b_tile[0][threadIdx.y][threadIdx.x] = __int_as_float(0x7fffffff);
    __syncthreads();

    if (product.k > 0) {
        fetch<TRANSPOSE_A>(a_tile[0], product.a, first_row, 0);
        fetch<TRANSPOSE_B>(b_tile[0], product.b, 0, first_col);
    }
    float sum = 0.0f;
    unsigned now = 0;
    for (unsigned step = 0; step < product.k; step += TILE) {
        const unsigned next = step + TILE;
        if (FLAW != MISSING_WAIT)
            mm_wait_copies();
        __syncthreads();
        for (unsigned i = 0; i < TILE; i++)
            sum = fmaf(a_tile[now][threadIdx.y][i], b_tile[now][i][threadIdx.x], sum);
        if (FLAW == STALE_SLAB ? next + TILE < product.k : next < product.k) {
            now ^= 1;
            fetch<TRANSPOSE_A>(a_tile[now], product.a, first_row, next);
            fetch<TRANSPOSE_B>(b_tile[now], product.b, next, first_col);
        }
    }
    mm_wait_copies();
    if (row < product.m && col < product.n)
        static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
}

template <enum flaw FLAW>
enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    constexpr bool ASYNC = FLAW == MISSING_WAIT || FLAW == STALE_SLAB;
    static const mm_cuda_kernel kernels[2][2][2] = {
        {{broken<FLAW, false, false>, broken<FLAW, false, true>},
         {broken<FLAW, true, false>, broken<FLAW, true, true>}},
        {{broken_async<FLAW, false, false>, broken_async<FLAW, false, true>},
         {broken_async<FLAW, true, false>, broken_async<FLAW, true, true>}}};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick(kernels[ASYNC], product);
    layout.block_rows = layout.threads_y = TILE;
    layout.block_cols = layout.threads_x = TILE;
    return mm_cuda_launch(&layout, product, lane, error);
}

constexpr struct mm_variant row_of(const char *name, const char *summary,
                                   enum mm_status (*launch)(const struct mm_product *, struct mm_lane *,
                                                            struct mm_error *),
                                   const char *(*missing)(const struct mm_device *) = nullptr) {
    return {name, summary, nullptr, MM_MATMUL, MM_DTYPE_BIT(MM_FLOAT32), TILE, nullptr,
            0,    missing, launch,  nullptr};
}

} // namespace

extern "C" {
extern const struct mm_variant mm_broken_cuda[];
extern const size_t mm_broken_cuda_count;

const struct mm_variant mm_broken_cuda[] = {
    row_of("missing_barrier", "reads the tiles before all of them are written", launch<MISSING_BARRIER>),
    row_of("dropped_bound", "writes C past its last column", launch<DROPPED_BOUND>),
    row_of("wrong_stride", "takes A for dense", launch<WRONG_STRIDE>),
    row_of("aligned_operand", "takes B's address for a multiple of 16", launch<ALIGNED_OPERAND>),
    row_of("lost_last_slab", "leaves out the last columns of A that do not fill a tile",
           launch<LOST_LAST_SLAB>),
    row_of("missing_wait", "reads the tiles before their copies have come", launch<MISSING_WAIT>,
           mm_cuda_async_missing),
    row_of("stale_slab", "does not fetch the last of several slabs", launch<STALE_SLAB>,
           mm_cuda_async_missing),
};
const size_t mm_broken_cuda_count = sizeof mm_broken_cuda / sizeof mm_broken_cuda[0];
}
