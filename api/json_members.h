/* The members of a JSON request. For the files of api/ alone: it shows Jansson. */
#ifndef MM_API_JSON_MEMBERS_H
#define MM_API_JSON_MEMBERS_H

#include "api/codec.h"
#include "api/json_matrix.h"

/* The names of the operands, of which an operation takes the first mm_call_operands. */
extern const char *const mm_json_operands[2];

/* Parses a text that is to be a JSON object, whose numbers become these bounds of themselves (json_float.c
 * and json_whole.c say why); *bound tells where that had to be another one. With MM_JSON_WHOLE the text may
 * be written to. *root is a new reference. MM_BAD_REQUEST with line and column, MM_INTERNAL. */
enum mm_status mm_json_parse(const struct mm_call *call, const struct mm_body *body,
                             enum mm_json_bound *bound, json_t **root, struct mm_error *error);

/* Gives all members but the operands to the call, and sets its dtype: one that there is not goes for float32,
 * since it is refused at the end, after all that is malformed. An operand that the operation does not have is
 * made empty. MM_BAD_REQUEST. */
enum mm_status mm_json_set_parameters(struct mm_call *call, json_t *root, struct mm_error *error);

#endif
