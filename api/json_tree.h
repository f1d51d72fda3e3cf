/* JSON bodies of any kind, by a tree of the whole. */
#ifndef MM_API_JSON_TREE_H
#define MM_API_JSON_TREE_H

#include "api/codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Decodes a body as struct mm_codec says of its decode; the tree counts in the budget. What mm_json_decode
 * gives is the same, by other memory: there, only what the scanner leaves alone comes here. */
enum mm_status mm_json_tree_decode(struct mm_call *call, const struct mm_body *body,
                                   const struct mm_limits *limits, struct mm_buffers *buffers,
                                   struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
