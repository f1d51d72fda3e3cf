/* The operands of a request: a list of matrices with names. Codecs decode bodies into it. An operand comes in
 * the body, or the server generates it from a few words, or it is a stored matrix (gpu/matrix/source.h). A
 * generated operand has the type of the request. A stored operand gives its type to the request.
 *
 * The list belongs to its request: the connection's thread uses it, or the worker pool's thread that decodes
 * the body, never both at a time. */
#pragma once

#include "api/parameter.h"
#include "api/slice.h"
#include "gpu/memory/budget.h"
#include "gpu/plan/variant.h"

/* The parameters that give the dimensions of single matrices. */
enum mm_dimension { MM_DIMENSION_M, MM_DIMENSION_K, MM_DIMENSION_N, MM_DIMENSION_COUNT };

/* What an operation says of an operand. */
struct mm_operand_role {
    const char *name;             /* on the wire */
    enum mm_dimension rows, cols; /* after transpose_a or transpose_b */
    bool is_column;               /* a vector is a column */
};

struct mm_operand {
    struct mm_operand_role role;

    /* Parameters. mm_operands_view completes the source. The shape is as the client sees it, before a
     * transpose; codecs set it. An operand that the endpoint does not take is 0×0. */
    struct mm_source source;
    struct mm_shape shape;
    bool is_transposed;
    uint64_t ld; /* leading dimension of the matrix in a raw body */

    struct mm_matrix view; /* of all matrices of the shape; its data lie in the body or in the storage */
    bool column_major;     /* the elements of a single matrix lie column by column, as in Fortran: read the
                            * view only after mm_call_turn */
};

struct mm_operands;

/* What an endpoint that takes operands says of its requests. Constant. */
struct mm_operands_kind {
    struct mm_parameter_table table;
    size_t bytes;  /* of the endpoint's struct, which begins with struct mm_operands and has no pointers into
                    * itself: codecs read into a copy */
    enum mm_op op; /* whose operands, examples and types apply */
    bool is_row_major; /* the elements must lie row by row: column_major does not occur */

    /* Turns the names of types into types: mm_operands_resolve, and perhaps the result's. On failure all are
     * float32. MM_BAD_REQUEST; MM_UNSUPPORTED lists what there is. */
    enum mm_status (*resolve)(struct mm_operands *operands, struct mm_error *error);

    /* Checks sizes once the views are known: mm_operands_sizes, and perhaps the result's. MM_TOO_LARGE. */
    enum mm_status (*sizes)(const struct mm_operands *operands, const struct mm_limits *limits,
                            size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);
};

/* Only `storage` is allocated. mm_operands_init comes first. */
struct mm_operands {
    struct mm_parameters parameters; /* first */
    const struct mm_operands_kind *kind;
    unsigned count;
    struct mm_operand of[MM_OPERANDS_MAX];

    /* Parameters. Values of dimensions that were neither given nor told are 0. */
    uint64_t dimensions[MM_DIMENSION_COUNT];
    char dtype_name[MM_PARAMETER_NAME_MAX + 1];

    enum mm_dtype dtype;      /* of all operands; set by kind->resolve */
    struct mm_held *held;     /* for the stored matrices that the request names; NULL: it may name none */
    bool views_body;          /* a view points into the body: keep the body until the job is done */
    struct mm_buffer storage; /* what decoding had to allocate; released by mm_operands_release */
};

/* The index of the operand whose value the row has: the operand itself, or a parameter of it. */
static inline unsigned mm_operand_index(const struct mm_parameter *row) {
    return (unsigned)((row->offset - offsetof(struct mm_operands, of)) / sizeof(struct mm_operand));
}

/* Clears the endpoint's whole struct, and sets the defaults: dtype "float32", all operands in the body. */
void mm_operands_init(struct mm_operands *operands, const struct mm_operands_kind *kind);

/* Frees the storage. The views into it end. */
void mm_operands_release(struct mm_operands *operands, struct mm_reservation *memory);

/* --- sources and types (operand.c) */

/* References to the stored matrices that a request names, one for each name, so a name means one value in the
 * whole request. The owner of a list has this beside it; copies of the list point at it. */
struct mm_held {
    struct mm_store *store; /* NULL: switched off */
    uint64_t space;
    unsigned count;
    struct mm_stored *values[MM_OPERANDS_MAX];
};

