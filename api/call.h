/* A call: a request for a product or a transposition. This file does not look up the names of backends and
 * variants. One thread at a time may use a call. */
#pragma once

#include "api/operand.h"
#include "api/result.h"
#include "gpu/names.h"

/* The request's parameters. A parameter that the client did not give is 0; variant and backend are then
 * "auto". */
struct mm_call {
    struct mm_operands operands; /* first */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    char backend[MM_PARAMETER_NAME_MAX + 1];
    char result_dtype_name[MM_PARAMETER_NAME_MAX + 1];
    uint64_t timeout_ms;
    uint64_t tile;
    bool allow_vendor, allow_tf32, verify;
    struct mm_selection selection;   /* the part of the result that the response has */
    char out[MM_STORE_NAME_MAX + 1]; /* the server stores the result under this name, unless it is "" */
    uint64_t ttl_s;                  /* lifetime of the stored result */
    enum mm_dtype result_dtype;      /* mm_call_resolve sets it */
};

/* Begins a call of /v1/matmul or /v1/transpose. */
void mm_call_init(struct mm_call *call, enum mm_op op);

/* Begins a call of another endpoint, which has its own parameter rows. Its struct `type` begins with struct
 * mm_call. */
#define MM_CALL_KIND(op, rows, type)                                                                         \
    { MM_PARAMETER_TABLE(rows), sizeof(type), op, false, mm_call_resolve, mm_call_sizes }
void mm_call_init_kind(struct mm_call *call, const struct mm_operands_kind *kind);

/* The two functions of struct mm_operands_kind, for operands inside a struct mm_call. mm_call_sizes checks
 * the bytes of the result only if all matrices lie in host memory on every backend. Otherwise it checks only
 * the result's dimensions. */
enum mm_status mm_call_resolve(struct mm_operands *operands, struct mm_error *error);
enum mm_status mm_call_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                             size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);

/* Checks the host memory that the call needs, once the backend is known: c_bytes for the result, and the
 * inline operands. If the backend's memory is host memory (is_host), operands that the backend generates or
 * copies from a device count, too. MM_TOO_LARGE. */
enum mm_status mm_call_check_memory(const struct mm_call *call, bool is_host, size_t c_bytes,
                                    const struct mm_limits *limits, struct mm_error *error);

/* The result's shape. It has no stack if the stacks of a and b do not broadcast. */
struct mm_shape mm_call_result(const struct mm_call *call);

/* The product or transposition of the operands' views. Only the element type of c is set: mm_shape_conform
 * sets the rest. */
struct mm_product mm_call_product(const struct mm_call *call);

/* Adapts a product or transposition to operands that are column_major: memory has their transposes, so the
 * function swaps the view's dimensions and inverts the transpose flag. Call mm_shape_conform first. */
void mm_call_turn(const struct mm_call *call, struct mm_product *product);
