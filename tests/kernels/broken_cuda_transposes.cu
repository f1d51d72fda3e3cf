/* Transposing kernels for the harness to find: transpose `padded` again, wrong in one way each and right in
 * every other. They are rows like any variant's, and stand in no backend's table.
 *
 * What each does wrong shows on: missing_barrier, any shape; dropped_bound, n that is no multiple of 32, by
 * up to 31 elements after the end of each row of C, the last row included; wrong_stride, an A whose rows are
 * longer than its columns; lost_last_tile, n that is no multiple of 32; aligned_operand, an A whose address
 * is no multiple of 16. */
#include "gpu/cuda/transpose.h"

namespace {

enum flaw { MISSING_BARRIER, DROPPED_BOUND, WRONG_STRIDE, LOST_LAST_TILE, ALIGNED_OPERAND };

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8;

/* Without the barrier a block may still be lucky. So its last rows of threads are late by about 10 µs, and
 * what the others then read in place of its elements is no element, nor what an earlier launch left there. */
template <typename ELEMENT> __device__ void prepare_race(ELEMENT (&tile)[TILE][TILE + 1]) {
    for (unsigned y = threadIdx.y; y < TILE; y += STEP)
        tile[y][threadIdx.x] = static_cast<ELEMENT>(0xdeadbeefdeadbeef);
    __syncthreads();
    const long long begin = clock64();
    while (threadIdx.y >= STEP - 2 && clock64() - begin < 20000) {
    }
}

template <typename ELEMENT> __device__ const ELEMENT *begin_of(const struct mm_matrix &a, bool align) {
    const size_t address = reinterpret_cast<size_t>(a.data);
    return reinterpret_cast<const ELEMENT *>(align ? address / 16 * 16 : address);
}

template <enum flaw FLAW, typename ELEMENT>
__global__ void __launch_bounds__(TILE *STEP) broken(const __grid_constant__ struct mm_product product) {
    __shared__ ELEMENT tile[TILE][TILE + 1];
    const ELEMENT *a = begin_of<ELEMENT>(product.a, FLAW == ALIGNED_OPERAND);
    ELEMENT *c = static_cast<ELEMENT *>(product.c.data);
    const size_t lda = FLAW == WRONG_STRIDE ? product.a.cols : product.a.ld;
    const unsigned n = FLAW == LOST_LAST_TILE ? product.n / TILE * TILE : product.n;
    const unsigned first_row = blockIdx.y * TILE;
    const unsigned first_col = blockIdx.x * TILE;
    const unsigned x = threadIdx.x;
    if (FLAW == MISSING_BARRIER)
        prepare_race(tile);
    for (unsigned y = threadIdx.y; y < TILE; y += STEP)
        if (first_col + y < n && first_row + x < product.m)
            tile[y][x] = a[(first_col + y) * lda + first_row + x];
    if (FLAW != MISSING_BARRIER)
        __syncthreads();
    for (unsigned y = threadIdx.y; y < TILE; y += STEP)
        if (first_row + y < product.m && (FLAW == DROPPED_BOUND || first_col + x < n))
            c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
}

template <enum flaw FLAW>
enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    static const mm_cuda_kernel kernels[2] = {broken<FLAW, uint32_t>, broken<FLAW, uint64_t>};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick_size(kernels, product);
    layout.block_rows = layout.block_cols = layout.threads_x = TILE;
    layout.threads_y = STEP;
    return mm_cuda_transpose(&layout, product, lane, error);
}

struct mm_variant row_of(const char *name, const char *summary,
                         enum mm_status (*launch)(const struct mm_product *, struct mm_lane *,
                                                  struct mm_error *)) {
    struct mm_variant row = {};
    row.name = name;
    row.summary = summary;
    row.op = MM_TRANSPOSE;
    row.dtypes = MM_DTYPES_MOVED;
    row.tile = TILE;
    row.launch = launch;
    return row;
}

} // namespace

extern "C" {
extern const struct mm_variant mm_broken_cuda_transposes[];
extern const size_t mm_broken_cuda_transpose_count;

const struct mm_variant mm_broken_cuda_transposes[] = {
    row_of("missing_barrier", "reads the tile before all of it is written", launch<MISSING_BARRIER>),
    row_of("dropped_bound", "writes C past its last column", launch<DROPPED_BOUND>),
    row_of("wrong_stride", "takes A for dense", launch<WRONG_STRIDE>),
    row_of("lost_last_tile", "leaves out the last columns of C that do not fill a tile",
           launch<LOST_LAST_TILE>),
    row_of("aligned_operand", "takes A's address for a multiple of 16", launch<ALIGNED_OPERAND>),
};
const size_t mm_broken_cuda_transpose_count =
    sizeof mm_broken_cuda_transposes / sizeof mm_broken_cuda_transposes[0];
}
