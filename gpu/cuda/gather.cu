/* Copies operands from locked host pages to device memory. Blocks with equal blockIdx.y copy one operand. */
#include "gpu/cuda/batch.h"

namespace {

/* Each thread starts WORDS loads before it waits for the first load, because the bus has a long latency. */
constexpr unsigned THREADS = 256;
constexpr unsigned WORDS = 4;
constexpr unsigned BLOCKS_MAX = 32; /* the most blocks for one copy */

__global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ struct mm_cuda_copies copies) {
    const auto &copy = copies.copies[blockIdx.y];
    for (unsigned first = blockIdx.x * THREADS * WORDS + threadIdx.x; first < copy.words;
         first += gridDim.x * THREADS * WORDS) {
        unsigned words[WORDS];
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++)
            if (first + i * THREADS < copy.words)
                words[i] = copy.from[first + i * THREADS];
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++)
            if (first + i * THREADS < copy.words)
                copy.to[first + i * THREADS] = words[i];
    }
}

} // namespace

cudaError_t mm_cuda_gather(const struct mm_cuda_copies *copies, cudaStream_t stream) {
    const unsigned blocks = static_cast<unsigned>(mm_size_divide_up(copies->words_max, THREADS * WORDS));
    void *arguments[] = {const_cast<struct mm_cuda_copies *>(copies)};
    return cudaLaunchKernel(reinterpret_cast<const void *>(gather),
                            dim3(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX, copies->count), dim3(THREADS),
                            arguments, 0, stream);
}
