/* Whether a row's first result is right. All of C is overwritten before the run and read back after it, in
 * pieces. A product is projected (gpu/check/projection.h), and a sample of it is compared with the worst that
 * its type may do (gpu/check/sample.h). A transposition is compared bit for bit. It knows no times. */
#include "gpu/lab/benchmark_state.h"

#include <math.h>
#include <string.h>

bool mm_benchmark_expect(struct mm_benchmark *benchmark) {
    if (benchmark->request.op != MM_MATMUL)
        return false;
    if (benchmark->expected == benchmark->sample.span_count)
        return mm_projection_prepare(&benchmark->projection);
    mm_sample_expect(&benchmark->sample, benchmark->expected++, &benchmark->operands);
    return true;
}

static size_t next_piece(const struct mm_benchmark *benchmark, const struct mm_product *product) {
    return mm_size_min(mm_matrix_bytes(&product->c) - benchmark->judged, MM_BENCHMARK_PIECE_BYTES);
}

static void end_piece(struct mm_benchmark *benchmark, const struct mm_product *product, size_t bytes) {
    benchmark->judged += bytes;
    if (benchmark->judged == mm_matrix_bytes(&product->c))
        benchmark->judged = 0;
}

/* With NaN: a single one makes the whole projection NaN, and no number of the streams is one. Of whole
 * numbers with -1, which shows as any wrong element does. */
enum mm_status mm_benchmark_poison(struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_error *error) {
    const size_t bytes = next_piece(benchmark, product);
    char *to = (char *)product->c.data + benchmark->judged;
    memset(benchmark->piece, 0xff, bytes);
    end_piece(benchmark, product, bytes);
    return device->backend->upload(device, to, benchmark->piece, bytes, error);
}

/* Whether an element of at most 8 bytes is number `index` of its size in the stream of float32s. */
static inline __attribute__((always_inline)) bool is_element(const char *element, size_t bytes,
                                                             size_t index) {
    const size_t at = index * bytes;
    float numbers[2];
    for (size_t number = 0; number * sizeof(float) < bytes; number++)
        numbers[number] = mm_random_element(MM_BENCHMARK_SEED, at / sizeof(float) + number);
    return memcmp(element, (const char *)numbers + at % sizeof(float), bytes) == 0;
}

/* How many elements of a piece of C are not those of A's transpose. A is the beginning of the stream.
 * Inlined, so that each size has its own loop. */
static inline __attribute__((always_inline)) size_t count_misplaced(const struct mm_product *product,
                                                                    size_t bytes, const char *piece,
                                                                    size_t first, size_t count) {
    size_t row = first / product->c.cols;
    size_t col = first % product->c.cols;
    size_t misplaced = 0;
    for (size_t index = 0; index < count; index++, piece += bytes) {
        misplaced += !is_element(piece, bytes, col * product->a.cols + row);
        if (++col == product->c.cols) {
            col = 0;
            row++;
        }
    }
    return misplaced;
}

static size_t count_misplaced_of_type(const struct mm_product *product, const char *piece, size_t first,
                                      size_t count) {
    switch (product->c.dtype) {
#define X(constant, name, type, ...)                                                                         \
    case constant:                                                                                           \
        return count_misplaced(product, sizeof(type), piece, first, count);
        MM_DTYPE_TABLE(X)
#undef X
    case MM_DTYPE_COUNT:
        break;
    }
    return count;
}

/* Finds the largest error of the sample. If zeros are within the bound as well, it says nothing. */
static enum mm_status judge_sample(const struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_benchmark_row *row) {
    const struct mm_sample *sample = &benchmark->sample;
    const struct mm_bounds bounds = mm_bounds_of(product, !device->backend->is_host);
    const size_t bytes = mm_dtype_bytes(product->c.dtype);
    uint64_t elements[MM_SAMPLE_WIDTH_MAX]; /* of any type */
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

enum mm_status mm_benchmark_read(struct mm_benchmark *benchmark, struct mm_device *device,
                                 const struct mm_product *product, struct mm_benchmark_row *row) {
    const bool is_product = benchmark->request.op == MM_MATMUL;
    const size_t bytes = next_piece(benchmark, product);
    const size_t count = bytes / mm_dtype_bytes(product->c.dtype);
    const size_t first = benchmark->judged / mm_dtype_bytes(product->c.dtype);
    enum mm_status status = device->backend->download(
        device, benchmark->piece, (const char *)product->c.data + benchmark->judged, bytes, &row->error);
    if (status != MM_OK)
        return status;
    if (first == 0 && is_product)
        mm_projection_begin(&benchmark->projection);
    if (is_product)
        mm_projection_take(&benchmark->projection, product->c.dtype, benchmark->piece, count);
    else
        row->max_error += (double)count_misplaced_of_type(product, benchmark->piece, first, count);
    end_piece(benchmark, product, bytes);
    if (benchmark->judged > 0)
        return MM_OK;
    if (is_product) {
        row->relative_error = mm_projection_error(&benchmark->projection);
        return judge_sample(benchmark, device, product, row);
    }
    row->max_error /= (double)product->m * (double)product->n;
    return MM_OK;
}
