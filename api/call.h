/* A call: what one request asks, with names not yet resolved and matrices as views. All parameters come
 * through here, from the query, from JSON members or from form fields. A call belongs to its request: the
 * connection thread uses it, or the worker pool's thread that decodes the body, never both at a time. The
 * thread that frees the request releases it. */
#pragma once

#include "gpu/names.h"
#include "api/parameter_value.h"
#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/source.h"
#include "gpu/plan/variant.h"

enum { MM_CALL_OPERANDS_MAX = 2 };

#define MM_MATMUL_EXAMPLE "{\"a\": [[1,2]], \"b\": [[3],[4]]}"
#define MM_TRANSPOSE_EXAMPLE "{\"a\": [[1,2]]}"

/* Where a parameter can stand. A body's is a member of JSON. A probe and the
 * occupancy are benchmarks without an operation on matrices. The next three are the first three of a call
 * that stores its matrix, the last one is the first of a call that reads a stored one. */
enum mm_call_place {
    MM_CALL_QUERY,
    MM_CALL_BODY,
    MM_CALL_FORM,
    MM_CALL_BENCHMARK,
    MM_CALL_PROBE,
    MM_CALL_OCCUPANCY,
    MM_CALL_STORED_QUERY,
    MM_CALL_STORED_BODY,
    MM_CALL_STORED_FORM,
    MM_CALL_READING_QUERY
};

/* One row a parameter: constant, wire name, kind, and where it can stand, by operation. A name's value is
 * stored in mm_call.names, a shape or a source in its operand, any other in mm_call.numbers. The values of
 * kind OWN are not read here: api/lab/benchmark_request.c reads them. */
#define MM_PARAMETER_TABLE(X)                                                                                \
    X(MM_PARAMETER_VARIANT, "variant", NAME, CALLS)                                                          \
    X(MM_PARAMETER_BACKEND, "backend", NAME, CALLS | PROBE)                                                  \
    X(MM_PARAMETER_DTYPE, "dtype", NAME, CALLS | BENCHMARKS | STORED)                                        \
    X(MM_PARAMETER_RESULT_DTYPE, "result_dtype", NAME, PRODUCTS | BENCHMARK_OF_PRODUCT)                      \
    X(MM_PARAMETER_TRANSPOSE_A, "transpose_a", FLAG, PRODUCTS | BENCHMARK_OF_PRODUCT)                        \
    X(MM_PARAMETER_TRANSPOSE_B, "transpose_b", FLAG, PRODUCTS | BENCHMARK_OF_PRODUCT)                        \
    X(MM_PARAMETER_TIMEOUT_MS, "timeout_ms", WHOLE, CALLS | BENCHMARKS | PROBE)                              \
    X(MM_PARAMETER_TILE, "tile", COUNT, PRODUCTS)                                                            \
    X(MM_PARAMETER_VENDOR, "vendor", PERMISSION, PRODUCTS)                                                   \
    X(MM_PARAMETER_ACCURACY, "accuracy", ACCURACY, PRODUCTS)                                                 \
    X(MM_PARAMETER_VERIFY, "verify", FLAG, PRODUCTS)                                                         \
    X(MM_PARAMETER_REPLY, "reply", REPLY, CALLS)                                                             \
    X(MM_PARAMETER_ROWS, "rows", RANGE, CALLS | READING)                                                     \
    X(MM_PARAMETER_COLS, "cols", RANGE, CALLS | READING)                                                     \
    X(MM_PARAMETER_REDUCE, "reduce", FIGURES, CALLS | READING)                                               \
    X(MM_PARAMETER_A_FROM, "a_from", SOURCE, QUERIES | FORMS)                                                \
    X(MM_PARAMETER_B_FROM, "b_from", SOURCE, QUERY_OF_PRODUCT | FORM_OF_PRODUCT)                             \
    X(MM_PARAMETER_OUT, "out", MATRIX, CALLS)                                                                \
    X(MM_PARAMETER_TTL_S, "ttl_s", SECONDS, CALLS | STORED)                                                  \
    X(MM_PARAMETER_OP, "op", OWN, BENCHMARKS | PROBE | OCCUPANCY)                                            \
    X(MM_PARAMETER_M, "m", DIMENSION, CALLS | BENCHMARKS | STORED_QUERY)                                     \
    X(MM_PARAMETER_K, "k", DIMENSION, PRODUCTS | BENCHMARK_OF_PRODUCT)                                       \
    X(MM_PARAMETER_N, "n", DIMENSION, CALLS | BENCHMARKS | STORED_QUERY)                                     \
    X(MM_PARAMETER_LDA, "lda", DIMENSION, QUERIES)                                                           \
    X(MM_PARAMETER_LDB, "ldb", DIMENSION, QUERY_OF_PRODUCT)                                                  \
    X(MM_PARAMETER_A_SHAPE, "a_shape", SHAPE, PRODUCTS)                                                      \
    X(MM_PARAMETER_B_SHAPE, "b_shape", SHAPE, PRODUCTS)                                                      \
    X(MM_PARAMETER_SHAPE, "shape", SHAPE, TRANSPOSITIONS | STORED_QUERY | STORED_BODY)                       \
    X(MM_PARAMETER_REPEATS, "repeats", WHOLE, BENCHMARKS)                                                    \
    X(MM_PARAMETER_VARIANTS, "variants", OWN, BENCHMARKS)                                                    \
    X(MM_PARAMETER_PATTERNS, "patterns", OWN, PROBE)                                                         \
    X(MM_PARAMETER_STRIDES, "strides", OWN, PROBE)                                                           \
    X(MM_PARAMETER_WORD_BYTES, "word_bytes", OWN, PROBE)                                                     \
    X(MM_PARAMETER_PADDED, "padded", OWN, PROBE)                                                             \
    X(MM_PARAMETER_BANK_BYTES, "bank_bytes", OWN, PROBE)                                                     \
    X(MM_PARAMETER_ACCESS, "access", OWN, PROBE)                                                             \
    X(MM_PARAMETER_OFFSETS, "offsets", OWN, PROBE)                                                           \
    X(MM_PARAMETER_COMPUTE_CAPABILITY, "compute_capability", OWN, OCCUPANCY)                                 \
    X(MM_PARAMETER_THREADS_PER_BLOCK, "threads_per_block", OWN, OCCUPANCY)                                   \
    X(MM_PARAMETER_REGISTERS_PER_THREAD, "registers_per_thread", OWN, OCCUPANCY)                             \
    X(MM_PARAMETER_SHARED_BYTES, "shared_bytes", OWN, OCCUPANCY)

