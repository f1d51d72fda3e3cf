/* What tests ask of a benchmark's rows: the plain copy's, and which are certainly wrong. */
#pragma once

#include "gpu/lab/benchmark.h"

#include <math.h>

/* The row of the plain copy with which transpositions are compared; NULL of a product. */
static inline const struct mm_benchmark_row *benchmark_copy(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    return request->op == MM_TRANSPOSE ? &mm_benchmark_rows(benchmark)[request->subject_count] : NULL;
}

/* Whether a row that ran is certainly wrong: an element of a transposition is out of place, a product is not
 * finite or in its sample past the bound, or its relative error is over 10^-6 and over 10^-7·√k as well,
 * which is four times what float32 adds up to in turn (2.4·10^-8·√k); of float64 by as much less as its unit
 * roundoff is, and of a narrower result by what that is rounded more. The sums of tensor cores are held to
 * their bound alone. This is not asked of a product of fewer than 16 elements, whose norm may be small by
 * chance. */
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
        relative_error_max += 0x1p-10; /* both factors are off by 2^-11 at most */
    if (request->op == MM_TRANSPOSE)
        return row->max_error > 0.0;
    return row->max_error > 1.0 || isinf(row->relative_error) ||
           (is_many && row->relative_error > relative_error_max);
}
