/* Tests that a device generates operands exactly like the host. Also tests parts and reductions of results.
 * Exits with 77 without a device. */
#include "gpu/device/backend.h"
#include "gpu/matrix/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Transposes a generated operand on the device. The operand is a stack of `matrices` matrices of rows×cols,
 * one below the other. */
static bool check(struct mm_device *device, enum mm_dtype dtype, enum mm_source_kind kind, size_t matrices,
                  size_t rows, size_t cols) {
    const struct mm_source source = {.kind = kind, .seed = UINT64_C(0xfedcba9876543210), .rows = rows};
    const size_t all_rows = matrices * rows, bytes = mm_dtype_bytes(dtype);
    char *a = malloc(all_rows * cols * bytes), *made = malloc(all_rows * cols * bytes);
    char *c = malloc(all_rows * cols * bytes);
    struct mm_job job = {.work.backend = device->backend,
                         .variant = mm_backend_variant(device->backend, MM_TRANSPOSE, "naive"),
                         .sources[MM_OPERAND_A] = source,
                         .product.a = mm_matrix_dense(dtype, all_rows, cols, a),
                         .product.transpose_a = true};
    size_t wrong = 0;
    if (a == NULL || made == NULL || c == NULL)
        return false;
    const struct mm_matrix expected = mm_matrix_dense(dtype, all_rows, cols, made);
    (void)mm_source_generate(&source, &expected, 0, all_rows * cols, NULL);
    (void)mm_product_conform(MM_TRANSPOSE, &job.product, NULL);
    job.product.c = mm_matrix_dense(dtype, cols, all_rows, c);
    const enum mm_status status = mm_device_run(device, &job);
    for (size_t index = 0; index < all_rows * cols && status == MM_OK; index++)
        wrong +=
            memcmp(c + (index % cols * all_rows + index / cols) * bytes, made + index * bytes, bytes) != 0;
    if (status != MM_OK || wrong > 0 || job.outcome.uploaded_bytes > 0)
        printf("FAIL %s of kind %d, %zu times %zu by %zu: %zu wrong, %zu bytes uploaded %s\n",
               mm_dtype_name(dtype), (int)kind, matrices, rows, cols, wrong, job.outcome.uploaded_bytes,
               job.work.error.detail);
    free(a);
    free(made);
    free(c);
    return status == MM_OK && wrong == 0 && job.outcome.uploaded_bytes == 0 &&
           mm_job_generated_bytes(&job) == all_rows * cols * bytes;
}

static bool is_near(double got, double expected) {
    return got == expected || fabs(got - expected) <= 1e-9 * fabs(expected) + 1e-9;
}

static bool are_alike(const struct mm_reduction *got, const struct mm_reduction *expected) {
    return memcmp(&got->whole_sum, &expected->whole_sum, sizeof got->whole_sum) == 0 &&
           memcmp(&got->whole_trace, &expected->whole_trace, sizeof got->whole_trace) == 0 &&
           got->whole_min == expected->whole_min && got->whole_max == expected->whole_max &&
           is_near(got->sum, expected->sum) && is_near(got->trace, expected->trace) &&
           got->min == expected->min && got->max == expected->max &&
           is_near(mm_squares_root(&got->squares, 1.0), mm_squares_root(&expected->squares, 1.0)) &&
           got->count == expected->count && got->not_finite == expected->not_finite;
}

/* Generates a stack of matrices, and transposes it. Checks the returned part, and the reductions of this
 * part. */
static bool check_part(struct mm_device *device, enum mm_dtype dtype, struct mm_window part) {
    const size_t rows = part.count * part.all_rows, cols = part.all_cols, bytes = mm_dtype_bytes(dtype);
    const struct mm_source source = {.kind = MM_SOURCE_UNIFORM, .seed = 77};
    char *a = malloc(rows * cols * bytes), *made = malloc(rows * cols * bytes),
         *c = malloc(rows * cols * bytes);
    struct mm_job job = {.work.backend = device->backend,
                         .variant = mm_backend_variant(device->backend, MM_TRANSPOSE, "naive"),
                         .sources[MM_OPERAND_A] = source,
                         .part = &part,
                         .reduces = true,
                         .product.a = mm_matrix_dense(dtype, cols, rows, a),
                         .product.transpose_a = true};
    struct mm_reduction expected = mm_reduction_none();
    struct mm_reduction_progress done = {0};
    size_t wrong = 0;
    if (a == NULL || made == NULL || c == NULL)
        return false;
    const struct mm_matrix whole = mm_matrix_dense(dtype, cols, rows, made);
    (void)mm_source_generate(&source, &whole, 0, rows * cols, NULL);
    (void)mm_product_conform(MM_TRANSPOSE, &job.product, NULL);
    job.product.c = mm_matrix_dense(dtype, rows, cols, c);
    const enum mm_status status = mm_device_run(device, &job);
    for (size_t index = 0; index < mm_window_elements(&part) && status == MM_OK; index++) {
        const size_t line = index / part.cols, col = part.col + index % part.cols;
        const size_t row = line / part.rows * part.all_rows + part.row + line % part.rows;
        wrong += memcmp(c + index * bytes, made + (col * rows + row) * bytes, bytes) != 0;
    }
    const struct mm_window dense = {.count = part.count,
                                    .all_rows = part.rows,
                                    .all_cols = part.cols,
                                    .rows = part.rows,
                                    .cols = part.cols};
    (void)mm_reduce_part(&expected, &done, &dense, dtype, c, SIZE_MAX);
    const bool good = status == MM_OK && wrong == 0 && are_alike(&job.outcome.reduction, &expected);
    if (!good)
        printf("FAIL a part of %s: %zu wrong, sum %g for %g, count %zu for %zu %s\n", mm_dtype_name(dtype),
               wrong, job.outcome.reduction.sum, expected.sum, (size_t)job.outcome.reduction.count,
               (size_t)expected.count, job.work.error.detail);
    free(a);
    free(made);
    free(c);
    return good;
}

int main(int argc, char **argv) {
    static const size_t shapes[][3] = {{1, 1, 1}, {3, 5, 4}, {2, 31, 257}, {1, 256, 3}, {1, 1100, 1009}};
    static const struct mm_window parts[] = {{1, 1, 1, 0, 1, 0, 1, 0, 0},
                                             {3, 5, 4, 1, 2, 1, 3, 0, 0},
                                             {2, 7, 9, 7, 0, 0, 9, 0, 0},
                                             {4, 3, 300, 0, 3, 299, 1, 0, 0},
                                             {1, 1500, 1009, 0, 1500, 0, 1009, 0, 0}};
    const struct mm_backend *backend = argc == 2 ? mm_backend_find(argv[1]) : NULL;
    struct mm_device *device = NULL;
    struct mm_error error;
    bool good = true;
    if (backend == NULL || backend->open(0, &device, &error) != MM_OK) {
        printf("no such device: %s\n", backend == NULL ? "usage: generated BACKEND" : error.detail);
        return 77;
    }
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < sizeof shapes / sizeof shapes[0]; index++) {
            const size_t *shape = shapes[index];
            good = check(device, dtype, MM_SOURCE_UNIFORM, shape[0], shape[1], shape[2]) && good;
            good = check(device, dtype, MM_SOURCE_IDENTITY, shape[0], shape[1], shape[2]) && good;
        }
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < sizeof parts / sizeof parts[0]; index++)
            good = check_part(device, dtype, parts[index]) && good;
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    backend->close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
