/* How exact the variants are: what the measuring and its table share. */
#ifndef MM_TESTS_KERNELS_ACCURACY_H
#define MM_TESTS_KERNELS_ACCURACY_H

#include "tests/kernels/harness.h"

/* A variant on one set of data. What it tells of how it came to its result stands here. */
struct accuracy_row {
    const struct subject *subject;
    const struct mm_variant *ran; /* what `auto` chose, else the subject's own */
    struct mm_error error;        /* MM_OK, or why there are no figures */
    struct exactness exactness;
};

/* A set of data, and what its rows are compared with: the same device's plain reference and its library, of
 * which the latter may be missing (MM_UNSUPPORTED). */
struct accuracy_set {
    const struct family *family;
    struct shape shape;
    uint64_t seed;

    /* How many elements ‖R‖ rests on: all of them where they are as large as one another, about one where one
     * is far larger than the rest. A norm that rests on few says what chance had in store for these. */
    double norm_elements;

    struct accuracy_row naive;
    struct accuracy_row blas;
};

/* ‖C−R‖/‖R‖, negative where there is none. */
double accuracy_norm(const struct accuracy_row *row);

/* What a claim of float32 accuracy allows the norm to be on this set; negative where naive's says nothing, or
 * C has so few elements that it would be one of luck. */
double accuracy_norm_allowed(const struct accuracy_set *set);

/* Whether the row ran, each of its elements keeps its bound, and its norm is no more than is allowed. */
bool accuracy_is_within(const struct accuracy_row *row, const struct accuracy_set *set);

/* --- accuracy_table.c ------------------------------------------------------------------------------- */

/* What the columns are, once; then the head of a table, and its rows as they come. */
void accuracy_table_legend(FILE *out);
void accuracy_table_head(FILE *out, struct shape shape);
void accuracy_table_row(FILE *out, const struct accuracy_row *row, const struct accuracy_set *set);

void accuracy_csv_head(FILE *out);
void accuracy_csv_row(FILE *out, const struct accuracy_row *row, const struct accuracy_set *set);

#endif
