/* The product of fp64_tensor: for each modulus, residues of A times residues of B. The kernel is that of
 * `tensor` for int8, with its own consumers. They reduce each sum modulo the modulus in registers, so sums of
 * 32 bits never leave the multiprocessor.
 *
 * A residue of C is one byte. A consumer's thread stores 16 of its sums at once, and neighbouring threads
 * store neighbouring 16 bytes. The pass after this one (chinese.cu) reads them in the same order. */
#include "gpu/cuda/variants/fp64_tensor/moduli.cuh"
#include "gpu/cuda/variants/tensor/wgmma.cuh"

namespace {

/* A sum of this many steps of 128 products, and a residue, is less than 2^31 - 2^24. */
constexpr unsigned STEPS_MAX = 512;

struct modulus {
    int modulus;
    int weights;
    int start; /* what makes digits from 0 to 255 digits from -128 to 127, and the sum a float */
    float reciprocal;
};

constexpr modulus modulus_of(unsigned index) {
    const int m = mm_fp64_modulus(index);
    int sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += mm_fp64_power_of_256(i, m);
    return {m, static_cast<int>(mm_fp64_weights(0, m)), MM_FP64_FLOAT_BITS - 128 * sum, 1.0f / m};
}

__constant__ modulus moduli[MM_FP64_MODULI] = {modulus_of(0),  modulus_of(1),  modulus_of(2),  modulus_of(3),
                                               modulus_of(4),  modulus_of(5),  modulus_of(6),  modulus_of(7),
                                               modulus_of(8),  modulus_of(9),  modulus_of(10), modulus_of(11),
                                               modulus_of(12), modulus_of(13), modulus_of(14)};

/* Returns the low byte of a sum's balanced remainder. The sum's bytes, after the addition, are its digits in
 * base 256, plus 128. */
__device__ __forceinline__ uint32_t reduce_sum(uint32_t sum, const modulus &by) {
    int bits;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(bits) : "r"(sum + 0x80808080), "r"(by.weights), "r"(by.start));
    return mm_fp64_reduce(bits, by.modulus, by.reciprocal);
}

struct roles : mm_wgmma_roles {
    template <class T>
    static __device__ __forceinline__ void consume(const mm_tensor_plan &plan,
                                                   const mm_tensor_shared<T> &shared, mm_tensor_walk walk);
};

struct tile : mm_wgmma_tile<mm_wgmma_int8, MM_TENSOR_LARGE, false, false> {
    using ROLES = roles;
    static constexpr bool LOADS_ADDEND = false;
    static constexpr bool COUNTS_PRODUCTS = true;
    static constexpr unsigned SHARED_BYTES = STAGES * STAGE_BYTES;
};

template <class T>
__device__ __forceinline__ void roles::consume(const mm_tensor_plan &plan, const mm_tensor_shared<T> &shared,
                                               mm_tensor_walk) {
    mm_ring_state at = {0, 0};
    uint32_t sums[T::SUMS] = {};
    for (mm_tensor_walk walk = mm_tensor_walk_begin<T>(plan); !walk.is_over;
         mm_tensor_walk_next<T>(plan, walk)) {
        const modulus by = moduli[walk.tile.product];
        for (unsigned begin = 0; begin < plan.schedule.steps; begin += STEPS_MAX) {
            const unsigned end = min(begin + STEPS_MAX, plan.schedule.steps);
            mm_tensor_add_up<T>(shared, begin, end, at, sums, begin > 0);
            if (end < plan.schedule.steps)
#pragma unroll
                for (unsigned i = 0; i < T::SUMS; i++)
                    sums[i] = static_cast<uint32_t>(static_cast<int8_t>(reduce_sum(sums[i], by)));
        }
        /* A cluster tile's number counts over all moduli, and so do the tiles of C's planes. */
        const size_t block_tile =
            static_cast<size_t>(walk.work.cluster_tile) * T::CLUSTER + blockIdx.x % T::CLUSTER;
        uint4 *to = static_cast<uint4 *>(plan.sums) +
                    (block_tile * T::CONSUMERS + mm_my_consumer()) * (T::SUMS / 16 * MM_WARPGROUP) +
                    mm_my_thread();
#pragma unroll
        for (unsigned i = 0; i < T::SUMS; i += 16) {
            uint32_t words[4];
#pragma unroll
            for (unsigned j = 0; j < 4; j++)
                words[j] =
                    mm_fp64_pack(reduce_sum(sums[i + 4 * j], by), reduce_sum(sums[i + 4 * j + 1], by),
                                 reduce_sum(sums[i + 4 * j + 2], by), reduce_sum(sums[i + 4 * j + 3], by));
            to[i / 16 * MM_WARPGROUP] = {words[0], words[1], words[2], words[3]};
        }
    }
    __syncwarp(); /* mm_cluster_sync needs whole warps */
}

} // namespace

const void *const mm_fp64_product_kernel = reinterpret_cast<const void *>(mm_tensor_product<tile>);
const size_t mm_fp64_product_shared_bytes = tile::SHARED_BYTES;
