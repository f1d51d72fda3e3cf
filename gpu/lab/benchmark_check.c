/* Checks the first result of a row. All of C is overwritten before the run, and read back afterwards in
 * parts. The check depends on the benchmark:
 * - A product: gpu/check/verify.h. If the operands are random, a sample of C is also compared with exact
 *   elements (gpu/check/sample.h).
 * - An activation: only a sample of C is compared with exact elements.
 * - A transposition: C is compared bit for bit. */
#include "gpu/lab/benchmark_state.h"

#include <math.h>
#include <string.h>

#define POISON_SEED UINT64_C(0x706f69736f6e)

/* --- products with an activation */

static size_t index_of(const struct mm_matrix *matrix, bool is_transposed, size_t row, size_t col) {
    return is_transposed ? col * matrix->ld + row : row * matrix->ld + col;
}

static uint64_t word_of(const struct mm_matrix *matrix, size_t index) {
    return matrix->dtype == MM_INT64 ? mm_load_uint64_t(MM_INT64, matrix->data, index)
                                     : (uint64_t)(int64_t)mm_dtype_get(matrix->dtype, matrix->data, index);
}

static double expect_integer(const struct mm_product *product, size_t row, size_t col) {
    const struct mm_terms terms = mm_product_terms(product);
    uint64_t sum = 0;
    for (size_t depth = 0; depth < product->k; depth++)
        sum += word_of(&product->a, index_of(&product->a, product->transpose_a, row, depth)) *
               word_of(&product->b, index_of(&product->b, product->transpose_b, depth, col));
    return product->c.dtype == MM_INT32 ? (int32_t)mm_finish_uint32_t(&terms, row, col, (uint32_t)sum)
                                        : (double)(int64_t)mm_finish_uint64_t(&terms, row, col, sum);
}

/* Returns an element of D before it is rounded. *magnitude becomes |alpha|·(|A|·|B|) + |beta·C| + |bias|. */
static double expect_float(const struct mm_product *product, size_t row, size_t col, double *magnitude) {
    const struct mm_matrix *a = &product->a, *b = &product->b, *addend = &product->addend;
    const enum mm_activation activation = product->epilogue.activation;
    const enum mm_dtype sum_dtype = mm_dtype_sum(a->dtype);
    const double alpha = mm_scale_real(sum_dtype, &product->epilogue.alpha);
    double sum = 0.0, low = 0.0, added = 0.0, bias = 0.0;
    *magnitude = 0.0;
    for (size_t depth = 0; depth < product->k; depth++) {
        const double of_a = mm_dtype_get(a->dtype, a->data, index_of(a, product->transpose_a, row, depth));
        const double of_b = mm_dtype_get(b->dtype, b->data, index_of(b, product->transpose_b, depth, col));
        mm_exact_add_product(&sum, &low, of_a, of_b, 0.0);
        *magnitude += fabs(of_a * of_b);
    }
    if (addend->rows > 0)
        added = mm_scale_real(sum_dtype, &product->epilogue.beta) *
                mm_dtype_get(addend->dtype, addend->data, index_of(addend, false, row, col));
    if (product->bias.rows > 0)
        bias = mm_dtype_get(product->bias.dtype, product->bias.data, col);
    *magnitude = fabs(alpha) * *magnitude + fabs(added) + fabs(bias);
    const double x = alpha * (sum + low) + added + bias;
    return mm_activated_double(activation, x);
}

/* Computes the next span of the sample. If an element is not finite, the sample cannot show errors, so it
 * becomes empty. */
static void expect_activated(struct mm_benchmark *benchmark) {
    const struct mm_product *product = &benchmark->product;
    struct mm_sample *sample = &benchmark->sample;
    const unsigned span = benchmark->expected_spans++;
    for (unsigned index = 0; index < sample->width; index++) {
        const size_t row = sample->spans[span].row, col = sample->spans[span].col + index;
        double magnitude = 0.0;
        sample->sums[span][index] = mm_dtype_is_float(product->c.dtype)
                                        ? expect_float(product, row, col, &magnitude)
                                        : expect_integer(product, row, col);
        sample->magnitudes[span][index] = magnitude;
        if (!isfinite(magnitude))
            benchmark->expected_spans = sample->span_count = 0;
    }
}

