/* The kernels of `tensor` for small products (tile 16). They use no tensor maps, so many products can share a
 * launch (kernel.cuh). A block of four warps computes 64×64 of C, and each warp 32×32 of them by mma.sync.
 * Each step along k has a stage in shared memory, which cp.async fills. Both operands keep the layout in
 * which they are stored, and ldmatrix gives each thread the elements that mma.sync needs. NVIDIA's PTX ISA
 * describes the layouts of both instructions ("Matrix Fragments for mma.m16n8k16", "ldmatrix").
 *
 * A "line" is a row of op(A) or a column of op(B). An operand is K-major if the elements of a line lie next
 * to each other, and otherwise MN-major. */
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants/tensor/store.cuh"

namespace {

constexpr unsigned EDGE = 64;      /* rows and columns of C that a block computes */
constexpr unsigned WARP_EDGE = 32; /* rows and columns of C that a warp computes */
constexpr unsigned THREADS = 128;
constexpr unsigned STAGES = 4;
constexpr unsigned STEP_BYTES = 128; /* bytes of a line in a stage */
constexpr unsigned GROUP_BYTES = 32; /* bytes of a line that mma.sync multiplies */
constexpr unsigned CHUNK = 16;       /* bytes that cp.async copies, and of a row of a matrix for ldmatrix */
constexpr unsigned SUMS_PITCH = EDGE + 8; /* sums of a row of C, padded against bank conflicts */

/* Loads four matrices of 8 rows with 16 bytes. Thread i of a warp passes the address of row i % 8 of matrix
 * i / 8. Of each matrix it gets bytes 4·(i % 4) and on of row i / 4. If TRANSPOSES, it gets elements of 2
 * bytes in column i / 4: those of rows 2·(i % 4) and 2·(i % 4) + 1. */
template <bool TRANSPOSES> __device__ __forceinline__ void load_matrices(uint32_t (&x)[4], uint32_t address) {
    if (TRANSPOSES)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(address)
                     : "memory");
}

/* One operand, with elements of BYTES bytes. */
template <unsigned BYTES, bool IS_K_MAJOR> struct operand {
    static constexpr unsigned DEPTH = STEP_BYTES / BYTES;
    static constexpr unsigned ROWS = IS_K_MAJOR ? EDGE : DEPTH; /* stored rows in a stage */
    static constexpr unsigned ROW_BYTES = IS_K_MAJOR ? STEP_BYTES : EDGE * BYTES;
    static constexpr unsigned PITCH = ROW_BYTES + CHUNK; /* so rows of a matrix lie in different banks */
    static constexpr unsigned STAGE_BYTES = ROWS * PITCH;
    static constexpr bool INTERLEAVES = !IS_K_MAJOR && BYTES == 1; /* line_of explains this */
    using element = std::conditional_t<BYTES == 2, uint16_t, uint8_t>;

    /* Copies up to 16 bytes, which need not be aligned, and fills the rest of the 16 bytes with zeros. */
    static __device__ __forceinline__ void copy_elements(unsigned char *to, const element *from,
                                                         unsigned count) {
        union {
            element elements[CHUNK / BYTES];
            uint4 all;
        } chunk;
#pragma unroll
        for (unsigned i = 0; i < CHUNK / BYTES; i++)
            chunk.elements[i] = i < count ? __ldg(from + i) : element(0);
        *reinterpret_cast<uint4 *>(to) = chunk.all;
    }

    /* Copies a part of the operand to a stage, from element first_k of line `first` on. The operand has
     * `lines` lines of k elements. Outside the operand the stage gets zeros. */
    static __device__ __forceinline__ void copy(unsigned char *to, const mm_matrix &x, bool is_aligned,
                                                unsigned first, unsigned lines, unsigned first_k,
                                                unsigned k) {
        constexpr unsigned EACH = CHUNK / BYTES, CHUNKS = ROW_BYTES / CHUNK;
        const unsigned rows = IS_K_MAJOR ? lines : k, cols = IS_K_MAJOR ? k : lines;
        const unsigned first_row = IS_K_MAJOR ? first : first_k, first_col = IS_K_MAJOR ? first_k : first;
#pragma unroll(2 * BYTES) /* more would need too many registers for unaligned elements of one byte */
        for (unsigned i = 0; i < ROWS * CHUNKS / THREADS; i++) {
            const unsigned index = i * THREADS + threadIdx.x;
            const unsigned row = first_row + index / CHUNKS, col = first_col + index % CHUNKS * EACH;
            const unsigned count = row < rows && col < cols ? min(cols - col, EACH) : 0;
            unsigned char *at = to + index / CHUNKS * PITCH + index % CHUNKS * CHUNK;
            const element *from = static_cast<const element *>(x.data) + row * x.ld + col;
            if (is_aligned)
                mm_copy_async<CHUNK>(at, reinterpret_cast<const unsigned char *>(from), count * BYTES);
            else
                copy_elements(at, from, count);
        }
    }

    /* Loads the thread's elements of 32 lines, from line `first` on, for a group of mma.sync. x[i][h] gets
     * 4 bytes of line line_of(i, lane / 4): bytes 16·h + 4·(lane % 4) and on of the group. ldmatrix
     * transposes pairs of bytes. So of MN-major elements of one byte, a register gets two elements of each of
     * two lines. From two such registers, __byte_perm makes one register for each of the two lines. */
    static __device__ __forceinline__ void load(uint32_t (&x)[4][2], uint32_t stage, unsigned first,
                                                unsigned group) {
        const unsigned matrix = threadIdx.x / 8 % 4, row = threadIdx.x % 8;
#pragma unroll
        for (unsigned pair = 0; pair < 2; pair++) {
            const unsigned line = first + pair * 16, half = INTERLEAVES ? matrix / 2 : matrix % 2;
            const unsigned k = group * GROUP_BYTES / BYTES + half * CHUNK / BYTES +
                               (INTERLEAVES ? row / 2 * 4 + matrix % 2 * 2 + row % 2 : row);
            uint32_t loaded[4];
            if (IS_K_MAJOR)
                load_matrices<false>(loaded, stage + (line + matrix / 2 * 8 + row) * PITCH +
                                                 group * GROUP_BYTES + half * CHUNK);
            else
                load_matrices<true>(loaded,
                                    stage + k * PITCH + (line + (INTERLEAVES ? 0 : matrix / 2 * 8)) * BYTES);
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                x[2 * pair + i][0] =
                    INTERLEAVES ? __byte_perm(loaded[0], loaded[1], i == 0 ? 0x6420 : 0x7531) : loaded[2 * i];
                x[2 * pair + i][1] = INTERLEAVES ? __byte_perm(loaded[2], loaded[3], i == 0 ? 0x6420 : 0x7531)
                                                 : loaded[2 * i + 1];
            }
        }
    }

    /* Returns which of the 32 lines mma.sync takes for line `at` of its eight lines number `eight`. If the
     * operand interleaves, a thread has two neighbouring lines, and they belong to different eights. */
    static __device__ __forceinline__ unsigned line_of(unsigned eight, unsigned at) {
        return INTERLEAVES ? eight / 2 * 16 + at * 2 + eight % 2 : eight * 8 + at;
    }
};