enum mm_parameter { MM_PARAMETER_TABLE(MM_CONSTANT) MM_PARAMETER_COUNT };

/* One operand of a call. The shape is set by mm_codec_decode, as the client sees it; that of an operand that
 * the call does not have is 0×0. A raw body's comes from the query. */
struct mm_operand {
    struct mm_source source; /* by a_from or b_from; rows are set by mm_call_view */
    struct mm_shape shape;

    /* Of all matrices of the shape (mm_shape_view), in the body or in mm_call.storage; only a matrix of a raw
     * body may have a leading dimension of its own. Set by mm_codec_decode. */
    struct mm_matrix view;
    bool column_major; /* the elements of a single matrix lie column by column, as in files in Fortran order:
                        * the view is read only after mm_call_turn */
};

/* Owned by the caller, of fixed size but for `storage`; start with mm_call_init. */
struct mm_call {
    enum mm_op op;
    bool is_stored; /* the operand a is stored: the body is that of a transposition, and there is no result */
    bool is_reading; /* the result is a stored matrix: there is no body */

    /* Values: the defaults until given. Names are cut to MM_CALL_NAME_MAX characters. */
    char names[MM_PARAMETER_RESULT_DTYPE + 1][MM_CALL_NAME_MAX + 1]; /* of those of kind NAME */
    uint64_t numbers[MM_PARAMETER_COUNT]; /* all others; flags are 0 or 1, permissions 0 (never) or 1 (allow),
                                             accuracies 0 (float32) or 1 (tf32), replies 0 (matrix) or 1
                                             (none), figures bits of enum mm_figure */
    struct mm_held *held; /* for the stored matrices that these name (api/operand.h); NULL: there are none */
    struct mm_range rows, cols;       /* given as parameters; else 0 */
    char out[MM_CALL_MATRIX_MAX + 1]; /* the name under which the result is stored; else "" */
    uint64_t named;                   /* bit p: parameter p was named, even with a wrong value */
    uint64_t given;                   /* the same with a good one */
    enum mm_dtype dtype;              /* of the operands; mm_call_resolve sets both types */
    enum mm_dtype result_dtype;

    struct mm_operand operands[MM_CALL_OPERANDS_MAX]; /* a and b; mm_call_operands says how many there are */
    bool views_body;          /* a view points into the body, which is then kept until the job is done */
    struct mm_buffer storage; /* what decoding had to allocate; released by mm_call_release */
};

/* variant and backend "auto", dtype "float32", all else 0, nothing given. A parameter that the operation does
 * not have is unknown to all below. */
void mm_call_init(struct mm_call *call, enum mm_op op);

/* The same for a matrix that is to be stored. */
void mm_call_init_stored(struct mm_call *call);

/* The same for the part of a stored matrix that is to be returned. */
void mm_call_init_reading(struct mm_call *call);

/* Gives the storage back. The views into it end. */
void mm_call_release(struct mm_call *call, struct mm_reservation *memory);

/* Sets one parameter from text, of the query or of a form's field. Flags take true, false, 1 and 0;
 * permissions allow and never; shapes up to MM_RANK_MAX decimals with commas between them; all others a
 * decimal: counts from 1 to 2³²−1, times from 1 on (those in seconds up to a year), dimensions from
 * 0 on. MM_BAD_REQUEST names the parameter: unknown, malformed, or given before with another value.
 * MM_TOO_LARGE: a dimension over limits->dimension_max. name and value may hold any bytes; value NULL is the
 * empty text. */
