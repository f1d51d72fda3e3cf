/* The last pass of fp64_tensor computes C from its residues by the Chinese remainder theorem. P is the
 * product of the moduli, and weight w of a modulus m is 1 modulo m and 0 modulo the others. The integer is
 * the sum of residues times weights, less a multiple of P.
 *
 * Weights have twice float64's bits, so each is a high part, a multiple of 2^(bits of P - 41), and a low
 * part. Sums of high parts are exact: a residue has 8 bits, and the sum of 15 of them 12. Low parts lose at
 * most 2^-79·P in all (docs/accuracy.md). */
#include "gpu/cuda/variants/element.cuh"
#include "gpu/cuda/variants/fp64_tensor/moduli.cuh"
#include "gpu/cuda/variants/wgmma/block.cuh"

namespace {

constexpr unsigned MODULI = MM_FP64_MODULI;
constexpr unsigned VECTORS = MM_FP64_COLS / 2 / 16; /* groups of 16 sums of a consumer's thread */
constexpr unsigned THREADS = MM_CONSUMERS * MM_WARPGROUP;

using wide = unsigned __int128;

__host__ __device__ constexpr wide product_of_moduli() {
    wide product = 1;
    for (unsigned i = 0; i < MODULI; i++)
        product *= static_cast<unsigned>(mm_fp64_modulus(i));
    return product;
}

__host__ __device__ constexpr wide grid_of_high_parts() {
    wide grid = 1;
    while (product_of_moduli() >> 41 >= grid)
        grid *= 2;
    return grid;
}

struct pair {
    double high;
    double low;
};

/* Splits a number below 2^127. `sign` is 1 or -1. */
__host__ __device__ constexpr pair split(wide x, int sign) {
    const wide grid = grid_of_high_parts();
    const wide high = (x + grid / 2) / grid * grid;
    const __int128 low = static_cast<__int128>(x) - static_cast<__int128>(high);
    return {sign * static_cast<double>(high), sign * static_cast<double>(low)};
}

__host__ __device__ constexpr pair weight_of(unsigned index) {
    const unsigned modulus = static_cast<unsigned>(mm_fp64_modulus(index));
    const wide product = product_of_moduli(), others = product / modulus;
    unsigned inverse = 1;
    while (static_cast<unsigned>(others % modulus) * inverse % modulus != 1)
        inverse++;
    const wide weight = others * inverse;
    return weight > product / 2 ? split(product - weight, -1) : split(weight, 1);
}

/* Adds residue INDEX and those after it, times their weights. Byte `at` of a word has the residue. A double
 * whose bits end with a byte is 2^52 and the byte. */
template <unsigned INDEX = 0>
__device__ __forceinline__ void add_residues(const uint32_t (&words)[MODULI], unsigned at, pair &sum) {
    if constexpr (INDEX < MODULI) {
        constexpr pair weight = weight_of(INDEX);
        const int byte = static_cast<int>(__byte_perm(words[INDEX] ^ 0x80808080, 0, 0x4440 | at));
        const double residue = __hiloint2double(0x43300000, byte) - (0x1p52 + 128);
        sum.high = fma(residue, weight.high, sum.high);
        sum.low = fma(residue, weight.low, sum.low);
        add_residues<INDEX + 1>(words, at, sum);
    }
}

/* Returns the reciprocal of a power of two: exponents e and 2046 - e add up to 2 times the bias. Returns
 * 2^1023 for 0. */
__device__ __forceinline__ double reciprocal_of(double power) {
    return __hiloint2double(0x7fe00000 - __double2hiint(power), 0);
}

/* Returns the integer of least magnitude with the residues. Rounds it to a multiple of `grid`, a power of
 * two. So whole numbers are exact (docs/accuracy.md). */
__device__ __forceinline__ double integer_of(const uint32_t (&words)[MODULI], unsigned at, double grid) {
    constexpr pair product = split(product_of_moduli(), 1);
    constexpr double reciprocal = 1.0 / static_cast<double>(product_of_moduli());
    pair sum = {0.0, 0.0};
    add_residues(words, at, sum);
    const double quotient = rint((sum.high + sum.low) * reciprocal);
    const double integer = fma(-quotient, product.high, sum.high) + fma(-quotient, product.low, sum.low);
    return rint(integer * reciprocal_of(grid)) * grid;
}

/* Returns the reciprocal of a line's scale. If the line is zero, its elements of C are 0 times anything. */
__device__ __forceinline__ double unscale_of(const mm_fp64_operand &operand, unsigned line) {
    return reciprocal_of(operand.scales[min(line, operand.lines - 1)]);
}

/* Not inlined, because activations would take registers from the residues. */
__device__ __noinline__ void finish(const mm_fp64_plan &plan, unsigned row, unsigned col, double sum) {
    if (col < plan.product.n)
        mm_store_c_double(&plan.product, row, col, sum);
}

/* Stores two neighbours in a row, as one access if that is possible. */
__device__ __forceinline__ void store(const mm_fp64_plan &plan, unsigned row, unsigned col, double first,
                                      double second) {
    const mm_product &product = plan.product;
    double *to = static_cast<double *>(product.c.data) + row * product.c.ld + col;
    if (row >= product.m)
        return;
    if (product.c.dtype == MM_FLOAT64 && !product.epilogue.is_set && col + 1 < product.n &&
        reinterpret_cast<size_t>(to) % sizeof(double2) == 0) {
        *reinterpret_cast<double2 *>(to) = {first, second};
        return;
    }
    finish(plan, row, col, first);
    finish(plan, row, col + 1, second);
}

/* A block computes a block's tile of the product of residues. Its threads are the product's consumers, so a
 * thread's 16 bytes of each plane are the residues of 16 of its sums. */
__global__ void __launch_bounds__(THREADS, 2) chinese(const __grid_constant__ mm_fp64_plan plan) {
    if (plan.flags->moduli == 0)
        return;
    const unsigned consumer = threadIdx.x / MM_WARPGROUP, thread = threadIdx.x % MM_WARPGROUP;
    const unsigned lane = thread % 32;
    const mm_tile tile = mm_cluster_tile_of(plan.schedule, blockIdx.x / MM_FP64_CLUSTER);
    const unsigned first_row = (tile.row * MM_FP64_CLUSTER + blockIdx.x % MM_FP64_CLUSTER) * MM_FP64_ROWS +
                               consumer * MM_CONSUMER_ROWS + thread / 32 * 16 + lane / 4;
    const unsigned first_col = tile.col * MM_FP64_COLS + lane % 4 * 2;
    const size_t plane = static_cast<size_t>(gridDim.x) * THREADS * VECTORS;
    const uint4 *from =
        reinterpret_cast<const uint4 *>(plan.planes) +
        (static_cast<size_t>(blockIdx.x) * MM_CONSUMERS + consumer) * (VECTORS * MM_WARPGROUP) + thread;
    const double grid = plan.flags->grid;
    const double of_rows[2] = {unscale_of(plan.a, first_row), unscale_of(plan.a, first_row + 8)};
#pragma unroll 1
    for (unsigned vector = 0; vector < VECTORS; vector++) {
        uint4 words[MODULI];
#pragma unroll
        for (unsigned i = 0; i < MODULI; i++)
            words[i] = __ldcs(&from[i * plane + vector * MM_WARPGROUP]);
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            /* Four sums: two neighbours in a row, and the two elements 8 rows below. */
            uint32_t of[MODULI];
#pragma unroll
            for (unsigned j = 0; j < MODULI; j++)
                of[j] = i == 0 ? words[j].x : i == 1 ? words[j].y : i == 2 ? words[j].z : words[j].w;
            const unsigned col = first_col + (vector * 4 + i) * 8;
            const double of_cols[2] = {unscale_of(plan.b, col), unscale_of(plan.b, col + 1)};
#pragma unroll
            for (unsigned down = 0; down < 2; down++)
                store(plan, first_row + down * 8, col,
                      integer_of(of, down * 2, grid) * of_rows[down] * of_cols[0],
                      integer_of(of, down * 2 + 1, grid) * of_rows[down] * of_cols[1]);
        }
    }
}

} // namespace

const void *const mm_fp64_chinese_kernel = reinterpret_cast<const void *>(chinese);
