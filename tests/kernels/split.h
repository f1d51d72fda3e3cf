/* What the kernels of fp32_tensor compute, by a model of the tensor cores (tensor_core.h): lines that are
 * scaled and split, and single elements of C with the guard's judgement. It knows no device. */
#ifndef MM_TESTS_KERNELS_SPLIT_H
#define MM_TESTS_KERNELS_SPLIT_H

#include "gpu/cuda/variants/fp32_tensor/guard.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/tensor_core.h"

/* Rows of op(A), or columns of op(B). All memory is owned. */
struct side {
    size_t count;
    size_t k;
    size_t padded; /* k, to whole instructions */
    float *x;      /* count × k, finite */
    float *high;   /* count × padded, zeros behind k */
    float *low;
    struct mm_fp32_line *lines;
};

/* Memory for so many lines, neither of which is 0; x is not filled yet. side_free gives it back. */
void side_make(struct side *side, size_t count, size_t k);
void side_free(struct side *side);

/* Fills in all but x. */
void side_split(struct side *side, bool is_a);

struct element {
    float value;
    bool is_certified;
};

/* As the kernels have it while one cluster does all steps of a tile: for k of at most 448. */
struct element element_of(const struct side *a, size_t row, const struct side *b, size_t col,
                          enum tensor_core_alignment alignment);

/* What is right, in float64. */
struct expected expected_of(const struct side *a, size_t row, const struct side *b, size_t col);

#endif