/* Releases the values, once no job reads them. */
void mm_held_release(struct mm_held *held);

/* Reads "uniform(SEED)", "identity()" or the name of a stored matrix, which operands->held then holds.
 * `written` names the parameter as the client wrote it. MM_UNSUPPORTED says what there is; MM_NO_SUCH_MATRIX;
 * MM_BAD_REQUEST: the endpoint takes no sources, or another one was given before. */
enum mm_status mm_operand_set_source(struct mm_operands *operands, struct mm_operand *operand,
                                     const char *written, struct mm_slice text, struct mm_error *error);

/* For the row of a source. */
mm_parameter_reader mm_operand_read_source;

/* Whether the operand comes in the body, or the server generates it, or it is stored. */
static inline bool mm_operand_is_inline(const struct mm_operand *operand) {
    return operand->source.kind == MM_SOURCE_HOST;
}
static inline bool mm_operand_is_generated(const struct mm_operand *operand) {
    return mm_source_is_generated(&operand->source);
}
static inline bool mm_operand_is_stored(const struct mm_operand *operand) {
    return operand->source.kind == MM_SOURCE_STORED;
}
unsigned mm_operands_inline_count(const struct mm_operands *operands);

/* Sets operands->dtype, of stored operands or by its name; float32 on failure. MM_BAD_REQUEST: stored
 * operands differ from each other or from the name. MM_UNSUPPORTED lists the types of the operation. */
enum mm_status mm_operands_resolve(struct mm_operands *operands, struct mm_error *error);

/* Checks the elements of inline operands after decoding: elements of a bool must be 0 or 1. MM_BAD_REQUEST.
 */
enum mm_status mm_operands_check_elements(const struct mm_operands *operands, struct mm_error *error);

/* MM_BAD_REQUEST: the operand has an element of type bool that is neither 0 nor 1. */
enum mm_status mm_operand_fail_bool(const struct mm_operand *operand, struct mm_error *error);

/* --- shapes (operand_shape.c) */

/* Whether the query names all dimensions, or all shapes, also with wrong values; stored operands count. Or no
 * operand comes in the body. */
bool mm_operands_name_shapes(const struct mm_operands *operands);

/* The name of the first dimension that is not set, or of the first shape if any shape is set; NULL: none. */
const char *mm_operands_missing_dimension(const struct mm_operands *operands);

/* MM_BAD_REQUEST: a dimension or a shape was given, though no body and no operand needs it. */
enum mm_status mm_operands_refuse_dimensions(const struct mm_operands *operands, struct mm_error *error);

/* For a format without shapes of its own: sets the shapes by the query, and those of stored operands.
 * *missing is the name of what is missing, or NULL. MM_BAD_REQUEST: dimensions and whole shapes were both
 * given. MM_BAD_SHAPE: the query contradicts a stored operand. */
enum mm_status mm_operands_set_shapes_by_query(struct mm_operands *operands, const char **missing,
                                               struct mm_error *error);

/* For JSON, whose body has the whole shape of an inline operand beside the operand: the text of an operand
 * without elements shows its dimensions only up to the first 0. Adds the others to *shape, and forgets the
 * parameter. MM_BAD_SHAPE if the two differ. */
enum mm_status mm_operand_complete_shape(struct mm_operands *operands, struct mm_operand *operand,
                                         struct mm_shape *shape, struct mm_error *error);

/* For a format that has the shapes of inline operands: sets the shapes of all operands. shapes[i] belongs to
 * operand i; NULL: it is not inline. The shape of a generated operand comes from its own parameter, or from
 * the dimensions, which other operands may tell. MM_BAD_SHAPE: parameters and operands contradict each other.
 * MM_BAD_REQUEST: a dimension is missing, or was given though all operands are inline, or an operand comes
 * from two places. The caller refuses an operand that comes from nowhere. */
enum mm_status mm_operands_set_shapes(struct mm_operands *operands,
                                      const struct mm_shape *const shapes[MM_OPERANDS_MAX],
                                      struct mm_error *error);

/* Makes each operand's view of its shape, without data unless the operand is stored in the host's memory, and
 * completes its source. */
void mm_operands_view(struct mm_operands *operands);

/* Checks the sizes of the operands as their views lie in memory, and gives the bytes of those that are
 * inline; 0 of others, of which only the dimensions are checked. MM_TOO_LARGE. */
enum mm_status mm_operands_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                                 size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);
