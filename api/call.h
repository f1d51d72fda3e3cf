/* A call: what one request asks, as far as the wire knows it: names not yet resolved, matrices as
 * views. Parameters come from the query, from JSON members or from form fields, all through here. */
#ifndef MM_API_CALL_H
#define MM_API_CALL_H

#include "gpu/buffer.h"
#include "gpu/matrix.h"
#include "gpu/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_CALL_NAME_MAX = 63 };

/* Below it a whole number of JSON, read as a double, is exact. Times are cut to it: no process waits for so
 * long. */
#define MM_CALL_WHOLE_MAX (UINT64_C(1) << 53)

/* One row a parameter: constant, wire name, kind, and the operations that have it. The first group goes
 * with every codec, the second only with those that take the shape from the query (raw). */
#define MM_PARAMETER_TABLE(X)                                                                                \
    X(MM_PARAMETER_VARIANT, "variant", NAME, EVERY_OP)                                                       \
    X(MM_PARAMETER_BACKEND, "backend", NAME, EVERY_OP)                                                       \
    X(MM_PARAMETER_DTYPE, "dtype", NAME, EVERY_OP)                                                           \
    X(MM_PARAMETER_TRANSPOSE_A, "transpose_a", FLAG, MATMUL_ALONE)                                           \
    X(MM_PARAMETER_TRANSPOSE_B, "transpose_b", FLAG, MATMUL_ALONE)                                           \
    X(MM_PARAMETER_TIMEOUT_MS, "timeout_ms", TIME, EVERY_OP)                                                 \
    X(MM_PARAMETER_TILE, "tile", COUNT, MATMUL_ALONE)                                                        \
    X(MM_PARAMETER_VENDOR, "vendor", PERMISSION, MATMUL_ALONE)                                               \
    X(MM_PARAMETER_VERIFY, "verify", FLAG, MATMUL_ALONE)                                                     \
    X(MM_PARAMETER_M, "m", DIMENSION, EVERY_OP)                                                              \
    X(MM_PARAMETER_K, "k", DIMENSION, MATMUL_ALONE)                                                          \
    X(MM_PARAMETER_N, "n", DIMENSION, EVERY_OP)                                                              \
    X(MM_PARAMETER_LDA, "lda", DIMENSION, EVERY_OP)                                                          \
    X(MM_PARAMETER_LDB, "ldb", DIMENSION, MATMUL_ALONE)

enum mm_parameter {
#define X(constant, name, kind, ops) constant,
    MM_PARAMETER_TABLE(X)
#undef X
        MM_PARAMETER_COUNT
};

/* Owned by the caller, of fixed size but for `storage`; start with mm_call_init. */
struct mm_call {
    enum mm_op op;

    /* Values: the defaults until given. Names are cut to MM_CALL_NAME_MAX characters. */
    char names[MM_PARAMETER_DTYPE + 1][MM_CALL_NAME_MAX + 1]; /* variant, backend, dtype */
    uint64_t numbers[MM_PARAMETER_COUNT]; /* flags as 0 or 1, permissions as 0 (never) or 1
                                             (allow); all that is counted */
    uint32_t given;                       /* bit p: parameter p was given */
    enum mm_dtype dtype;                  /* set by mm_call_resolve */

    /* Set by a codec's decode: the matrices (a transposition's b stays empty), views into the body or into
     * `storage`. Their shapes are those that the caller sees. Where a flag is set the (dense) elements lie
     * column by column instead of row by row, as in files in Fortran order: such a view is not read before
     * mm_call_turn. */
    struct mm_matrix a;
    struct mm_matrix b;
    bool a_column_major;
    bool b_column_major;
    struct mm_buffer storage; /* what decode had to allocate; released by mm_call_release */
};

/* variant and backend "auto", dtype "float32", flags false, permissions "never", numbers 0, nothing given. A
 * parameter that the operation does not have is unknown to all below. */
void mm_call_init(struct mm_call *call, enum mm_op op);

/* Gives the storage back. The views into it are dead then. */
void mm_call_release(struct mm_call *call, struct mm_buffers *buffers);

