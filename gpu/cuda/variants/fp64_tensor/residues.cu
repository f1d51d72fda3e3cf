/* The passes of fp64_tensor before its product. They scale each line by a power of two, round the elements to
 * integers of up to 59 bits, and store the integers' residues.
 *
 * Rounding is dithered: an integer is the floor of the scaled element plus a number in [0, 1), which is a
 * hash of the element's place. So equal elements do not have equal errors, which would add up along k. An
 * element that is an integer after scaling stays as it is. */
#include "gpu/cuda/variants/fp64_tensor/moduli.cuh"

#include <cmath>

namespace {

constexpr unsigned THREADS = MM_FP64_THREADS;
constexpr unsigned WARPS = THREADS / 32;
constexpr unsigned CHUNK = MM_FP64_CHUNK;
constexpr unsigned MODULI = MM_FP64_MODULI;

/* A block works on A or B. *block becomes its number among those of its operand. */
__device__ __forceinline__ const mm_fp64_operand &my_operand(const mm_fp64_plan &plan, unsigned *block) {
    const bool is_a = blockIdx.x < plan.blocks_of_a;
    *block = is_a ? blockIdx.x : blockIdx.x - plan.blocks_of_a;
    return is_a ? plan.a : plan.b;
}

/* If all squares of a thread's elements underflow, this number takes their place. It is below the least sum
 * of squares that fp64_tensor takes, so the scale kernel notices. NaN stays NaN. */
#define FAINT 0x1p-1000
#define SQUARES_MIN 0x1p-800
#define SQUARES_MAX 0x1p800

__device__ __forceinline__ double square_sum(double sum, bool is_zero) {
    return is_zero ? 0.0 : sum < FAINT ? FAINT : sum;
}

/* --- sums of squares */

/* A warp adds up a chunk of one line. */
__device__ void scan_contiguous(const mm_fp64_operand &operand, unsigned block) {
    const unsigned line = block % ((operand.lines + WARPS - 1) / WARPS) * WARPS + threadIdx.x / 32;
    const unsigned chunk = block / ((operand.lines + WARPS - 1) / WARPS);
    if (line >= operand.lines)
        return;
    const double *from = operand.from + line * operand.ld;
    double x[CHUNK / 32];
#pragma unroll
    for (unsigned i = 0; i < CHUNK / 32; i++) {
        const unsigned k = chunk * CHUNK + i * 32 + threadIdx.x % 32;
        x[i] = k < operand.k ? from[k] : 0.0;
    }
    double sum = 0.0;
    bool is_zero = true;
#pragma unroll
    for (unsigned i = 0; i < CHUNK / 32; i++) {
        sum = fma(x[i], x[i], sum);
        is_zero = is_zero && x[i] == 0.0;
    }
    sum = square_sum(sum, is_zero);
#pragma unroll
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0)
        operand.squares[static_cast<size_t>(chunk) * operand.lines + line] = sum;
}

/* A block adds up a chunk of 32 neighbouring lines. */
__device__ void scan_strided(const mm_fp64_operand &operand, unsigned block, double (&sums)[WARPS][32]) {
    constexpr unsigned EACH = CHUNK / WARPS;
    const unsigned strips = (operand.lines + 31) / 32;
    const unsigned line = block % strips * 32 + threadIdx.x % 32;
    const unsigned chunk = block / strips;
    const unsigned first = chunk * CHUNK + threadIdx.x / 32 * EACH;
    double sum = 0.0;
    bool is_zero = true;
#pragma unroll 16
    for (unsigned i = 0; i < EACH; i++) {
        const bool is_there = line < operand.lines && first + i < operand.k;
        const double x = is_there ? operand.from[static_cast<size_t>(first + i) * operand.ld + line] : 0.0;
        sum = fma(x, x, sum);
        is_zero = is_zero && x == 0.0;
    }
    sums[threadIdx.x / 32][threadIdx.x % 32] = square_sum(sum, is_zero);
    __syncthreads();
    if (threadIdx.x >= 32 || line >= operand.lines)
        return;
    sum = 0.0;
    for (unsigned warp = 0; warp < WARPS; warp++)
        sum += sums[warp][threadIdx.x];
    operand.squares[static_cast<size_t>(chunk) * operand.lines + line] = sum;
}

