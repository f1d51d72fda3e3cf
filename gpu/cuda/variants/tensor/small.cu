/* The kernels of `tensor` for small products (tile 16). They use no tensor maps, so many products can share a
 * launch (kernel.cuh). A block of four warps computes 32×32 of C, and each warp 16×16 of them by mma.sync.
 * So also a small product has many blocks, and each of them few instructions in sequence.
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

constexpr unsigned STEP_BYTES = 128; /* bytes of a line in a stage */
constexpr unsigned GROUP_BYTES = 32; /* bytes of a line that mma.sync multiplies */
constexpr unsigned CHUNK = 16;       /* bytes that cp.async copies, and of a row of a matrix for ldmatrix */
constexpr unsigned EDGE = 32;        /* rows and columns of C that a block computes */
constexpr unsigned WARP_EDGE = 16;   /* rows and columns of C that a warp computes */
constexpr unsigned THREADS = 128;
constexpr unsigned STAGES = 8; /* enough to load most small products at once */

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

/* A thread's view of one operand, with elements of BYTES bytes. A block reads EDGE lines. */
template <unsigned BYTES, bool IS_K_MAJOR> struct operand {
    static constexpr unsigned DEPTH = STEP_BYTES / BYTES;
    static constexpr unsigned ROWS = IS_K_MAJOR ? EDGE : DEPTH; /* stored rows in a stage */
    static constexpr unsigned ROW_BYTES = IS_K_MAJOR ? STEP_BYTES : EDGE * BYTES;
    static constexpr unsigned PITCH = ROW_BYTES + CHUNK; /* so rows of a matrix lie in different banks */
    static constexpr unsigned STAGE_BYTES = ROWS * PITCH;
    static constexpr bool INTERLEAVES = !IS_K_MAJOR && BYTES == 1; /* `load` explains this */

    static constexpr unsigned CHUNKS = ROW_BYTES / CHUNK, EACH = CHUNK / BYTES;
    static constexpr unsigned PASS = THREADS / CHUNKS; /* stored rows that all threads copy at once */
    static_assert(ROWS % PASS == 0, "all threads copy equally many chunks");

    const unsigned char *from; /* the thread's first chunk of the next step */
    size_t pitch;              /* bytes from a row to the next row */
    unsigned first_k;          /* the chunk's first element along k */
    unsigned lines;            /* how many lines the operand has, from the chunk's first line on */

    __device__ __forceinline__ operand(const mm_matrix &x, unsigned first, unsigned end) {
        const unsigned down = threadIdx.x / CHUNKS, across = threadIdx.x % CHUNKS * EACH;
        const unsigned line = first + (IS_K_MAJOR ? down : across);
        pitch = x.ld * BYTES;
        first_k = IS_K_MAJOR ? across : down;
        lines = line < end ? end - line : 0;
        from = static_cast<const unsigned char *>(x.data) + (IS_K_MAJOR ? line : first_k) * pitch +
               (IS_K_MAJOR ? first_k : line) * BYTES;
    }

    /* Starts to copy 16 aligned bytes, or fills them with zeros. */
    static __device__ __forceinline__ void copy_aligned(uint32_t to, const unsigned char *from,
                                                        bool is_outside) {
        asm volatile("{.reg .pred outside; setp.ne.u32 outside, %2, 0;"
                     "cp.async.cg.shared.global [%0], [%1], 16, outside;}" ::"r"(to),
                     "l"(from), "r"(static_cast<unsigned>(is_outside))
                     : "memory");
    }

    /* Copies up to 16 bytes, which need not be aligned, and fills the rest of the 16 bytes with zeros. Reads
     * whole words, so up to three bytes before and after, but none on another page. */
    static __device__ __forceinline__ void copy_unaligned(uint32_t to, const unsigned char *from,
                                                          unsigned bytes) {
        const unsigned shift = static_cast<unsigned>(reinterpret_cast<size_t>(from) % 4);
        const uint32_t *at = reinterpret_cast<const uint32_t *>(from - shift);
        uint32_t words[5];
#pragma unroll
        for (unsigned i = 0; i < 5; i++)
            words[i] = bytes > 0 && i * 4 < shift + bytes ? __ldg(at + i) : 0;
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const unsigned left = bytes > i * 4 ? bytes - i * 4 : 0;
            words[i] = __funnelshift_r(words[i], words[i + 1], shift * 8) &
                       __funnelshift_lc(~0u, 0, left * 8); /* keeps the first `left` bytes */
        }
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]),
                     "r"(words[2]), "r"(words[3])
                     : "memory");
    }

    /* Copies the next step to a stage. Outside the operand the stage gets zeros. */
    template <bool IS_ALIGNED> __device__ __forceinline__ void copy(uint32_t stage, unsigned k) {
        const uint32_t to = stage + threadIdx.x / CHUNKS * PITCH + threadIdx.x % CHUNKS * CHUNK;
#pragma unroll
        for (unsigned row = 0; row < ROWS; row += PASS) {
            const unsigned at_k = first_k + (IS_K_MAJOR ? 0 : row), at_line = IS_K_MAJOR ? row : 0;
            const bool is_outside = at_k >= k || at_line >= lines;
            const unsigned left = min(IS_K_MAJOR ? k - at_k : lines, EACH) * BYTES;
            if (IS_ALIGNED)
                copy_aligned(to + row * PITCH, from + row * pitch, is_outside);
            else
                copy_unaligned(to + row * PITCH, from + row * pitch, is_outside ? 0 : left);
        }
        from += IS_K_MAJOR ? STEP_BYTES : DEPTH * pitch;
        first_k += DEPTH;
    }

    /* Loads the thread's elements of 16 lines, from line `first` on, for a group of mma.sync. x[i][h] gets
     * 4 bytes of a line: bytes 16·h + 4·(lane % 4) and on of the group. ldmatrix
     * transposes pairs of bytes. So of MN-major elements of one byte, a register gets two elements of each of
     * two lines. From two such registers, __byte_perm makes one register for each of the two lines. So if
     * the operand interleaves, x[i] is line 2·(lane / 4) + i, and otherwise line 8·i + lane / 4. */
    static __device__ __forceinline__ void load(uint32_t (&x)[2][2], uint32_t stage, unsigned first,
                                                unsigned group) {
        const unsigned matrix = threadIdx.x / 8 % 4, row = threadIdx.x % 8;
        const unsigned half = INTERLEAVES ? matrix / 2 : matrix % 2;
        const unsigned k =
            half * CHUNK / BYTES + (INTERLEAVES ? row / 2 * 4 + matrix % 2 * 2 + row % 2 : row);
        uint32_t loaded[4];
        if (IS_K_MAJOR)
            load_matrices<false>(loaded, stage + (first + matrix / 2 * 8 + row) * PITCH + half * CHUNK +
                                             group * GROUP_BYTES);
        else
            load_matrices<true>(loaded, stage + k * PITCH +
                                            (first + (INTERLEAVES ? 0 : matrix / 2 * 8)) * BYTES +
                                            group * GROUP_BYTES / BYTES * PITCH);
#pragma unroll
        for (unsigned i = 0; i < 2; i++)
#pragma unroll
            for (unsigned h = 0; h < 2; h++)
                x[i][h] = INTERLEAVES
                              ? __byte_perm(loaded[2 * h], loaded[2 * h + 1], i == 0 ? 0x6420 : 0x7531)
                              : loaded[2 * i + h];
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

/* Whether all of the matrix can be copied by 16 aligned bytes at a time. */
__device__ __forceinline__ bool is_aligned(const mm_matrix &x, unsigned bytes) {
    return (reinterpret_cast<size_t>(x.data) | x.ld * bytes | x.cols * bytes) % CHUNK == 0;
}

template <mm_dtype DTYPE> struct small {
    static constexpr unsigned BYTES = sizeof(typename mm_cuda_element<DTYPE>::type);
    static constexpr unsigned ROWS = EDGE, COLS = EDGE, THREADS_X = THREADS, THREADS_Y = 1;
    using SUM = typename mm_cuda_element<DTYPE>::sum_type;
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static constexpr unsigned SHARED_BYTES = STAGES *(operand<BYTES, !TRANSPOSE_A>::STAGE_BYTES +
                                                      operand<BYTES, TRANSPOSE_B>::STAGE_BYTES);

    /* Adds the warp's part of A·B to `sums`: 16 rows, and eight columns for each first index. */
    template <bool IS_ALIGNED, class A, class B>
    static __device__ __forceinline__ void multiply(A &a, B &b, unsigned k, unsigned warp_row,
                                                    unsigned warp_col, SUM (&sums)[2][4]) {
        constexpr unsigned STAGE_BYTES = A::STAGE_BYTES + B::STAGE_BYTES;
        extern __shared__ __align__(16) unsigned char shared[];
        const uint32_t stages = mm_shared_address(shared);
        const unsigned steps = (k + A::DEPTH - 1) / A::DEPTH;
        /* Copies run STAGES - 1 steps ahead. One loop also starts the first copies, which halves the code. */
#pragma unroll 1
        for (unsigned ahead = 0; ahead < steps + STAGES - 1; ahead++) {
            const bool multiplies = ahead >= STAGES - 1;
            if (multiplies) {
                /* After this barrier the stage to multiply is complete, because each thread has waited for
                 * its own copies. All threads have read the previous stage, so copies may overwrite it. */
                mm_wait_copies_pending<STAGES - 2>();
                __syncthreads();
            }
            if (ahead < steps) {
                const uint32_t to = stages + ahead % STAGES * STAGE_BYTES;
                a.template copy<IS_ALIGNED>(to, k);
                b.template copy<IS_ALIGNED>(to + A::STAGE_BYTES, k);
            }
            mm_commit_copies(); /* also an empty group, because the wait above counts groups */
            if (!multiplies)
                continue;
            const uint32_t stage = stages + (ahead + 1) % STAGES * STAGE_BYTES;
#pragma unroll
            for (unsigned group = 0; group < STEP_BYTES / GROUP_BYTES; group++) {
                uint32_t of_a[2][2], of_b[2][2];
                A::load(of_a, stage, warp_row, group);
                B::load(of_b, stage + A::STAGE_BYTES, warp_col, group);
#pragma unroll
                for (unsigned i = 0; i < 2; i++)
                    mma<DTYPE>::add(sums[i], {of_a[0][0], of_a[1][0], of_a[0][1], of_a[1][1]}, of_b[i]);
            }
        }
    }

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const mm_product &product) {
        using of_a = operand<BYTES, !TRANSPOSE_A>;
        using of_b = operand<BYTES, TRANSPOSE_B>;
        const unsigned first_row = blockIdx.y * EDGE, first_col = blockIdx.x * EDGE;
        const unsigned warp_row = threadIdx.x / 64 * WARP_EDGE, warp_col = threadIdx.x / 32 % 2 * WARP_EDGE;
        const unsigned k = static_cast<unsigned>(product.k), lane = threadIdx.x % 32;
        of_a a(product.a, first_row, static_cast<unsigned>(product.m));
        of_b b(product.b, first_col, static_cast<unsigned>(product.n));
        SUM sums[2][4] = {};
        if (is_aligned(product.a, BYTES) && is_aligned(product.b, BYTES))
            multiply<true>(a, b, k, warp_row, warp_col, sums);
        else
            multiply<false>(a, b, k, warp_row, warp_col, sums);
            /* A thread stores two neighbouring columns at once. If B interleaves, they belong to different
             * eights of columns. A warp writes whole sectors of 32 bytes if C has elements of 4 bytes. */
#pragma unroll
        for (unsigned i = 0; i < 2; i++)
#pragma unroll
            for (unsigned j = 0; j < 2; j++) {
                const unsigned row = of_a::INTERLEAVES ? lane / 4 * 2 + i : i * 8 + lane / 4;
                const unsigned col = of_b::INTERLEAVES ? lane % 4 * 4 + j * 2 : j * 8 + lane % 4 * 2;
                mm_store_neighbours(product, first_row + warp_row + row, first_col + warp_col + col,
                                    of_b::INTERLEAVES ? sums[0][2 * i + j] : sums[j][2 * i],
                                    of_b::INTERLEAVES ? sums[1][2 * i + j] : sums[j][2 * i + 1]);
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
