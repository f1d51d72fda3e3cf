/* Turns the files of a form into operands, after multipart.h has split the form. One thread at a time uses a
 * form. */
#pragma once

#include "api/codec.h"
#include "api/csv/csv.h"
#include "api/npy/npy.h"

enum { MM_FORM_ALIGNMENT = 64 }; /* the body and the elements begin at multiples of 64 bytes */

/* A file of a form. If the file is CSV, `header` has only the shape, which mm_form_complete sets. */
struct mm_form_operand {
    const char *name;
    bool seen; /* a part of the form has this name */
    bool is_csv;
    struct mm_npy_header header;
    struct mm_csv csv;
    size_t elements; /* offset of the file's elements in the body */
    size_t bytes;    /* length of the elements */
};

/* The caller owns what the pointers point to. */
struct mm_form {
    struct mm_operands *into; /* the endpoint's struct, with the parameters read so far */
    bool is_alone;            /* the body is a single file, which is operand 0 */
    const struct mm_limits *limits;
    struct mm_reservation *memory;
    struct mm_form_operand operands[MM_OPERANDS_MAX];
};

/* Whether the elements must be copied because no view can describe them. This holds for:
 * - a CSV file;
 * - a .npy file in Fortran order if it is a stack, if the endpoint requires row-major matrices, or if it is a
 *   c of rank 2 or more and the result is no matrix. */
bool mm_form_is_copied(const struct mm_form *form, const struct mm_form_operand *operand);

/* Sets the types, shapes and views of form->into from a complete body. May move elements within the body.
 * Copied elements are in form->into->storage, which is empty on failure. Fails with MM_BAD_REQUEST,
 * MM_BAD_SHAPE, MM_TOO_LARGE, MM_BUSY, or MM_UNSUPPORTED (the type). */
enum mm_status mm_form_complete(struct mm_form *form, char *body, struct mm_error *error);
