/* Where the operands of a call come from: inline, or made by the server from a few words (gpu/source.h). This
 * and operand.c alone know how that is written, and how such operands get their shapes. A made operand has
 * the type of the call. Threads as in api/call.h. */
#pragma once

#include "api/call.h"
#include "api/slice.h"

/* Reads "uniform(SEED)" or "identity()". MM_UNSUPPORTED names what there is; `name` is the parameter. */
enum mm_status mm_operand_read_source(const char *name, struct mm_slice text, struct mm_source *source,
                                      struct mm_error *error);

/* Whether operand `index` is made, 0 for a and 1 for b; whether any of the call's is, or all. */
static inline bool mm_operand_is_made(const struct mm_call *call, unsigned index) {
    return mm_source_is_made(index == 0 ? &call->a_source : &call->b_source);
}
bool mm_operand_any_is_made(const struct mm_call *call);
bool mm_operand_all_are_made(const struct mm_call *call);

/* MM_BAD_REQUEST if dimensions and whole shapes were both given. */
enum mm_status mm_operand_judge_mixture(const struct mm_call *call, struct mm_error *error);

/* For a format that tells the shapes of inline operands: sets a_shape and b_shape of the call. shapes[i] is
 * that of operand i, or NULL if it is not inline. Then it must be made, and m, n, k, a_shape and b_shape tell
 * its shape; dimensions that an inline operand tells may be missing. MM_BAD_SHAPE if they contradict it.
 * MM_BAD_REQUEST if a dimension is missing, if an operand is both inline and made, or if none is made but a
 * dimension was given. An operand that is neither is the caller's to refuse. */
enum mm_status mm_operand_shapes(struct mm_call *call,
                                 const struct mm_shape *const shapes[MM_CALL_OPERANDS_MAX],
                                 struct mm_error *error);
