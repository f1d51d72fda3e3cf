/* transposed: C = Aᵀ on a GPU, which only moves data, in three ways.
 *
 *     nvcc -O3 transposed.cu -o transposed
 *     ./transposed                   # 4096×4096 int; or ./transposed ROWS COLS
 *
 * The 32 threads of a warp run together, and memory moves sectors of 32 bytes, or 8 elements. A warp that
 * reads along a row of A has to write down a column of C, unless the elements change threads in between.
 *
 * - naive: each thread moves one element. A warp reads 32 neighbours, 4 sectors, but writes to 32 rows of C,
 *   32 sectors, and fills only 4 bytes of each.
 * - shared: a block moves a tile of 32×32 through shared memory. It writes the tile row by row and reads it
 *   column by column, so reads of A and writes of C both go along rows.
 * - padded: the same. Shared memory has 32 banks, and word w lies in bank w mod 32. With rows of 32 words a
 *   column lies in one bank, whose words come one after another. With rows of 33 it lies in all 32 banks.
 *
 * A block has 32×8 threads, and each moves 4 elements. GB is 10^9 bytes, GiB is 2^30; both count each element
 * twice, once as read and once as written. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UPS = 3, RUNS = 21, EDGE_MAX = 32768, TILE = 32, THREAD_ROWS = 8 };

/* Every call of CUDA can fail, and a failure of a kernel shows at a later call. */
#define CHECK(call) check(call, #call, __LINE__)
static void check(cudaError_t code, const char *call, int line) {
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(code));
    exit(1);
}

/* --- the lesson */

static __global__ void naive(const int *a, int *c, int rows, int cols) {
    const int col = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS) {
        const int row = blockIdx.y * TILE + y;
        if (row < rows && col < cols) /* the blocks at the edges reach past A */
            c[(size_t)col * rows + row] = a[(size_t)row * cols + col];
    }
}

template <int PADDING> static __global__ void tiled(const int *a, int *c, int rows, int cols) {
    __shared__ int tile[TILE][TILE + PADDING];
    const int x = threadIdx.x, first_row = blockIdx.y * TILE, first_col = blockIdx.x * TILE;
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS)
        if (first_row + y < rows && first_col + x < cols)
            tile[y][x] = a[(size_t)(first_row + y) * cols + first_col + x];
    __syncthreads(); /* each thread reads what others stored */
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS)
        if (first_col + y < cols && first_row + x < rows) /* C has cols rows */
            c[(size_t)(first_col + y) * rows + first_row + x] = tile[x][y];
}

/* --- launch, time, judge */

static int compare(const void *left, const void *right) {
    const float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

typedef void kernel(const int *a, int *c, int rows, int cols);

/* Prints a row of the table. expected is on the host, a and c are on the device. Nothing is computed, so
 * there is nothing to round: C is right if every bit is. */
static bool try_kernel(const char *name, kernel *run, const int *expected, const int *a, int *c, int rows,
                       int cols) {
    const size_t bytes = sizeof(int) * rows * cols;
    const dim3 blocks((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE), threads(TILE, THREAD_ROWS);
    float ms[RUNS];
    cudaEvent_t start, stop;
    CHECK(cudaMemset(c, 0xff, bytes)); /* -1 is in no matrix: an element that no thread stores is found */
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = -WARM_UPS; i < RUNS; i++) { /* the first launches load the code and raise the clocks */
        CHECK(cudaEventRecord(start));
        run<<<blocks, threads>>>(a, c, rows, cols);
        CHECK(cudaGetLastError()); /* of the launch */
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop)); /* of the kernel */
        CHECK(cudaEventElapsedTime(&ms[i < 0 ? 0 : i], start, stop));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    int *got = (int *)malloc(bytes);
    CHECK(got == NULL ? cudaErrorMemoryAllocation : cudaMemcpy(got, c, bytes, cudaMemcpyDeviceToHost));
    const bool right = memcmp(got, expected, bytes) == 0;
    free(got);
    qsort(ms, RUNS, sizeof ms[0], compare);
    const double median = ms[RUNS / 2], bytes_per_s = 2.0 * bytes / (median / 1e3);
    printf("%-12s %10.4f %10.1f %10.1f   %s\n", name, median, bytes_per_s / 1e9, bytes_per_s / 0x1p30,
           right ? "right" : "WRONG");
    return right;
}

int main(int argc, char **argv) {
    int size[2] = {4096, 4096};
    for (int i = 1; i < argc && i <= 2; i++)
        size[i - 1] = atoi(argv[i]);
    const int rows = size[0], cols = size[1];
    if ((argc != 1 && argc != 3) || rows < 1 || rows > EDGE_MAX || cols < 1 || cols > EDGE_MAX) {
        fprintf(stderr, "usage: %s [ROWS COLS], each from 1 to %d\n", argv[0], EDGE_MAX);
        return 1;
    }
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        fprintf(stderr, "there is no CUDA device here\n");
        return 77; /* test tools read this as skipped */
    }
    const size_t bytes = sizeof(int) * rows * cols;
    int *matrix = (int *)malloc(bytes), *expected = (int *)malloc(bytes), *a, *c;
    CHECK(matrix == NULL || expected == NULL ? cudaErrorMemoryAllocation : cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&c, bytes));
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++) /* every element is different */
            expected[(size_t)col * rows + row] = matrix[(size_t)row * cols + col] = row * cols + col;
    CHECK(cudaMemcpy(a, matrix, bytes, cudaMemcpyHostToDevice));
    printf("%s\n%d×%d, median of %d runs\n", device.name, rows, cols, RUNS);
    printf("%-12s %10s %10s %10s\n", "kernel", "ms", "GB/s", "GiB/s");
    bool right = try_kernel("naive", naive, expected, a, c, rows, cols);
    right &= try_kernel("shared", tiled<0>, expected, a, c, rows, cols);
    right &= try_kernel("padded", tiled<1>, expected, a, c, rows, cols);
    CHECK(cudaFree(a));
    CHECK(cudaFree(c));
    free(matrix);
    free(expected);
    return right ? 0 : 1;
}
