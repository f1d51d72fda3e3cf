/* A call is a request for a product or a transposition. No function here looks up a backend or a variant.
 *
 * Use the functions in this order: mm_call_init, mm_parameter_set_text, the codec, mm_call_product,
 * mm_call_epilogue, mm_shape_conform, mm_call_check_memory, mm_call_apply_layout. The codec calls
 * mm_call_resolve and mm_call_sizes.
 *
 * The caller owns the call, and one thread at a time uses it. No function here allocates memory. `error` may
 * be NULL, and is set only on failure. No other pointer may be NULL. */
#pragma once

#include "api/operand.h"
#include "api/result.h"
#include "gpu/names.h"
#include "gpu/plan/variant.h"

/* The parameters of a request. A parameter that the client does not give keeps the value from mm_call_init:
 * "auto" for variant and backend, "float32" for dtype, 1 for devices, otherwise 0. */
struct mm_call {
    struct mm_operands operands; /* must be first: pointers to it are cast to this struct */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    char backend[MM_PARAMETER_NAME_MAX + 1];
    char result_dtype_name[MM_PARAMETER_NAME_MAX + 1];
    uint64_t timeout_ms;
    uint64_t tile;    /* at most 2³²−1; 0 means the variant's default */
    uint64_t devices; /* at most 2³²−1; MM_DEVICES_ALL or MM_DEVICES_AUTO have their own meaning */
    bool allow_vendor, allow_tf32, verify;
    struct mm_selection selection;   /* which part of the result the client wants */
    char out[MM_STORE_NAME_MAX + 1]; /* name under which the result is stored; "" if it is not stored */
    uint64_t ttl_s;                  /* lifetime of the stored result, in seconds */
    struct mm_factor alpha, beta;
    enum mm_activation activation;
};

/* Initializes a call for /v1/matmul or /v1/transpose. */
void mm_call_init(struct mm_call *call, enum mm_op op);

/* Initializes a struct mm_operands_kind, for an endpoint that has its own parameter table `rows`. `type` is
 * the endpoint's struct, which must begin with struct mm_call. */
#define MM_CALL_KIND(op, rows, type)                                                                         \
    { MM_PARAMETER_TABLE(rows), sizeof(type), op, false, mm_call_resolve, mm_call_sizes }

/* Initializes the call at the beginning of an endpoint's struct, and clears the rest of the struct. `kind`
 * must live as long as the call. */
void mm_call_init_kind(struct mm_call *call, const struct mm_operands_kind *kind);

/* Sets the element types of the operands and the result by the names in the call. `operands` must be the
 * first member of a struct mm_call. Fails with MM_BAD_REQUEST if a stored operand's type differs from dtype
 * or from another stored operand's type. Fails with MM_UNSUPPORTED if a type is unknown, or if a stored c or
 * bias lacks the result's type. On failure both types become float32. */
enum mm_status mm_call_resolve(struct mm_operands *operands, struct mm_error *error);

/* Checks the sizes of the operands and the result. Call mm_operands_view first. `operands` must be the first
 * member of a struct mm_call. bytes[i] becomes the size of operand i if the operand is inline, otherwise 0.
 * Fails with MM_TOO_LARGE; `bytes` is then undefined.
 *
 * If a matrix may be outside of host memory on some backend, the function does not check the result's bytes.
 * mm_call_check_memory must then check these bytes later. */
enum mm_status mm_call_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                             size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);

/* Checks that the result (c_bytes) and the inline operands together fit in host memory. On a host backend
 * (is_host), generated operands and operands in device memory count too, unless the product has dropped them.
 * Fails with MM_TOO_LARGE. */
enum mm_status mm_call_check_memory(const struct mm_call *call, const struct mm_product *product,
                                    bool is_host, size_t c_bytes, const struct mm_limits *limits,
                                    struct mm_error *error);

/* Returns the product or transposition of the operands' views. The call still owns the data. Sets c's element
 * type. mm_shape_conform later sets m, n, k, the stack and the rest of c, which are 0 until then. */
struct mm_product mm_call_product(const struct mm_call *call);

/* Sets a product's epilogue. Fails with MM_BAD_REQUEST if the type of the sums cannot represent alpha or
 * beta. Fails with MM_BAD_REQUEST, too, if there is no c and beta is not 0. Fails with MM_UNSUPPORTED if the
 * result's type or `verify` excludes the activation. */
enum mm_status mm_call_epilogue(const struct mm_call *call, struct mm_product *product,
                                struct mm_error *error);

/* Returns what the bits of a row of C do not depend on: "rows" if they do not depend on the other rows, or
 * NULL if that is not known. With the variant `auto`, the rows decide which variant ran. */
const char *mm_call_reproducible(const struct mm_call *call, const struct mm_variant *ran);

enum { MM_EPILOGUE_TEXT_MAX = 32 };

/* Writes the names of the epilogue's terms, such as "alpha,beta,bias,relu". Without terms, writes "". */
void mm_call_epilogue_text(const struct mm_call *call, char text[MM_EPILOGUE_TEXT_MAX]);

/* Adapts a product to column_major operands. Call this after mm_shape_conform. A column_major operand lies in
 * memory as its transpose, so the function swaps the view's dimensions and inverts the transpose flag. */
void mm_call_apply_layout(const struct mm_call *call, struct mm_product *product);
