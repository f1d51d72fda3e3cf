/* blas: OpenBLAS's cblas_sgemm, the yardstick that the other variants are compared with. In a build without
 * OpenBLAS the row stands in the table and says why it cannot run. */
#include "gpu/cpu/variants.h"

#if MATMULD_WITH_OPENBLAS
#include <cblas.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *mm_cpu_blas_missing(const struct mm_device *device) {
    return NULL;
}

void mm_cpu_blas_use(unsigned cores) {
    if (openblas_get_num_threads() > (int)cores)
        openblas_set_num_threads((int)cores);
}

/* OpenBLAS allocates for each product that it spreads over threads, 512 KiB of it in Debian's build of
 * 0.3.21, and ends the process where that fails. So it is asked for before; between that and OpenBLAS's own
 * call only another thread could take it. */
static bool has_memory(void) {
    enum { ENOUGH_BYTES = 1 << 20 };
    void *volatile memory = openblas_get_num_threads() > 1 ? malloc(ENOUGH_BYTES) : NULL;
    const bool has = memory != NULL || openblas_get_num_threads() <= 1;
    free(memory);
    return has;
}

/* Leading dimensions must be at least 1, also where a matrix has no columns. */
static int leading_dimension(const struct mm_matrix *matrix) {
    return matrix->ld > 0 ? (int)matrix->ld : 1;
}

enum mm_status mm_cpu_blas(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const size_t sizes[] = {product->m, product->n, product->k, product->a.ld, product->b.ld, product->c.ld};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++)
        if (sizes[index] > INT_MAX)
            return mm_fail_field(error, MM_UNSUPPORTED, "variant",
                                 "blas takes sizes and leading dimensions up to %d, but one is %zu", INT_MAX,
                                 sizes[index]);
    if (product->k == 0) { /* the operands may have no storage then: nothing for a library */
        for (size_t row = 0; row < product->m; row++)
            memset((float *)product->c.data + row * product->c.ld, 0, product->n * sizeof(float));
        return MM_OK;
    }
    if (!has_memory())
        return mm_fail(error, MM_INTERNAL, "the system has no memory for the threads of OpenBLAS");
    cblas_sgemm(CblasRowMajor, product->transpose_a ? CblasTrans : CblasNoTrans,
                product->transpose_b ? CblasTrans : CblasNoTrans, (int)product->m, (int)product->n,
                (int)product->k, 1.0F, product->a.data, leading_dimension(&product->a), product->b.data,
                leading_dimension(&product->b), 0.0F, product->c.data, leading_dimension(&product->c));
    return MM_OK;
}
#else
const char *mm_cpu_blas_missing(const struct mm_device *device) {
    return "this build has no OpenBLAS";
}

void mm_cpu_blas_use(unsigned cores) {
}

enum mm_status mm_cpu_blas(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "%s", mm_cpu_blas_missing(NULL));
}
#endif
