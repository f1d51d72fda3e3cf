/* Finds wrong results of a benchmark. */
#pragma once

#include "gpu/lab/benchmark.h"

#include <math.h>

/* Returns the row of the plain copy that transpositions are compared with, or NULL for products. */
static inline const struct mm_benchmark_row *benchmark_copy(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    return request->op == MM_TRANSPOSE ? &mm_benchmark_rows(benchmark)[request->subject_count] : NULL;
}

/* Returns whether the row's result is certainly wrong. A transposition must be exact. The error of a
 * product must stay within the error bound. If m and k are at least 16, the relative error has a limit too.
 * For smaller products, the estimate of the relative error rests on too few random numbers. */
static inline bool benchmark_is_wrong(const struct mm_benchmark *benchmark,
                                      const struct mm_benchmark_row *row) {
    enum { MANY = 16 };
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    const enum mm_dtype sum_dtype = mm_dtype_sum(request->dtype);
    const double unit = mm_dtype_is_float(sum_dtype) ? mm_dtype_precision(sum_dtype).unit : 0x1p-53;
    double relative_error_max = fmax(1e-6, 1e-7 * sqrt((double)request->k)) * (unit / 0x1p-24);
    const bool is_many = request->m >= MANY && request->k >= MANY;
    if (request->c_dtype != sum_dtype)
        relative_error_max += mm_dtype_precision(request->c_dtype).unit;
    if (mm_dtype_bytes(request->dtype) == 1 && mm_dtype_is_float(sum_dtype))
        relative_error_max = 1e-2;
    if (row->error.status != MM_OK)
        return false;
    if (row->ran->rounds_to_tf32)
        relative_error_max +=
            0x1p-10; /* rounding to tf32 has a relative error of at most 2^-11 for each factor */
    if (request->op == MM_TRANSPOSE)
        return row->max_error > 0.0;
    return row->max_error > 1.0 || isinf(row->relative_error) ||
           (is_many && row->relative_error > relative_error_max);
}
