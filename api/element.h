/* What the wire knows of an element type: a row of one table, which has all that a type needs. */
#pragma once

#include "api/number/number.h"
#include "gpu/matrix/matrix.h"

struct mm_element {
    const char *npy;        /* NumPy's name of it, little-endian */
    mm_number_reader *read; /* a number of JSON */

    /* Writes one of the numbers that JSON has a string for; false if the type has not this one. NULL: it has
     * none of them. */
    bool (*put_special)(float value, void *element);

    /* Writes `count` elements as JSON with commas between them, and returns the end. Each takes text_max
     * bytes at most; MM_FLOAT_TEXT_ROOM bytes behind its beginning may be written over. */
    char *(*write)(const void *elements, size_t count, char *end);
    size_t text_max;

    const char *takes; /* what it holds, in words */
};

/* Static; any thread. */
const struct mm_element *mm_element(enum mm_dtype dtype);

/* Whether the matrix, in host memory, has an element of type bool that is neither 0 nor 1. False for other
 * types, and without data. */
bool mm_element_is_past_bool(const struct mm_matrix *matrix);