/* A JSON value, told without Jansson's types, so that this header needs none. */
enum mm_value_kind { MM_VALUE_TEXT, MM_VALUE_BOOLEAN, MM_VALUE_NUMBER, MM_VALUE_OTHER };

/* Gives one parameter as text (query, form): flags take true, false, 1, 0; permissions allow, never; all else
 * is a decimal non-negative integer: counts from 1 to 2³²−1, times from 1 on and cut to MM_CALL_WHOLE_MAX,
 * dimensions. MM_BAD_REQUEST names the parameter: unknown, a value of the wrong form, or one that was given
 * before with a different value. MM_TOO_LARGE: a dimension over limits->dimension_max, however many digits it
 * has. name is length-counted and may hold any byte; value likewise, and NULL is the empty text. */
enum mm_status mm_call_set_text(struct mm_call *call, const char *name, size_t name_length, const char *value,
                                size_t value_length, const struct mm_limits *limits, struct mm_error *error);

/* Gives one parameter as a JSON value: names and permissions take strings, flags true and false, counts and
 * times whole numbers of the same ranges. `number` is read with MM_VALUE_NUMBER, 0 or 1 with
 * MM_VALUE_BOOLEAN. Dimensions are unknown here: they belong to the query. Errors as above. */
enum mm_status mm_call_set_value(struct mm_call *call, const char *name, enum mm_value_kind kind,
                                 const char *text, size_t text_length, double number, struct mm_error *error);

/* The same for a field of a form, where the dimensions are unknown. */
enum mm_status mm_call_set_field(struct mm_call *call, const char *name, size_t name_length,
                                 const char *value, size_t value_length, const struct mm_limits *limits,
                                 struct mm_error *error);

/* A JSON number for people: with all digits of a whole one below MM_CALL_WHOLE_MAX, and as `beyond` the
 * largest double where it was read as that. */
void mm_call_describe_number(double number, char *out, size_t out_bytes);

/* Whether the parameter was given, and whether the operation has it at all. */
bool mm_call_has(const struct mm_call *call, enum mm_parameter parameter);
bool mm_call_takes(const struct mm_call *call, enum mm_parameter parameter);

/* How many matrices the operation takes: 1, which is a, or 2, a and b. */
static inline unsigned mm_call_operands(const struct mm_call *call) {
    return call->op == MM_MATMUL ? 2 : 1;
}

/* Whether op(A) is A's transpose: by the flag, or since that is the whole operation. */
bool mm_call_transposes_a(const struct mm_call *call);

/* The rows and columns that the operation and the flags make of call->a and call->b. */
void mm_call_result_shape(const struct mm_call *call, size_t *rows, size_t *cols);

/* MM_BAD_REQUEST where m, k, n, lda or ldb was given though the codec does not take them. */
enum mm_status mm_call_refuse_dimensions(const struct mm_call *call, struct mm_error *error);

/* Turns the dtype's name into call->dtype: MM_UNSUPPORTED lists what the operation takes. Judged after the
 * body, by each codec's decode; a second call changes nothing. */
enum mm_status mm_call_resolve(struct mm_call *call, struct mm_error *error);

/* Judges the stored sizes of call->a and call->b (their data is not looked at), the size of the result
 * that the operation and the flags make of them, and all three together, and gives the bytes of the operands.
 * MM_TOO_LARGE; nothing is written then. That the inner dimensions agree is mm_product_conform's. */
enum mm_status mm_call_sizes(const struct mm_call *call, const struct mm_limits *limits, size_t *a_bytes,
                             size_t *b_bytes, struct mm_error *error);

/* Turns a product (or transposition) of call->a and call->b that conforms into the same product of matrices
 * as they are stored: a column-major matrix is the row-major storage of its transpose, so that its view and
 * its flag are turned. m, n and k stay. After mm_product_conform, so that its errors speak of the caller's
 * shapes. */
void mm_call_turn(const struct mm_call *call, struct mm_product *product);

#ifdef __cplusplus
}
#endif
#endif
