/* What a multiprocessor does with each of simt's tiles, which its choice rests on
 * (gpu/cuda/variants/simt.cu): the part of its multiplications that is done where it holds as many blocks as
 * it can, and that one block alone does, beside what the table says. The kernels are timed on products of one
 * such round of blocks, k = 2048, on data that its caches hold. Judges nothing. Exits 77 where there is no
 * CUDA device.
 *
 * usage: tiles */
#include "gpu/cuda/variants/simt.cu"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int EXIT_SKIPPED = 77;
constexpr unsigned DEPTH = 2048;
constexpr unsigned REPEATS = 9;
constexpr float LANES = 128.0f;          /* of a multiprocessor: multiplications a cycle */
constexpr float LAUNCH_CYCLES = 4000.0f; /* of an empty kernel, about */
constexpr long long DELAY_CYCLES = 80000;

struct mm_device device;

void expect(cudaError_t code, const char *what) {
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "tiles: %s: %s\n", what, cudaGetErrorString(code));
    exit(EXIT_FAILURE);
}

/* Holds the stream until all that is timed is enqueued, so that the host's time is not in it. */
__global__ void delay(long long cycles) {
    const long long begun = clock64();
    while (clock64() - begun < cycles)
        ;
}

/* The median of what the product takes by this tile, in milliseconds. */
float time(const struct tile &tile, const struct mm_product &product, cudaStream_t stream,
           const cudaEvent_t (&marks)[2]) {
    struct mm_lane lane = {};
    struct mm_error error;
    const struct choice choice = {&tile, static_cast<unsigned>(product.k), 1};
    struct mm_plan plan = {};
    plan.splits = choice.splits;
    plan.layout = layout_of_tiles(&choice, &product);
    float times[REPEATS];
    lane.stream = stream;
    for (float &taken : times) {
        delay<<<1, 1, 0, stream>>>(DELAY_CYCLES);
        expect(cudaEventRecord(marks[0], stream), "marking");
        if (enqueue_main(&plan, &product, &product.c, &lane, nullptr, &error) != MM_OK)
            exit(EXIT_FAILURE);
        expect(cudaEventRecord(marks[1], stream), "marking");
        expect(cudaEventSynchronize(marks[1]), "running a tile");
        expect(cudaEventElapsedTime(&taken, marks[0], marks[1]), "timing");
    }
    std::sort(times, times + REPEATS);
    return times[REPEATS / 2];
}

/* Of so many blocks on each multiprocessor. */
float rate_of(const struct tile &tile, unsigned blocks, float *data, int clock_khz, cudaStream_t stream,
              const cudaEvent_t (&marks)[2]) {
    struct mm_product product = {};
    product.m = static_cast<size_t>(tile.shape.rows) * device.multiprocessors;
    product.n = static_cast<size_t>(tile.shape.cols) * blocks;
    product.k = DEPTH;
    product.a = mm_matrix_dense(MM_FLOAT32, product.m, product.k, data);
    product.b = mm_matrix_dense(MM_FLOAT32, product.k, product.n, data + product.m * product.k);
    product.c = mm_matrix_dense(MM_FLOAT32, product.m, product.n, data + (product.m + product.n) * product.k);
    const float cycles = time(tile, product, stream, marks) * static_cast<float>(clock_khz) - LAUNCH_CYCLES;
    return static_cast<float>(tile.shape.rows * tile.shape.cols * blocks) * DEPTH / LANES / cycles;
}

} // namespace

enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error) {
    (void)layout;
    (void)lane;
    (void)error;
    return MM_OK;
}

enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    (void)error;
    if (layout->dynamic_shared_bytes > 0)
        expect(cudaFuncSetAttribute(layout->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(layout->dynamic_shared_bytes)),
               "opting in to shared memory");
    expect(cudaLaunchKernel(layout->kernel, grid, dim3(layout->threads_x), arguments,
                            layout->dynamic_shared_bytes, lane->stream),
           "launching a tile");
    return MM_OK;
}

int main() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("no CUDA device");
        return EXIT_SKIPPED;
    }
    cudaDeviceProp properties;
    int clock_khz = 0;
    expect(cudaGetDeviceProperties(&properties, 0), "asking the device");
    expect(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0), "asking for its clock");
    device.multiprocessors = static_cast<unsigned>(properties.multiProcessorCount);
    device.shared_bytes_per_block_max = properties.sharedMemPerBlockOptin;
    size_t most = 0; /* elements of a product's matrices */
    for (const struct tile &tile : tiles) {
        const size_t m = static_cast<size_t>(tile.shape.rows) * device.multiprocessors;
        const size_t n = static_cast<size_t>(tile.shape.cols) * tile.shape.resident;
        most = std::max(most, (m + n) * DEPTH + m * n);
    }
    float *data = nullptr;
    cudaStream_t stream;
    cudaEvent_t marks[2];
    expect(cudaMalloc(&data, most * sizeof(float)), "taking memory");
    expect(cudaMemset(data, 0x3c, most * sizeof(float)), "filling it"); /* 0.0115 each */
    expect(cudaStreamCreate(&stream), "making a stream");
    expect(cudaEventCreate(&marks[0]), "making an event");
    expect(cudaEventCreate(&marks[1]), "making an event");
    printf("%s, %d MHz\n\n| tile | blocks held | rate | in the table | alone | in the table "
           "|\n|---|--:|--:|--:|--:|--:|\n",
           properties.name, clock_khz / 1000);
    for (const struct tile &tile : tiles) {
        if (tile.shared_bytes[0][0] > device.shared_bytes_per_block_max)
            continue;
        printf("| %u×%u×%u | %u | %.3f | %.3f | %.3f | %.3f |\n", tile.shape.rows, tile.shape.cols,
               tile.shape.depth, tile.shape.resident,
               rate_of(tile, tile.shape.resident, data, clock_khz, stream, marks), tile.shape.rate,
               rate_of(tile, 1, data, clock_khz, stream, marks), tile.shape.rate_alone);
    }
    return EXIT_SUCCESS;
}
