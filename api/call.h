/* A call: what a request for a product or a transposition asks. Its operands may be decoded, and its names of
 * backends and variants are not resolved. Threads as in api/operand.h. */
#pragma once

#include "api/operand.h"
#include "api/result.h"
#include "gpu/names.h"

/* The parameters beside those of the operands. What is not given is 0; variant and backend are "auto". */
struct mm_call {
    struct mm_operands operands; /* first */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    char backend[MM_PARAMETER_NAME_MAX + 1];
    char result_dtype_name[MM_PARAMETER_NAME_MAX + 1];
    uint64_t timeout_ms;
    uint64_t tile;
    bool allow_vendor, allow_tf32, verify;
    struct mm_selection selection;   /* what of the result is returned */
    char out[MM_STORE_NAME_MAX + 1]; /* the name under which the result is stored; "": it is not stored */
    uint64_t ttl_s;                  /* of the stored result */
    enum mm_dtype result_dtype;      /* set by mm_call_resolve */
};

/* By the tables of the two endpoints. */
void mm_call_init(struct mm_call *call, enum mm_op op);

/* For an endpoint with rows of its own, whose `type` begins with struct mm_call. */
#define MM_CALL_KIND(op, rows, type)                                                                         \
    { MM_PARAMETER_TABLE(rows), sizeof(type), op, false, mm_call_resolve, mm_call_sizes }
void mm_call_init_kind(struct mm_call *call, const struct mm_operands_kind *kind);

/* The functions of a kind (api/operand.h); `operands` are those of a call. The sizes are those of all
 * matrices: of the result only the dimensions are checked, unless all matrices lie in the host's memory
 * whatever the backend is. */
enum mm_status mm_call_resolve(struct mm_operands *operands, struct mm_error *error);
enum mm_status mm_call_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                             size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);

/* Checks what the call takes of the host's memory, once the backend is known: inline operands, generated and
 * stored ones if the backend's memory is the host's (is_host), and so many bytes of the result. MM_TOO_LARGE.
 */
enum mm_status mm_call_check_memory(const struct mm_call *call, bool is_host, size_t c_bytes,
                                    const struct mm_limits *limits, struct mm_error *error);

/* The result's shape; without its stack if those of a and b do not broadcast. */
struct mm_shape mm_call_result(const struct mm_call *call);

/* The product, or the transposition, of the operands' views; of c only the element type. For
 * mm_shape_conform. */
struct mm_product mm_call_product(const struct mm_call *call);

/* Changes a product (or transposition) of the matrices that the client means into the same product of the
 * matrices in memory: of an operand that is column_major, memory has the transpose. After mm_shape_conform.
 */
void mm_call_turn(const struct mm_call *call, struct mm_product *product);
