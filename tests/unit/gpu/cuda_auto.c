/* Tests which variant `auto` chooses on a GPU with 132 multiprocessors, by a fictitious table. */
#include "gpu/device/backend.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/unit.h"

static enum mm_status plan(const struct mm_product *product, struct mm_plan *made, struct mm_error *error) {
    return MM_OK;
}

/* Only the names of the variants matter, so they have no kernels. */
#pragma GCC diagnostic ignored "-Woverride-init"
const struct mm_variant mm_cuda_variants[MM_CUDA_VARIANT_COUNT] = {
#define X(row, ...) [MM_CUDA_ROW_##row] = {.name = #row},
    MM_CUDA_VARIANTS(X)
#undef X
#define X(row, ...) [MM_CUDA_ROW_transpose_##row] = {.name = #row},
        MM_CUDA_TRANSPOSES(X)
#undef X
            [MM_CUDA_ROW_tensor] =
                {.name = "tensor",
                 .missing = mm_cuda_fp32_tensor_missing,
                 .plan = {[MM_FLOAT64] = plan, [MM_FLOAT16] = plan, [MM_INT8] = plan, [MM_INT32] = plan}},
    [MM_CUDA_ROW_fp64_tensor] = {.name = "fp64_tensor",
                                 .missing = mm_cuda_fp32_tensor_missing,
                                 .plan = {[MM_FLOAT64] = plan}},
    [MM_CUDA_ROW_tf32] = {
        .name = "tf32", .missing = mm_cuda_fp32_tensor_missing, .plan = {[MM_FLOAT32] = plan}}};

/* What a case changes in the product or the device. */
enum { TURNED_B = 1, ALLOWED = 2, NO_ASYNC = 4, NO_TENSOR_CORES = 8, NO_BLAS = 16, TF32 = 32 };

static unsigned flags;

static const char *missing(unsigned flag) {
    return (flags & flag) != 0 ? "not here" : NULL;
}

const char *mm_cuda_async_missing(const struct mm_device *device) {
    return missing(NO_ASYNC);
}

const char *mm_cuda_fp32_tensor_missing(const struct mm_device *device) {
    return missing(NO_TENSOR_CORES);
}

bool mm_cuda_blas_supports(const struct mm_device *device, const struct mm_product *product) {
    return (flags & NO_BLAS) == 0;
}

static const struct mm_device device = {.multiprocessors = 132};

static void expect_choice(size_t index, const struct mm_variant *chosen, const char *name) {
    if (strcmp(chosen->name, name) != 0)
        fail_msg("case %zu: %s, not %s", index, chosen->name, name);
}

static void float32_follows_the_crossovers(void **state) {
    static const struct {
        size_t m, k, n;
        const char *name;
        unsigned flags;
    } cases[] = {
        {4, 4, 4, "tiled_16"},
        {149, 150, 150, "tiled_async"},
        {149, 150, 150, "tiled_16", NO_ASYNC},
        {150, 150, 150, "simt"},
        {31, 512, 31, "tiled_16"},
        {31, 513, 31, "simt"},
        {100, 127, 100, "tiled_16"},
        {100, 128, 100, "tiled_16", TURNED_B},
        {352, 8, 353, "tiled_16"},
        /* The table is indexed by k and by C's shorter side. fp32_tensor is chosen if C's longer side is at
         * least the entry. An entry of 0 means never. */
        {64, 640, 1000000, "simt"}, /* the table never allows fp32_tensor here */
        {64, 641, 4096, "simt"},
        {64, 641, 4097, "fp32_tensor"},
        {4097, 1000000, 1, "fp32_tensor", TURNED_B},
        {65, 640, 2048, "simt"},
        {65, 640, 2049, "fp32_tensor"},
        {512, 641, 512, "simt"},
        {512, 641, 513, "fp32_tensor"},
        {513, 640, 2999, "simt"},
        {513, 640, 3000, "fp32_tensor"},
        {513, 641, 513, "fp32_tensor"},
        {0x7fffffff, 0x7fffffff, 0x7fffffff, "fp32_tensor"},
        {(size_t)1 << 31, 641, (size_t)1 << 31, "fp32_tensor"}, /* although its plan fails */
        {4096, 4096, 4096, "simt", NO_TENSOR_CORES},
        /* The vendor's library is chosen only if allowed, for products that fill the GPU. */
        {4096, 4096, 4096, "fp32_tensor", ALLOWED},
        {4, 4, 4, "tiled_16", ALLOWED},
        {4096, 4096, 4096, "blas", ALLOWED | NO_TENSOR_CORES},
        {1471, 512, 1471, "blas", ALLOWED | NO_TENSOR_CORES},
        {1470, 512, 1471, "simt", ALLOWED | NO_TENSOR_CORES}, /* 16383 elements for each multiprocessor */
        {1471, 511, 1471, "simt", ALLOWED | NO_TENSOR_CORES},
        {512, 512, 4224, "blas", ALLOWED | NO_TENSOR_CORES},
        {511, 512, 4300, "simt", ALLOWED | NO_TENSOR_CORES},
        {4096, 4096, 4096, "simt", ALLOWED | NO_TENSOR_CORES | NO_BLAS},
        {512, 512, 512, "tf32", TF32},
        {128, 100000, 128, "tf32", TF32},
        {128, 1024, 128, "simt", TF32},
        {127, 4096, 4096, "fp32_tensor", TF32},
        {512, 511, 512, "simt", TF32},
        {4096, 4096, 4096, "simt", TF32 | NO_TENSOR_CORES},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        flags = cases[index].flags;
        const struct mm_product product = {.m = cases[index].m,
                                           .n = cases[index].n,
                                           .k = cases[index].k,
                                           .transpose_b = (flags & TURNED_B) != 0,
                                           .allow_vendor = (flags & ALLOWED) != 0,
                                           .allow_tf32 = (flags & TF32) != 0};
        const struct mm_variant *chosen = mm_cuda_choose(&device, &product);
        expect_choice(index, chosen, cases[index].name);
    }
}

