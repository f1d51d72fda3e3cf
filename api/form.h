/* A form's matrices on their way into a call: what the decoding of a whole body (form.c) and the reading of
 * one that arrives (form_read.c) share. */
#ifndef MM_API_FORM_H
#define MM_API_FORM_H

#include "api/call.h"
#include "api/npy.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_FORM_OPERANDS_MAX = 2 };

/* The names of their parts. */
extern const char *const mm_form_operands[MM_FORM_OPERANDS_MAX];

/* An operand: what its file's header says, and what follows that. */
struct mm_form_operand {
    bool seen;
    struct mm_npy_header header;
    char *elements; /* in the body, behind the header */
    size_t bytes;   /* from there to the end of the part */
};

/* The operand that a part of this name is; mm_call_operands(call) where it is none. */
unsigned mm_form_find_operand(const struct mm_call *call, const char *name, size_t name_length);

/* Reads the header of an operand's file, as mm_npy_read_header says. */
enum mm_status mm_form_read_header(const struct mm_call *call, unsigned operand, const void *file,
                                   size_t bytes_max, struct mm_npy_header *header, struct mm_error *error);

/* Completes a call, which has all parameters, by its operands, which were all seen: judges their types and
 * sizes, and makes the views. Elements that are not aligned to their size are moved down, over what must be
 * theirs: their file's header. Fails as decode does. */
enum mm_status mm_form_complete(struct mm_call *call, const struct mm_form_operand *operands,
                                const struct mm_limits *limits, struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
