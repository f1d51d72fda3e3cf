/* PTX for wgmma. A warpgroup multiplies two operands in shared memory, and adds the product to sums in its
 * registers. The instructions run asynchronously, in groups. */
#pragma once

#include "gpu/cuda/variants/wgmma/cluster.cuh"

#include <type_traits>

/* Returns wgmma's descriptor of an operand in shared memory, which begins at a multiple of 1024 bytes and has
 * the 128-byte swizzle. K-major: each row of A or column of B has 128 bytes along k. An instruction reads 32
 * of these bytes. MN-major, for 16-bit elements only: squares of 64 rows or columns × 64 of k follow each
 * other. In a square the 64 elements of one k are contiguous. An instruction reads 16 of k from each
 * square. */
template <bool MN_MAJOR> __device__ __forceinline__ uint64_t mm_wgmma_descriptor(const void *pointer) {
    constexpr uint64_t SWIZZLE_128 = 1;
    constexpr uint64_t LEADING_OFFSET =
        MN_MAJOR ? 8192 : 16;         /* bytes to the next square; unused if K-major */
    constexpr uint64_t STRIDE = 1024; /* bytes to the next 8 rows; if MN-major, to the next 8 of k */
    return (mm_shared_address(pointer) & 0x3ffff) >> 4 | LEADING_OFFSET >> 4 << 16 | STRIDE >> 4 << 32 |
           SWIZZLE_128 << 62;
}

/* Orders accesses to the sums' registers before the warpgroup's next wgmma. */
__device__ __forceinline__ void mm_wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Makes a group of the wgmma instructions that the warpgroup issued after its previous group. */
__device__ __forceinline__ void mm_wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until all groups of the warpgroup, except the last PENDING groups, are complete. */
template <unsigned PENDING> __device__ __forceinline__ void mm_wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving uses of the sums across this point. */
template <typename SUM, unsigned COUNT>
__device__ __forceinline__ void mm_wgmma_fence_registers(SUM (&d)[COUNT]) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        if constexpr (std::is_same<SUM, float>::value)
            asm volatile("" : "+f"(d[i])::"memory");
        else
            asm volatile("" : "+r"(d[i])::"memory");
}

/* mm_wgmma_TYPE has the instruction of an element type, which adds A·Bᵀ to D. A has 64 rows and B has COLS
 * rows, of 32 bytes along k each. D is 64×COLS, and each thread has COLS/2 sums of D (mm_fragment_position).
 *     SUM      the type of a sum
 *     BYTES    bytes of an element
 *     instruction<COLS, A_MN_MAJOR, B_MN_MAJOR>
 *         begin(d, a, b)         starts sums; a and b are descriptors
 *         add(d, a, b, adds)     adds to sums, or starts them if `adds` is false */
/* clang-format off */
/* Assembler text that names the sums. MM_WGMMA_D_10 names ten sums. */
#define MM_WGMMA_D_10(i) "%" #i "0, %" #i "1, %" #i "2, %" #i "3, %" #i "4, %" #i "5, %" #i "6, %" #i "7, %" #i "8, %" #i "9, "
#define MM_WGMMA_D_30 MM_WGMMA_D_10() MM_WGMMA_D_10(1) MM_WGMMA_D_10(2)
#define MM_WGMMA_D_60 MM_WGMMA_D_30 MM_WGMMA_D_10(3) MM_WGMMA_D_10(4) MM_WGMMA_D_10(5)
#define MM_WGMMA_D_90 MM_WGMMA_D_60 MM_WGMMA_D_10(6) MM_WGMMA_D_10(7) MM_WGMMA_D_10(8)
#define MM_WGMMA_D_32 MM_WGMMA_D_30 "%30, %31"
#define MM_WGMMA_D_64 MM_WGMMA_D_60 "%60, %61, %62, %63"
#define MM_WGMMA_D_96 MM_WGMMA_D_90 "%90, %91, %92, %93, %94, %95"
#define MM_WGMMA_D_128 MM_WGMMA_D_90 MM_WGMMA_D_10(9) MM_WGMMA_D_10(10) MM_WGMMA_D_10(11) "%120, %121, %122, %123, %124, %125, %126, %127"

/* The sums as operands of the asm statement. x is a constraint, for example "+f". */
#define MM_WGMMA_8(x, i) x(d[i]), x(d[i + 1]), x(d[i + 2]), x(d[i + 3]), x(d[i + 4]), x(d[i + 5]), x(d[i + 6]), x(d[i + 7])
#define MM_WGMMA_32_FROM(x, i) MM_WGMMA_8(x, i), MM_WGMMA_8(x, i + 8), MM_WGMMA_8(x, i + 16), MM_WGMMA_8(x, i + 24)
#define MM_WGMMA_32(x) MM_WGMMA_32_FROM(x, 0)
#define MM_WGMMA_64(x) MM_WGMMA_32(x), MM_WGMMA_32_FROM(x, 32)
#define MM_WGMMA_96(x) MM_WGMMA_64(x), MM_WGMMA_32_FROM(x, 64)
#define MM_WGMMA_128(x) MM_WGMMA_96(x), MM_WGMMA_32_FROM(x, 96)

