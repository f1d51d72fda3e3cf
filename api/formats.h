/* The functions of the wire formats, from which codec.c makes the rows of its table; codec.h says what
 * each has to do, and which thread calls it. */
#pragma once

#include "api/codec.h"

extern const struct mm_body_reader mm_json_reader;
bool mm_json_reply_bytes_max(const struct mm_matrix *c, size_t *bytes);
void mm_json_encode(const struct mm_answer *answer, struct mm_reply_body *body);
enum mm_status mm_json_finish(const struct mm_answer *answer, struct mm_reply_body *body,
                              struct mm_error *error);

enum mm_status mm_raw_plan(struct mm_call *call, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error);
enum mm_status mm_raw_decode(struct mm_call *call, const struct mm_body *body, const struct mm_limits *limits,
                             struct mm_error *error);
void mm_raw_encode(const struct mm_answer *answer, struct mm_reply_body *body);

extern const struct mm_body_reader mm_form_reader;

void mm_npy_encode(const struct mm_answer *answer, struct mm_reply_body *body);
