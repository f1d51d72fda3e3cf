/* Matrices in JSON: nested rows, read into float32 and written from it. For the files of api/ alone: it
 * shows Jansson. */
#ifndef MM_API_JSON_MATRIX_H
#define MM_API_JSON_MATRIX_H

#include "gpu/matrix.h"

#include <jansson.h>

/* How the doubles of a tree stand to the numbers of its text: each is the largest double that is not
 * above the number, or the smallest that is not below it. */
enum mm_json_bound { MM_JSON_LOWER, MM_JSON_UPPER };

/* Makes *view a dense float32 matrix without data, of the shape that nested rows have. `field` names the
 * matrix. MM_BAD_REQUEST: absent (rows is NULL), no rows, or rows of different lengths. */
enum mm_status mm_json_matrix_shape(const json_t *rows, const char *field, struct mm_matrix *view,
                                    struct mm_error *error);

/* Reads the elements of a matrix of this shape into view->data, rounded to nearest, ties to even. With
 * MM_JSON_LOWER, *undecided becomes true where a lower bound alone does not decide: then the same text,
 * read as upper bounds, is to be passed over the same view. MM_BAD_REQUEST names the element that is no
 * number or that float32 cannot hold. The rounding mode is to nearest. Without data, the elements are judged
 * and not kept. */
enum mm_status mm_json_matrix_read(const json_t *rows, const char *field, enum mm_json_bound bound,
                                   const struct mm_matrix *view, bool *undecided, struct mm_error *error);

/* The most bytes that a dense float32 matrix takes as text: false where that passes SIZE_MAX. */
bool mm_json_matrix_text_bytes(const struct mm_matrix *matrix, size_t *bytes);

/* Writes it as nested rows and returns the bytes written; no NUL is added. */
size_t mm_json_matrix_write(const struct mm_matrix *matrix, char *text);

#endif
