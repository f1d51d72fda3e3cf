/* Reduces a part of C on the device to its sum, extremes and so on (struct mm_reduction). Each thread reduces
 * some elements, each block merges the results of its threads, and a last block merges the results of the
 * blocks, and those of earlier parts. The order of additions is fixed, so equal matrices have equal sums. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/stream.h"

namespace {

constexpr unsigned THREADS = 256;
constexpr unsigned BLOCKS_MAX = 1024;

/* Adds an element to a reduction. SUM is the type of the sum. */
template <typename SUM> struct adder {
    static __device__ void add(struct mm_reduction *seen, int64_t element, bool diagonal) {
        mm_reduce_whole(seen, element, diagonal);
    }
};

struct add_real {
    static __device__ void add(struct mm_reduction *seen, double element, bool diagonal) {
        mm_reduce_real(seen, element, diagonal);
    }
};
template <> struct adder<float> : add_real {};
template <> struct adder<double> : add_real {};

/* For each element type, a struct that adds an element. */
#define X(constant, name, TYPE, word, sum, value, ...)                                                       \
    struct of_##constant {                                                                                   \
        using type = TYPE;                                                                                   \
        static __device__ void add(struct mm_reduction *seen, TYPE element, bool diagonal) {                 \
            adder<sum>::add(seen, value(element), diagonal);                                                 \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

/* Merges the reductions of a block's threads. Thread 0 stores the result. */
__device__ void join(const struct mm_reduction &mine, struct mm_reduction *result) {
    __shared__ struct mm_reduction seen[THREADS];
    seen[threadIdx.x] = mine;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads(); /* so all threads have written before other threads read */
        if (threadIdx.x < half)
            mm_reduce_merge(&seen[threadIdx.x], &seen[threadIdx.x + half]);
    }
    if (threadIdx.x == 0)
        *result = seen[0];
}

template <typename OF>
__global__ void __launch_bounds__(THREADS) reduce(const typename OF::type *elements, struct mm_window part,
                                                  size_t count, struct mm_reduction *results) {
    struct mm_reduction mine = mm_reduction_none();
    const size_t step = static_cast<size_t>(gridDim.x) * THREADS;
    for (size_t index = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x; index < count;
         index += step) {
        const size_t line = index / part.cols, col = index % part.cols;
        const size_t matrix = line / part.rows, row = line % part.rows;
        OF::add(&mine, elements[(matrix * part.all_rows + part.row + row) * part.all_cols + part.col + col],
                row + part.diagonal == col);
    }
    join(mine, &results[blockIdx.x]);
}

__global__ void __launch_bounds__(THREADS)
    join_blocks(const struct mm_reduction *results, unsigned count, struct mm_reduction *result) {
    struct mm_reduction mine = threadIdx.x == 0 ? *result : mm_reduction_none();
    for (unsigned index = threadIdx.x; index < count; index += THREADS)
        mm_reduce_merge(&mine, &results[index]);
    join(mine, result);
}

const void *const kernels[MM_DTYPE_COUNT] = {
#define X(constant, ...) reinterpret_cast<const void *>(reduce<of_##constant>),
    MM_DTYPE_TABLE(X)
#undef X
};

} // namespace

size_t mm_cuda_reduce_bytes(void) {
    return BLOCKS_MAX * sizeof(struct mm_reduction);
}

enum mm_status mm_cuda_reduce(const struct mm_matrix *c, const struct mm_window *part, void *memory,
                              struct mm_lane *lane, struct mm_error *error) {
    size_t count = mm_window_elements(part);
    const size_t needed = mm_size_divide_up(count, THREADS);
    unsigned blocks = static_cast<unsigned>(needed < BLOCKS_MAX ? needed : BLOCKS_MAX);
    const void *elements = c->data;
    struct mm_window cut = *part;
    void *arguments[] = {&elements, &cut, &count, &memory};
    void *of_blocks[] = {&memory, &blocks, &lane->reduction};
    cudaError_t code = cudaSuccess;
    if (blocks > 0)
        code = cudaLaunchKernel(kernels[c->dtype], dim3(blocks), dim3(THREADS), arguments, 0, lane->stream);
    if (code == cudaSuccess)
        code = cudaLaunchKernel(reinterpret_cast<const void *>(join_blocks), dim3(1), dim3(THREADS),
                                of_blocks, 0, lane->stream);
    return mm_cuda_status(lane->device, code, "reducing c", error);
}
