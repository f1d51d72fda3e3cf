/* Splits, multiplies and certifies by the arithmetic of fp32_tensor's kernels, on the host. */
#include "tests/kernels/split.h"

#include <math.h>
#include <stdlib.h>

void side_make(struct side *side, size_t count, size_t k) {
    *side = (struct side){.count = count,
                          .k = k,
                          .padded = (k + TENSOR_CORE_DEPTH - 1) / TENSOR_CORE_DEPTH * TENSOR_CORE_DEPTH};
    side->x = harness_allocate(count * k * sizeof(float));
    side->high = harness_allocate(count * side->padded * sizeof(float));
    side->low = harness_allocate(count * side->padded * sizeof(float));
    side->lines = harness_allocate(count * sizeof *side->lines);
}

void side_free(struct side *side) {
    free(side->x);
    free(side->high);
    free(side->low);
    free(side->lines);
}

static void split_line(struct side *side, size_t index, float factor) {
    const float *x = side->x + index * side->k;
    float *high = side->high + index * side->padded;
    float *low = side->low + index * side->padded;
    unsigned most = 0;
    unsigned long long lost = 0;
    for (size_t i = 0; i < side->k; i++)
        most = mm_fp32_magnitude(x[i]) > most ? mm_fp32_magnitude(x[i]) : most;
    const struct mm_fp32_scale scale = mm_fp32_scale_of(most);
    for (size_t i = 0; i < side->padded; i++)
        high[i] = low[i] = 0.0F;
    for (size_t i = 0; i < side->k; i++) {
        mm_fp32_split(mm_fp32_scaled(x[i], scale), &high[i], &low[i]);
        lost += mm_fp32_lost(x[i], scale);
    }
    side->lines[index] = mm_fp32_line_of(most, lost, factor);
}

void side_split(struct side *side, bool is_a) {
    const float factor = is_a ? mm_fp32_threshold((unsigned)side->k) : 1.0F;
    for (size_t index = 0; index < side->count; index++)
        split_line(side, index, factor);
}

/* As product.cu adds up a step: the small products first. */
static float step_of(const float *const a[2], const float *const b[2], size_t depth,
                     enum tensor_core_alignment alignment) {
    float sum = 0.0F;
    for (size_t i = 0; i < depth; i += TENSOR_CORE_DEPTH) {
        sum = tensor_core_add(a[1] + i, b[0] + i, sum, alignment);
        sum = tensor_core_add(a[0] + i, b[1] + i, sum, alignment);
    }
    for (size_t i = 0; i < depth; i += TENSOR_CORE_DEPTH)
        sum = tensor_core_add(a[0] + i, b[0] + i, sum, alignment);
    return sum;
}

struct element element_of(const struct side *a, size_t row, const struct side *b, size_t col,
                          enum tensor_core_alignment alignment) {
    const struct mm_fp32_line *of_row = &a->lines[row];
    const struct mm_fp32_line *of_col = &b->lines[col];
    float sum = 0.0F;
    for (size_t k = 0; k < a->padded; k += MM_FP32_STEP) {
        const float *const a_halves[2] = {a->high + row * a->padded + k, a->low + row * a->padded + k};
        const float *const b_halves[2] = {b->high + col * b->padded + k, b->low + col * b->padded + k};
        const size_t left = a->padded - k;
        sum += step_of(a_halves, b_halves, left < MM_FP32_STEP ? left : MM_FP32_STEP, alignment);
    }
    return (struct element){.value = mm_fp32_unscaled(sum, of_row->exponent + of_col->exponent),
                            .is_certified = fabsf(sum) >= mm_fp32_least(*of_row, *of_col)};
}

struct expected expected_of(const struct side *a, size_t row, const struct side *b, size_t col) {
    struct expected expected = {.row = row, .col = col};
    for (size_t k = 0; k < a->k; k++) {
        const double product = (double)a->x[row * a->k + k] * (double)b->x[col * b->k + k];
        expected.sum += product;
        expected.magnitude += fabs(product);
    }
    return expected;
}