/* a, b, p, s and t number the asm operands: two descriptors, whether to add, and whether A and B are
 * MN-major. */
#define MM_WGMMA_ISSUE(CONSTRAINT, ADDS, K, TYPES, TAIL, COLS, SUMS, a, b, p, s, t)                             \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n"                                               \
                 "wgmma.mma_async.sync.aligned.m64n" #COLS "k" #K TYPES                                         \
                 " {" MM_WGMMA_D_##SUMS "}, %" #a ", %" #b ", p" TAIL(s, t) ";\n}\n"                            \
                 : MM_WGMMA_##SUMS(CONSTRAINT)                                                                  \
                 : "l"(of_a), "l"(of_b), "r"(ADDS), "n"(A_MN_MAJOR), "n"(B_MN_MAJOR))

#define MM_WGMMA_COLS(KIND, K, TYPES, TAIL, COLS, SUMS, ...)                                                    \
    template <bool A_MN_MAJOR, bool B_MN_MAJOR> struct instruction<COLS, A_MN_MAJOR, B_MN_MAJOR> {              \
        static __device__ __forceinline__ void begin(SUM (&d)[SUMS], uint64_t of_a, uint64_t of_b) {            \
            MM_WGMMA_ISSUE("=" KIND, 0, K, TYPES, TAIL, COLS, SUMS, __VA_ARGS__);                               \
        }                                                                                                       \
        static __device__ __forceinline__ void add(SUM (&d)[SUMS], uint64_t of_a, uint64_t of_b, bool adds = true) {\
            MM_WGMMA_ISSUE("+" KIND, static_cast<int>(adds), K, TYPES, TAIL, COLS, SUMS, __VA_ARGS__);          \
        }                                                                                                       \
    }

#define MM_WGMMA(NAME, SUM_TYPE, KIND, K, TYPES, TAIL)                                                          \
    struct NAME {                                                                                               \
        using SUM = SUM_TYPE;                                                                                   \
        static constexpr unsigned BYTES = 32 / K;                                                               \
        template <unsigned COLS, bool A_MN_MAJOR, bool B_MN_MAJOR> struct instruction;                          \
        MM_WGMMA_COLS(KIND, K, TYPES, TAIL, 64, 32, 32, 33, 34, 35, 36);                                        \
        MM_WGMMA_COLS(KIND, K, TYPES, TAIL, 128, 64, 64, 65, 66, 67, 68);                                       \
        MM_WGMMA_COLS(KIND, K, TYPES, TAIL, 192, 96, 96, 97, 98, 99, 100);                                      \
        MM_WGMMA_COLS(KIND, K, TYPES, TAIL, 256, 128, 128, 129, 130, 131, 132);                                 \
    }

/* The end of the instruction's text: the scales of A and B, and whether A and B are MN-major. */
#define MM_WGMMA_SCALES_AND_MAJORS(s, t) ", 1, 1, %" #s ", %" #t
#define MM_WGMMA_SCALES(s, t) ", 1, 1"
#define MM_WGMMA_NO_TAIL(s, t)
MM_WGMMA(mm_wgmma_float16, float, "f", 16, ".f32.f16.f16", MM_WGMMA_SCALES_AND_MAJORS);
MM_WGMMA(mm_wgmma_bfloat16, float, "f", 16, ".f32.bf16.bf16", MM_WGMMA_SCALES_AND_MAJORS);
MM_WGMMA(mm_wgmma_tf32, float, "f", 8, ".f32.tf32.tf32", MM_WGMMA_SCALES);
MM_WGMMA(mm_wgmma_float8_e4m3fn, float, "f", 32, ".f32.e4m3.e4m3", MM_WGMMA_SCALES);
MM_WGMMA(mm_wgmma_float8_e5m2, float, "f", 32, ".f32.e5m2.e5m2", MM_WGMMA_SCALES);
MM_WGMMA(mm_wgmma_int8, uint32_t, "r", 32, ".s32.s8.s8", MM_WGMMA_NO_TAIL);
MM_WGMMA(mm_wgmma_uint8, uint32_t, "r", 32, ".s32.u8.u8", MM_WGMMA_NO_TAIL);
/* clang-format on */

/* Multiplies the bytes of int32 elements. */
struct mm_wgmma_int32 : mm_wgmma_uint8 {};
