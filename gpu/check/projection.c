/* A product's projection, and that of the result that should be it, a piece at a time. */
#include "gpu/check/projection.h"

#include "gpu/matrix.h"

#include <assert.h>
#include <math.h>

/* The numbers of one step, which take well under a millisecond; and the independent numbers of which the norm
 * is to be a sum at least, so that it is not small by chance. */
enum { STEP_NUMBERS = 1 << 17, FREEDOM = 16 };

#define WEIGHTS_SEED UINT64_C(0x77656967687473)

/* A·B has no more independent rows than A has rows or columns, and each group's sums are a number for each.
 */
static size_t columns_of_a_group(size_t m, size_t k, size_t n) {
    const size_t rank = mm_size_min(m, k);
    return n / mm_size_min(n, (FREEDOM - 1) / rank + 1);
}

static size_t count_groups(size_t m, size_t k, size_t n) {
    return mm_size_divide_up(n, columns_of_a_group(m, k, n));
}

bool mm_projection_bytes(size_t m, size_t k, size_t n, size_t *bytes) {
    size_t doubles, of_doubles, of_floats;
    assert(m > 0 && k > 0 && n > 0);
    return !__builtin_mul_overflow(m, count_groups(m, k, n), &doubles) &&
           !__builtin_add_overflow(doubles, k, &doubles) &&
           !__builtin_mul_overflow(doubles, sizeof(double), &of_doubles) &&
           !__builtin_mul_overflow(n, sizeof(float), &of_floats) &&
           !__builtin_add_overflow(of_doubles, of_floats, bytes);
}

void mm_projection_init(struct mm_projection *projection, const struct mm_random_product *product,
                        void *memory) {
    *projection = (struct mm_projection){
        .product = *product,
        .group_cols = columns_of_a_group(product->m, product->k, product->n),
        .group_count = count_groups(product->m, product->k, product->n),
    };
    projection->sums = memory;
    projection->inner = projection->sums + product->m * projection->group_count;
    projection->weights = (float *)(projection->inner + product->k);
}

/* Where a group's columns end. */
static size_t group_end(const struct mm_projection *projection, size_t group) {
    return mm_size_min((group + 1) * projection->group_cols, projection->product.n);
}

static float make_weight(size_t col) {
    const float element = mm_random_element(WEIGHTS_SEED, col);
    return 0.5F * (element + copysignf(1.0F, element));
}

/* Some of B's row times x, which is made with the first row: B·x row by row. */
static void project_b(struct mm_projection *projection, size_t row, size_t count) {
    const struct mm_random_product *product = &projection->product;
    const size_t col = projection->group * projection->group_cols + projection->number;
    const uint64_t stream = mm_random_skip(product->b_seed, row * product->n + col);
    float *weights = projection->weights + col;
    double sum = projection->number == 0 ? 0.0 : projection->inner[row];
    if (row == 0)
        for (size_t index = 0; index < count; index++)
            weights[index] = make_weight(col + index);
    for (size_t index = 0; index < count; index++)
        sum += (double)mm_random_element(stream, index) * (double)weights[index];
    projection->inner[row] = sum;
}

/* The same of a B that is stored transposed, so that what lies in a row is a column: B·x by its columns. */
static void project_transposed_b(struct mm_projection *projection, size_t row, size_t count) {
    const struct mm_random_product *product = &projection->product;
    const size_t col = projection->group * projection->group_cols + row;
    const uint64_t stream = mm_random_skip(product->b_seed, col * product->k + projection->number);
    const double weight = (double)make_weight(col);
    double *inner = projection->inner + projection->number;
    projection->weights[col] = (float)weight;
    for (size_t index = 0; index < count; index++) {
        const double sum = row == 0 ? 0.0 : inner[index];
        inner[index] = sum + (double)mm_random_element(stream, index) * weight;
    }
}

/* Some of A's row times B·x. */
static void project_a(struct mm_projection *projection, size_t row, size_t count) {
    const struct mm_random_product *product = &projection->product;
    const uint64_t stream = mm_random_skip(product->a_seed, row * product->k + projection->number);
    const double *inner = projection->inner + projection->number;
    double *sum = &projection->sums[row * projection->group_count + projection->group];
    double total = projection->number == 0 ? 0.0 : *sum;
    for (size_t index = 0; index < count; index++)
        total += (double)mm_random_element(stream, index) * inner[index];
    *sum = total;
    if (projection->number + count == product->k)
        projection->norm += total * total;
}

