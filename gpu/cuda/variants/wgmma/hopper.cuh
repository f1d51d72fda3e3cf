/* Instructions of compute capability 9.0 without CUDA C++ functions: mbarriers that count bytes, bulk copies
 * (TMA) that arrive at them, and warpgroups' tensor core products (wgmma). For kernel files alone.
 *
 * Waits have block scope even if the other block of a cluster arrives: only TMA writes and only wgmma reads
 * the memory that such a barrier guards. Waiting with cluster scope (acquire.cluster) made drafts 1.4 times
 * as slow on an H200. */
#pragma once

#include <cstdint>

__device__ __forceinline__ uint32_t mm_shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void mm_barrier_init(uint64_t *barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mm_shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

/* Makes the initialised barriers visible to the cluster and to TMA. */
__device__ __forceinline__ void mm_barriers_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and adds `bytes` to what this phase waits for. */
__device__ __forceinline__ void mm_barrier_expect(uint64_t *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mm_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mm_barrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mm_shared_address(barrier)) : "memory");
}

/* Arrives once this thread's asynchronous copies (async.cuh) so far are complete. */
__device__ __forceinline__ void mm_barrier_arrive_behind_copies(uint64_t *barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mm_shared_address(barrier))
                 : "memory");
}

/* Arrives at the same barrier in block `block` of the cluster. */
__device__ __forceinline__ void mm_barrier_arrive_at(uint64_t *barrier, unsigned block) {
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}\n" ::"r"(mm_shared_address(barrier)),
                 "r"(block)
                 : "memory");
}

/* A word at this offset in the shared memory of block `block` of the cluster, which has started and not
 * ended.
 */
__device__ __forceinline__ unsigned mm_load_from_block(const unsigned *from, unsigned block) {
    unsigned value;
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %1, %2;\n"
                 "ld.shared::cluster.u32 %0, [there];\n"
                 "}\n"
                 : "=r"(value)
                 : "r"(mm_shared_address(from)), "r"(block)
                 : "memory");
    return value;
}

/* Waits until the phase of this parity is over. */
__device__ __forceinline__ void mm_barrier_wait(uint64_t *barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "wait_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra wait_%=;\n"
                 "}\n" ::"r"(mm_shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Starts a copy to shared memory; its bytes complete at the barrier. Addresses and sizes are multiples of 16
 * bytes. */
__device__ __forceinline__ void mm_bulk_copy(void *to, const void *from, unsigned bytes, uint64_t *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            mm_shared_address(to)),
        "l"(from), "r"(bytes), "r"(mm_shared_address(barrier))
        : "memory");
}

/* The same, multicast to each block in the mask `blocks`, at the same offset; it completes at that block's
 * barrier. */
__device__ __forceinline__ void mm_bulk_copy_multicast(void *to, const void *from, unsigned bytes,
                                                       uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(mm_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(mm_shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* Loads a tensor map ahead of its first use. */
__device__ __forceinline__ void mm_prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Starts to copy a box of a tensor map, from these coordinates on, to shared memory. What lies past the
 * tensor's edges arrives as zeros, whose bytes count. */
__device__ __forceinline__ void mm_box_copy(void *to, const void *map, int x, int y, int z,
                                            uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(mm_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(barrier))
                 : "memory");
}

__device__ __forceinline__ void mm_box_copy_multicast(void *to, const void *map, int x, int y, int z,
                                                      uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(mm_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* What this thread has read and stored in shared memory so far comes before the copies that begin behind it,
 * and a barrier. */
__device__ __forceinline__ void mm_async_proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Starts a copy from shared memory to a box of a tensor map; nothing is written past the tensor's edges. */
__device__ __forceinline__ void mm_box_store(const void *map, int x, int y, int z, const void *from) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(from))
                 : "memory");
}

/* Waits until all but the last PENDING such copies of this thread have read shared memory. */
template <unsigned PENDING> __device__ __forceinline__ void mm_box_stores_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* All threads of the cluster wait for each other. Warps arrive as a whole (.aligned). */
__device__ __forceinline__ void mm_cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}