__global__ void __launch_bounds__(THREADS) scan(const __grid_constant__ mm_fp64_plan plan) {
    __shared__ double sums[WARPS][32];
    unsigned block;
    const mm_fp64_operand &operand = my_operand(plan, &block);
    if (operand.k_contiguous)
        scan_contiguous(operand, block);
    else
        scan_strided(operand, block, sums);
}

/* --- scales */

/* Finds each line's scale: the largest power of two by which the line's norm does not exceed the limit. NaN
 * fails both comparisons, so it counts as too large. */
__global__ void __launch_bounds__(THREADS) find_scales(const __grid_constant__ mm_fp64_plan plan) {
    unsigned block;
    const mm_fp64_operand &operand = my_operand(plan, &block);
    const unsigned line = block * THREADS + threadIdx.x;
    if (line >= operand.lines)
        return;
    double squares = 0.0;
    for (unsigned chunk = 0; chunk < (operand.k + CHUNK - 1) / CHUNK; chunk++)
        squares += operand.squares[static_cast<size_t>(chunk) * operand.lines + line];
    double scale = 0.0;
    if (squares != 0.0) {
        const double quotient = plan.limit / (sqrt(squares) * (1 + 0x1p-32));
        scale = __hiloint2double(__double2hiint(quotient) & 0x7ff00000, 0);
        if (!(squares >= SQUARES_MIN && squares <= SQUARES_MAX))
            operand.seen->rejected = 1;
    }
    operand.scales[line] = scale;
}

/* --- residues */

struct digits {
    int low;
    int high;
};

/* Writes an integer as eight digits from -128 to 127 in base 256, a byte each. */
__device__ __forceinline__ digits digits_of(long long x) {
    constexpr unsigned long long SIGNS = 0x8080808080808080;
    const unsigned long long word = (static_cast<unsigned long long>(x) + SIGNS) ^ SIGNS;
    return {static_cast<int>(word), static_cast<int>(word >> 32)};
}

/* What a thread has found in its elements. */
struct found {
    unsigned count; /* of large elements */
    unsigned long long bits;
    bool inexact;
};

__device__ __forceinline__ unsigned hash(unsigned line, unsigned k) {
    unsigned h = line * 0x9e3779b1 + k * 0x85ebca77;
    h ^= h >> 16;
    h *= 0x7feb352d;
    return h ^ h >> 15;
}

__device__ __forceinline__ digits round_element(const mm_fp64_plan &plan, double x, double scale,
                                                unsigned line, unsigned k, found &found) {
    const double scaled = x * scale;
    long long whole = __double2ll_rd(scaled);
    const double rest = scaled - __ll2double_rn(whole);
    whole += rest > hash(line, k) * 0x1p-32;
    const int high = static_cast<int>(whole >> 32);
    const unsigned magnitude = static_cast<unsigned>(high ^ high >> 31);
    found.count += magnitude >= plan.large;
    found.bits |= static_cast<unsigned long long>(whole);
    found.inexact = found.inexact || rest != 0.0 || (scaled == 0.0 && x != 0.0); /* the last: underflow */
    return digits_of(whole);
}

/* Computes the residues of four elements for one modulus, a byte each. */
template <unsigned INDEX> __device__ __forceinline__ uint32_t residues_of(const digits (&x)[4]) {
    constexpr int modulus = mm_fp64_modulus(INDEX);
    constexpr int low = static_cast<int>(mm_fp64_weights(0, modulus));
    constexpr int high = static_cast<int>(mm_fp64_weights(4, modulus));
    constexpr float reciprocal = 1.0f / modulus;
    uint32_t of[4];
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        of[i] = mm_fp64_reduce(__dp4a(x[i].high, high, __dp4a(x[i].low, low, MM_FP64_FLOAT_BITS)), modulus,
                               reciprocal);
    return mm_fp64_pack(of[0], of[1], of[2], of[3]);
}

/* Calls store(index, residues) for each modulus. */
template <unsigned INDEX = 0, typename STORE>
__device__ __forceinline__ void for_each_modulus(const digits (&x)[4], const STORE &store) {
    if constexpr (INDEX < MODULI) {
        store(INDEX, residues_of<INDEX>(x));
        for_each_modulus<INDEX + 1>(x, store);
    }
}

/* Adds to what is known of the operand. Reads first, because a million threads that write to one word would
 * wait for each other. All lanes of a warp call this. */
