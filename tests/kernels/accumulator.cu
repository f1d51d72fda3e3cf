/* Compares results of single `wgmma` instructions on a Hopper GPU with the model in tensor_core.h, bit by
 * bit. The error bounds of the variants fp32_tensor and float8 are derived from that model. Exits with 77
 * without a device of compute capability 9.0. usage: accumulator */
#include "gpu/matrix/random.h"
#include "tests/kernels/tensor_core.h"

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int EXIT_SKIPPED = 77;
constexpr unsigned M = 64; /* rows of C that one wgmma computes */
constexpr unsigned N = 8;
constexpr unsigned THREADS = 128; /* one warpgroup, which wgmma needs */

/* Operands in shared memory are K-major without a swizzle. A core matrix has 8 rows of 16 bytes. Each 8 rows
 * of an operand fill two adjacent core matrices. */
constexpr unsigned CORE_BYTES = 128;
constexpr unsigned ROWS_BYTES = 2 * CORE_BYTES;

__device__ unsigned core_offset(unsigned row, unsigned byte) {
    return row / 8 * ROWS_BYTES + byte / 16 * CORE_BYTES + row % 8 * 16 + byte % 16;
}

__device__ uint64_t descriptor(const void *shared) {
    const uint64_t address = __cvta_generic_to_shared(shared);
    const uint64_t along_k = CORE_BYTES;
    const uint64_t along_rows = ROWS_BYTES;
    return (address & 0x3ffff) >> 4 | along_k >> 4 << 16 | along_rows >> 4 << 32;
}

#define WGMMA(instruction, scales)                                                                           \
    asm volatile("wgmma.fence.sync.aligned;\n"                                                               \
                 "wgmma.mma_async.sync.aligned." instruction " {%0, %1, %2, %3}, %4, %5, 1, 1, 1" scales     \
                 ";\n"                                                                                       \
                 "wgmma.commit_group.sync.aligned;\n"                                                        \
                 "wgmma.wait_group.sync.aligned 0;\n"                                                        \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
                 : "l"(a), "l"(b)                                                                            \
                 : "memory")

/* An operand type. One wgmma multiplies DEPTH elements (32 bytes) of each row of A and each column of B. */
struct float16 {
    using type = __half;
    static constexpr unsigned DEPTH = 16;
    static constexpr int LARGE = 24; /* random numbers have exponents of about -SMALL to LARGE */
    static constexpr int SMALL = 10;
    static constexpr const char *name = "float16";
    static const struct tensor_core &core() {
        return tensor_core_float16;
    }
    static __device__ void multiply_add(float (&d)[4], uint64_t a, uint64_t b) {
        WGMMA("m64n8k16.f32.f16.f16", ", 0, 0");
    }
};

template <class TYPE, int EXPONENT_MIN, int LARGE_, int SMALL_> struct float8 {
    using type = TYPE;
    static constexpr unsigned DEPTH = 32;
    static constexpr int LARGE = LARGE_;
    static constexpr int SMALL = SMALL_;
    static const struct tensor_core &core() {
        static const struct tensor_core of = {DEPTH, 13, 14, EXPONENT_MIN, EXPONENT_MIN};
        return of;
    }
};

struct e4m3 : float8<__nv_fp8_e4m3, -6, 10, 3> {
    static constexpr const char *name = "float8_e4m3fn";
    static __device__ void multiply_add(float (&d)[4], uint64_t a, uint64_t b) {
        WGMMA("m64n8k32.f32.e4m3.e4m3", "");
    }
};

struct e5m2 : float8<__nv_fp8_e5m2, -14, 24, 2> {
    static constexpr const char *name = "float8_e5m2";
    static __device__ void multiply_add(float (&d)[4], uint64_t a, uint64_t b) {
        WGMMA("m64n8k32.f32.e5m2.e5m2", "");
    }
};

