/* Operands that a device makes for a job, against those of the host: every type, random numbers and
 * identities, stacks, a few elements and many. A transposition brings them back bit for bit. Ends with 77
 * where the backend asked for has no device. */
#include "gpu/backend.h"
#include "gpu/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of `matrices` below one another; the job transposes all as one. */
static bool check(struct mm_device *device, enum mm_dtype dtype, enum mm_source_kind kind, size_t matrices,
                  size_t rows, size_t cols) {
    const struct mm_source source = {kind, UINT64_C(0xfedcba9876543210), rows};
    const size_t all_rows = matrices * rows, bytes = mm_dtype_bytes(dtype);
    char *a = malloc(all_rows * cols * bytes), *made = malloc(all_rows * cols * bytes);
    char *c = malloc(all_rows * cols * bytes);
    struct mm_job job = {.backend = device->backend,
                         .variant = mm_backend_variant(device->backend, MM_TRANSPOSE, "naive"),
                         .a_source = source,
                         .product.a = mm_matrix_dense(dtype, all_rows, cols, a),
                         .product.transpose_a = true};
    size_t wrong = 0;
    if (a == NULL || made == NULL || c == NULL)
        return false;
    const struct mm_matrix expected = mm_matrix_dense(dtype, all_rows, cols, made);
    mm_source_make(&source, &expected, 0, all_rows * cols);
    (void)mm_product_conform(MM_TRANSPOSE, &job.product, NULL);
    job.product.c = mm_matrix_dense(dtype, cols, all_rows, c);
    const enum mm_status status = mm_device_run(device, &job);
    for (size_t index = 0; index < all_rows * cols && status == MM_OK; index++)
        wrong +=
            memcmp(c + (index % cols * all_rows + index / cols) * bytes, made + index * bytes, bytes) != 0;
    if (status != MM_OK || wrong > 0 || job.uploaded_bytes > 0)
        printf("FAIL %s of kind %d, %zu times %zu by %zu: %zu wrong, %zu bytes uploaded %s\n",
               mm_dtype_name(dtype), (int)kind, matrices, rows, cols, wrong, job.uploaded_bytes,
               job.error.detail);
    free(a);
    free(made);
    free(c);
    return status == MM_OK && wrong == 0 && job.uploaded_bytes == 0;
}

int main(int argc, char **argv) {
    static const size_t shapes[][3] = {{1, 1, 1}, {3, 5, 4}, {2, 31, 257}, {1, 256, 3}, {1, 1100, 1009}};
    const struct mm_backend *backend = argc == 2 ? mm_backend_find(argv[1]) : NULL;
    struct mm_device *device = NULL;
    struct mm_error error;
    bool good = true;
    if (backend == NULL || backend->open(0, &device, &error) != MM_OK) {
        printf("no such device: %s\n", backend == NULL ? "usage: made BACKEND" : error.detail);
        return 77;
    }
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < sizeof shapes / sizeof shapes[0]; index++) {
            const size_t *shape = shapes[index];
            good = check(device, dtype, MM_SOURCE_UNIFORM, shape[0], shape[1], shape[2]) && good;
            good = check(device, dtype, MM_SOURCE_IDENTITY, shape[0], shape[1], shape[2]) && good;
        }
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    backend->close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