__device__ __forceinline__ void note_seen(mm_fp64_seen *seen, const found &found) {
    const unsigned low = __reduce_or_sync(~0u, static_cast<unsigned>(found.bits));
    const unsigned high = __reduce_or_sync(~0u, static_cast<unsigned>(found.bits >> 32));
    const bool inexact = __any_sync(~0u, found.inexact);
    const unsigned long long bits = static_cast<unsigned long long>(high) << 32 | low;
    if (threadIdx.x % 32 != 0)
        return;
    if ((__ldcg(&seen->bits) & bits) != bits)
        atomicOr(&seen->bits, bits);
    if (inexact && __ldcg(&seen->inexact) == 0)
        seen->inexact = 1;
}

/* Each thread computes four neighbouring elements of a line. */
__device__ void residues_contiguous(const mm_fp64_plan &plan, const mm_fp64_operand &operand,
                                    unsigned block) {
    const unsigned line = block % operand.lines;
    const unsigned k = (block / operand.lines * THREADS + threadIdx.x) * 4;
    const double scale = operand.scales[line];
    const double *from = operand.from + line * operand.ld + k;
    double x[4] = {};
    if (k + 4 <= operand.k && reinterpret_cast<size_t>(from) % 16 == 0) {
        const double2 first = reinterpret_cast<const double2 *>(from)[0];
        const double2 second = reinterpret_cast<const double2 *>(from)[1];
        x[0] = first.x, x[1] = first.y, x[2] = second.x, x[3] = second.y;
    } else {
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (k + i < operand.k)
                x[i] = from[i];
    }
    found seen = {};
    digits of[4];
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        of[i] = round_element(plan, x[i], scale, line, k + i, seen);
    if (k < operand.k) {
        const size_t plane = static_cast<size_t>(operand.lines) * operand.k_bytes;
        int8_t *to = operand.planes + static_cast<size_t>(line) * operand.k_bytes + k;
        for_each_modulus(of, [=](unsigned index, uint32_t word) {
            *reinterpret_cast<uint32_t *>(to + index * plane) = word;
        });
    }
    note_seen(operand.seen, seen);
    const unsigned count = __reduce_add_sync(~0u, seen.count);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&operand.counts[line], count);
}

/* A block computes 128 of k of 32 neighbouring lines, and turns the residues through shared memory: for each
 * modulus and line 32 words of four residues, and a word of padding. */
constexpr unsigned TURN_K = MM_FP64_TURN_K;
constexpr unsigned TURN_WORDS = TURN_K / 4;
typedef uint32_t turned_plane[32][TURN_WORDS + 1];

__device__ void residues_strided(const mm_fp64_plan &plan, const mm_fp64_operand &operand, unsigned block,
                                 turned_plane *turned) {
    const unsigned strips = (operand.lines + 31) / 32;
    const unsigned first_line = block % strips * 32;
    const unsigned first_k = block / strips * TURN_K;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned line = first_line + lane;
    const bool is_line = line < operand.lines;
    const double scale = is_line ? operand.scales[line] : 0.0;
    double x[TURN_WORDS / WARPS][4];
#pragma unroll
    for (unsigned i = 0; i < TURN_WORDS / WARPS; i++)
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            const unsigned k = first_k + (warp + i * WARPS) * 4 + j;
            x[i][j] =
                is_line && k < operand.k ? operand.from[static_cast<size_t>(k) * operand.ld + line] : 0.0;
        }
    found seen = {};
#pragma unroll
    for (unsigned i = 0; i < TURN_WORDS / WARPS; i++) {
        const unsigned word_at = warp + i * WARPS;
        digits of[4];
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            of[j] = round_element(plan, x[i][j], scale, line, first_k + word_at * 4 + j, seen);
        for_each_modulus(of, [=](unsigned index, uint32_t word) { turned[index][lane][word_at] = word; });
    }
    note_seen(operand.seen, seen);
    if (is_line)
        atomicAdd(&operand.counts[line], seen.count);
    __syncthreads();
    const unsigned k = first_k + lane * 4;
    if (k >= operand.k)
        return;
    for (unsigned at = warp; at < MODULI * 32; at += WARPS) {
        const unsigned index = at / 32, down = at % 32;
        if (first_line + down < operand.lines)
            *reinterpret_cast<uint32_t *>(
                operand.planes +
                (static_cast<size_t>(index) * operand.lines + first_line + down) * operand.k_bytes + k) =
                turned[index][down][lane];
    }
}

