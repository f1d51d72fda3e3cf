/* A table of the element types on the wire: names, readers and writers. */
#pragma once

#include "api/number/number.h"
#include "gpu/matrix/matrix.h"

struct mm_element {
    const char *npy;        /* NumPy's name of the type, little-endian */
    mm_number_reader *read; /* reads a JSON number */

    /* Stores a NaN or an infinity, which JSON writes as a string; false if the type lacks this value. NULL:
     * the type has none of these values. */
    bool (*put_special)(float value, void *element);

    /* Writes `count` elements as JSON with commas between them, and returns the end. An element needs at most
     * text_max bytes, but the writer may overwrite MM_FLOAT_TEXT_BUFFER bytes from the element's first on. */
    char *(*write)(const void *elements, size_t count, char *end);
    size_t text_max;

    const char *takes; /* the values that the type can represent, in words */
};

/* Returns the row of a type. Static. Any thread may call this function. */
const struct mm_element *mm_element(enum mm_dtype dtype);

/* Whether a bool matrix in host memory has an element that is neither 0 nor 1. False if the type is not bool,
 * or the matrix has no data. */
bool mm_element_is_past_bool(const struct mm_matrix *matrix);
