/* Random numbers made on the device, so that a matrix to be measured with is never uploaded. Each thread
 * makes every step-th element; neighbouring threads write neighbouring elements. */
#include "gpu/cuda/device.h"
#include "gpu/random.h"

namespace {

/* As many blocks as keep every multiprocessor full, whatever the count: a thread then goes round. */
constexpr unsigned THREADS = 256;
constexpr unsigned BLOCKS_PER_MULTIPROCESSOR = 8;

/* How an element of each type is made. */
#define X(constant, name, TYPE, ...)                                                                         \
    struct make_##constant {                                                                                 \
        using type = TYPE;                                                                                   \
        static __device__ TYPE element(uint64_t seed, size_t index) {                                        \
            return mm_random_##constant(seed, index);                                                        \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

template <typename MAKE>
__global__ void __launch_bounds__(THREADS) fill(typename MAKE::type *elements, size_t count, uint64_t seed) {
    const size_t step = static_cast<size_t>(gridDim.x) * THREADS;
    for (size_t index = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x; index < count; index += step)
        elements[index] = MAKE::element(seed, index);
}

const void *const kernels[MM_DTYPE_COUNT] = {
#define X(constant, ...) reinterpret_cast<const void *>(fill<make_##constant>),
    MM_DTYPE_TABLE(X)
#undef X
};

} // namespace

enum mm_status mm_cuda_fill(struct mm_device *head, void *memory, enum mm_dtype dtype, size_t count,
                            uint64_t seed, struct mm_error *error) {
    struct mm_cuda_device *device = reinterpret_cast<struct mm_cuda_device *>(head);
    const enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK || count == 0)
        return status;
    const size_t needed = mm_size_divide_up(count, THREADS);
    const size_t most = static_cast<size_t>(head->multiprocessors) * BLOCKS_PER_MULTIPROCESSOR;
    const dim3 blocks(static_cast<unsigned>(needed < most ? needed : most));
    void *arguments[] = {&memory, &count, &seed};
    cudaError_t code =
        cudaLaunchKernel(kernels[dtype], blocks, dim3(THREADS), arguments, 0, device->direct.stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(device->direct.stream);
    return mm_cuda_status(device, code, "filling memory", error);
}
