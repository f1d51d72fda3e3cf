/* State of POST /v1/matmul, POST /v1/transpose and infer requests. operation_head.c and models.c handle the
 * head, operation.c the body and the reply, operation_need.c the memory, operation_out.c stored results. Call
 * these functions on the connection's thread. Functions with an `error` argument may also run on the worker
 * pool. */
#pragma once

#include "api/oip/oip.h"
#include "server/handlers/input.h"

/* In MM_DECODING, MM_QUEUED and MM_ENCODING, only the thread that works on the request may use the struct. */
struct mm_operation {
    union {
        struct mm_call call;
        struct mm_oip_call infer; /* begins with `call`; only for infer requests */
    };
    struct mm_input input;               /* input.operands points to call.operands */
    struct mm_references references;     /* the operands that are stored matrices */
    const struct mm_codec *encoder;      /* NULL if the reply has no body */
    bool accepts_facts;                  /* the Accept header allows JSON */
    struct mm_shape shape;               /* shape of the wanted part of the result */
    struct mm_window part;               /* the wanted part of the result; the job may point here */
    struct mm_stack stack;               /* several products of one request; the job points here */
    struct mm_store_slot slot;           /* space in the store for the result */
    bool is_out_in_query;                /* the query has `out`, not the body */
    bool is_conditional;                 /* there is an If-Match or If-None-Match header */
    char expected_etag[MM_ETAG_MAX + 1]; /* tag of the value to replace; "": no value */
    size_t result_bytes;
    size_t reply_bytes;         /* maximal length of the reply's text; 0: the reply is binary */
    struct mm_buffer scratch;   /* operands from the host, then the check's data or the devices' shares */
    struct mm_buffer result;    /* the result, if it will be stored under `out` */
    struct mm_buffer output;    /* the reply's text, followed by the result or a part of it */
    struct mm_reply_body reply; /* takes ownership of `output` */
    struct mm_job job;
    bool is_encoded;
    uint64_t decode_ns;
    uint64_t span_ns[MM_SPAN_COUNT]; /* duration of each stage, for the reply */
};

struct mm_operation *mm_operation_of(const struct mm_request *request);

/* Sets up a request whose call is initialized. */
void mm_operation_begin(struct mm_request *request);

/* Admits a request whose parameters and decoder are known. Sets request->error. */
enum mm_status mm_operation_admit(struct mm_request *request);

/* The next three functions store the result under the name `out`. They do nothing if there is no `out`. */

/* Checks If-Match and If-None-Match against the matrix stored under the name in the query's `out`. On failure
 * sets request->error to MM_PRECONDITION_FAILED or MM_BAD_REQUEST. */
enum mm_status mm_operation_check_out(struct mm_request *request);

/* Reserves space for the result. Fails with MM_BAD_REQUEST, MM_STORE_FULL or MM_UNSUPPORTED (no store). */
enum mm_status mm_operation_reserve_out(struct mm_request *request, struct mm_error *error);

/* Stores the result, and passes its ownership to the store. Call it after encoding the reply. Fails with
 * MM_PRECONDITION_FAILED if the name's value has changed, with MM_STORE_FULL, or with MM_INTERNAL. Runs on
 * the connection's thread or on the worker pool. */
enum mm_status mm_operation_store_out(struct mm_request *request, struct mm_error *error);

/* Checks names, tile, shapes, the reply's format, the expected time of the product, and the memory for
 * `verify`. Fills in the job's product and variant, but no memory for the result. */
enum mm_status mm_operation_check(struct mm_request *request, struct mm_error *error);

/* Call it after the body. Checks the body's length. Chooses the codecs by the body's first character if the
 * head has not decided them. Sets request->error. */
enum mm_status mm_operation_settle(struct mm_request *request);

/* Returns the deadline that the client's timeout sets. A timeout in the body counts only after decoding. */
uint64_t mm_operation_deadline_ns(const struct mm_request *request);

/* Fails with MM_TOO_LARGE if the memory for `verify` can never fit beside the matrices. */
enum mm_status mm_operation_check_verify(const struct mm_request *request, struct mm_error *error);

/* Sets request->upload.need_bytes. Call it after mm_operation_check and before the body arrives. Fails with
 * MM_TOO_LARGE in request->error if the request needs more memory than the budget has. */
enum mm_status mm_operation_check_need(struct mm_request *request);

/* Acquires all memory for the job and for the reply, except for operands in the body. So there is always
 * memory to reply to a finished job. Places generated operands, C and the check's data in this memory. After
 * MM_BUSY or MM_TOO_LARGE, the caller must call mm_operation_release_need. Runs on the connection's thread or
 * on the worker pool. */
enum mm_status mm_operation_acquire_need(struct mm_request *request, struct mm_error *error);

void mm_operation_release_need(struct mm_request *request);

size_t mm_operation_part_bytes(const struct mm_operation *operation);

/* Whether the reply needs a copy of the wanted part: the part has gaps, and the result is also stored. */
bool mm_operation_copies_part(const struct mm_operation *operation);

/* Returns the memory for the copy of a part. Call it only if mm_operation_copies_part is true. */
void *mm_operation_copy(const struct mm_operation *operation);
