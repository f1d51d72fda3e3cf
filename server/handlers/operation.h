/* State of POST /v1/matmul and POST /v1/transpose. operation_head.c handles the head, operation.c what
 * follows the body, operation_need.c the memory, and operation_out.c the storing of results. The connection's
 * thread calls these functions; those with an `error` argument also run on the worker pool. */
#pragma once

#include "api/call.h"
#include "server/handlers/input.h"

/* In MM_DECODING, MM_QUEUED and MM_ENCODING only the thread that works on the request may access this. */
struct mm_operation {
    struct mm_call call;
    struct mm_input input;               /* input.operands points to call.operands */
    struct mm_references references;     /* operands that are stored matrices */
    const struct mm_codec *encoder;      /* NULL: the reply has no body */
    bool accepts_facts;                  /* the Accept header allows JSON without elements */
    struct mm_shape shape;               /* shape of the wanted part of the result */
    struct mm_window part;               /* position of the wanted part; the job may point here */
    struct mm_stack stack;               /* the job's product points here if there are several products */
    struct mm_store_slot slot;           /* space in the store for the result that `out` names */
    bool is_out_in_query;                /* the query has `out`; otherwise the body may have it */
    bool is_conditional;                 /* the request has If-Match or If-None-Match */
    char expected_etag[MM_ETAG_MAX + 1]; /* tag of the value that `out` names; "": no value */
    size_t result_bytes;                 /* bytes of the result C in the job */
    size_t reply_bytes;                  /* most bytes of the reply's text; 0: the reply is the elements */
    struct mm_buffer scratch;            /* operands that the host makes or copies, then the check's data */
    struct mm_buffer result;             /* with `out`: the result, until the store owns it */
    struct mm_buffer output;    /* the reply's text, followed by the result or by a copy of a part of it */
    struct mm_reply_body reply; /* takes ownership of `output` */
    struct mm_job job;
    bool is_encoded;
    uint64_t decode_ns;
    uint64_t span_ns[MM_SPAN_COUNT]; /* duration of each stage, also of encoding */
};

struct mm_operation *mm_operation_of(const struct mm_request *request);

/* Storing the result under the name `out` (operation_out.c). Without `out` these functions do nothing. */

/* If the query has `out`: checks If-Match and If-None-Match against the value of that name. On failure sets
 * request->error to MM_PRECONDITION_FAILED or MM_BAD_REQUEST. */
enum mm_status mm_operation_check_out(struct mm_request *request);

/* Reserves space for the result: MM_OK, MM_BAD_REQUEST, MM_STORE_FULL, or MM_UNSUPPORTED without a store. */
enum mm_status mm_operation_reserve_out(struct mm_request *request, struct mm_error *error);

/* Stores the result after the reply is encoded; then the store owns the result. A request that ends earlier
 * stores nothing. Fails with MM_PRECONDITION_FAILED if the name has another value by now, with MM_STORE_FULL,
 * or with MM_INTERNAL. Runs on the connection's thread or on the worker pool. */
enum mm_status mm_operation_store_out(struct mm_request *request, struct mm_error *error);

/* Chooses the variant and fills in the product. The result has no memory yet; before the body arrives, the
 * operands have no data. Checks names, tile and shapes, whether the reply's format can express the result,
 * the time of the product, and the memory for `verify`. */
enum mm_status mm_operation_check(struct mm_request *request, struct mm_error *error);

/* After the body: checks its length, and chooses the codecs if its first character decides. Sets
 * request->error. */
enum mm_status mm_operation_settle(struct mm_request *request);

/* The deadline by the client's timeout. Before the body is decoded, only a timeout in the query counts. */
uint64_t mm_operation_deadline_ns(const struct mm_request *request);

/* MM_TOO_LARGE if the memory for `verify` can never fit beside the matrices. */
enum mm_status mm_operation_check_verify(const struct mm_request *request, struct mm_error *error);

/* Sets request->upload.need_bytes. Call it after mm_operation_check and before the body. MM_TOO_LARGE in
 * request->error if the body and the other memory can never fit together. */
enum mm_status mm_operation_check_need(struct mm_request *request);

/* Acquires all memory beside the operands, so a finished job can always be answered. Places generated
 * operands, C and the check's data in this memory. If it fails with MM_BUSY (needed_bytes is set) or
 * MM_TOO_LARGE, the caller must call mm_operation_release_need. Runs on the connection's thread or the worker
 * pool. */
enum mm_status mm_operation_acquire_need(struct mm_request *request, struct mm_error *error);

void mm_operation_release_need(struct mm_request *request);

size_t mm_operation_part_bytes(const struct mm_operation *operation);

/* Whether the reply needs a copy of a part: the store takes the result over, and the part has gaps. */
bool mm_operation_copies_part(const struct mm_operation *operation);

/* Memory for the copy of a part, if mm_operation_copies_part is true. */
void *mm_operation_copy(const struct mm_operation *operation);