/* The same of an A that is stored transposed: the sums are whole once its last row was added. */
static void project_transposed_a(struct mm_projection *projection, size_t row, size_t count) {
    const struct mm_random_product *product = &projection->product;
    const uint64_t stream = mm_random_skip(product->a_seed, row * product->m + projection->number);
    const double inner = projection->inner[row];
    double *sum = &projection->sums[projection->number * projection->group_count + projection->group];
    for (size_t index = 0; index < count; index++, sum += projection->group_count) {
        *sum = (row == 0 ? 0.0 : *sum) + (double)mm_random_element(stream, index) * inner;
        if (row + 1 == product->k)
            projection->norm += *sum * *sum;
    }
}

/* Does up to `count` numbers of the row at hand, and says how many. */
static size_t prepare_row(struct mm_projection *projection, size_t count) {
    const struct mm_random_product *product = &projection->product;
    const size_t first = projection->group * projection->group_cols;
    const size_t cols = group_end(projection, projection->group) - first;
    const size_t b_rows = product->transpose_b ? cols : product->k;
    const size_t a_rows = product->transpose_a ? product->k : product->m;
    const bool is_of_b = projection->row < b_rows;
    const size_t b_length = product->transpose_b ? product->k : cols;
    const size_t a_length = product->transpose_a ? product->m : product->k;
    const size_t length = is_of_b ? b_length : a_length;
    count = mm_size_min(count, length - projection->number);
    if (is_of_b)
        (product->transpose_b ? project_transposed_b : project_b)(projection, projection->row, count);
    else
        (product->transpose_a ? project_transposed_a : project_a)(projection, projection->row - b_rows,
                                                                  count);
    projection->number += count;
    if (projection->number < length)
        return count;
    projection->number = 0;
    projection->row++;
    if (projection->row == b_rows + a_rows) {
        projection->row = 0;
        projection->group++;
    }
    return count;
}

bool mm_projection_prepare(struct mm_projection *projection) {
    if (projection->group == projection->group_count)
        return false;
    for (size_t left = STEP_NUMBERS; left > 0 && projection->group < projection->group_count;)
        left -= prepare_row(projection, left);
    return true;
}

void mm_projection_begin(struct mm_projection *projection) {
    assert(projection->group == projection->group_count);
    projection->read_row = projection->read_col = projection->read_group = 0;
    projection->read_sum = projection->read_squares = 0.0;
}

/* In four sums, none of which waits for another's addition. */
static double dot(const float *elements, const float *weights, size_t count) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    size_t index = 0;
    for (; index + 4 <= count; index += 4)
        for (size_t lane = 0; lane < 4; lane++)
            sums[lane] += (double)elements[index + lane] * (double)weights[index + lane];
    for (; index < count; index++)
        sums[0] += (double)elements[index] * (double)weights[index];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Compares the group that was read with what it must be, and goes on to the next. */
static void end_group(struct mm_projection *projection) {
    const size_t at = projection->read_row * projection->group_count + projection->read_group;
    const double error = projection->read_sum - projection->sums[at];
    projection->read_squares += error * error;
    projection->read_sum = 0.0;
    projection->read_group++;
    if (projection->read_group < projection->group_count)
        return;
    projection->read_group = projection->read_col = 0;
    projection->read_row++;
}

void mm_projection_take(struct mm_projection *projection, const float *elements, size_t count) {
    while (count > 0) {
        const size_t end = group_end(projection, projection->read_group);
        const size_t part = mm_size_min(count, end - projection->read_col);
        assert(projection->read_row < projection->product.m);
        projection->read_sum += dot(elements, projection->weights + projection->read_col, part);
        projection->read_col += part;
        elements += part;
        count -= part;
        if (projection->read_col == end)
            end_group(projection);
    }
}

double mm_projection_error(const struct mm_projection *projection) {
    assert(projection->read_row == projection->product.m);
    const double error = sqrt(projection->read_squares / projection->norm);
    return isfinite(error) ? error : INFINITY;
}