/* Adds A·Bᵀ to C with depth / DEPTH wgmma instructions. A is 64×depth and B is 8×depth, both row-major. */
template <class ELEMENT>
__global__ void __launch_bounds__(THREADS)
    run(const typename ELEMENT::type *a, const typename ELEMENT::type *b, float *c, unsigned depth) {
    using type = typename ELEMENT::type;
    constexpr unsigned DEPTH = ELEMENT::DEPTH;
    __shared__ alignas(128) unsigned char a_tile[M / 8 * ROWS_BYTES];
    __shared__ alignas(128) unsigned char b_tile[ROWS_BYTES];
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const unsigned col = threadIdx.x % 4 * 2;
    float *const places[4] = {&c[row * N + col], &c[row * N + col + 1], &c[(row + 8) * N + col],
                              &c[(row + 8) * N + col + 1]};
    float d[4];
    for (unsigned i = 0; i < 4; i++)
        d[i] = *places[i];
    for (unsigned k = 0; k < depth; k += DEPTH) {
        for (unsigned index = threadIdx.x; index < M * DEPTH; index += THREADS)
            *reinterpret_cast<type *>(a_tile + core_offset(index / DEPTH, index % DEPTH * sizeof(type))) =
                a[static_cast<size_t>(index / DEPTH) * depth + k + index % DEPTH];
        for (unsigned index = threadIdx.x; index < N * DEPTH; index += THREADS)
            *reinterpret_cast<type *>(b_tile + core_offset(index / DEPTH, index % DEPTH * sizeof(type))) =
                b[static_cast<size_t>(index / DEPTH) * depth + k + index % DEPTH];
        asm volatile("fence.proxy.async.shared::cta;" ::
                         : "memory"); /* the tensor cores must see the stores to shared memory */
        __syncthreads();
        ELEMENT::multiply_add(d, descriptor(a_tile), descriptor(b_tile));
        __syncthreads(); /* the next iteration overwrites the operands */
    }
    for (unsigned i = 0; i < 4; i++)
        *places[i] = d[i];
}

void check(cudaError_t code, const char *doing) {
    if (code == cudaSuccess)
        return;
    std::printf("failed while %s: %s\n", doing, cudaGetErrorString(code));
    std::exit(EXIT_FAILURE);
}

