/* Matrices in JSON: nested rows, read into elements of a type and written from them. For the files of api/
 * alone: it shows Jansson. */
#ifndef MM_API_JSON_MATRIX_H
#define MM_API_JSON_MATRIX_H

#include "gpu/matrix.h"

#include <jansson.h>

struct mm_helpers; /* api/codec.h */

/* How the numbers of a tree stand to those of its text. With the first three all are doubles. */
enum mm_json_bound {
    MM_JSON_LOWER,   /* the largest double that is not above the number */
    MM_JSON_UPPER,   /* the smallest that is not below it */
    MM_JSON_NEAREST, /* the nearest, ties to even */
    MM_JSON_WHOLE /* the number itself where it has neither point nor exponent, else as with MM_JSON_UPPER */
};

/* Makes *view a dense matrix of this type, without data, of the shape that nested rows have. `field` names
 * the matrix. MM_BAD_REQUEST: absent (rows is NULL), no rows, or rows of different lengths. */
enum mm_status mm_json_matrix_shape(const json_t *rows, const char *field, enum mm_dtype dtype,
                                    struct mm_matrix *view, struct mm_error *error);

/* With what bounds a text is read again where its lower bounds do not decide elements of this type. */
enum mm_json_bound mm_json_second_bound(enum mm_dtype dtype);

/* Reads the elements of a matrix of this shape into view->data: floating-point numbers rounded to nearest,
 * ties to even, whole numbers exactly. *undecided becomes true where the lower bounds of a first tree do not
 * decide: then the same text, read with the second bound of view->dtype, is to be passed over the same view.
 * The first tree may have MM_JSON_NEAREST, which decides every float64. MM_BAD_REQUEST names the element that
 * is no number or that the type cannot hold. The rounding mode is to nearest. Without data, the elements of a
 * first tree are judged and not kept. */
enum mm_status mm_json_matrix_read(const json_t *rows, const char *field, enum mm_json_bound bound,
                                   const struct mm_matrix *view, bool *undecided, struct mm_error *error);

/* The room that writing a dense matrix of this type and shape takes: false where that passes SIZE_MAX. */
bool mm_json_matrix_text_bytes(const struct mm_matrix *matrix, size_t *bytes);

/* Writes it as nested rows and returns the length of that; no NUL is added. A large one is written in parts,
 * by the helpers as well, where that is not NULL. */
size_t mm_json_matrix_write(const struct mm_matrix *matrix, struct mm_helpers *helpers, char *text);

#endif