enum mm_status mm_call_set_text(struct mm_call *call, enum mm_call_place place, const char *name,
                                size_t name_length, const char *value, size_t value_length,
                                const struct mm_limits *limits, struct mm_error *error);

/* Sets a_from or b_from, which `written` names as the client wrote it: in JSON it is no parameter of its own.
 * Errors as above, and of mm_operand_read_source. */
enum mm_status mm_call_set_source(struct mm_call *call, enum mm_parameter parameter, const char *written,
                                  const char *text, size_t length, struct mm_error *error);

/* The parameter of this name that the operation takes there; MM_PARAMETER_COUNT if there is none. */
enum mm_parameter mm_call_find(const struct mm_call *call, enum mm_call_place place, const char *name,
                               size_t name_length);

/* Sets one parameter from a JSON value: names and permissions take strings, flags true and false, all others
 * whole numbers from 1 on. `limits` may be NULL for a body, which has no dimensions. Not for parameters of
 * kinds OWN and SHAPE. Errors as above. */
enum mm_status mm_call_set_value(struct mm_call *call, enum mm_call_place place, const char *name,
                                 size_t name_length, const struct mm_value *value,
                                 const struct mm_limits *limits, struct mm_error *error);

bool mm_call_has(const struct mm_call *call, enum mm_parameter parameter);

const char *mm_call_parameter_name(enum mm_parameter parameter);

/* Whether its value is a list: with commas in a text, an array in JSON. */
bool mm_call_takes_list(enum mm_parameter parameter);

/* The name of the first parameter from `first` to `last` that was given; NULL if none was. */
const char *mm_call_given_name(const struct mm_call *call, enum mm_parameter first, enum mm_parameter last);

/* The name of the first of m, k and n, or of the shapes if one of those is in `given` (bits as in
 * mm_call.given), that the operation takes and that is not in it; NULL if none is missing. */
const char *mm_call_missing_dimension(const struct mm_call *call, uint64_t given);

/* How many matrices the operation takes: 1, which is a, or 2, a and b. */
static inline unsigned mm_call_operands(const struct mm_call *call) {
    return call->op == MM_MATMUL ? 2 : 1;
}

/* The names of the operands, of which an operation takes the first mm_call_operands. */
extern const char *const mm_call_operand_names[MM_CALL_OPERANDS_MAX];

/* Makes each operand's view of its shape, without data unless the operand is stored, and completes its
 * source. */
void mm_call_view(struct mm_call *call);

/* The result's shape; without its stack if those of a and b do not broadcast. */
struct mm_shape mm_call_result(const struct mm_call *call);

/* The product, or the transposition, of the operands' views by the parameters; of c only the element type.
 * For mm_shape_conform. */
struct mm_product mm_call_product(const struct mm_call *call);

/* MM_BAD_REQUEST if a dimension or a shape was given though nothing needs it: the codec takes none, and all
 * operands are inline. */
enum mm_status mm_call_refuse_dimensions(const struct mm_call *call, struct mm_error *error);

/* Turns the names of the types into call->dtype and call->result_dtype. MM_UNSUPPORTED lists what the
 * operation takes, or what a product of such operands can be. A codec that takes dimensions judges them
 * before the body, others when they decode it. */
enum mm_status mm_call_resolve(struct mm_call *call, struct mm_error *error);

/* Checks the sizes of the operands, as their views are stored, and of the result, and all together, and gives
 * the bytes of each operand: 0 of one that is not inline. Of such operands, and then of the result, only the
 * dimensions are checked: mm_call_judge_memory checks the rest once the backend is known. MM_TOO_LARGE.
 * mm_shape_conform judges whether the shapes fit each other. */
enum mm_status mm_call_sizes(const struct mm_call *call, const struct mm_limits *limits,
                             size_t bytes[MM_CALL_OPERANDS_MAX], struct mm_error *error);

/* Judges what the call takes of the host's memory: inline operands, made ones if `is_host`, where the
 * backend's memory is the host's, and so many bytes of the result. MM_TOO_LARGE. */
enum mm_status mm_call_judge_memory(const struct mm_call *call, bool is_host, size_t c_bytes,
                                    const struct mm_limits *limits, struct mm_error *error);

/* Judges elements that not every bit pattern makes: those of a bool must be 0 or 1. What is stored or made
 * needs no look. MM_BAD_REQUEST. After decoding. */
enum mm_status mm_call_judge_elements(const struct mm_call *call, struct mm_error *error);

/* Says that operand `index` has an element of type bool that is neither 0 nor 1: MM_BAD_REQUEST. */
enum mm_status mm_call_fail_bool(unsigned index, struct mm_error *error);

/* Makes a conforming product (or transposition) of the views one of the matrices as they lie in memory: where
 * an operand is column_major, its transpose lies there. After mm_shape_conform. */
void mm_call_turn(const struct mm_call *call, struct mm_product *product);
