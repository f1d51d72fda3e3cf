/* The rows of the CUDA variant table, and the functions that plan these variants. A new variant needs its own
 * file and one row here, and what docs/architecture.md lists. The rows `auto` are in variants.c. */
#pragma once

#include "gpu/lab/traffic/kernels.h"
#include "gpu/plan/variant.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* clang-format off */
#define MM_CUDA_WGMMA_SOURCES \
    "gpu/cuda/variants/wgmma/block.cuh", "gpu/cuda/variants/wgmma/mbarrier.cuh", "gpu/cuda/variants/wgmma/tma.cuh", \
    "gpu/cuda/variants/wgmma/instructions.cuh", "gpu/cuda/variants/wgmma/cluster.cuh", "gpu/cuda/variants/wgmma/consumers.h", \
    "gpu/cuda/variants/wgmma/schedule.cuh", "gpu/cuda/variants/wgmma/schedule.h", "gpu/cuda/variants/wgmma/schedule.c", \
    "gpu/cuda/variants/follow.cuh"
#define MM_CUDA_TENSOR_SOURCES \
    "gpu/cuda/variants/tensor/product.cuh", "gpu/cuda/variants/tensor/small.cu", "gpu/cuda/variants/tensor/wgmma.cuh", "gpu/cuda/variants/tensor/store.cuh", \
    "gpu/cuda/variants/tensor/tensor.c", "gpu/cuda/variants/tensor/maps.c", "gpu/cuda/variants/tensor/way.c", "gpu/cuda/variants/tensor/plan.h", \
    "gpu/cuda/variants/tensor/float64.cu", "gpu/cuda/variants/tensor/float16.cu", "gpu/cuda/variants/tensor/bfloat16.cu", \
    "gpu/cuda/variants/tensor/float8_e4m3fn.cu", "gpu/cuda/variants/tensor/float8_e5m2.cu", "gpu/cuda/variants/tensor/int8.cu", \
    "gpu/cuda/variants/tensor/uint8.cu", "gpu/cuda/variants/tensor/int32.cu", "gpu/cuda/variants/tensor/limbs.cu", \
    "gpu/cuda/variants/tensor/tf32.cu", "gpu/cuda/variants/tensor/partial_sums.cu", \
    "gpu/cuda/variants/async.cuh", "gpu/cuda/variants/finish.cuh", MM_CUDA_WGMMA_SOURCES

/* Variants that multiply. A row has the name, and then members of struct mm_variant (gpu/plan/variant.h). The
 * first row is the reference. A kernel that builds on another kernel has a later row. */
