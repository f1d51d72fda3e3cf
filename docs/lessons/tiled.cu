/* tiled: C = A·B by tiles in shared memory.
 *
 *     nvcc -O3 tiled.cu -o tiled
 *     ./tiled                        # 1024×1024 · 1024×1024 and 228×240 · 240×112; or ./tiled M K N
 *
 * In `naive` each thread loads a row of A and a column of B, though its neighbours load the same ones. In
 * `tiled` the threads of a block load them together. A block computes a TILE×TILE square of C and goes along
 * k in steps of TILE. At each step its threads copy a tile of A and a tile of B to shared memory, one element
 * of each a thread. Then each thread multiplies a row of one tile by a column of the other. Every loaded
 * element is used TILE times, so global loads fall to 1/TILE.
 *
 * The second size is no multiple of a tile. Where a tile reaches past an edge it holds zeros, which add
 * nothing to the sums. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UPS = 3, RUNS = 21, EDGE_MAX = 8192 };

/* Every call of CUDA can fail, and a failure of a kernel shows at a later call. */
#define CHECK(call) check(call, #call, __LINE__)
static void check(cudaError_t code, const char *call, int line) {
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(code));
    exit(1);
}

/* --- the lesson */

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
    const int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x; /* of this thread's element of C */
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        a_tile[y][x] = row < m && first + x < k ? a[(size_t)row * k + first + x] : 0.0f;
        b_tile[y][x] = first + y < k && col < n ? b[(size_t)(first + y) * n + col] : 0.0f;
        __syncthreads(); /* each thread reads what others stored: none may read before all have stored */
        for (int i = 0; i < TILE; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads(); /* the next step overwrites the tiles: none may store before all have read */
    }
    if (row < m && col < n) /* only now: threads past the edge were needed to load, and at the barriers */
        c[(size_t)row * n + col] = sum;
}

/* --- the data, and what is right */

struct product {
    int m, k, n;
    float *a, *b, *c; /* on the device */
    double *expected; /* C as the host computes it, in float64 */
    double bound;     /* how far an element of C may be off */
};

/* Elements uniform in [-1, 1), the same in each run, on the host and on the device. */
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

/* At most k roundings touch a product of two elements on its way into its sum. Each is off by 2^-24 of it at
 * most, and no product is larger than 1. So the sum of k products is off by k·k·2^-24, to first order; the
 * k + 1 makes room for the higher orders and the host's own rounding. NaN is wrong: no comparison holds. */
static bool is_right(const struct product *p, const float *c) {
    for (size_t i = 0; i < (size_t)p->m * p->n; i++)
        if (!(fabs(c[i] - p->expected[i]) <= p->bound))
            return false;
    return true;
}

/* --- launch, time, check */

static int compare(const void *left, const void *right) {
    const float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

typedef void kernel(const float *a, const float *b, float *c, int m, int k, int n);

/* Prints a row of the table. Returns whether C is right. */
static bool try_kernel(const char *name, kernel *run, dim3 blocks, dim3 threads, const struct product *p) {
    const size_t bytes = sizeof(float) * p->m * p->n;
    float ms[RUNS];
    cudaEvent_t start, stop;
    CHECK(cudaMemset(p->c, 0xff, bytes)); /* NaN: an element that no thread stores is found */
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = -WARM_UPS; i < RUNS; i++) { /* the first launches load the code and raise the clocks */
        CHECK(cudaEventRecord(start));
        run<<<blocks, threads>>>(p->a, p->b, p->c, p->m, p->k, p->n);
        CHECK(cudaGetLastError()); /* of the launch */
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop)); /* of the kernel */
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

/* Prints a table. Returns whether every C is right. */
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
        return 77; /* test tools read this as skipped */
    }
    printf("%s, compute capability %d.%d\n", device.name, device.major, device.minor);
    if (argc == 4)
        return try_size(size[0], size[1], size[2]) ? 0 : 1;
    const bool large = try_size(1024, 1024, 1024), uneven = try_size(228, 240, 112);
    return large && uneven ? 0 : 1;
}
