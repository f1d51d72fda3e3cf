/* fp32_tensor's first pass: each line of op(A) and op(B) is scaled by a power of two, so that its largest
 * magnitude comes to lie in [2^13, 2^14), and each of its elements is split into two float16, x = high + low
 * + what is lost. Both are written as the tensor cores read them, and zeros behind k. What is lost of a line
 * is summed up for the guard.
 *
 * A line whose elements are neighbours in memory is read once, by a team of threads that keeps it in
 * registers as far as it fits. Lines that lie across are read twice: for their largest, and again to be
 * split, when they are turned through shared memory. Both operands share a launch. It is bound by memory:
 * 4096×4096 twice in 54 and 36 µs on an H200 (bench/profile.sh), where the bytes alone would take 76.
 */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/parts.h"

namespace {

constexpr unsigned THREADS = MM_FP32_SPLIT_THREADS;
constexpr unsigned PIECE = MM_FP32_PIECE;
constexpr unsigned STRIP = 128; /* lines across that a block takes */
constexpr unsigned DEPTH = 64;  /* of k that a block looks for the largest in */
constexpr unsigned KEPT = 4;    /* pieces that a thread keeps */

struct alignas(16) halves {
    __half each[PIECE];
};

/* What is lost of a piece's elements. */
__device__ __forceinline__ unsigned sum_lost(const float (&x)[PIECE], const mm_fp32_scale &scale) {
    unsigned sum = 0;
    for (unsigned i = 0; i < PIECE; i++)
        sum += mm_fp32_lost(x[i], scale);
    return sum;
}

/* Where a piece's high halves lie; the low ones lie behind, swizzled likewise. */
__device__ __forceinline__ unsigned char *place(const mm_fp32_operand &operand, unsigned line, unsigned piece,
                                                unsigned is_low) {
    constexpr unsigned PIECES = MM_FP32_SLAB / PIECE;
    const unsigned tile = line / operand.tile_lines;
    const unsigned row = line % operand.tile_lines;
    const size_t slab = static_cast<size_t>(tile) * 2 * operand.steps + piece / PIECES;
    const unsigned at = (piece % PIECES + PIECES * is_low) ^ row % 8;
    return operand.tiles + (slab * operand.tile_lines + row) * MM_FP32_LINE_BYTES + at * sizeof(halves);
}

__device__ __forceinline__ unsigned put(const mm_fp32_operand &operand, unsigned line, unsigned piece,
                                        const float (&x)[PIECE], const mm_fp32_scale &scale) {
    halves high;
    halves low;
    bool any_faint = false;
#pragma unroll
    for (unsigned i = 0; i < PIECE; i++) {
        const float y = mm_fp32_scaled(x[i], scale);
        mm_fp32_split(y, &high.each[i], &low.each[i]);
        any_faint = any_faint || mm_fp32_is_faint(x[i], y);
    }
    *reinterpret_cast<halves *>(place(operand, line, piece, 0)) = high;
    *reinterpret_cast<halves *>(place(operand, line, piece, 1)) = low;
    return any_faint ? sum_lost(x, scale) : 0;
}

/* In units, so that the sum is the same in any order. */
__device__ __forceinline__ void add_lost(const mm_fp32_operand &operand, unsigned line,
                                         unsigned long long lost) {
    if (lost > 0)
        atomicAdd(&operand.lost[line], lost);
}

/* No halves can stand for Inf or NaN. */
__device__ __forceinline__ void judge(const mm_fp32_operand &operand, unsigned most) {
    constexpr unsigned INFINITE = 0x7f800000u;
    if (most >= INFINITE)
        operand.notes->fallback = 1;
}

/* Whether neighbours can be read by fours. */
__device__ __forceinline__ bool is_wide(const mm_fp32_operand &operand) {
    const unsigned neighbours = operand.along ? operand.k : operand.lines;
    return neighbours % 4 == 0 && operand.ld % 4 == 0 && reinterpret_cast<size_t>(operand.from) % 16 == 0;
}

/* The first `count` of four neighbours, and zeros. Without branches, so that a thread's reads are under way
 * together. */
template <bool WIDE> __device__ __forceinline__ float4 take_some(const float *from, unsigned count) {
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    if (WIDE) {
        if (count > 0)
            x = *reinterpret_cast<const float4 *>(from);
        return x;
    }
    if (count > 0)
        x.x = from[0];
    if (count > 1)
        x.y = from[1];
    if (count > 2)
        x.z = from[2];
    if (count > 3)
        x.w = from[3];
    return x;
}

/* A piece of a line that lies along. */
template <bool WIDE>
__device__ __forceinline__ void take_piece(const float *line, unsigned piece, unsigned k, float (&x)[PIECE]) {
#pragma unroll
    for (unsigned i = 0; i < PIECE; i += 4) {
        const unsigned at = piece * PIECE + i;
        const float4 some = take_some<WIDE>(line + at, at < k ? k - at : 0);
        x[i] = some.x;
        x[i + 1] = some.y;
        x[i + 2] = some.z;
        x[i + 3] = some.w;
    }
}

__device__ __forceinline__ unsigned larger(unsigned most, const float (&x)[PIECE]) {
#pragma unroll
    for (unsigned i = 0; i < PIECE; i++)
        most = max(most, mm_fp32_magnitude(x[i]));
    return most;
}

/* What the threads of a block tell each other. */
union shared_of_scan {
    unsigned of_warp[THREADS / 32];
    uint4 largest[THREADS / 32][STRIP / 4];
};

typedef float shared_of_split[MM_FP32_STEP][STRIP + 1];

/* The largest of what the threads of a team have; all threads of the block take part. */
__device__ __forceinline__ unsigned largest_of_team(unsigned most, unsigned team,
                                                    unsigned (&of_warp)[THREADS / 32]) {
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        most = max(most, __shfl_xor_sync(~0u, most, lanes));
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = most;
    __syncthreads(); /* each takes what others wrote */
    const unsigned first = threadIdx.x / team * (team / 32);
    for (unsigned warp = first; warp < first + team / 32; warp++)
        most = max(most, of_warp[warp]);
    return most;
}

/* Threads of a line: so many that they keep it in their registers, while there are more than enough lines. */
__host__ __device__ unsigned team_of(const mm_fp32_operand &operand) {
    unsigned team = 32;
    while (team < THREADS && team * KEPT * PIECE < operand.k)
        team *= 2;
    return team;
}

template <bool WIDE>
__device__ void scan_along(const mm_fp32_operand &operand, unsigned block, shared_of_scan &shared) {
    const unsigned team = team_of(operand);
    const unsigned line = block * (THREADS / team) + threadIdx.x / team;
    const unsigned mine = threadIdx.x % team;
    const unsigned pieces = operand.steps * (MM_FP32_STEP / PIECE);
    const bool is_line = line < operand.lines; /* else it is padding */
    const unsigned k = is_line ? operand.k : 0;
    const float *from = operand.from + (is_line ? line : 0) * operand.ld;
    float kept[KEPT][PIECE];
    unsigned most = 0;

    /* Reads before use, so that they are under way together. */
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        take_piece<WIDE>(from, mine + i * team, k, kept[i]);
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        most = larger(most, kept[i]);
    for (unsigned piece = mine + KEPT * team; piece < pieces; piece += team) {
        float x[PIECE];
        take_piece<WIDE>(from, piece, k, x);
        most = larger(most, x);
    }
    most = largest_of_team(most, team, shared.of_warp);

    const mm_fp32_scale scale = mm_fp32_scale_of(most);
    unsigned long long lost = 0;
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        if (mine + i * team < pieces)
            lost += put(operand, line, mine + i * team, kept[i], scale);
    for (unsigned piece = mine + KEPT * team; piece < pieces; piece += team) {
        float x[PIECE];
        take_piece<WIDE>(from, piece, k, x);
        lost += put(operand, line, piece, x, scale);
    }
    if (!is_line)
        return;
    add_lost(operand, line, lost);
    if (mine > 0)
        return;
    operand.most[line] = most;
    judge(operand, most);
}

/* Four neighbouring lines at one k. */
template <bool WIDE>
__device__ __forceinline__ float4 take_across(const mm_fp32_operand &operand, unsigned k, unsigned line) {
    const bool is_there = k < operand.k && line < operand.lines;
    return take_some<WIDE>(operand.from + static_cast<size_t>(k) * operand.ld + line,
                           is_there ? operand.lines - line : 0);
}

template <bool WIDE>
__device__ void scan_across(const mm_fp32_operand &operand, unsigned block, shared_of_scan &shared) {
    constexpr unsigned ROWS = THREADS / 32; /* of k, at a time */
    const unsigned strips = (operand.lines + STRIP - 1) / STRIP;
    const unsigned first = block % strips * STRIP;
    const unsigned k = block / strips * DEPTH + threadIdx.x / 32;
    uint4 most = {0, 0, 0, 0};
    float4 x[DEPTH / ROWS];
#pragma unroll
    for (unsigned i = 0; i < DEPTH / ROWS; i++)
        x[i] = take_across<WIDE>(operand, k + i * ROWS, first + threadIdx.x % 32 * 4);
#pragma unroll
    for (unsigned i = 0; i < DEPTH / ROWS; i++) {
        most.x = max(most.x, mm_fp32_magnitude(x[i].x));
        most.y = max(most.y, mm_fp32_magnitude(x[i].y));
        most.z = max(most.z, mm_fp32_magnitude(x[i].z));
        most.w = max(most.w, mm_fp32_magnitude(x[i].w));
    }
    shared.largest[threadIdx.x / 32][threadIdx.x % 32] = most;
    __syncthreads(); /* each takes what others wrote */
    if (threadIdx.x >= STRIP || first + threadIdx.x >= operand.lines)
        return;
    unsigned of_line = 0;
    for (unsigned row = 0; row < ROWS; row++)
        of_line = max(of_line, reinterpret_cast<const unsigned *>(shared.largest[row])[threadIdx.x]);
    atomicMax(&operand.most[first + threadIdx.x], of_line);
    judge(operand, of_line);
}

/* A step of a strip, turned through shared memory. Neighbouring threads write a line's pieces, of which eight
 * make up 128 bytes. */
template <bool WIDE>
__device__ void split_across(const mm_fp32_operand &operand, unsigned block, shared_of_split &turned) {
    constexpr unsigned STEP = MM_FP32_STEP;
    constexpr unsigned ROWS = THREADS / 32;
    constexpr unsigned PIECES = STEP / PIECE;
    const unsigned strips = (operand.padded + STRIP - 1) / STRIP;
    const unsigned step = block / strips;
    const unsigned first = block % strips * STRIP;
    float4 x[STEP / ROWS];
#pragma unroll
    for (unsigned i = 0; i < STEP / ROWS; i++)
        x[i] = take_across<WIDE>(operand, step * STEP + threadIdx.x / 32 + i * ROWS,
                                 first + threadIdx.x % 32 * 4);
#pragma unroll
    for (unsigned i = 0; i < STEP / ROWS; i++) {
        float *to = &turned[threadIdx.x / 32 + i * ROWS][threadIdx.x % 32 * 4];
        to[0] = x[i].x;
        to[1] = x[i].y;
        to[2] = x[i].z;
        to[3] = x[i].w;
    }
    __syncthreads(); /* each takes what others wrote */
    const unsigned piece = threadIdx.x % PIECES;
#pragma unroll
    for (unsigned i = 0; i < STRIP; i += THREADS / PIECES) {
        const unsigned row = i + threadIdx.x / PIECES;
        const bool is_line = first + row < operand.lines; /* else it is padding */
        if (first + row >= operand.padded)
            continue;
        float y[PIECE];
#pragma unroll
        for (unsigned j = 0; j < PIECE; j++)
            y[j] = turned[piece * PIECE + j][row];
        const mm_fp32_scale scale = mm_fp32_scale_of(is_line ? operand.most[first + row] : 0);
        const unsigned lost = put(operand, first + row, step * PIECES + piece, y, scale);
        if (is_line)
            add_lost(operand, first + row, lost);
    }
}

/* B comes last, which lies across unless it is transposed: what was read last is likely to be in the L2 cache
 * still when it is read again, in the opposite order. */
__global__ void __launch_bounds__(THREADS, 3)
    scan(const __grid_constant__ mm_fp32_operand a, const __grid_constant__ mm_fp32_operand b,
         unsigned blocks_of_a) {
    __shared__ shared_of_scan shared;
    const bool is_a = blockIdx.x < blocks_of_a;
    mm_let_kernel_behind_begin();
    const mm_fp32_operand &operand = is_a ? a : b;
    const unsigned block = is_a ? blockIdx.x : blockIdx.x - blocks_of_a;
    if (operand.along)
        is_wide(operand) ? scan_along<true>(operand, block, shared)
                         : scan_along<false>(operand, block, shared);
    else
        is_wide(operand) ? scan_across<true>(operand, block, shared)
                         : scan_across<false>(operand, block, shared);
}

__global__ void __launch_bounds__(THREADS)
    split_rest(const __grid_constant__ mm_fp32_operand a, const __grid_constant__ mm_fp32_operand b,
               unsigned blocks_of_a) {
    __shared__ shared_of_split turned;
    const unsigned last_first = gridDim.x - 1 - blockIdx.x;
    const bool is_a = last_first < blocks_of_a;
    const mm_fp32_operand &operand = is_a ? a : b;
    const unsigned block = is_a ? last_first : last_first - blocks_of_a;
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    is_wide(operand) ? split_across<true>(operand, block, turned)
                     : split_across<false>(operand, block, turned);
}

} // namespace

const void *const mm_fp32_scan_kernel = reinterpret_cast<const void *>(scan);
const void *const mm_fp32_split_kernel = reinterpret_cast<const void *>(split_rest);

unsigned mm_fp32_scan_blocks(const mm_fp32_operand *operand) {
    if (operand->along)
        return static_cast<unsigned>(mm_size_divide_up(operand->padded, THREADS / team_of(*operand)));
    return static_cast<unsigned>(mm_size_divide_up(operand->lines, STRIP) *
                                 mm_size_divide_up(operand->k, DEPTH));
}

unsigned mm_fp32_split_blocks(const mm_fp32_operand *operand) {
    return operand->along ? 0
                          : static_cast<unsigned>(mm_size_divide_up(operand->padded, STRIP) * operand->steps);
}