__global__ void __launch_bounds__(THREADS, 3) find_residues(const __grid_constant__ mm_fp64_plan plan) {
    extern __shared__ uint32_t words[];
    unsigned block;
    const mm_fp64_operand &operand = my_operand(plan, &block);
    if (operand.seen->rejected != 0)
        return;
    if (operand.k_contiguous)
        residues_contiguous(plan, operand, block);
    else
        residues_strided(plan, operand, block, reinterpret_cast<turned_plane *>(words));
}

/* --- the certificate */

/* Finds the fewest large elements in a line that is not zero. *fewest is k before. */
__device__ void find_fewest(const mm_fp64_operand &operand, unsigned *fewest) {
    unsigned mine = operand.k;
    for (unsigned line = threadIdx.x; line < operand.lines; line += blockDim.x)
        if (operand.scales[line] != 0.0)
            mine = min(mine, operand.counts[line]);
    mine = __reduce_min_sync(~0u, mine);
    if (threadIdx.x % 32 == 0)
        atomicMin(fewest, mine);
}

/* Returns the least magnitude that an element other than 0 may have, by its lowest bit. */
__device__ double least_of(const mm_fp64_seen &seen) {
    return __ull2double_rn(seen.bits & (0 - seen.bits));
}

/* Returns a power of two that divides all integers of C. If an element was rounded, or if the power is too
 * small to correct the Chinese remainders, returns 1. */
__device__ double grid_of(const mm_fp64_plan &plan) {
    const mm_fp64_seen &a = *plan.a.seen, &b = *plan.b.seen;
    const double grid = a.inexact != 0 || b.inexact != 0 ? 0.0 : least_of(a) * least_of(b);
    return grid > 4 * plan.reconstruction ? grid : 1.0;
}

/* Whether every element of C keeps float64's bound. With a grid, only the last rounding makes errors. If
 * each row has p large elements, each column q, and p + q is more than k, then p + q - k of them meet, which
 * is a lower bound of |A|·|B|. */
__device__ bool is_certain(const mm_fp64_plan &plan, double grid, unsigned of_a, unsigned of_b) {
    const mm_fp64_seen &a = *plan.a.seen, &b = *plan.b.seen;
    const double k = plan.a.k, root = sqrt(k), large = plan.large * 0x1p32 - 1;
    const double error =
        root * ((b.inexact != 0 ? plan.limit + root : 0.0) + (a.inexact != 0 ? plan.limit : 0.0)) +
        plan.reconstruction;
    const double least = (of_a + static_cast<double>(of_b) - k) * large * large;
    return a.rejected == 0 && b.rejected == 0 && (grid > 1 || error <= (2 * k + 14) * 0x1p-53 * least);
}

__global__ void __launch_bounds__(MM_FP64_CERTIFY_THREADS)
    certify(const __grid_constant__ mm_fp64_plan plan) {
    __shared__ unsigned of_a, of_b;
    if (threadIdx.x == 0)
        of_a = of_b = plan.a.k;
    __syncthreads();
    find_fewest(plan.a, &of_a);
    find_fewest(plan.b, &of_b);
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    const double grid = grid_of(plan);
    const bool is_native = !is_certain(plan, grid, of_a, of_b);
    *plan.flags = {is_native ? 0 : MODULI, is_native, grid};
    if (!plan.merges_path || plan.path->kind != MM_PATH_NATIVE)
        *plan.path = {is_native ? MM_PATH_NATIVE : MM_PATH_MODULI, is_native ? 0 : MODULI, 0, 0.0};
}

} // namespace

const void *const mm_fp64_scan_kernel = reinterpret_cast<const void *>(scan);
const void *const mm_fp64_scale_kernel = reinterpret_cast<const void *>(find_scales);
const void *const mm_fp64_residue_kernel = reinterpret_cast<const void *>(find_residues);
const void *const mm_fp64_certify_kernel = reinterpret_cast<const void *>(certify);
const size_t mm_fp64_residue_shared_bytes = MODULI * sizeof(turned_plane);

void mm_fp64_set_limits(mm_fp64_plan *plan) {
    double product = 1.0; /* rounded, which L's factor allows for */
    for (unsigned i = 0; i < MODULI; i++)
        product *= mm_fp64_modulus(i);
    plan->limit = std::sqrt(product / 2) * (1 - 0x1p-30);
    plan->reconstruction = product * 0x1p-79;
    plan->large = static_cast<unsigned>(std::ceil(plan->limit / std::sqrt(plan->a.k) / 16 * 0x1p-32));
}
