/* A call: a request for a product or a transposition. This file does not look up the names of backends and
 * variants.
 *
 * The order of use: mm_call_init, the parameters and the body (mm_parameter_set_text, a codec),
 * mm_call_product, mm_shape_conform, mm_call_check_memory, mm_call_apply_layout. The codec calls
 * mm_call_resolve and mm_call_sizes through struct mm_operands_kind.
 *
 * The caller owns the call, and one thread at a time uses it. No function here allocates memory. `error` may
 * be NULL; it is set only on failure. All other pointers must not be NULL. */
#pragma once

#include "api/operand.h"
#include "api/result.h"
#include "gpu/names.h"

/* The request's parameters, set while the query and the body are read. If the client does not give a
 * parameter, its member keeps the value of mm_call_init: "auto" for variant and backend, "float32" for dtype,
 * else 0. */
struct mm_call {
    struct mm_operands operands; /* the first member */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    char backend[MM_PARAMETER_NAME_MAX + 1];
    char result_dtype_name[MM_PARAMETER_NAME_MAX + 1];
    uint64_t timeout_ms;
    uint64_t tile; /* at most 2³²−1; 0: the variant's default */
    bool allow_vendor, allow_tf32, verify;
    struct mm_selection selection;   /* the part of the result that the response has */
    char out[MM_STORE_NAME_MAX + 1]; /* the server stores the result under this name, unless it is "" */
    uint64_t ttl_s;                  /* lifetime of the stored result */
    enum mm_dtype result_dtype;      /* not a parameter: mm_call_resolve sets it from result_dtype_name */
};

/* Sets all members for /v1/matmul or /v1/transpose. The call may be uninitialized memory. */
void mm_call_init(struct mm_call *call, enum mm_op op);

/* A struct mm_operands_kind for an endpoint that has its own parameter rows. The endpoint's struct is `type`,
 * which begins with struct mm_call. */
#define MM_CALL_KIND(op, rows, type)                                                                         \
    { MM_PARAMETER_TABLE(rows), sizeof(type), op, false, mm_call_resolve, mm_call_sizes }

/* Sets all members of the call that begins an endpoint's struct, and clears the rest of the struct. `kind`
 * must live as long as the call. */
void mm_call_init_kind(struct mm_call *call, const struct mm_operands_kind *kind);

/* Sets the element types of the operands and of the result from the names in the call. `operands` is the
 * first member of a struct mm_call. On failure both types are float32. MM_BAD_REQUEST: stored operands differ
 * in type from each other or from dtype. MM_UNSUPPORTED: a name is unknown; the error lists the types. */
enum mm_status mm_call_resolve(struct mm_operands *operands, struct mm_error *error);

/* Checks the sizes of the operands and of the result. Call mm_operands_view first. `operands` is
 * the first member of a struct mm_call. The bytes of the result are checked only if all matrices lie in host
 * memory on every backend; otherwise only its dimensions are checked, and mm_call_check_memory does the rest.
 * bytes[i] is the size of inline operand i, and 0 for other operands; on failure `bytes` is undefined.
 * MM_TOO_LARGE. */
enum mm_status mm_call_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                             size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);

/* Checks the host memory that the call needs: c_bytes for the result, and the bytes of inline operands. If
 * the backend computes in host memory (is_host), generated operands and those copied from a device count,
 * too. MM_TOO_LARGE. */
enum mm_status mm_call_check_memory(const struct mm_call *call, bool is_host, size_t c_bytes,
                                    const struct mm_limits *limits, struct mm_error *error);

/* Returns the result's shape. The operands must have their shapes. If the stacks of a and b do not broadcast,
 * the shape has no stack. */
struct mm_shape mm_call_result(const struct mm_call *call);

/* Returns the product or transposition of the operands' views. The call still owns the views' data.
 * mm_shape_conform sets m, n, k, the stack and c, which are 0 until then, except c's element type. */
struct mm_product mm_call_product(const struct mm_call *call);

/* Adapts a product to operands that are column_major, after mm_shape_conform. The memory of such an operand
 * contains its transpose. So the function swaps the dimensions of the operand's view, and inverts its
 * transpose flag. */
void mm_call_apply_layout(const struct mm_call *call, struct mm_product *product);