/* Returns the bounds of a sample of D. expect_float computes the magnitudes of the sample. If the argument x
 * of an activation has the bound E, the result has a bound of at most 1.13·E + 8·u·(|x| + 1)
 * (docs/accuracy.md). */
static struct mm_bounds bounds_of(const struct mm_benchmark *benchmark, const struct mm_product *product,
                                  enum mm_arithmetic arithmetic) {
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype);
    const double unit = mm_dtype_precision(sum).unit;
    struct mm_bounds bounds = mm_bounds_of(product, arithmetic);
    if (!mm_benchmark_has_activation(&benchmark->request) || unit == 0.0)
        return bounds;
    bounds.relative = 1.13 * (bounds.relative + 4.0 * unit) + 8.0 * unit;
    bounds.absolute =
        1.13 * fabs(mm_scale_real(sum, &product->epilogue.alpha)) * bounds.absolute + 8.0 * unit;
    return bounds;
}

/* --- all operations */

bool mm_benchmark_compute_expected(struct mm_benchmark *benchmark) {
    struct mm_sample *sample = &benchmark->sample;
    const bool has_activation = mm_benchmark_has_activation(&benchmark->request);
    if (benchmark->request.op != MM_MATMUL)
        return false;
    if (benchmark->expected_spans == sample->span_count)
        return !has_activation &&
               mm_verify_prepare(&benchmark->product, benchmark->given == NULL ? benchmark->streams : NULL,
                                 benchmark->seed, benchmark->check_memory, &benchmark->prepared_rows);
    if (has_activation)
        expect_activated(benchmark);
    else
        mm_sample_expect(sample, benchmark->expected_spans++, &benchmark->product, benchmark->streams);
    return true;
}

static size_t next_part(const struct mm_benchmark *benchmark, const struct mm_product *product) {
    return mm_size_min(mm_matrix_bytes(&product->c) - benchmark->c_bytes_done, benchmark->part_bytes);
}

static void end_part(struct mm_benchmark *benchmark, const struct mm_product *product, size_t bytes) {
    benchmark->c_bytes_done += bytes;
    if (benchmark->c_bytes_done == mm_matrix_bytes(&product->c))
        benchmark->c_bytes_done = 0;
}

/* Overwrites the next part of C with NaN, so the check finds each element that the kernel does not write.
 * Uses random bits for a type without NaN, and for a transposition, because A may contain NaN. */
enum mm_status mm_benchmark_poison(struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_error *error) {
    const size_t bytes = next_part(benchmark, product);
    char *to = (char *)product->c.data + benchmark->c_bytes_done;
    if (benchmark->request.op == MM_MATMUL && mm_dtype_is_float(product->c.dtype))
        memset(benchmark->part, 0xff, bytes);
    else
        for (size_t index = 0; index < bytes; index++)
            benchmark->part[index] = (char)mm_random_bits(POISON_SEED, index);
    end_part(benchmark, product, bytes);
    return device->backend->upload(device, to, benchmark->part, bytes, error);
}

/* Whether an element equals element `index` of `given`. If `given` is NULL, compares with the stream of
 * random float32 numbers. `bytes` is the size of an element, at most 8. */
static inline __attribute__((always_inline)) bool is_element(const char *element, size_t bytes, size_t index,
                                                             const char *given) {
    const size_t at = index * bytes;
    float numbers[2];
    if (given != NULL)
        return memcmp(element, given + at, bytes) == 0;
    for (size_t number = 0; number * sizeof(float) < bytes; number++)
        numbers[number] = mm_random_element(MM_BENCHMARK_SEED, at / sizeof(float) + number);
    return memcmp(element, (const char *)numbers + at % sizeof(float), bytes) == 0;
}

/* Counts the elements of a part of C that differ from A's transpose. The function is inlined, so each size
 * of elements has its own loop. */
static inline __attribute__((always_inline)) size_t count_misplaced(const struct mm_product *product,
                                                                    const char *given, size_t bytes,
                                                                    const char *part, size_t first,
                                                                    size_t count) {
    size_t row = first / product->c.cols;
    size_t col = first % product->c.cols;
    size_t misplaced = 0;
    for (size_t index = 0; index < count; index++, part += bytes) {
        misplaced += !is_element(part, bytes, col * product->a.cols + row, given);
        if (++col == product->c.cols) {
            col = 0;
            row++;
        }
    }
    return misplaced;
}

