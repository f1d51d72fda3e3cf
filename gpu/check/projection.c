/* Computes the projections step by step, so no call takes long. */
#include "gpu/check/projection.h"

#include "gpu/check/exact.h"
#include "gpu/check/unwrap.h"
#include "gpu/matrix/matrix.h"

#include <assert.h>
#include <math.h>

/* Generating STEP_NUMBERS numbers takes well under a millisecond. The norm adds at least FREEDOM independent
 * squares. With fewer squares, the norm could be small by chance. */
enum { STEP_NUMBERS = 1 << 17, FREEDOM = 16 };

#define WEIGHTS_SEED UINT64_C(0x77656967687473)

/* Returns how many columns of C share one projection. The rank of A·B is at most min(m, k). Each group of
 * columns adds only that many independent squares to the norm, so a small rank needs several groups. */
static size_t columns_of_a_group(size_t m, size_t k, size_t n) {
    const size_t rank = mm_size_min(m, k);
    return n / mm_size_min(n, (FREEDOM - 1) / rank + 1);
}

static size_t count_groups(size_t m, size_t k, size_t n) {
    return mm_size_divide_up(n, columns_of_a_group(m, k, n));
}

/* Returns how many doubles represent a sum. A sum of float64 has a high and a low part. */
static size_t parts_of(enum mm_dtype dtype) {
    return dtype == MM_FLOAT64 ? 2 : 1;
}

size_t mm_projection_bytes(enum mm_dtype dtype, size_t m, size_t k, size_t n) {
    assert(m > 0 && k > 0 && n > 0);
    return parts_of(dtype) * (m * count_groups(m, k, n) + k) * sizeof(double) +
           mm_size_round_up(n * sizeof(float), sizeof(double));
}

void mm_projection_init(struct mm_projection *projection, const struct mm_random_product *product,
                        void *memory) {
    *projection = (struct mm_projection){
        .product = product,
        .is_precise = parts_of(product->dtype) > 1,
        .group_cols = columns_of_a_group(product->m, product->k, product->n),
        .group_count = count_groups(product->m, product->k, product->n),
    };
    const size_t parts = parts_of(product->dtype);
    projection->sums = memory;
    projection->inner = projection->sums + parts * product->m * projection->group_count;
    projection->weights = (float *)(projection->inner + parts * product->k);
}

static size_t group_end(const struct mm_projection *projection, size_t group) {
    return mm_size_min((group + 1) * projection->group_cols, projection->product->n);
}

static float make_weight(size_t col) {
    const float element = mm_random_element(WEIGHTS_SEED, col);
    return 0.5F * (element + copysignf(1.0F, element));
}

static inline void add(const struct mm_projection *projection, double *sum, double *low, double element,
                       double factor, double factor_low) {
    if (projection->is_precise)
        mm_exact_add_product(sum, low, element, factor, factor_low);
    else
        *sum += element * factor;
}

/* Adds `count` elements of a row of B, multiplied by x, to the current sum. During the first row of B, also
 * generates x. */
static void add_b(struct mm_projection *projection, size_t count) {
    const struct mm_random_product *product = projection->product;
    const size_t col = projection->group * projection->group_cols + projection->number;
    const size_t row_step = product->transpose_b ? 1 : product->n;
    const size_t col_step = product->transpose_b ? product->k : 1;
    const uint64_t stream = mm_random_skip(product->b_seed, projection->row * row_step + col * col_step);
    float *weights = projection->weights + col;
    double sum = projection->sum, low = projection->low;
    if (projection->row == 0)
        for (size_t index = 0; index < count; index++)
            weights[index] = make_weight(col + index);
    for (size_t index = 0; index < count; index++)
        add(projection, &sum, &low, mm_random_number(product->dtype, stream, index * col_step),
            (double)weights[index], 0.0);
    projection->sum = sum;
    projection->low = low;
}

/* Adds `count` elements of a row of A, multiplied by B·x, to the current sum. */
static void add_a(struct mm_projection *projection, size_t count) {
    const struct mm_random_product *product = projection->product;
    const size_t row_step = product->transpose_a ? 1 : product->k;
    const size_t step = product->transpose_a ? product->m : 1;
    const uint64_t stream = mm_random_skip(product->a_seed, (projection->row - product->k) * row_step +
                                                                projection->number * step);
    const double *inner = projection->inner + projection->number;
    const double *lost = projection->is_precise ? inner + product->k : NULL;
    double sum = projection->sum, low = projection->low;
    for (size_t index = 0; index < count; index++)
        add(projection, &sum, &low, mm_random_number(product->dtype, stream, index * step), inner[index],
            lost == NULL ? 0.0 : lost[index]);
    projection->sum = sum;
    projection->low = low;
}

