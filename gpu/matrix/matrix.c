/* Views of matrices, and a checked addition of sizes. */
#include "gpu/matrix/matrix.h"

_Static_assert(sizeof(size_t) == 8, "sizes are 64 bits wide");

struct mm_matrix mm_matrix_dense(enum mm_dtype dtype, size_t rows, size_t cols, void *data) {
    return (struct mm_matrix){.data = data, .rows = rows, .cols = cols, .ld = cols, .dtype = dtype};
}

size_t mm_matrix_bytes(const struct mm_matrix *matrix) {
    return matrix->rows * matrix->ld * mm_dtype_bytes(matrix->dtype);
}

bool mm_size_add(size_t a, size_t b, size_t *sum) {
    size_t total;
    if (__builtin_add_overflow(a, b, &total))
        return false;
    *sum = total;
    return true;
}
