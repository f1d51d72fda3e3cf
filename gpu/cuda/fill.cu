/* Random numbers made on the device, so that a matrix to be measured with is never uploaded. Each thread
 * makes every step-th element; neighbouring threads write neighbouring elements, a 128-byte line a warp. */
#include "gpu/cuda/device.h"
#include "gpu/random.h"

namespace {

/* As many blocks as keep every multiprocessor full, whatever the count: a thread then goes round. */
constexpr unsigned THREADS = 256;
constexpr unsigned BLOCKS_PER_MULTIPROCESSOR = 8;

__global__ void __launch_bounds__(THREADS) fill(float *elements, size_t count, uint64_t seed) {
    const size_t step = static_cast<size_t>(gridDim.x) * THREADS;
    for (size_t index = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x; index < count; index += step)
        elements[index] = mm_random_element(seed, index);
}

} // namespace

enum mm_status mm_cuda_fill(struct mm_device *head, void *memory, size_t count, uint64_t seed,
                            struct mm_error *error) {
    struct mm_cuda_device *device = reinterpret_cast<struct mm_cuda_device *>(head);
    const enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK || count == 0)
        return status;
    const size_t needed = mm_size_divide_up(count, THREADS);
    const size_t most = static_cast<size_t>(head->multiprocessors) * BLOCKS_PER_MULTIPROCESSOR;
    const dim3 blocks(static_cast<unsigned>(needed < most ? needed : most));
    float *elements = static_cast<float *>(memory);
    void *arguments[] = {&elements, &count, &seed};
    cudaError_t code = cudaLaunchKernel(reinterpret_cast<const void *>(fill), blocks, dim3(THREADS),
                                        arguments, 0, device->direct.stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(device->direct.stream);
    return mm_cuda_status(device, code, "filling memory", error);
}