static void end_row(struct mm_projection *projection) {
    const size_t k = projection->product->k;
    const double sum = projection->sum;
    const size_t groups = projection->group_count;
    if (projection->row < k) {
        projection->inner[projection->row] = sum;
        if (projection->is_precise)
            projection->inner[k + projection->row] = projection->low;
    } else {
        double *kept = &projection->sums[(projection->row - k) * groups + projection->group];
        kept[0] = sum;
        if (projection->is_precise)
            kept[projection->product->m * groups] = projection->low;
        projection->norm += sum * sum;
    }
    projection->number = 0;
    projection->sum = projection->low = 0.0;
    projection->row++;
    if (projection->row == k + projection->product->m) {
        projection->row = 0;
        projection->group++;
    }
}

bool mm_projection_prepare(struct mm_projection *projection) {
    if (projection->group == projection->group_count)
        return false;
    for (size_t left = STEP_NUMBERS; left > 0 && projection->group < projection->group_count;) {
        const bool is_of_b = projection->row < projection->product->k;
        const size_t cols =
            group_end(projection, projection->group) - projection->group * projection->group_cols;
        const size_t length = is_of_b ? cols : projection->product->k;
        const size_t count = mm_size_min(left, length - projection->number);
        (is_of_b ? add_b : add_a)(projection, count);
        projection->number += count;
        left -= count;
        if (projection->number == length)
            end_row(projection);
    }
    return true;
}

void mm_projection_begin(struct mm_projection *projection) {
    assert(projection->group == projection->group_count);
    projection->read = 0;
    projection->read_sum = projection->read_low = projection->read_squares = 0.0;
}

/* Adds elements, multiplied by x, to the sum of a group. Four separate sums are faster, because an addition
 * then need not wait for the previous addition. */
static void add_c(struct mm_projection *projection, const double *elements, const float *weights,
                  size_t count) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    size_t index = 0;
    for (; projection->is_precise && index < count; index++)
        mm_exact_add_product(&projection->read_sum, &projection->read_low, elements[index],
                             (double)weights[index], 0.0);
    for (; index + 4 <= count; index += 4)
        for (size_t lane = 0; lane < 4; lane++)
            sums[lane] += elements[index + lane] * (double)weights[index + lane];
    for (; index < count; index++)
        sums[0] += elements[index] * (double)weights[index];
    projection->read_sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static void end_group(struct mm_projection *projection, size_t row, size_t group) {
    const double *sum = &projection->sums[row * projection->group_count + group];
    const double lost = projection->is_precise ? sum[projection->product->m * projection->group_count] : 0.0;
    const double error = (projection->read_sum - *sum) + (projection->read_low - lost);
    projection->read_squares += error * error;
    projection->read_sum = projection->read_low = 0.0;
}

enum { CHUNK = 512 };

static void widen(double *wide, enum mm_dtype dtype, const void *elements, size_t first, size_t count) {
    switch (dtype) {
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        for (size_t index = 0; index < count; index++)                                                       \
            wide[index] = (double)value(((const type *)elements)[first + index]);                            \
        break;
        MM_DTYPE_TABLE(X)
#undef X
    case MM_DTYPE_COUNT:
        break;
    }
}

/* Replaces each integer by the most likely exact sum that equals it modulo 2^32 or 2^64. A sum of k products
 * of random integers is near k·mean². For uint8, 2^31 is more than six standard deviations if k is below
 * 10^8, so the choice is correct. */
static void unwrap(double *wide, size_t count, double modulus, const struct mm_random_product *product) {
    const double mean = mm_random_mean(product->dtype);
    for (size_t index = 0; modulus > 0.0 && index < count; index++)
        wide[index] = mm_unwrap(wide[index], modulus, (double)product->k * mean * mean);
}

void mm_projection_add(struct mm_projection *projection, enum mm_dtype dtype, const void *elements,
                       size_t count) {
    const size_t n = projection->product->n;
    const double modulus = mm_unwrap_modulus(dtype);
    double wide[CHUNK];
    for (size_t taken = 0; taken < count;) {
        const size_t row = projection->read / n;
        const size_t col = projection->read % n;
        const size_t group = col / projection->group_cols;
        const size_t left = mm_size_min(count - taken, group_end(projection, group) - col);
        const size_t part = mm_size_min(left, CHUNK);
        assert(row < projection->product->m);
        widen(wide, dtype, elements, taken, part);
        unwrap(wide, part, modulus, projection->product);
        add_c(projection, wide, projection->weights + col, part);
        projection->read += part;
        taken += part;
        if (col + part == group_end(projection, group))
            end_group(projection, row, group);
    }
}

double mm_projection_error(const struct mm_projection *projection) {
    assert(projection->read == projection->product->m * projection->product->n);
    if (projection->read_squares == 0.0) /* the norm of a result of zeros is 0 */
        return 0.0;
    const double error = sqrt(projection->read_squares / projection->norm);
    return isfinite(error) ? error : INFINITY;
}