/* A warpgroup's own barrier, 1 to 15. */
__device__ __forceinline__ void mm_warpgroup_sync(unsigned barrier) {
    asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
}

/* The wgmma descriptor of an operand in shared memory, with 128-byte swizzle. Operands start at multiples of
 * 1024 bytes. K-major: a line of the operand has 128 bytes along k; the next instruction's are 32 bytes
 * further. Else, of 16-bit elements: squares of 64 lines × 64 of k, in which 64 lines are neighbours, one
 * square behind another; the next instruction's 16 of k are 2048 bytes further. */
template <bool K_MAJOR> __device__ __forceinline__ uint64_t mm_wgmma_descriptor(const void *pointer) {
    constexpr uint64_t SWIZZLE_128 = 1;
    constexpr uint64_t LEADING_OFFSET = K_MAJOR ? 16 : 8192; /* to the next square; K-major ignores it */
    constexpr uint64_t STRIDE = 1024;                        /* to the next 8 lines, or 8 of k */
    return (mm_shared_address(pointer) & 0x3ffff) >> 4 | LEADING_OFFSET >> 4 << 16 | STRIDE >> 4 << 32 |
           SWIZZLE_128 << 62;
}

__device__ __forceinline__ void mm_wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mm_wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most the last PENDING committed groups are not complete. */
template <unsigned PENDING> __device__ __forceinline__ void mm_wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving uses of the sums across this point. */
template <unsigned COUNT> __device__ __forceinline__ void mm_wgmma_fence_registers(float (&d)[COUNT]) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

template <unsigned COUNT> __device__ __forceinline__ void mm_wgmma_fence_registers(uint32_t (&d)[COUNT]) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        asm volatile("" : "+r"(d[i])::"memory");
}

/* mm_wgmma_TYPE<WIDE, A_TURNED, B_TURNED>, the instruction of an element type: D (64×WIDE, WIDE/2 sums in
 * each thread) = A (64×depth) · B (WIDE×depth)ᵀ, depth being 32 bytes. `begin` begins a sum and `add` adds to
 * it; `add_if` does either. TURNED, for 16-bit elements alone: the operand is not K-major. */
/* clang-format off */
#define MM_D_8(i) "%" #i "0, %" #i "1, %" #i "2, %" #i "3, %" #i "4, %" #i "5, %" #i "6, %" #i "7, %" #i "8, %" #i "9, "
#define MM_D_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " MM_D_8(1) MM_D_8(2) "%30, %31"
#define MM_D_60 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " MM_D_8(1) MM_D_8(2) MM_D_8(3) MM_D_8(4) MM_D_8(5)
#define MM_D_64 MM_D_60 "%60, %61, %62, %63"
#define MM_D_96 MM_D_60 MM_D_8(6) MM_D_8(7) MM_D_8(8) "%90, %91, %92, %93, %94, %95"
#define MM_D_128 MM_D_60 MM_D_8(6) MM_D_8(7) MM_D_8(8) MM_D_8(9) MM_D_8(10) MM_D_8(11) "%120, %121, %122, %123, %124, %125, %126, %127"
#define MM_EIGHT(kind, i) kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3]), kind(d[i + 4]), kind(d[i + 5]), kind(d[i + 6]), kind(d[i + 7])
#define MM_THIRTY_TWO(kind, i) MM_EIGHT(kind, i), MM_EIGHT(kind, i + 8), MM_EIGHT(kind, i + 16), MM_EIGHT(kind, i + 24)
#define MM_32_OF_D(kind) MM_THIRTY_TWO(kind, 0)
#define MM_64_OF_D(kind) MM_32_OF_D(kind), MM_THIRTY_TWO(kind, 32)
#define MM_96_OF_D(kind) MM_64_OF_D(kind), MM_THIRTY_TWO(kind, 64)
#define MM_128_OF_D(kind) MM_96_OF_D(kind), MM_THIRTY_TWO(kind, 96)

