/* The state of POST /v1/matmul and POST /v1/transpose. operation_head.c handles the head, operation.c what
 * follows the body, operation_need.c the memory, and operation_out.c the store. The connection's thread calls
 * these functions; those that have an `error` argument also run on the worker pool. */
#pragma once

#include "api/call.h"
#include "server/handlers/input.h"

/* In MM_DECODING, MM_QUEUED and MM_ENCODING only the thread that works on the request may read it, even after
 * the request was abandoned. */
struct mm_operation {
    struct mm_call call;
    struct mm_input input;           /* its operands are call.operands */
    struct mm_references references; /* stored operands of the call */
    const struct mm_codec *encoder;  /* NULL: the reply has no body */
    bool accepts_facts;              /* Accept allows JSON without elements */
    struct mm_shape shape;           /* of the wanted part of the result */
    struct mm_window part;     /* the wanted part; the job points to it if a part or figures are wanted */
    struct mm_stack stack;     /* the job's product points to it if there are several products */
    struct mm_store_slot slot; /* for the result under the name `out` */
    bool is_out_in_query;      /* the query has `out`; else the body may have it */
    bool is_conditional;       /* the request has If-Match or If-None-Match */
    char expected_etag[MM_ETAG_MAX + 1]; /* of the value that `out` names, if is_conditional; "": no value */
    size_t result_bytes;                 /* for C, which the job needs */
    size_t reply_bytes;                  /* of text, at most; 0: the reply is the result's own bytes */
    struct mm_buffer scratch; /* operands that the host generates or fetches from a device, then the check */
    struct mm_buffer result;  /* the store becomes its owner; empty without `out` */
    struct mm_buffer output;  /* the reply's text, then the result, or a copy of a part of a stored one */
    struct mm_reply_body reply; /* becomes the owner of `output` */
    struct mm_job job;
    bool is_encoded; /* the reply is complete */
    uint64_t decode_ns;
    uint64_t span_ns[MM_SPAN_COUNT]; /* encoding included */
};

struct mm_operation *mm_operation_of(const struct mm_request *request);

/* --- storing the result under the name `out` (operation_out.c); without that name nothing happens */

/* If the query has the name: checks the request's conditions on its value. MM_PRECONDITION_FAILED or
 * MM_BAD_REQUEST in request->error. */
enum mm_status mm_operation_check_out(struct mm_request *request);

/* Reserves space in the store for the whole result. MM_BAD_REQUEST, MM_UNSUPPORTED without a store,
 * MM_STORE_FULL. */
enum mm_status mm_operation_reserve_out(struct mm_request *request, struct mm_error *error);

/* Stores the result once the reply is encoded, and makes the store its owner. A request that ends before
 * that stores nothing. MM_PRECONDITION_FAILED if the name has another value
 * by now, MM_STORE_FULL, MM_INTERNAL. On the connection's thread or one of the worker pool. */
enum mm_status mm_operation_store_out(struct mm_request *request, struct mm_error *error);

/* Chooses the variant and sets the product. The result has no memory yet; before the body, the operands have
 * no data. Checks the names, the tile and the shapes, and whether the reply's format can express the result.
 * Also checks how long the product takes, and the memory that `verify` needs. */
enum mm_status mm_operation_check(struct mm_request *request, struct mm_error *error);

/* After the body: chooses the codecs if the body's first character decides, and checks the length. Errors go
 * into request->error. */
enum mm_status mm_operation_settle(struct mm_request *request);

/* The deadline by the timeout that the request gave. Until the body is decoded, only the query can have given
 * one. */
uint64_t mm_operation_deadline_ns(const struct mm_request *request);

/* --- memory (operation_need.c) */

/* MM_TOO_LARGE if the memory of the check can never fit beside the matrices. */
enum mm_status mm_operation_check_verify(const struct mm_request *request, struct mm_error *error);

/* Sets request->upload.need_bytes, after mm_operation_check and before the body. MM_TOO_LARGE in
 * request->error if body and need together can never fit. */
enum mm_status mm_operation_check_need(struct mm_request *request);

/* Acquires all memory that the request needs beside its operands, and places generated operands, C and the
 * check there. So a job that has run can be answered. MM_BUSY with needed_bytes, MM_TOO_LARGE. On failure the
 * caller calls mm_operation_release_need. The connection's thread or one of the worker pool. */
enum mm_status mm_operation_acquire_need(struct mm_request *request, struct mm_error *error);

/* Releases what mm_operation_acquire_need has acquired, if anything. */
void mm_operation_release_need(struct mm_request *request);

/* Bytes of the wanted part of the result. */
size_t mm_operation_part_bytes(const struct mm_operation *operation);

/* Whether the reply is a copy of a part of the result, because the store takes the result over and the part
 * has gaps. */
bool mm_operation_copies_part(const struct mm_operation *operation);

/* The memory of that copy. */
void *mm_operation_copy(const struct mm_operation *operation);