/* For types other than float32, `auto` chooses no kernel that computes only float32 or rounds operands. */
static void variants_for_other_types(void **state) {
    static const struct {
        enum mm_dtype dtype, c_dtype;
        size_t m, k, n;
        const char *name;
        unsigned flags;
    } cases[] = {
        {MM_FLOAT64, MM_FLOAT64, 4, 4, 4, "tiled_16"},
        {MM_FLOAT64, MM_FLOAT64, 31, 4096, 1000000, "tiled_16", NO_TENSOR_CORES},
        {MM_FLOAT64, MM_FLOAT64, 32, 4096, 1000000, "tiled_32", NO_TENSOR_CORES},
        {MM_INT8, MM_INT32, 352, 4096, 384, "tiled_16", NO_TENSOR_CORES}, /* 132 blocks of 32×32 */
        {MM_INT8, MM_INT32, 353, 4096, 384, "tiled_32", NO_TENSOR_CORES}, /* 144 blocks of 32×32 */
        {MM_INT8, MM_INT32, 128, 128, 127, "tiled_16"},
        {MM_INT8, MM_INT32, 128, 128, 128, "tensor"},
        {MM_FLOAT16, MM_FLOAT32, 256, 256, 256, "tensor"},
        {MM_FLOAT64, MM_FLOAT64, 128, 256, 128, "tiled_16"}, /* the largest k without tensor cores */
        {MM_FLOAT64, MM_FLOAT64, 128, 272, 128, "tensor"},
        {MM_INT8, MM_INT32, 79, 320, 80, "tiled_16"}, /* slightly less work than 128³ */
        {MM_INT8, MM_INT32, 82, 320, 80, "tensor"},
        {MM_FLOAT64, MM_FLOAT64, 209, 209, 209, "tiled_16"},
        {MM_FLOAT64, MM_FLOAT64, 210, 210, 210, "tensor"}, /* the matrices have more than 1 MiB */
        {MM_FLOAT64, MM_FLOAT64, 4095, 4096, 4096, "tensor"},
        {MM_FLOAT64, MM_FLOAT64, 4095, 4096, 4096, "blas", ALLOWED},
        {MM_FLOAT64, MM_FLOAT64, 4096, 4096, 4096, "fp64_tensor", ALLOWED},
        {MM_FLOAT64, MM_FLOAT32, 2048, 8192, 8192, "fp64_tensor"},
        {MM_FLOAT64, MM_FLOAT64, 2048, 8192, 8191, "tensor"},
        {MM_FLOAT64, MM_FLOAT64, 100000, 1365, 100000, "tensor"},
        {MM_FLOAT64, MM_FLOAT64, 4096, 0, 4096, "tiled_32"},
        {MM_FLOAT64, MM_FLOAT64, 4096, 4096, 4096, "tiled_32", NO_TENSOR_CORES},
        {MM_FLOAT16, MM_FLOAT16, 16, 256, 4096, "tensor"},
        {MM_INT8, MM_INT32, 1, 512, 64, "tiled_16"}, /* the largest k that one block may compute alone */
        {MM_INT8, MM_INT32, 1, 513, 64, "tensor"},
        {MM_INT32, MM_INT32, 2000, 31, 2000,
         "tiled_32"}, /* the largest k of int32 without copies of its bytes */
        {MM_INT32, MM_INT32, 2000, 32, 2000, "tensor"},
        {MM_INT64, MM_INT64, 4096, 4096, 4096, "tiled_32"},
        {MM_FLOAT16, MM_FLOAT16, 4096, 4096, 4096, "tensor"},
        {MM_FLOAT16, MM_FLOAT16, 4096, 4096, 4096, "blas", ALLOWED},
        {MM_FLOAT16, MM_FLOAT16, 4096, 4096, 4096, "tensor", ALLOWED | NO_BLAS},
        {MM_FLOAT32, MM_FLOAT16, 4096, 4096, 4096, "tf32", TF32},
        {MM_FLOAT32, MM_FLOAT16, 4096, 4096, 4096, "tiled_32"},
        {MM_FLOAT32, MM_FLOAT16, 4096, 4096, 4096, "blas", ALLOWED},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        flags = cases[index].flags;
        const size_t m = cases[index].m, n = cases[index].n, k = cases[index].k;
        struct mm_product product = {.m = m,
                                     .n = n,
                                     .k = k,
                                     .a = mm_matrix_dense(cases[index].dtype, m, k, NULL),
                                     .b = mm_matrix_dense(cases[index].dtype, k, n, NULL),
                                     .c = mm_matrix_dense(cases[index].c_dtype, m, n, NULL),
                                     .allow_vendor = (flags & ALLOWED) != 0,
                                     .allow_tf32 = (flags & TF32) != 0};
        expect_choice(index, mm_cuda_choose(&device, &product), cases[index].name);
        product.addend = product.c;
        product.bias = mm_matrix_dense(product.c.dtype, 1, n, NULL);
        expect_choice(index, mm_cuda_choose(&device, &product), cases[index].name);
    }
}