#define MM_CUDA_VARIANTS(X)                                                                                  \
    X(naive, .plan = {MM_EVERY_DTYPE(mm_cuda_naive)}, .traffic = mm_traffic_naive,                      \
      .converts = true,                                                                                      \
      .is_row_by_row = true, .sources = MM_SOURCES("gpu/cuda/variants/naive.cu"),                            \
      .summary = "one thread per element of C, neighbours along a row, all reads from global memory")        \
    X(naive_uncoalesced, .plan = {[MM_FLOAT32] = mm_cuda_naive_uncoalesced},                                 \
      .traffic = mm_traffic_naive_uncoalesced,                                                          \
      .is_row_by_row = true, .sources = MM_SOURCES("gpu/cuda/variants/naive_uncoalesced.cu"),                \
      .summary = "as naive, but neighbouring threads walk down a column: a transaction for each thread")     \
    X(tiled_8, .plan = {[MM_FLOAT32] = mm_cuda_tiled_8}, .traffic = mm_traffic_tiled,                   \
      .tile = 8, .is_row_by_row = true,                                                                      \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled.cu"),                                                   \
      .summary = "8x8 tiles of A and B staged in static shared memory, two barriers a step")                 \
    X(tiled_16, .plan = {MM_EVERY_DTYPE(mm_cuda_tiled_16)}, .traffic = mm_traffic_tiled,                \
      .tile = 16, .is_row_by_row = true, .converts = true,                                                   \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled.cu"),                                                   \
      .summary = "16x16 tiles of A and B staged in static shared memory, two barriers a step")               \
    X(tiled_32, .plan = {MM_EVERY_DTYPE(mm_cuda_tiled_32)}, .traffic = mm_traffic_tiled,                \
      .tile = 32, .is_row_by_row = true, .converts = true,                                                   \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled.cu"),                                                   \
      .summary = "32x32 tiles of A and B staged in static shared memory, two barriers a step")               \
    X(tiled_strided_16, .plan = {[MM_FLOAT32] = mm_cuda_tiled_strided_16}, .traffic = mm_traffic_tiled, \
      .tile = 16, .is_row_by_row = true,                                                                     \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_strided.cu"),                                           \
      .summary = "as tiled_16, written with sub-matrices: a pointer, a size, and the stride of the whole "   \
                 "matrix")                                                                                   \
    X(tiled_exact_16, .plan = {[MM_FLOAT32] = mm_cuda_tiled_exact_16}, .traffic = mm_traffic_tiled,     \
      .tile = 16, .is_row_by_row = true, .multiple_of = 16, .needs = "m, n and k that are multiples of 16",  \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_exact.cu"),                                             \
      .summary = "as tiled_16, by pointer stepping and without guards, for whole tiles only")                \
    X(tiled_exact_32, .plan = {[MM_FLOAT32] = mm_cuda_tiled_exact_32}, .traffic = mm_traffic_tiled,     \
      .tile = 32, .is_row_by_row = true, .multiple_of = 32, .needs = "m, n and k that are multiples of 32",  \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_exact.cu"),                                             \
      .summary = "as tiled_32, by pointer stepping and without guards, for whole tiles only")                \
    X(tiled_dynamic, .plan = {[MM_FLOAT32] = mm_cuda_tiled_dynamic},                                         \
      .traffic = mm_traffic_tiled_dynamic,                                                              \
      .tile = 16, .is_row_by_row = true, .tiles = dynamic_tiles,                                             \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_dynamic.cu"),                                           \
      .summary = "tiles of the edge that the request chooses, in dynamic shared memory; 2x2 or 3x3 "         \
                 "elements a thread past 32")                                                                \
    X(tiled_padded, .plan = {[MM_FLOAT32] = mm_cuda_tiled_padded}, .traffic = mm_traffic_tiled_padded,  \
      .tile = 32, .is_row_by_row = true,                                                                     \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_padded.cu"),                                            \
      .summary = "32x32 tiles kept as stored; rows padded by a word, so that a column walk (transposed B) "  \
                 "meets 32 banks")                                                                           \
    X(tiled_conflicted, .plan = {[MM_FLOAT32] = mm_cuda_tiled_conflicted},                                   \
      .traffic = mm_traffic_tiled_conflicted,                                                           \
      .tile = 32, .is_row_by_row = true,                                                                     \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_padded.cu"),                                            \
      .summary = "as tiled_padded without the padding: the column walk meets one bank, 32-way serialised")   \
    X(tiled_async, .plan = {[MM_FLOAT32] = mm_cuda_tiled_async}, .traffic = mm_traffic_tiled,           \
      .tile = 32, .is_row_by_row = true, .missing = mm_cuda_async_missing, .needs = "compute capability 8.0 or higher", \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_async.cu", "gpu/cuda/variants/async.cuh"),              \
      .summary = "as tiled_32, but the next tiles are copied asynchronously while these are used")           \
    X(staged_copy, .plan = {[MM_FLOAT32] = mm_cuda_staged_copy}, .traffic = mm_traffic_staged_copy,     \
      .is_row_by_row = true, .sources = MM_SOURCES("gpu/cuda/variants/staged_copy.cu"),                      \
      .summary = "as naive, by way of shared memory, but no thread reads what another copied: no reuse, "    \
                 "so nothing is gained")                                                                     \
    X(tiled_wide, .plan = {[MM_FLOAT32] = mm_cuda_tiled_wide}, .traffic = mm_traffic_tiled,             \
      .tile = 16, .is_row_by_row = true,                                                                     \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_wide.cu"),                                              \
      .summary = "as tiled_16, but 32 tiles of A and of B at a time: fewer barriers, as many global "        \
                 "loads, and fewer blocks fit")                                                              \
    X(tiled_racy, .plan = {[MM_FLOAT32] = mm_cuda_tiled_racy}, .traffic = mm_traffic_tiled_racy,        \
      .tile = 32, .wrong_on_purpose = true,                                                                  \
      .sources = MM_SOURCES("gpu/cuda/variants/tiled_racy.cu"),                                              \
      .summary = "as tiled_32 without its first barrier: wrong on purpose, to show what a barrier is for")   \
    X(register_tiled, .plan = {[MM_FLOAT32] = mm_cuda_register_tiled},                                       \
      .traffic = mm_traffic_register_tiled,                                                             \
      .tile = 128, .is_row_by_row = true,                                                                    \
      .sources = MM_SOURCES("gpu/cuda/variants/register_tiled.cu"),                                          \
      .summary = "128x128 of C a block, and an 8x8 square of it in the registers of each thread")            \
    X(spilling, .plan = {[MM_FLOAT32] = mm_cuda_spilling}, .traffic = mm_traffic_register_tiled,        \
      .tile = 128, .is_row_by_row = true,                                                                    \
      .sources = MM_SOURCES("gpu/cuda/variants/register_tiled.cu"),                                          \
      .summary = "as register_tiled, with at most 64 registers a thread: twice the blocks, but registers "   \
                 "spill to local memory")                                                                    \
    X(vectorized, .plan = {[MM_FLOAT32] = mm_cuda_vectorized}, .traffic = mm_traffic_vectorized,        \
      .tile = 128, .is_row_by_row = true,                                                                    \
      .sources = MM_SOURCES("gpu/cuda/variants/vectorized.cu", "gpu/cuda/variants/quad.cuh"),                \
      .summary = "as register_tiled, by accesses of 16 bytes to global and shared memory")                   \
    X(warp_tiled, .plan = {[MM_FLOAT32] = mm_cuda_warp_tiled}, .traffic = mm_traffic_warp_tiled,        \
      .tile = 128, .is_row_by_row = true,                                                                    \
      .sources = MM_SOURCES(                                                                                 \
          "gpu/cuda/variants/warp_tiled.cu", "gpu/cuda/variants/quad.cuh", "gpu/cuda/variants/async.cuh"),   \
      .summary = "64x32 of C a warp and 8x8 a thread; the next operands and slabs are loaded meanwhile")     \
    X(simt, .plan = {[MM_FLOAT32] = mm_cuda_simt},                                                           \
      .sources = MM_SOURCES(                                                                                 \
          "gpu/cuda/variants/simt.cuh", "gpu/cuda/variants/simt.cu", "gpu/cuda/variants/simt_vectors.cuh",   \
          "gpu/cuda/variants/simt_shapes.cuh", "gpu/cuda/variants/simt.h", "gpu/cuda/variants/quad.cuh",     \
          "gpu/cuda/variants/async.cuh", "gpu/cuda/variants/finish.cuh", "gpu/cuda/variants/follow.cuh"),    \
      .summary = "blocks of the shape that suits the product; k is split if there are too few blocks to "    \
                 "fill the chip; a kernel of its own for vectors")                                           \
    X(fp32_tensor, .plan = {[MM_FLOAT32] = mm_cuda_fp32_tensor},                                             \
      .tile = 128, .missing = mm_cuda_fp32_tensor_missing, .needs = "compute capability 9.0",                \
      .sources = MM_SOURCES(                                                                                 \
          "gpu/cuda/variants/fp32_tensor/product.cu", "gpu/cuda/variants/fp32_tensor/epilogue.cuh",          \
          "gpu/cuda/variants/fp32_tensor/split.cu", "gpu/cuda/variants/fp32_tensor/repair.cu",               \
          "gpu/cuda/variants/fp32_tensor/fp32_tensor.c",                                                     \
          "gpu/cuda/variants/fp32_tensor/plan.h", "gpu/cuda/variants/fp32_tensor/guard.h",                   \
          "gpu/cuda/variants/finish.cuh",                                                                    \
          MM_CUDA_WGMMA_SOURCES),                                                                            \
      .summary = "float32 accuracy by the tensor cores: two float16 halves of each element, three "          \
                 "products, results checked and repaired")                                                   \
    X(tensor,                                                                                                \
      .plan = {[MM_FLOAT64] = mm_cuda_tensor, [MM_FLOAT16] = mm_cuda_tensor,                                 \
               [MM_BFLOAT16] = mm_cuda_tensor, [MM_FLOAT8_E4M3FN] = mm_cuda_tensor,                          \
               [MM_FLOAT8_E5M2] = mm_cuda_tensor, [MM_INT8] = mm_cuda_tensor, [MM_UINT8] = mm_cuda_tensor,   \
               [MM_BOOL] = mm_cuda_tensor, [MM_INT32] = mm_cuda_tensor},                                     \
      .tiles = tensor_tiles, .converts = true, .missing = mm_cuda_fp32_tensor_missing,                       \
      .needs = "compute capability 9.0",                                                                     \
      .sources = MM_SOURCES(MM_CUDA_TENSOR_SOURCES),                                                         \
      .summary = "each type by its own tensor core instruction; tiles are large or small, by the shape, "    \
                 "and shared if they are few")                                                               \
    X(fp64_tensor, .plan = {[MM_FLOAT64] = mm_cuda_fp64_tensor},                     \
      .needs_whole = true, .tile = 256, .converts = true, .missing = mm_cuda_fp32_tensor_missing, .needs = "compute capability 9.0", \
      .sources = MM_SOURCES(                                                                                 \
          "gpu/cuda/variants/fp64_tensor/fp64_tensor.c", "gpu/cuda/variants/fp64_tensor/plan.h",             \
          "gpu/cuda/variants/fp64_tensor/moduli.cuh", "gpu/cuda/variants/fp64_tensor/residues.cu",           \
          "gpu/cuda/variants/fp64_tensor/modular.cu", "gpu/cuda/variants/fp64_tensor/chinese.cu",            \
          "gpu/cuda/variants/tensor/tensor.h", MM_CUDA_TENSOR_SOURCES),                                      \
      .summary = "float64 accuracy by the int8 tensor cores: residues modulo 15 numbers, 15 products, "      \
                 "Chinese remainders; other data as tensor")                                                 \
    X(tf32, .plan = {[MM_FLOAT32] = mm_cuda_tensor},                                                         \
      .rounds_to_tf32 = true, .tiles = tf32_tiles, .converts = true,                                       \
      .missing = mm_cuda_fp32_tensor_missing, .needs = "compute capability 9.0",                             \
      .sources = MM_SOURCES(MM_CUDA_TENSOR_SOURCES),                                                         \
      .summary = "as tensor, with float32 operands rounded to 11 significant bits")                          \
    X(blas,                                                                                                  \
      .plan = {[MM_FLOAT32] = mm_cuda_blas, [MM_FLOAT64] = mm_cuda_blas, [MM_FLOAT16] = mm_cuda_blas,        \
               [MM_BFLOAT16] = mm_cuda_blas, [MM_FLOAT8_E4M3FN] = mm_cuda_blas, [MM_INT8] = mm_cuda_blas},   \
      .multiples = {[MM_FLOAT8_E4M3FN] = {.n = 4, .k = 16}, [MM_INT8] = {.k = 4}}, .converts = true,         \
      .needs_whole = true,                                                                                   \
      .missing = mm_cuda_blas_missing, .dtype_missing = {[MM_FLOAT8_E4M3FN] = mm_cuda_blas_float8_missing},  \
      .needs = "cuBLAS 13 or 12 at run time; for float8_e4m3fn also compute capability 8.9",                 \
      .sources = MM_SOURCES(                                                                                 \
          "gpu/cuda/variants/blas.c", "gpu/cuda/variants/blas_library.c", "gpu/cuda/variants/finish.cu", \
          "gpu/cuda/variants/blas.h"),                                                                       \
      .summary = "cuBLAS, with float32 computed in plain float32: the yardstick")

/* Variants that transpose. The first row is the reference. */
#define MM_CUDA_TRANSPOSES(X)                                                                                \
    X(naive, .plan = {MM_EVERY_DTYPE(mm_cuda_transpose_naive)}, .traffic = mm_traffic_transpose_naive,  \
      .sources = MM_SOURCES("gpu/cuda/variants/transpose_naive.cu"),                                         \
      .summary = "one thread per element: neighbours read along a row of A, and write down a column of C, "  \
                 "a transaction each")                                                                       \
    X(shared, .plan = {MM_EVERY_DTYPE(mm_cuda_transpose_shared)},                                            \
      .traffic = mm_traffic_transpose_shared,                                                           \
      .tile = 32,                                                                                            \
      .sources = MM_SOURCES("gpu/cuda/variants/transpose_tiled.cu"),                                         \
      .summary = "through 32x32 tiles in shared memory, whose columns lie in one bank: 32-way serialised")   \
    X(padded, .plan = {MM_EVERY_DTYPE(mm_cuda_transpose_padded)},                                            \
      .traffic = mm_traffic_transpose_padded,                                                           \
      .tile = 32,                                                                                            \
      .sources = MM_SOURCES("gpu/cuda/variants/transpose_tiled.cu"),                                         \
      .summary = "as shared, with rows of the tile padded to 33 elements, so that a column walk meets 32 "   \
                 "banks")                                                                                    \
    X(vectorized, .plan = {MM_EVERY_DTYPE(mm_cuda_transpose_vectorized)},                                    \
      .traffic = mm_traffic_transpose_vectorized,                                                       \
      .tile = 64,                                                                                            \
      .sources = MM_SOURCES("gpu/cuda/variants/transpose_vectorized.cu", "gpu/cuda/variants/quad.cuh"),      \
      .summary = "64x64 tiles by accesses of 16 bytes: squares turned in registers, the tile swizzled")
/* clang-format on */

/* The functions that plan the variants. mm_cuda_tf32 is not defined, because tf32 uses mm_cuda_tensor. */
#define X(row, ...) mm_variant_plan mm_cuda_##row;
MM_CUDA_VARIANTS(X)
#undef X
#define X(row, ...) mm_variant_plan mm_cuda_transpose_##row;
MM_CUDA_TRANSPOSES(X)
#undef X

/* Returns why the device cannot use asynchronous copies, as a static string, or NULL. Any thread. */
const char *mm_cuda_async_missing(const struct mm_device *device);

/* Returns why the device cannot use Hopper's tensor cores, as a static string, or NULL. Any thread. */
const char *mm_cuda_fp32_tensor_missing(const struct mm_device *device);

/* Returns why cuBLAS cannot be used, as a static string, or NULL. The first call opens cuBLAS. Any thread. */
const char *mm_cuda_blas_missing(const struct mm_device *device);

/* Returns why cuBLAS cannot multiply float8_e4m3fn, as a static string, or NULL. Any thread, but only after
 * mm_cuda_blas_missing has returned NULL. */
const char *mm_cuda_blas_float8_missing(const struct mm_device *device);

/* Whether the variant `blas` can compute this product on the device. Any thread. */
bool mm_cuda_blas_supports(const struct mm_device *device, const struct mm_product *product);

/* Frees the lane's cuBLAS handle, if it exists. Only the thread that uses the lane calls this. */
void mm_cuda_blas_close(struct mm_lane *lane);

/* Chooses a variant for products with the variant `auto`. */
mm_variant_choose mm_cuda_choose;

/* Chooses a variant for transpositions with the variant `auto`. */
mm_variant_choose mm_cuda_choose_transpose;

/* The most bytes of a job in a batch, because a larger job keeps the bus busy alone. On an H200, with
 * products up to 256×256 and 32 connections, 1 MiB was faster than 256 KiB or no limit. */
enum { MM_CUDA_BATCH_BYTES_MAX = 1 << 20 };

/* Whether `tensor` computes the product by its kernel for small products, which can share launches. The
 * result depends on neither C's type nor the epilogue, and on nothing that changes between two requests. So a
 * product has the same bits alone and in a batch. */
static inline bool mm_cuda_tensor_is_small(const struct mm_product *product) {
    enum { DEPTH_MAX = 512 };
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    return bytes <= 2 && product->stack == NULL && product->k <= DEPTH_MAX &&
           mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b) +
                   product->m * product->n * sizeof(float) <=
               MM_CUDA_BATCH_BYTES_MAX;
}

/* The index of each variant in mm_cuda_variants. */
enum {
#define X(name, ...) MM_CUDA_ROW_##name,
    MM_CUDA_VARIANTS(X)
#undef X
        MM_CUDA_ROW_auto,
#define X(name, ...) MM_CUDA_ROW_transpose_##name,
    MM_CUDA_TRANSPOSES(X)
#undef X
        MM_CUDA_ROW_transpose_auto,
    MM_CUDA_VARIANT_COUNT
};

extern const struct mm_variant mm_cuda_variants[MM_CUDA_VARIANT_COUNT];

/* What ptxas reported about the variants' kernels (compiled.h). In the last row, all members are 0. */
extern const struct mm_compiled mm_cuda_compiled[];

__END_DECLS
