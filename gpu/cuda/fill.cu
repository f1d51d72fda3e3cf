/* Generates random and identity matrices on the device. Blocks with equal blockIdx.y generate one matrix. */
#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/stream.h"
#include "gpu/matrix/random.h"

namespace {

/* These blocks fill every multiprocessor. For a large operand, each thread generates many elements. */
constexpr unsigned THREADS = 256;
constexpr unsigned BLOCKS_PER_MULTIPROCESSOR = 8;

/* For each element type, a struct that generates a random element. */
#define X(constant, name, TYPE, WORD, ...)                                                                   \
    struct make_##constant {                                                                                 \
        using type = TYPE;                                                                                   \
        using word = WORD;                                                                                   \
        static __device__ TYPE element(uint64_t seed, size_t index) {                                        \
            return mm_random_##constant(seed, index);                                                        \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

template <typename MAKE>
__global__ void __launch_bounds__(THREADS)
    make(const __grid_constant__ struct mm_cuda_generated generated, uint64_t one) {
    const auto &mine = generated.operands[blockIdx.y];
    const size_t step = static_cast<size_t>(gridDim.x) * THREADS;
    const size_t first = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (mine.kind == MM_SOURCE_UNIFORM) {
        typename MAKE::type *elements = static_cast<typename MAKE::type *>(mine.to);
        for (size_t index = first; index < mine.elements; index += step)
            elements[index] =
                MAKE::element(mine.number, mm_source_index(mine.first, mine.gap, mine.cols, index));
    } else {
        typename MAKE::word *words = static_cast<typename MAKE::word *>(mine.to);
        const size_t all_cols = mine.cols + mine.gap;
        for (size_t index = first; index < mine.elements; index += step) {
            const size_t at = mm_source_index(mine.first, mine.gap, mine.cols, index);
            words[index] =
                at / all_cols % mine.number == at % all_cols ? static_cast<typename MAKE::word>(one) : 0;
        }
    }
}

const void *const kernels[MM_DTYPE_COUNT] = {
#define X(constant, ...) reinterpret_cast<const void *>(make<make_##constant>),
    MM_DTYPE_TABLE(X)
#undef X
};

} // namespace

cudaError_t mm_cuda_generate(const struct mm_cuda_generated *generated, enum mm_dtype dtype,
                             const struct mm_cuda_device *device, cudaStream_t stream) {
    const size_t most = static_cast<size_t>(device->head.multiprocessors) * BLOCKS_PER_MULTIPROCESSOR;
    size_t blocks = 1;
    uint64_t one = 0;
    for (unsigned index = 0; index < generated->count; index++) {
        const size_t needed = mm_size_divide_up(generated->operands[index].elements, THREADS);
        blocks = needed > blocks ? needed : blocks;
    }
    mm_dtype_put(dtype, &one, 0, 1.0);
    void *arguments[] = {const_cast<struct mm_cuda_generated *>(generated), &one};
    return cudaLaunchKernel(kernels[dtype],
                            dim3(static_cast<unsigned>(blocks < most ? blocks : most), generated->count),
                            dim3(THREADS), arguments, 0, stream);
}

enum mm_status mm_cuda_fill(struct mm_device *head, void *memory, enum mm_dtype dtype, size_t count,
                            uint64_t seed, struct mm_error *error) {
    struct mm_cuda_device *device = reinterpret_cast<struct mm_cuda_device *>(head);
    const struct mm_source source = {MM_SOURCE_UNIFORM, seed, 0, NULL, 0, 0};
    const struct mm_matrix whole = mm_matrix_dense(dtype, 1, count, memory);
    const enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK)
        return status;
    cudaError_t code = mm_cuda_generate_operand(&source, &whole, &device->direct);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(device->direct.stream);
    return mm_cuda_status(device, code, "filling memory", error);
}