/* mma.sync adds A·B to 16×8 sums. A has 16 lines and B has 8 lines of 32 bytes. */
#define MM_MMA(TYPE, SUM, CONSTRAINT, NAME)                                                                  \
    template <> struct mma<TYPE> {                                                                           \
        static __device__ __forceinline__ void add(SUM (&d)[4], const uint32_t (&a)[4],                      \
                                                   const uint32_t (&b)[2]) {                                 \
            asm("mma.sync.aligned." NAME " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"  \
                : CONSTRAINT(d[0]), CONSTRAINT(d[1]), CONSTRAINT(d[2]), CONSTRAINT(d[3])                     \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                         \
        }                                                                                                    \
    };
template <mm_dtype DTYPE> struct mma;
MM_MMA(MM_FLOAT16, float, "+f", "m16n8k16.row.col.f32.f16.f16.f32")
MM_MMA(MM_BFLOAT16, float, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32")
MM_MMA(MM_FLOAT8_E4M3FN, float, "+f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")
MM_MMA(MM_FLOAT8_E5M2, float, "+f", "m16n8k32.row.col.f32.e5m2.e5m2.f32")
MM_MMA(MM_INT8, uint32_t, "+r", "m16n8k32.row.col.s32.s8.s8.s32")
MM_MMA(MM_UINT8, uint32_t, "+r", "m16n8k32.row.col.s32.u8.u8.s32")
#undef MM_MMA

__device__ __forceinline__ bool is_aligned(const mm_matrix &x, unsigned bytes) {
    return (reinterpret_cast<size_t>(x.data) | x.ld * bytes) % CHUNK == 0;
}

template <mm_dtype DTYPE> struct small {
    static constexpr unsigned BYTES = sizeof(typename mm_cuda_element<DTYPE>::type);
    static constexpr unsigned ROWS = EDGE, COLS = EDGE, THREADS_X = THREADS, THREADS_Y = 1;
    using SUM = typename mm_cuda_element<DTYPE>::sum_type;
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static constexpr unsigned SHARED_BYTES = STAGES *(operand<BYTES, !TRANSPOSE_A>::STAGE_BYTES +
                                                      operand<BYTES, TRANSPOSE_B>::STAGE_BYTES);

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const mm_product &product) {
        using of_a = operand<BYTES, !TRANSPOSE_A>;
        using of_b = operand<BYTES, TRANSPOSE_B>;
        constexpr unsigned STAGE_BYTES = of_a::STAGE_BYTES + of_b::STAGE_BYTES;
        static_assert(STAGES * STAGE_BYTES >= EDGE * SUMS_PITCH * sizeof(SUM), "the sums fit");
        extern __shared__ __align__(16) unsigned char shared[];
        const unsigned m = static_cast<unsigned>(product.m), n = static_cast<unsigned>(product.n);
        const unsigned k = static_cast<unsigned>(product.k), steps = (k + of_a::DEPTH - 1) / of_a::DEPTH;
        const unsigned first_row = blockIdx.y * EDGE, first_col = blockIdx.x * EDGE;
        const bool is_a_aligned = is_aligned(product.a, BYTES), is_b_aligned = is_aligned(product.b, BYTES);
        const unsigned lane = threadIdx.x % 32;
        const unsigned warp_row = threadIdx.x / 64 * WARP_EDGE, warp_col = threadIdx.x / 32 % 2 * WARP_EDGE;

        SUM sums[2][4][4] = {};
        /* Copies run STAGES - 1 steps ahead. One loop also starts the first copies, which halves the code. */
        for (unsigned ahead = 0; ahead < steps + STAGES - 1; ahead++) {
            const bool multiplies = ahead >= STAGES - 1;
            if (multiplies) {
                /* After this barrier the stage to multiply is complete, because each thread has waited for
                 * its own copies. All threads have read the previous stage, so copies may overwrite it. */
                mm_wait_copies_pending<STAGES - 2>();
                __syncthreads();
            }
            if (ahead < steps) {
                unsigned char *to = shared + ahead % STAGES * STAGE_BYTES;
                of_a::copy(to, product.a, is_a_aligned, first_row, m, ahead * of_a::DEPTH, k);
                of_b::copy(to + of_a::STAGE_BYTES, product.b, is_b_aligned, first_col, n, ahead * of_a::DEPTH,
                           k);
            }
            mm_commit_copies(); /* also an empty group, because the wait above counts groups */
            if (!multiplies)
                continue;
            const uint32_t stage = mm_shared_address(shared + (ahead + 1) % STAGES * STAGE_BYTES);
#pragma unroll
            for (unsigned group = 0; group < STEP_BYTES / GROUP_BYTES; group++) {
                uint32_t a[4][2], b[4][2];
                of_a::load(a, stage, warp_row, group);
                of_b::load(b, stage + of_a::STAGE_BYTES, warp_col, group);
#pragma unroll
                for (unsigned i = 0; i < 2; i++)
#pragma unroll
                    for (unsigned j = 0; j < 4; j++)
                        mma<DTYPE>::add(sums[i][j],
                                        {a[2 * i][0], a[2 * i + 1][0], a[2 * i][1], a[2 * i + 1][1]}, b[j]);
            }
        }

        /* Wait until all threads have read the last stage, because the sums overwrite the stages. */
        __syncthreads();
        SUM *staged = reinterpret_cast<SUM *>(shared);
#pragma unroll
        for (unsigned i = 0; i < 32; i++) {
            const unsigned row = warp_row + of_a::line_of(i / 16 * 2 + i / 2 % 2, lane / 4);
            const unsigned col = warp_col + of_b::line_of(i / 4 % 4, lane % 4 * 2 + i % 2);
            staged[row * SUMS_PITCH + col] = sums[i / 16][i / 4 % 4][i % 4];
        }
        /* Wait until all sums are there, because each thread stores sums of other threads. So a warp stores
         * whole rows, and C may lie in host memory. */
        __syncthreads();
#pragma unroll 4
        for (unsigned index = threadIdx.x; index < EDGE * EDGE / 2; index += THREADS) {
            const unsigned row = index / (EDGE / 2), col = index % (EDGE / 2) * 2;
            const SUM *two = staged + row * SUMS_PITCH + col;
            mm_store_neighbours(product, first_row + row, first_col + col, two[0], two[1]);
        }
    }
};

template <mm_dtype DTYPE> mm_layout layout_of(const mm_product *product) {
    static constexpr unsigned shared_bytes[2][2] = {
        {small<DTYPE>::template SHARED_BYTES<false, false>, small<DTYPE>::template SHARED_BYTES<false, true>},
        {small<DTYPE>::template SHARED_BYTES<true, false>, small<DTYPE>::template SHARED_BYTES<true, true>}};
    mm_layout layout = mm_layout_of<small<DTYPE>>(product);
    layout.dynamic_shared_bytes = shared_bytes[product->transpose_a][product->transpose_b];
    return layout;
}

} // namespace

mm_layout mm_tensor_small_layout(const mm_product *product) {
    switch (product->a.dtype) {
    case MM_FLOAT16:
        return layout_of<MM_FLOAT16>(product);
    case MM_BFLOAT16:
        return layout_of<MM_BFLOAT16>(product);
    case MM_FLOAT8_E4M3FN:
        return layout_of<MM_FLOAT8_E4M3FN>(product);
    case MM_FLOAT8_E5M2:
        return layout_of<MM_FLOAT8_E5M2>(product);
    case MM_INT8:
        return layout_of<MM_INT8>(product);
    default: /* uint8 and bool */
        return layout_of<MM_UINT8>(product);
    }
}
