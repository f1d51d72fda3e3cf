/* How each element type is written and read on the wire. */
#pragma once

#include "api/number/number.h"
#include "gpu/matrix/matrix.h"

struct mm_element {
    const char *npy; /* NumPy's name of the type, such as "<f4" */
    mm_number_reader *read;

    /* Stores a NaN or an infinity. False if the type lacks that value. NULL if the type lacks NaN and
     * infinities. */
    bool (*put_special)(float value, void *element);

    /* Writes `count` elements as JSON with commas between them, and returns the end. Each element takes at
     * most text_max bytes. The writer may also overwrite bytes after the text: up to MM_FLOAT_TEXT_BUFFER
     * bytes, counted from the beginning of the last element. */
    char *(*write)(const void *elements, size_t count, char *end);
    size_t text_max;

    const char *takes; /* the type's values in words, for errors */
};

/* Returns the static row of a type. Any thread may call this function. */
const struct mm_element *mm_element(enum mm_dtype dtype);

/* Whether a matrix of type bool has an element other than 0 and 1. False for other types, and for a matrix
 * without data in host memory. */
bool mm_element_is_past_bool(const struct mm_matrix *matrix);
