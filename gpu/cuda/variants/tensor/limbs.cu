/* Copies int32 operands as planes of limbs (mm_tensor_groups), because wgmma multiplies bytes. A thread loads
 * four neighbours along k, and turns them into a word of each plane.
 *
 * A block copies 128 of k of 32 lines. If k is contiguous in memory, a warp loads 512 bytes of a line, and
 * stores 128 bytes of each of its planes. Otherwise a warp loads one element of 32 lines at a time, and the
 * words go through shared memory. */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/tensor/plan.h"

namespace {

constexpr unsigned LIMBS = MM_TENSOR_LIMBS;
constexpr unsigned THREADS = 256;
constexpr unsigned LANES = 32;
constexpr unsigned WARPS = THREADS / LANES;
constexpr unsigned LINES = 32; /* lines of a block */
constexpr unsigned WORDS = 32; /* words of each plane, in each line of a block */
constexpr unsigned EACH = LINES * WORDS / THREADS;

/* A row has a word of padding, so threads that store a column meet different banks. */
typedef uint32_t shared_words[LIMBS][LINES][WORDS + 1];

/* Turns four elements into words with a limb of each element. Word 0 has the least significant limbs. */
__device__ __forceinline__ void turn(const uint32_t (&x)[4], uint32_t (&words)[LIMBS]) {
    const uint32_t low_01 = __byte_perm(x[0], x[1], 0x5140), high_01 = __byte_perm(x[0], x[1], 0x7362);
    const uint32_t low_23 = __byte_perm(x[2], x[3], 0x5140), high_23 = __byte_perm(x[2], x[3], 0x7362);
    words[0] = __byte_perm(low_01, low_23, 0x5410);
    words[1] = __byte_perm(low_01, low_23, 0x7632);
    words[2] = __byte_perm(high_01, high_23, 0x5410);
    words[3] = __byte_perm(high_01, high_23, 0x7632);
}

/* Stores a word of a plane. `line` counts the lines of all matrices. */
__device__ __forceinline__ void store(const mm_tensor_split &split, size_t line, unsigned limb, unsigned word,
                                      uint32_t x) {
    const unsigned plane = split.descends ? LIMBS - 1 - limb : limb;
    unsigned char *planes = split.to + line * LIMBS * split.depth;
    if (word * 4 < split.depth)
        *reinterpret_cast<uint32_t *>(planes + size_t{plane} * split.depth + word * 4) = x;
}

/* Loads elements k to k + 3 of a line, and zeros past the end of the line. */
__device__ __forceinline__ void load_k_major(const mm_tensor_split &split, unsigned line, unsigned k,
                                             bool is_wide, uint32_t (&x)[4]) {
    const uint32_t *from = static_cast<const uint32_t *>(split.from.data) + line * split.from.ld + k;
    if (is_wide && line < split.lines && k + 4 <= split.k) {
        const uint4 four = *reinterpret_cast<const uint4 *>(from);
        x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        x[i] = line < split.lines && k + i < split.k ? from[i] : 0;
}

__device__ __forceinline__ void split_k_major(const mm_tensor_split &split, unsigned first_line,
                                              unsigned first_word) {
    const unsigned warp = threadIdx.x / LANES, word = first_word + threadIdx.x % LANES;
    const bool is_wide = split.from.ld % 4 == 0 && reinterpret_cast<size_t>(split.from.data) % 16 == 0;
    uint32_t x[EACH][4];
#pragma unroll
    for (unsigned i = 0; i < EACH; i++)
        load_k_major(split, first_line + warp + i * WARPS, word * 4, is_wide, x[i]);
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned line = first_line + warp + i * WARPS;
        uint32_t words[LIMBS];
        turn(x[i], words);
#pragma unroll
        for (unsigned limb = 0; limb < LIMBS; limb++)
            if (line < split.lines)
                store(split, line, limb, word, words[limb]);
    }
}

__device__ __forceinline__ void split_mn_major(const mm_tensor_split &split, unsigned matrix,
                                               unsigned first_line, unsigned first_word,
                                               shared_words &shared) {
    const unsigned warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, line = first_line + lane;
    const uint32_t *from =
        static_cast<const uint32_t *>(split.from.data) + size_t{matrix} * split.k * split.from.ld + line;
    uint32_t x[EACH][4];
#pragma unroll
    for (unsigned i = 0; i < EACH; i++)
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            const unsigned k = (first_word + warp + i * WARPS) * 4 + j;
            x[i][j] = line < split.lines && k < split.k ? from[k * split.from.ld] : 0;
        }
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        uint32_t words[LIMBS];
        turn(x[i], words);
#pragma unroll
        for (unsigned limb = 0; limb < LIMBS; limb++)
            shared[limb][lane][warp + i * WARPS] = words[limb];
    }
    __syncthreads(); /* a warp stores words that other warps have turned */
#pragma unroll
    for (unsigned i = 0; i < LIMBS * LINES / WARPS; i++) {
        const unsigned row = warp + i * WARPS, limb = row / LINES, down = row % LINES;
        if (first_line + down < split.lines)
            store(split, size_t{matrix} * split.lines + first_line + down, limb, first_word + lane,
                  shared[limb][down][lane]);
    }
}

__global__ void __launch_bounds__(THREADS) split_limbs(const __grid_constant__ mm_tensor_split split) {
    __shared__ shared_words shared;
    const unsigned across = (split.depth / 4 + WORDS - 1) / WORDS;
    const unsigned down = (split.lines + LINES - 1) / LINES;
    const unsigned first_word = blockIdx.x % across * WORDS;
    const unsigned first_line = blockIdx.x / across % down * LINES;
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    if (split.is_k_major)
        split_k_major(split, first_line, first_word);
    else
        split_mn_major(split, blockIdx.x / across / down, first_line, first_word, shared);
}

} // namespace

unsigned mm_tensor_split_blocks(const mm_tensor_split *split) {
    return static_cast<unsigned>(split->matrices * mm_size_divide_up(split->lines, LINES) *
                                 mm_size_divide_up(split->depth / 4, WORDS));
}

mm_layout mm_tensor_split_layout() {
    mm_layout layout = {};
    layout.kernel = reinterpret_cast<const void *>(split_limbs);
    layout.threads_x = THREADS;
    layout.threads_y = 1;
    layout.follows = true;
    return layout;
}
