/* The first pass of fp32_tensor splits both operands. A line is a row of op(A) or a column of op(B). The pass
 * scales each line by a power of two, so its largest magnitude lies in [2^14, 2^15). The pass splits each
 * element into float16 high and low, and writes both in wgmma's layout. For the guard, the pass also adds up
 * each line's loss.
 *
 * If a line is contiguous, its threads keep the first 8192 elements in registers, and read only later
 * elements twice. Other lines are read twice: `scan` finds their maximum, and split_rest splits them. On an
 * H200 two 4096×4096 operands take 54 µs in `scan` and 36 µs in split_rest. Merely moving the same bytes
 * would take 76 µs in total (bench/profile.sh). */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/plan.h"

namespace {

constexpr unsigned THREADS = MM_FP32_SPLIT_THREADS;
constexpr unsigned CHUNK = MM_FP32_CHUNK;
constexpr unsigned STRIP = 128; /* lines that a block reads in scan_k_strided and split_k_strided */
constexpr unsigned DEPTH = 64;  /* elements of k that a block of scan_k_strided reads */
constexpr unsigned KEPT = 4;    /* chunks that a thread keeps in registers */

struct alignas(16) halves {
    __half each[CHUNK];
};

/* Returns what splitting a chunk loses, in MM_FP32_LOST_UNIT. */
__device__ __forceinline__ unsigned sum_lost(const float (&x)[CHUNK], const mm_fp32_scale &scale) {
    unsigned sum = 0;
    for (unsigned i = 0; i < CHUNK; i++)
        sum += mm_fp32_lost(x[i], scale);
    return sum;
}

__device__ __forceinline__ unsigned store_halves(const mm_fp32_operand &operand, unsigned line,
                                                 unsigned chunk, const float (&x)[CHUNK],
                                                 const mm_fp32_scale &scale) {
    halves high;
    halves low;
    bool any_faint = false;
#pragma unroll
    for (unsigned i = 0; i < CHUNK; i++) {
        const float y = mm_fp32_scaled(x[i], scale);
        mm_fp32_split(y, &high.each[i], &low.each[i]);
        any_faint = any_faint || mm_fp32_is_faint(x[i], y);
    }
    unsigned char *tiles = operand.tiles;
    const unsigned lines = operand.tile_lines;
    *reinterpret_cast<halves *>(tiles + mm_fp32_chunk_offset(lines, operand.steps, line, chunk, false)) =
        high;
    *reinterpret_cast<halves *>(tiles + mm_fp32_chunk_offset(lines, operand.steps, line, chunk, true)) = low;
    return any_faint ? sum_lost(x, scale) : 0;
}

/* Adds to the loss of a line. The loss is an integer, so the order of additions does not matter. */
__device__ __forceinline__ void add_lost(const mm_fp32_operand &operand, unsigned line,
                                         unsigned long long lost) {
    if (lost > 0)
        atomicAdd(&operand.lost[line], lost);
}

/* If a line has Inf or NaN, which cannot be split, sets the flag that makes simt compute the product. */
__device__ __forceinline__ void flag_nonfinite(const mm_fp32_operand &operand, unsigned largest) {
    constexpr unsigned INFINITE = 0x7f800000u;
    if (largest >= INFINITE)
        operand.flags->fallback = 1;
}

/* Whether one access can load four neighbours in memory. */
__device__ __forceinline__ bool is_wide(const mm_fp32_operand &operand) {
    const unsigned neighbours = operand.k_contiguous ? operand.k : operand.lines;
    return neighbours % 4 == 0 && operand.ld % 4 == 0 && reinterpret_cast<size_t>(operand.from) % 16 == 0;
}

/* Returns the first `count` of four neighbouring elements, followed by zeros. */
template <bool WIDE> __device__ __forceinline__ float4 load_some(const float *from, unsigned count) {
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

template <bool WIDE>
__device__ __forceinline__ void load_chunk(const float *line, unsigned chunk, unsigned k, float (&x)[CHUNK]) {
#pragma unroll
    for (unsigned i = 0; i < CHUNK; i += 4) {
        const unsigned at = chunk * CHUNK + i;
        const float4 some = load_some<WIDE>(line + at, at < k ? k - at : 0);
        x[i] = some.x;
        x[i + 1] = some.y;
        x[i + 2] = some.z;
        x[i + 3] = some.w;
    }
}

__device__ __forceinline__ unsigned larger(unsigned largest, const float (&x)[CHUNK]) {
#pragma unroll
    for (unsigned i = 0; i < CHUNK; i++)
        largest = max(largest, mm_fp32_magnitude(x[i]));
    return largest;
}

union shared_of_scan {
    unsigned of_warp[THREADS / 32];
    uint4 largest[THREADS / 32][STRIP / 4];
};

/* Each row has a word of padding. So the 8 rows that a warp reads at once begin in different banks. */
typedef float shared_of_split[MM_FP32_STEP][STRIP + 1];

/* Returns the largest magnitude in the `team` threads that share a line. All threads must call this. */
__device__ __forceinline__ unsigned largest_of_team(unsigned largest, unsigned team,
                                                    unsigned (&of_warp)[THREADS / 32]) {
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        largest = max(largest, __shfl_xor_sync(~0u, largest, lanes));
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = largest;
    __syncthreads();
    const unsigned first = threadIdx.x / team * (team / 32);
    for (unsigned warp = first; warp < first + team / 32; warp++)
        largest = max(largest, of_warp[warp]);
    return largest;
}

/* Returns how many threads share a line. Together they keep up to 8192 elements of the line in registers. */
__host__ __device__ unsigned team_of(const mm_fp32_operand &operand) {
    unsigned team = 32;
    while (team < THREADS && team * KEPT * CHUNK < operand.k)
        team *= 2;
    return team;
}

/* Finds the largest magnitude of each line, and then splits the line. */
template <bool WIDE>
__device__ void scan_and_split_k_contiguous(const mm_fp32_operand &operand, unsigned block,
                                            shared_of_scan &shared) {
    const unsigned team = team_of(operand);
    const unsigned line = block * (THREADS / team) + threadIdx.x / team;
    const unsigned mine = threadIdx.x % team;
    const unsigned chunks = operand.steps * (MM_FP32_STEP / CHUNK);
    const bool is_line = line < operand.lines; /* false: the line is padding */
    const unsigned k = is_line ? operand.k : 0;
    const float *from = operand.from + (is_line ? line : 0) * operand.ld;
    float kept[KEPT][CHUNK];
    unsigned largest = 0;

    /* All loads come before their first use, so the loads overlap. */
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        load_chunk<WIDE>(from, mine + i * team, k, kept[i]);
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        largest = larger(largest, kept[i]);
    for (unsigned chunk = mine + KEPT * team; chunk < chunks; chunk += team) {
        float x[CHUNK];
        load_chunk<WIDE>(from, chunk, k, x);
        largest = larger(largest, x);
    }
    largest = largest_of_team(largest, team, shared.of_warp);

    const mm_fp32_scale scale = mm_fp32_scale_of(largest);
    unsigned long long lost = 0;
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        if (mine + i * team < chunks)
            lost += store_halves(operand, line, mine + i * team, kept[i], scale);
    for (unsigned chunk = mine + KEPT * team; chunk < chunks; chunk += team) {
        float x[CHUNK];
        load_chunk<WIDE>(from, chunk, k, x);
        lost += store_halves(operand, line, chunk, x, scale);
    }
    if (!is_line)
        return;
    add_lost(operand, line, lost);
    if (mine > 0)
        return;
    operand.max[line] = largest;
    flag_nonfinite(operand, largest);
}

/* Loads the elements of four neighbouring lines at one k. */
template <bool WIDE>
__device__ __forceinline__ float4 load_k_strided(const mm_fp32_operand &operand, unsigned k, unsigned line) {
    const bool is_there = k < operand.k && line < operand.lines;
    return load_some<WIDE>(operand.from + static_cast<size_t>(k) * operand.ld + line,
                           is_there ? operand.lines - line : 0);
}

template <bool WIDE>
__device__ void scan_k_strided(const mm_fp32_operand &operand, unsigned block, shared_of_scan &shared) {
    constexpr unsigned ROWS = THREADS / 32; /* elements of k that a block reads at a time */
    const unsigned strips = (operand.lines + STRIP - 1) / STRIP;
    const unsigned first = block % strips * STRIP;
    const unsigned k = block / strips * DEPTH + threadIdx.x / 32;
    uint4 largest = {0, 0, 0, 0};
    float4 x[DEPTH / ROWS];
#pragma unroll
    for (unsigned i = 0; i < DEPTH / ROWS; i++)
        x[i] = load_k_strided<WIDE>(operand, k + i * ROWS, first + threadIdx.x % 32 * 4);
#pragma unroll
    for (unsigned i = 0; i < DEPTH / ROWS; i++) {
        largest.x = max(largest.x, mm_fp32_magnitude(x[i].x));
        largest.y = max(largest.y, mm_fp32_magnitude(x[i].y));
        largest.z = max(largest.z, mm_fp32_magnitude(x[i].z));
        largest.w = max(largest.w, mm_fp32_magnitude(x[i].w));
    }
    shared.largest[threadIdx.x / 32][threadIdx.x % 32] = largest;
    __syncthreads();
    if (threadIdx.x >= STRIP || first + threadIdx.x >= operand.lines)
        return;
    unsigned of_line = 0;
    for (unsigned row = 0; row < ROWS; row++)
        of_line = max(of_line, reinterpret_cast<const unsigned *>(shared.largest[row])[threadIdx.x]);
    atomicMax(&operand.max[first + threadIdx.x], of_line);
    flag_nonfinite(operand, of_line);
}

/* Splits 64 elements of k of STRIP lines, and transposes them through shared memory. So eight neighbouring
 * threads store the chunks of one line. */
template <bool WIDE>
__device__ void split_k_strided(const mm_fp32_operand &operand, unsigned block, shared_of_split &turned) {
    constexpr unsigned STEP = MM_FP32_STEP;
    constexpr unsigned ROWS = THREADS / 32;
    constexpr unsigned CHUNKS = STEP / CHUNK;
    const unsigned strips = (operand.padded + STRIP - 1) / STRIP;
    const unsigned step = block / strips;
    const unsigned first = block % strips * STRIP;
    float4 x[STEP / ROWS];
#pragma unroll
    for (unsigned i = 0; i < STEP / ROWS; i++)
        x[i] = load_k_strided<WIDE>(operand, step * STEP + threadIdx.x / 32 + i * ROWS,
                                    first + threadIdx.x % 32 * 4);
#pragma unroll
    for (unsigned i = 0; i < STEP / ROWS; i++) {
        float *to = &turned[threadIdx.x / 32 + i * ROWS][threadIdx.x % 32 * 4];
        to[0] = x[i].x;
        to[1] = x[i].y;
        to[2] = x[i].z;
        to[3] = x[i].w;
    }
    __syncthreads();
    const unsigned chunk = threadIdx.x % CHUNKS;
#pragma unroll
    for (unsigned i = 0; i < STRIP; i += THREADS / CHUNKS) {
        const unsigned row = i + threadIdx.x / CHUNKS;
        const bool is_line = first + row < operand.lines; /* false: the line is padding */
        if (first + row >= operand.padded)
            continue;
        float y[CHUNK];
#pragma unroll
        for (unsigned j = 0; j < CHUNK; j++)
            y[j] = turned[chunk * CHUNK + j][row];
        const mm_fp32_scale scale = mm_fp32_scale_of(is_line ? operand.max[first + row] : 0);
        const unsigned lost = store_halves(operand, first + row, step * CHUNKS + chunk, y, scale);
        if (is_line)
            add_lost(operand, first + row, lost);
    }
}

/* Scans A, then B, because usually only B needs split_rest. split_rest takes the blocks in reverse order,
 * because the L2 cache still has the elements that were scanned last. */
__global__ void __launch_bounds__(THREADS, 3)
    scan(const __grid_constant__ mm_fp32_operand a, const __grid_constant__ mm_fp32_operand b,
         unsigned blocks_of_a) {
    __shared__ shared_of_scan shared;
    const bool is_a = blockIdx.x < blocks_of_a;
    mm_trigger_dependent_launch();
    const mm_fp32_operand &operand = is_a ? a : b;
    const unsigned block = is_a ? blockIdx.x : blockIdx.x - blocks_of_a;
    if (operand.k_contiguous)
        is_wide(operand) ? scan_and_split_k_contiguous<true>(operand, block, shared)
                         : scan_and_split_k_contiguous<false>(operand, block, shared);
    else
        is_wide(operand) ? scan_k_strided<true>(operand, block, shared)
                         : scan_k_strided<false>(operand, block, shared);
}

__global__ void __launch_bounds__(THREADS)
    split_rest(const __grid_constant__ mm_fp32_operand a, const __grid_constant__ mm_fp32_operand b,
               unsigned blocks_of_a) {
    __shared__ shared_of_split turned;
    const unsigned last_first = gridDim.x - 1 - blockIdx.x;
    const bool is_a = last_first < blocks_of_a;
    const mm_fp32_operand &operand = is_a ? a : b;
    const unsigned block = is_a ? last_first : last_first - blocks_of_a;
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    is_wide(operand) ? split_k_strided<true>(operand, block, turned)
                     : split_k_strided<false>(operand, block, turned);
}

} // namespace

const void *const mm_fp32_scan_kernel = reinterpret_cast<const void *>(scan);
const void *const mm_fp32_split_kernel = reinterpret_cast<const void *>(split_rest);

unsigned mm_fp32_scan_blocks(const mm_fp32_operand *operand) {
    if (operand->k_contiguous)
        return static_cast<unsigned>(mm_size_divide_up(operand->padded, THREADS / team_of(*operand)));
    return static_cast<unsigned>(mm_size_divide_up(operand->lines, STRIP) *
                                 mm_size_divide_up(operand->k, DEPTH));
}

unsigned mm_fp32_split_blocks(const mm_fp32_operand *operand) {
    return operand->k_contiguous
               ? 0
               : static_cast<unsigned>(mm_size_divide_up(operand->padded, STRIP) * operand->steps);
}
