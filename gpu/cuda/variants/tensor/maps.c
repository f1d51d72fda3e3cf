/* Encodes tensor maps, which tell TMA where a matrix lies and which boxes of it to copy. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants/tensor/plan.h"
#include "gpu/cuda/variants/tensor/tensor.h"

typedef CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                        const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                        const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                        CUtensorMapFloatOOBfill fill);

/* Looks up the driver's function at run time, because the program does not link with the driver. */
static enum mm_status find_encode(struct mm_lane *lane, encode **function, struct mm_error *error) {
    static encode *known;
    static const char name[] = "cuTensorMapEncodeTiled";
    enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    void *found = NULL;
    *function = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (*function != NULL)
        return MM_OK;
#if CUDART_VERSION >= 12050
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (code != cudaSuccess || found == NULL)
        return mm_cuda_status(lane->device, code == cudaSuccess ? cudaErrorSymbolNotFound : code,
                              "looking for the driver's tensor maps", error);
    *function = (encode *)found;
    __atomic_store_n(&known, *function, __ATOMIC_RELAXED);
    return MM_OK;
}

enum mm_status mm_cuda_map(struct mm_lane *lane, CUtensorMapDataType type, const struct mm_matrix *matrix,
                           size_t count, unsigned lines, CUtensorMap *map, struct mm_error *error) {
    const size_t bytes = mm_dtype_bytes(matrix->dtype);
    const size_t rows = matrix->rows / count;
    const cuuint64_t dims[] = {matrix->cols, rows, count};
    const cuuint64_t strides[] = {matrix->ld * bytes, rows * matrix->ld * bytes};
    const cuuint32_t box[] = {(cuuint32_t)(MM_TENSOR_LINE_BYTES / bytes), lines, 1};
    const cuuint32_t ones[] = {1, 1, 1};
    encode *function = NULL;
    const enum mm_status status = find_encode(lane, &function, error);
    if (status != MM_OK)
        return status;
    const CUresult code = function(map, type, 3, matrix->data, dims, strides, box, ones,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return code == CUDA_SUCCESS
               ? MM_OK
               : mm_fail(error, MM_INTERNAL,
                         "the driver refuses a tensor map of %zu x %zu elements in rows of %zu (error %d)",
                         rows, matrix->cols, matrix->ld, (int)code);
}