static void copied_operands_and_stacks_move_the_crossover(void **state) {
    static const struct {
        enum mm_dtype dtype;
        size_t edge, ld, count;
        const char *name;
    } cases[] = {
        {MM_FLOAT16, 127, 127, 1, "tiled_16"},   {MM_FLOAT16, 128, 129, 1, "tensor"},
        {MM_FLOAT16, 64, 65, 60, "tiled_32"},    {MM_FLOAT16, 64, 65, 125, "tensor"},
        {MM_FLOAT16, 64, 64, 60, "tensor"},      {MM_FLOAT64, 257, 257, 1, "tensor"},
        {MM_INT32, 319, 320, 1, "tiled_16"},     {MM_INT32, 320, 320, 1, "tensor"},
        {MM_FLOAT16, 8, 8, 1 << 20, "tiled_16"}, {MM_FLOAT16, 32, 32, 64, "tensor"},
        {MM_FLOAT16, 32, 32, 63, "tiled_16"},
    };
    flags = 0;
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t edge = cases[index].edge;
        const struct mm_stack stack = {.count = cases[index].count};
        struct mm_product product = {
            .m = edge, .n = edge, .k = edge, .stack = stack.count > 1 ? &stack : NULL};
        product.a = product.b = product.c = mm_matrix_dense(cases[index].dtype, edge, edge, NULL);
        product.a.ld = cases[index].ld;
        product.b.ld = mm_size_round_up(edge, 8);
        const struct mm_variant *chosen = mm_cuda_choose(&device, &product);
        expect_choice(index, chosen, cases[index].name);
    }
}

static void transpositions_follow_the_crossovers(void **state) {
    static const struct {
        enum mm_dtype dtype;
        size_t m, n;
        const char *name;
    } cases[] = {
        {MM_FLOAT32, 1408, 1408, "padded"}, /* 484 tiles of 64×64 */
        {MM_FLOAT32, 1412, 1412, "vectorized"},
        {MM_FLOAT32, 1412, 1413, "padded"}, /* rows of C are not multiples of 16 bytes */
        {MM_FLOAT32, 1413, 1412, "padded"}, /* rows of A are not multiples of 16 bytes */
        {MM_FLOAT32, 28, 1000000, "padded"},
        {MM_FLOAT64, 4096, 4096, "padded"},
        {MM_INT32, 4096, 4096, "vectorized"},
        {MM_BFLOAT16, 4096, 4096, "vectorized"},
        {MM_INT8, 4095, 4097, "vectorized"},
        {MM_INT8, 1408, 1408, "padded"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t m = cases[index].m, n = cases[index].n;
        struct mm_product product = {.m = m, .n = n, .transpose_a = true};
        product.a = mm_matrix_dense(cases[index].dtype, n, m, NULL);
        product.c = mm_matrix_dense(cases[index].dtype, m, n, NULL);
        const struct mm_variant *chosen = mm_cuda_choose_transpose(&device, &product);
        expect_choice(index, chosen, cases[index].name);
    }
}

RUN_TESTS(float32_follows_the_crossovers, variants_for_other_types,
          copied_operands_and_stacks_move_the_crossover, transpositions_follow_the_crossovers)
