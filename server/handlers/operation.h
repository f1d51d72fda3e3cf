/* The state of POST /v1/matmul and POST /v1/transpose, shared by operation_head.c, which judges the head, and
 * operation.c, which does what follows the body. */
#pragma once

#include "server/http/request.h"

/* In MM_DECODING, MM_QUEUED and MM_ENCODING only the thread that works on the request reads it, even after
 * the request was abandoned. */
struct mm_operation {
    struct mm_call call;
    const struct mm_codec *decoder; /* NULL: only the body can tell */
    const struct mm_codec *encoder; /* NULL: the reply has no body */
    bool accepts_facts;             /* Accept allows a reply without the elements, in JSON */
    char *content_type;             /* owned; NULL: absent */
    struct mm_shape shape;          /* of what is wanted of the result */
    struct mm_window part;          /* of the job, which points at it if a part or figures are wanted */
    struct mm_stack stack; /* of the job's product, which points at it if there are several products */
    struct mm_buffer result;
    size_t result_bytes;        /* that it must have */
    struct mm_buffer made;      /* the operands that a backend of the host makes */
    struct mm_buffer check;     /* the job's verify_memory */
    struct mm_reply_body reply; /* acquired before the job: no kernel runs in vain */
    size_t reply_bytes;         /* of text, at most; 0: the result's own bytes are the reply */
    struct mm_job job;
    bool is_encoded; /* the reply is complete */
    uint64_t decode_ns;
    uint64_t span_ns[MM_SPAN_COUNT]; /* with encoding */
};

struct mm_operation *mm_operation_of(const struct mm_request *request);

/* Chooses the variant and sets the product, without the memory of the result and, before the body, without
 * data: judges the names and the tile, then whether the shapes conform and the reply's format can hold the
 * result, how long the product takes, and the memory of its check. */
enum mm_status mm_operation_judge(struct mm_request *request, struct mm_error *error);

/* After the body: chooses the codecs if the first character had to tell, and judges the length. Errors go
 * into request->error. The connection's thread. */
enum mm_status mm_operation_settle(struct mm_request *request);

/* By the limit in the query before the body, in the body after it. */
uint64_t mm_operation_deadline_ns(const struct mm_request *request);
