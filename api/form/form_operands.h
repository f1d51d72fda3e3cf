/* The files of a form, and the operands that they become. Does not know how a form is split into parts. One
 * thread at a time may use a form. */
#pragma once

#include "api/codec.h"
#include "api/csv/csv.h"
#include "api/npy/npy.h"

enum { MM_FORM_ALIGNMENT = 64 }; /* of the body, and of elements in it */

/* A file of a form. `header` of a CSV file has only the shape, which mm_form_complete sets. */
struct mm_form_operand {
    const char *name; /* static */
    bool seen;        /* the form has this file */
    bool is_csv;
    struct mm_npy_header header;
    struct mm_csv csv;
    size_t elements; /* offset of the elements in the body */
    size_t bytes;    /* from `elements` to the end of the file */
};

/* The caller owns all that the pointers point to. */
struct mm_form {
    struct mm_operands *into; /* the request, with all parameters of the query and the form */
    bool is_alone;            /* the body is no form but one file, which is operand 0 */
    const struct mm_limits *limits;
    struct mm_reservation *memory;
    struct mm_form_operand operands[MM_OPERANDS_MAX];
};

/* Whether the elements must be copied: CSV is text, and a view cannot cover a stack in Fortran order. */
bool mm_form_is_copied(const struct mm_form *form, const struct mm_form_operand *operand);

/* Sets the types, shapes and views of form->into from a complete body. May move elements within the body.
 * Copied elements lie in form->into->storage, which is empty on failure. MM_BAD_REQUEST, MM_BAD_SHAPE,
 * MM_TOO_LARGE, MM_UNSUPPORTED (the type), MM_BUSY. */
enum mm_status mm_form_complete(struct mm_form *form, char *body, struct mm_error *error);
