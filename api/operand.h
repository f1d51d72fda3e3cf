/* Where the operands of a call come from: inline, made by the server from a few words, or stored
 * (gpu/matrix/source.h). This and operand.c alone know how that is written, and how such operands get their
 * shapes. A made operand has the type of the call, a stored one gives its type to the call. Threads as in
 * api/call.h. */
#pragma once

#include "api/call.h"
#include "api/slice.h"
#include "gpu/store/store.h"

/* The stored matrices that a call names, held from the first time that it does. The owner of the call has
 * this beside it, and copies of the call point at the same: they never own a reference. */
struct mm_held {
    struct mm_store *store; /* NULL: switched off */
    uint64_t space;
    struct mm_stored *values[MM_CALL_OPERANDS_MAX]; /* NULL: that operand is not stored */
};

/* Releases the values, once no job reads them. */
void mm_operand_release(struct mm_held *held);

/* Reads "uniform(SEED)", "identity()" or the name of a stored matrix, which is then held in call->held, as
 * operand `index`. MM_UNSUPPORTED names what there is, MM_NO_SUCH_MATRIX the matrix; MM_BAD_REQUEST
 * if the call stores its operand. `name` is the parameter. */
enum mm_status mm_operand_read_source(const struct mm_call *call, unsigned index, const char *name,
                                      struct mm_slice text, struct mm_source *source, struct mm_error *error);

static inline const struct mm_source *mm_operand_source(const struct mm_call *call, unsigned index) {
    return &call->operands[index].source;
}

/* Whether operand `index`, 0 for a and 1 for b, comes with the request, or is made, or is stored; whether all
 * of the call's operands, or none, come with it. */
static inline bool mm_operand_is_inline(const struct mm_call *call, unsigned index) {
    return mm_operand_source(call, index)->kind == MM_SOURCE_HOST;
}
static inline bool mm_operand_is_made(const struct mm_call *call, unsigned index) {
    return mm_source_is_made(mm_operand_source(call, index));
}
static inline bool mm_operand_is_stored(const struct mm_call *call, unsigned index) {
    return mm_operand_source(call, index)->kind == MM_SOURCE_STORED;
}
bool mm_operand_all_are_inline(const struct mm_call *call);
bool mm_operand_none_is_inline(const struct mm_call *call);

/* Gives the call the element type of its stored operands. MM_BAD_REQUEST if they differ, or from `dtype`. */
enum mm_status mm_operand_take_dtype(struct mm_call *call, struct mm_error *error);

/* For a format that does not tell the shapes of inline operands: sets those of the stored ones, and the
 * dimensions, or the whole shapes, that they tell. MM_BAD_SHAPE if the query has others. */
enum mm_status mm_operand_take_stored(struct mm_call *call, struct mm_error *error);

/* MM_BAD_REQUEST if dimensions and whole shapes were both given. */
enum mm_status mm_operand_judge_mixture(const struct mm_call *call, struct mm_error *error);

/* The parameter with an operand's whole shape. */
enum mm_parameter mm_operand_shape_parameter(const struct mm_call *call, unsigned index);

/* For JSON, whose body tells the whole shape of an inline operand beside the operand: the text of an operand
 * without elements shows its dimensions up to the first 0 alone. Adds the others to *shape, and forgets the
 * parameter. MM_BAD_SHAPE if the two differ. */
enum mm_status mm_operand_complete_shape(struct mm_call *call, unsigned index, struct mm_shape *shape,
                                         struct mm_error *error);

/* For a format that tells the shapes of inline operands: sets a_shape and b_shape of the call. shapes[i] is
 * that of operand i, or NULL if it is not inline. If it is made, m, n, k, a_shape and b_shape tell its shape;
 * dimensions that the other operand tells may be missing. MM_BAD_SHAPE if they contradict it. MM_BAD_REQUEST
 * if a dimension is missing, if an operand comes from two places, or if all are inline but a dimension was
 * given. An operand that comes from nowhere is the caller's to refuse. */
enum mm_status mm_operand_shapes(struct mm_call *call,
                                 const struct mm_shape *const shapes[MM_CALL_OPERANDS_MAX],
                                 struct mm_error *error);