static size_t count_misplaced_of_type(const struct mm_product *product, const char *given, const char *part,
                                      size_t first, size_t count) {
#define X(constant, name, type, ...)                                                                         \
    case constant:                                                                                           \
        return count_misplaced(product, given, sizeof(type), part, first, count);
    MM_DTYPE_SWITCH(product->c.dtype, X)
#undef X
    return count;
}

/* Sets max_error to the largest error of the sample, or to NAN if a C of zeros would also pass. */
static enum mm_status check_sample(const struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_benchmark_row *row) {
    const struct mm_sample *sample = &benchmark->sample;
    const struct mm_bounds bounds =
        bounds_of(benchmark, product, mm_variant_arithmetic(row->ran, device->backend->is_host));
    const size_t bytes = mm_dtype_bytes(product->c.dtype);
    uint64_t elements[MM_SAMPLE_WIDTH_MAX]; /* elements of C's type */
    row->max_error = 0.0;
    for (unsigned span = 0; span < sample->span_count; span++) {
        const struct mm_sample_span *at = &sample->spans[span];
        const char *from = (const char *)product->c.data + (at->row * product->c.ld + at->col) * bytes;
        enum mm_status status =
            device->backend->download(device, elements, from, sample->width * bytes, &row->error);
        if (status != MM_OK)
            return status;
        row->max_error =
            fmax(row->max_error, mm_sample_error(sample, span, &bounds, product->c.dtype, elements));
    }
    if (row->max_error <= 1.0 && mm_sample_zeros_error(sample, &bounds) <= 1.0)
        row->max_error = NAN;
    return MM_OK;
}

static void add_part(struct mm_benchmark *benchmark, enum mm_arithmetic arithmetic, const struct mm_matrix *c,
                     size_t first, size_t count) {
    if (mm_benchmark_has_activation(&benchmark->request))
        return;
    if (first == 0)
        benchmark->verification = (struct mm_verification){.is_done = true, .seed = benchmark->seed};
    const struct mm_matrix rows = mm_matrix_dense(c->dtype, count / c->cols, c->cols, benchmark->part);
    mm_verify_rows(&benchmark->product, arithmetic, &rows, first / c->cols, benchmark->check_memory,
                   &benchmark->verification);
}

/* Sets the errors of a row. A sum of random elements is finite, so a row of C that is not finite is wrong. */
static void tell_verification(const struct mm_benchmark *benchmark, struct mm_benchmark_row *row) {
    const struct mm_verification *verification = &benchmark->verification;
    row->relative_error = mm_verification_relative_error(verification);
    row->max_error = mm_verify_part(verification->residual, verification->bound);
    if (verification->rows_checked == 0)
        row->relative_error = row->max_error = NAN;
    if (verification->rows_unjudged > 0 && benchmark->given == NULL)
        row->relative_error = INFINITY;
}

enum mm_status mm_benchmark_read(struct mm_benchmark *benchmark, struct mm_device *device,
                                 const struct mm_product *product, struct mm_benchmark_row *row) {
    const bool is_product = benchmark->request.op == MM_MATMUL;
    const size_t bytes = next_part(benchmark, product);
    const size_t count = bytes / mm_dtype_bytes(product->c.dtype);
    const size_t first = benchmark->c_bytes_done / mm_dtype_bytes(product->c.dtype);
    enum mm_status status = device->backend->download(
        device, benchmark->part, (const char *)product->c.data + benchmark->c_bytes_done, bytes, &row->error);
    if (status != MM_OK)
        return status;
    if (is_product)
        add_part(benchmark, mm_variant_arithmetic(row->ran, device->backend->is_host), &product->c, first,
                 count);
    else
        row->max_error +=
            (double)count_misplaced_of_type(product, benchmark->given, benchmark->part, first, count);
    end_part(benchmark, product, bytes);
    if (benchmark->c_bytes_done > 0)
        return MM_OK;
    if (is_product)
        tell_verification(benchmark, row);
    else
        row->max_error /= (double)product->m * (double)product->n;
    return benchmark->sample.span_count > 0 ? check_sample(benchmark, device, product, row) : MM_OK;
}