/* a, b: the numbers of the operands behind those of D; p: of the condition; s, t: of the turns. */
#define MM_WGMMA_OF(NAME, SUM, KIND, SHAPE, TAIL, WIDE, COUNT, a, b, p, s, t)                                              \
    template <bool A_TURNED, bool B_TURNED> struct NAME<WIDE, A_TURNED, B_TURNED> {                                        \
        static __device__ __forceinline__ void begin(SUM (&d)[COUNT], uint64_t of_a, uint64_t of_b) {                     \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n"                                                 \
                         "wgmma.mma_async.sync.aligned.m64n" #WIDE SHAPE " {" MM_D_##COUNT "}, %" #a ", %" #b ", p" TAIL(s, t) ";\n}\n"   \
                         : MM_##COUNT##_OF_D("=" KIND) : "l"(of_a), "l"(of_b), "r"(0), "n"(A_TURNED), "n"(B_TURNED));       \
        }                                                                                                                  \
        static __device__ __forceinline__ void add_if(SUM (&d)[COUNT], uint64_t of_a, uint64_t of_b, bool adds) {          \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n"                                                 \
                         "wgmma.mma_async.sync.aligned.m64n" #WIDE SHAPE " {" MM_D_##COUNT "}, %" #a ", %" #b ", p" TAIL(s, t) ";\n}\n"   \
                         : MM_##COUNT##_OF_D("+" KIND) : "l"(of_a), "l"(of_b), "r"(static_cast<int>(adds)), "n"(A_TURNED), "n"(B_TURNED)); \
        }                                                                                                                  \
        static __device__ __forceinline__ void add(SUM (&d)[COUNT], uint64_t of_a, uint64_t of_b) {                       \
            add_if(d, of_a, of_b, true);                                                                                   \
        }                                                                                                                  \
    }

#define MM_WGMMA(NAME, SUM, KIND, SHAPE, TAIL)                                                                             \
    template <unsigned WIDE, bool A_TURNED, bool B_TURNED> struct NAME;                                                    \
    MM_WGMMA_OF(NAME, SUM, KIND, SHAPE, TAIL, 64, 32, 32, 33, 34, 35, 36);                                                 \
    MM_WGMMA_OF(NAME, SUM, KIND, SHAPE, TAIL, 128, 64, 64, 65, 66, 67, 68);                                                \
    MM_WGMMA_OF(NAME, SUM, KIND, SHAPE, TAIL, 192, 96, 96, 97, 98, 99, 100);                                               \
    MM_WGMMA_OF(NAME, SUM, KIND, SHAPE, TAIL, 256, 128, 128, 129, 130, 131, 132)

#define MM_SCALES_AND_TURNS(s, t) ", 1, 1, %" #s ", %" #t
#define MM_SCALES(s, t) ", 1, 1"
#define MM_NO_SCALES(s, t)
MM_WGMMA(mm_wgmma_float16, float, "f", "k16.f32.f16.f16", MM_SCALES_AND_TURNS);
MM_WGMMA(mm_wgmma_bfloat16, float, "f", "k16.f32.bf16.bf16", MM_SCALES_AND_TURNS);
MM_WGMMA(mm_wgmma_tf32, float, "f", "k8.f32.tf32.tf32", MM_SCALES);
MM_WGMMA(mm_wgmma_float8_e4m3fn, float, "f", "k32.f32.e4m3.e4m3", MM_SCALES);
MM_WGMMA(mm_wgmma_float8_e5m2, float, "f", "k32.f32.e5m2.e5m2", MM_SCALES);
MM_WGMMA(mm_wgmma_int8, uint32_t, "r", "k32.s32.s8.s8", MM_NO_SCALES);
MM_WGMMA(mm_wgmma_uint8, uint32_t, "r", "k32.s32.u8.u8", MM_NO_SCALES);
/* clang-format on */

#undef MM_WGMMA
#undef MM_WGMMA_OF
#undef MM_SCALES_AND_TURNS
#undef MM_SCALES
#undef MM_NO_SCALES
#undef MM_128_OF_D
#undef MM_96_OF_D
#undef MM_64_OF_D
#undef MM_32_OF_D
#undef MM_THIRTY_TWO
#undef MM_D_32
#undef MM_EIGHT
#undef MM_D_128
#undef MM_D_96
#undef MM_D_64
#undef MM_D_60
#undef MM_D_8
