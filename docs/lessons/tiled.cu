/* tiled: multiplies matrices by tiles in shared memory, and compares this with a simple kernel.
 *
 *     nvcc -O3 tiled.cu -o tiled
 *     ./tiled            # multiplies 1024×1024 by 1024×1024, and 228×240 by 240×112
 *     ./tiled M K N      # multiplies M×K by K×N
 *
 * In `naive` each thread loads a row of A and a column of B, although neighbouring threads load that row or
 * column too. In `tiled` the threads of a block load elements together. A block computes a square of C with
 * TILE×TILE elements, one for each thread. The block goes along k in steps of TILE. In each step every thread
 * copies one element of A and one element of B to tiles in shared memory. Then each thread multiplies a row
 * of a_tile by a column of b_tile. Each loaded element is used TILE times, so global loads fall to 1/TILE.
 *
 * 228, 240 and 112 are not multiples of 32, so some tiles reach past the end of a matrix. The tiles hold
 * zeros there, which add nothing to the sums. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UPS = 3, RUNS = 21, EDGE_MAX = 8192 };

/* Every CUDA call can fail. An error inside a kernel is reported by a later call. */
#define CHECK(call) check(call, #call, __LINE__)
static void check(cudaError_t code, const char *call, int line) {
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(code));
    exit(1);
}

/* --- the kernels */

static __global__ void naive(const float *a, const float *b, float *c, int m, int k, int n) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++)
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    c[(size_t)row * n + col] = sum;
}

template <int TILE>
static __global__ void tiled(const float *a, const float *b, float *c, int m, int k, int n) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x; /* the thread's element of C */
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        a_tile[y][x] = row < m && first + x < k ? a[(size_t)row * k + first + x] : 0.0f;
        b_tile[y][x] = first + y < k && col < n ? b[(size_t)(first + y) * n + col] : 0.0f;
        __syncthreads(); /* wait until both tiles are complete: threads read what other threads wrote */
        for (int i = 0; i < TILE; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads(); /* wait until all threads have read the tiles: the next step overwrites them */
    }
    /* A thread outside C must stay until here: other threads need its elements, and barriers wait for it. */
    if (row < m && col < n)
        c[(size_t)row * n + col] = sum;
}

/* --- input data and the check of the result */

struct product {
    int m, k, n;
    float *a, *b, *c; /* in device memory */
    double *expected; /* C, computed on the CPU in float64 */
    double bound;     /* the largest allowed error of an element of C */
};

