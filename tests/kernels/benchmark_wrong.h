/* Decides which rows of a benchmark are certainly wrong, and finds the row of the plain copy. */
#pragma once

#include "gpu/lab/benchmark.h"

#include <math.h>

/* Returns the row of the plain copy with which a benchmark of transpositions compares, or NULL for products.
 */
static inline const struct mm_benchmark_row *benchmark_copy(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    return request->op == MM_TRANSPOSE ? &mm_benchmark_rows(benchmark)[request->subject_count] : NULL;
}

/* Returns whether the row's result is certainly wrong. A transposition must be exact. A product must be
 * within the bound, and its relative error within 10^-6 or 10^-7·√k. Wider limits apply to narrow types and
 * tf32. Below 16 elements only the bound counts. */
static inline bool benchmark_is_wrong(const struct mm_benchmark *benchmark,
                                      const struct mm_benchmark_row *row) {
    enum { ELEMENTS_MANY = 16 };
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    const enum mm_dtype sum_dtype = mm_dtype_sum(request->dtype);
    const double unit = mm_dtype_is_float(sum_dtype) ? mm_dtype_precision(sum_dtype).unit : 0x1p-53;
    double relative_error_max = fmax(1e-6, 1e-7 * sqrt((double)request->k)) * (unit / 0x1p-24);
    const bool is_many = (double)request->m * (double)request->n >= ELEMENTS_MANY;
    if (request->c_dtype != sum_dtype)
        relative_error_max += mm_dtype_precision(request->c_dtype).unit;
    if (mm_dtype_bytes(request->dtype) == 1 && mm_dtype_is_float(sum_dtype))
        relative_error_max = 1e-2;
    if (row->error.status != MM_OK)
        return false;
    if (row->ran->rounds_to_tf32)
        relative_error_max += 0x1p-10; /* each factor is rounded with a relative error of at most 2^-11 */
    if (request->op == MM_TRANSPOSE)
        return row->max_error > 0.0;
    return row->max_error > 1.0 || isinf(row->relative_error) ||
           (is_many && row->relative_error > relative_error_max);
}