template <class T> struct buffer {
    T *data = nullptr;
    explicit buffer(const std::vector<T> &from) {
        check(cudaMalloc(&data, from.size() * sizeof(T)), "taking memory");
        check(cudaMemcpy(data, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
              "copying there");
    }
    ~buffer() {
        cudaFree(data);
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
};

template <class ELEMENT> struct trial {
    using type = typename ELEMENT::type;
    unsigned depth;
    std::vector<type> a, b;
    std::vector<float> c;
    explicit trial(unsigned depth_)
        : depth(depth_), a(M * size_t{depth_}), b(N * size_t{depth_}), c(M * N, 0.0f) {
    }
    std::vector<float> run_it() const {
        buffer<type> a_there(a), b_there(b);
        buffer<float> c_there(c);
        std::vector<float> result(c.size());
        run<ELEMENT><<<1, THREADS>>>(a_there.data, b_there.data, c_there.data, depth);
        check(cudaGetLastError(), "launching");
        check(cudaMemcpy(result.data(), c_there.data, result.size() * sizeof(float), cudaMemcpyDeviceToHost),
              "copying back");
        return result;
    }
};

unsigned failures;

/* Products of small integers must be exact, which proves that the memory layout is right. */
template <class ELEMENT> void check_layout() {
    using type = typename ELEMENT::type;
    trial<ELEMENT> t(64);
    unsigned wrong = 0;
    for (size_t i = 0; i < t.a.size(); i++)
        t.a[i] = type(static_cast<float>(static_cast<int>(i * 7 % 9) - 4));
    for (size_t i = 0; i < t.b.size(); i++)
        t.b[i] = type(static_cast<float>(static_cast<int>(i * 5 % 7) - 3));
    const std::vector<float> c = t.run_it();
    for (unsigned row = 0; row < M; row++)
        for (unsigned col = 0; col < N; col++) {
            float sum = 0.0f;
            for (unsigned k = 0; k < t.depth; k++)
                sum += float(t.a[row * t.depth + k]) * float(t.b[col * t.depth + k]);
            wrong += c[row * N + col] != sum;
        }
    std::printf("whole numbers, 64x8x64: %u of %u wrong\n", wrong, M * N);
    failures += wrong > 0;
}

/* Returns one element of C as the model computes it. The depth of the trial must be that of one
 * instruction. */
template <class ELEMENT>
float model_of(const trial<ELEMENT> &t, unsigned row, unsigned col, unsigned alignment) {
    constexpr unsigned DEPTH = ELEMENT::DEPTH;
    float a[DEPTH], b[DEPTH];
    for (unsigned k = 0; k < DEPTH; k++) {
        a[k] = float(t.a[row * DEPTH + k]);
        b[k] = float(t.b[col * DEPTH + k]);
    }
    return tensor_core_add(&ELEMENT::core(), a, b, t.c[row * N + col],
                           static_cast<tensor_core_alignment>(alignment));
}

uint64_t random_count;

/* Returns a random number. Many numbers are very large, subnormal or zero, because tensor cores lose accuracy
 * when they align such numbers. */
template <class ELEMENT> float random_element() {
    /* relative to the exponent of the smallest normal number */
    static const int exponents[] = {
        ELEMENT::LARGE, -ELEMENT::SMALL, -ELEMENT::SMALL / 2, -100, -100, 2, 4, 6};
    const uint64_t bits = mm_random_bits(1, random_count++);
    const int exponent = exponents[bits % 8] + ELEMENT::core().exponent_min_a;
    const float significand = 1.0f + static_cast<float>(bits >> 16 & 0x3ff) * 0x1p-10f;
    return std::ldexp(bits >> 26 & 1 ? -significand : significand,
                      exponent + static_cast<int>(bits >> 8 & 0xff) % 5);
}

template <class ELEMENT> void check_model() {
    enum { TRIALS = 200 };
    const struct tensor_core &core = ELEMENT::core();
    unsigned differing[TENSOR_CORE_ALIGNMENTS] = {};
    for (unsigned count = 0; count < TRIALS; count++) {
        trial<ELEMENT> t(ELEMENT::DEPTH);
        for (auto *matrix : {&t.a, &t.b})
            for (typename ELEMENT::type &element : *matrix)
                element = typename ELEMENT::type(random_element<ELEMENT>());
        for (float &c : t.c)
            c = std::ldexp(float(typename ELEMENT::type(random_element<ELEMENT>())), core.exponent_min_a);
        const std::vector<float> got = t.run_it();
        for (unsigned i = 0; i < M * N; i++)
            for (unsigned alignment = 0; alignment < TENSOR_CORE_ALIGNMENTS; alignment++)
                differing[alignment] += got[i] != model_of(t, i / N, i % N, alignment);
    }
    std::printf("of %u single instructions at random differ from the model:", TRIALS * M * N);
    for (unsigned i = 0; i < TENSOR_CORE_ALIGNMENTS; i++)
        std::printf(" subnormals %s %u%s", tensor_core_names[i], differing[i],
                    i + 1 < TENSOR_CORE_ALIGNMENTS ? ";" : "\n\n");
    failures += differing[TENSOR_CORE_NORMALIZED] > 0 && differing[TENSOR_CORE_AS_STORED] > 0;
}

template <class ELEMENT> void test_type() {
    const struct tensor_core &core = ELEMENT::core();
    std::printf("%s wgmma (m64n8k%u): addends cut to %d bits behind the point, sums to %d\n", ELEMENT::name,
                core.depth, core.fraction_bits, core.sum_bits);
    check_layout<ELEMENT>();
    check_model<ELEMENT>();
}

} // namespace

int main() {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess || properties.major != 9) {
        std::printf("no device of compute capability 9.0 here\n");
        return EXIT_SKIPPED;
    }
    std::printf("%s\n\n", properties.name);
    test_type<float16>();
    test_type<e4m3>();
    test_type<e5m2>();
    std::printf("%u failures\n", failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