/* Makes a matrix of random numbers from -1 to 1, equal in each run, and copies it to the device. */
static float *make_matrix(size_t count, unsigned seed, float **on_device) {
    float *matrix = (float *)malloc(count * sizeof *matrix);
    CHECK(matrix == NULL ? cudaErrorMemoryAllocation : cudaMalloc(on_device, count * sizeof *matrix));
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        matrix[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
    CHECK(cudaMemcpy(*on_device, matrix, count * sizeof *matrix, cudaMemcpyHostToDevice));
    return matrix;
}

static void multiply_on_host(struct product *p, const float *a, const float *b) {
    for (int row = 0; row < p->m; row++)
        for (int i = 0; i < p->k; i++)
            for (int col = 0; col < p->n; col++)
                p->expected[(size_t)row * p->n + col] +=
                    (double)a[(size_t)row * p->k + i] * b[(size_t)i * p->n + col];
}

/* Returns whether the error of each element is within the bound. No input is larger than 1, so no product of
 * two inputs is larger than 1. Each product takes part in at most k roundings, with an error of at most 2^-24
 * each. So a sum of k products is wrong by at most k·k·2^-24. The bound is k·(k + 1)·2^-24, to cover smaller
 * effects. NaN is an error too, because a comparison with NaN is false. */
static bool is_right(const struct product *p, const float *c) {
    for (size_t i = 0; i < (size_t)p->m * p->n; i++)
        if (!(fabs(c[i] - p->expected[i]) <= p->bound))
            return false;
    return true;
}

static int compare(const void *left, const void *right) {
    const float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

typedef void kernel(const float *a, const float *b, float *c, int m, int k, int n);

/* Times a kernel, prints a row of the table, and returns whether C is right. */
static bool try_kernel(const char *name, kernel *run, dim3 blocks, dim3 threads, const struct product *p) {
    const size_t bytes = sizeof(float) * p->m * p->n;
    float ms[RUNS];
    cudaEvent_t start, stop;
    CHECK(cudaMemset(p->c, 0xff, bytes)); /* NaN, to find elements that no thread stores */
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = -WARM_UPS; i < RUNS; i++) { /* warm up: the first launches are slower */
        CHECK(cudaEventRecord(start));
        run<<<blocks, threads>>>(p->a, p->b, p->c, p->m, p->k, p->n);
        CHECK(cudaGetLastError()); /* reports an error of the launch */
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop)); /* reports an error in the kernel */
        CHECK(cudaEventElapsedTime(&ms[i < 0 ? 0 : i], start, stop));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    float *c = (float *)malloc(bytes);
    CHECK(c == NULL ? cudaErrorMemoryAllocation : cudaMemcpy(c, p->c, bytes, cudaMemcpyDeviceToHost));
    const bool right = is_right(p, c);
    free(c);
    qsort(ms, RUNS, sizeof ms[0], compare);
    const double median = ms[RUNS / 2], flops = 2.0 * p->m * p->k * p->n;
    printf("%-12s %10.4f %10.0f   %s\n", name, median, flops / median / 1e6, right ? "right" : "WRONG");
    return right;
}

/* Runs all kernels on one size, prints a table, and returns whether every C is right. */
static bool try_size(int m, int k, int n) {
    struct product p = {
        m, k, n, NULL, NULL, NULL, (double *)calloc((size_t)m * n, sizeof(double)), k * (k + 1.0) * 0x1p-24};
    float *a = make_matrix((size_t)m * k, 1, &p.a), *b = make_matrix((size_t)k * n, 2, &p.b);
    CHECK(p.expected == NULL ? cudaErrorMemoryAllocation : cudaMalloc(&p.c, sizeof(float) * m * n));
    multiply_on_host(&p, a, b);
    printf("\n%d×%d · %d×%d, median of %d runs, right within %.1e\n", m, k, k, n, RUNS, p.bound);
    printf("%-12s %10s %10s\n", "kernel", "ms", "GFLOP/s");
    bool right = try_kernel("naive", naive, dim3((n + 31) / 32, (m + 7) / 8), dim3(32, 8), &p);
    right &= try_kernel("tiled<16>", tiled<16>, dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), &p);
    right &= try_kernel("tiled<32>", tiled<32>, dim3((n + 31) / 32, (m + 31) / 32), dim3(32, 32), &p);
    CHECK(cudaFree(p.a));
    CHECK(cudaFree(p.b));
    CHECK(cudaFree(p.c));
    free(a);
    free(b);
    free(p.expected);
    return right;
}

int main(int argc, char **argv) {
    int size[3] = {1024, 1024, 1024};
    for (int i = 1; i < argc && i <= 3; i++)
        size[i - 1] = atoi(argv[i]);
    for (int i = 0; i < 3; i++)
        if ((argc != 1 && argc != 4) || size[i] < 1 || size[i] > EDGE_MAX) {
            fprintf(stderr, "usage: %s [M K N], each from 1 to %d\n", argv[0], EDGE_MAX);
            return 1;
        }
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        fprintf(stderr, "there is no CUDA device here\n");
        return 77; /* test tools read 77 as "skipped" */
    }
    printf("%s, compute capability %d.%d\n", device.name, device.major, device.minor);
    if (argc == 4)
        return try_size(size[0], size[1], size[2]) ? 0 : 1;
    const bool large = try_size(1024, 1024, 1024), uneven = try_size(228, 240, 112);
    return large && uneven ? 0 : 1;
}
