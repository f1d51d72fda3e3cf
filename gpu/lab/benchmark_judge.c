/* Whether a row's first result is right. All of C is overwritten before the run and read back after it, in
 * pieces: a product is projected (gpu/check/projection.h), and a sample of it is held against the worst that
 * float32 may do (gpu/check/sample.h); a transposition is compared bit for bit. It knows no times. */
#include "gpu/lab/benchmark_state.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A piece is copied and judged in well under a millisecond, and is more than a copy's latency. */
enum { PIECE_BYTES = 1 << 18 };

static size_t piece_bytes(const struct mm_product *product) {
    const size_t bytes = mm_matrix_bytes(&product->c);
    return bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
}

bool mm_benchmark_judging_bytes(enum mm_op op, const struct mm_product *product, size_t *bytes) {
    size_t of_projection = 0;
    return (op != MM_MATMUL || mm_projection_bytes(product->m, product->k, product->n, &of_projection)) &&
           mm_size_add(of_projection, piece_bytes(product), bytes);
}

enum mm_status mm_benchmark_judge_open(struct mm_benchmark *benchmark, struct mm_error *error) {
    if (benchmark->judging != NULL)
        return MM_OK;
    benchmark->judging = malloc(benchmark->judging_bytes);
    if (benchmark->judging == NULL)
        return mm_fail(error, MM_INTERNAL, "the system has no memory for the %zu bytes that judging takes",
                       benchmark->judging_bytes);
    benchmark->piece =
        (char *)benchmark->judging + benchmark->judging_bytes - piece_bytes(&benchmark->product);
    if (benchmark->request.op == MM_MATMUL)
        mm_projection_init(&benchmark->projection, &benchmark->operands, benchmark->judging);
    return MM_OK;
}

bool mm_benchmark_expect(struct mm_benchmark *benchmark) {
    if (benchmark->request.op != MM_MATMUL)
        return false;
    if (benchmark->expected == benchmark->sample.span_count)
        return mm_projection_prepare(&benchmark->projection);
    mm_sample_expect(&benchmark->sample, benchmark->expected++, &benchmark->operands);
    return true;
}

void mm_benchmark_judge_begin(struct mm_benchmark *benchmark) {
    benchmark->judged = benchmark->misplaced = 0;
    if (benchmark->request.op == MM_MATMUL)
        mm_projection_begin(&benchmark->projection);
}

static size_t next_piece(const struct mm_benchmark *benchmark, const struct mm_product *product) {
    const size_t left = mm_matrix_bytes(&product->c) - benchmark->judged;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* Moves on by a piece; true where it was the last. */
static bool end_piece(struct mm_benchmark *benchmark, const struct mm_product *product, size_t bytes) {
    benchmark->judged += bytes;
    if (benchmark->judged < mm_matrix_bytes(&product->c))
        return false;
    benchmark->judged = 0;
    return true;
}

/* By NaN, which a single element spreads to all of the projection, and which is no number of the streams. */
enum mm_status mm_benchmark_poison(struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, bool *is_over, struct mm_error *error) {
    const size_t bytes = next_piece(benchmark, product);
    memset(benchmark->piece, 0xff, bytes);
    enum mm_status status = device->backend->upload(device, (char *)product->c.data + benchmark->judged,
                                                    benchmark->piece, bytes, error);
    *is_over = end_piece(benchmark, product, bytes);
    return status;
}

/* Whether this is, bit for bit, that number of the stream. */
static bool is_number(const char *number, size_t index) {
    const float expected = mm_random_element(MM_BENCHMARK_SEED, index);
    return memcmp(number, &expected, sizeof expected) == 0;
}

/* How many elements of a piece of C are not those of the transpose of A, which is the beginning of the
 * stream; an element of 8 bytes is two of its numbers. */
static size_t count_misplaced(const struct mm_product *product, const char *piece, size_t first,
                              size_t count) {
    const size_t numbers = mm_dtype_bytes(product->c.dtype) / sizeof(float);
    size_t row = first / product->c.cols;
    size_t col = first % product->c.cols;
    size_t misplaced = 0;
    for (size_t index = 0; index < count; index++, piece += numbers * sizeof(float)) {
        const size_t source = (col * product->a.cols + row) * numbers;
        misplaced +=
            !(is_number(piece, source) && (numbers == 1 || is_number(piece + sizeof(float), source + 1)));
        col++;
        if (col == product->c.cols) {
            col = 0;
            row++;
        }
    }
    return misplaced;
}

/* The largest error of the sample. If zeros are within the bound as well, it says nothing. */
static enum mm_status judge_sample(const struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_benchmark_row *row) {
    const struct mm_sample *sample = &benchmark->sample;
    float elements[MM_SAMPLE_WIDTH_MAX];
    for (unsigned span = 0; span < sample->span_count; span++) {
        const struct mm_sample_span *at = &sample->spans[span];
        const float *from = (const float *)product->c.data + at->row * product->c.ld + at->col;
        enum mm_status status =
            device->backend->download(device, elements, from, sample->width * sizeof *elements, &row->error);
        if (status != MM_OK)
            return status;
        const double error = mm_sample_error(sample, span, product->k, elements);
        row->max_error = error > row->max_error ? error : row->max_error;
    }
    if (row->max_error <= 1.0 && mm_sample_zeros_error(sample, product->k) <= 1.0)
        row->max_error = NAN;
    return MM_OK;
}

enum mm_status mm_benchmark_read(struct mm_benchmark *benchmark, struct mm_device *device,
                                 const struct mm_product *product, bool *is_over,
                                 struct mm_benchmark_row *row) {
    const bool is_product = benchmark->request.op == MM_MATMUL;
    const size_t element_bytes = mm_dtype_bytes(product->c.dtype);
    const size_t bytes = next_piece(benchmark, product);
    enum mm_status status = device->backend->download(
        device, benchmark->piece, (const char *)product->c.data + benchmark->judged, bytes, &row->error);
    if (status != MM_OK)
        return status;
    if (is_product)
        mm_projection_take(&benchmark->projection, (const float *)(const void *)benchmark->piece,
                           bytes / element_bytes);
    else
        benchmark->misplaced += count_misplaced(product, benchmark->piece, benchmark->judged / element_bytes,
                                                bytes / element_bytes);
    *is_over = end_piece(benchmark, product, bytes);
    if (!*is_over)
        return MM_OK;
    if (is_product) {
        row->relative_error = mm_projection_error(&benchmark->projection);
        return judge_sample(benchmark, device, product, row);
    }
    row->max_error = (double)benchmark->misplaced / ((double)product->m * (double)product->n);
    return MM_OK;
}
