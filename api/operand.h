/* The operands of a request: a list of matrices with names. Codecs decode bodies into the list. An operand
 * comes in the body, or the server generates it from a few words, or it is a stored matrix
 * (gpu/matrix/source.h). A generated operand has the request's type. A stored operand sets the request's
 * type.
 *
 * The list belongs to its request. One thread at a time uses it: the connection's thread, or the worker
 * pool's thread that decodes the body. */
#pragma once

#include "api/parameter.h"
#include "api/slice.h"
#include "gpu/memory/budget.h"
#include "gpu/plan/variant.h"

/* The parameters that give the dimensions of single matrices. */
enum mm_dimension { MM_DIMENSION_M, MM_DIMENSION_K, MM_DIMENSION_N, MM_DIMENSION_COUNT };

/* The role of an operand in an operation. */
struct mm_operand_role {
    const char *name;             /* on the wire */
    enum mm_dimension rows, cols; /* of the operand after transpose_a or transpose_b */
    bool is_column;               /* a vector is a column */
};

struct mm_operand {
    struct mm_operand_role role;

    /* Parameters. mm_operands_view completes the source. Codecs set the shape, which is the shape before a
     * transpose. If the endpoint does not take the operand, the shape is 0×0. */
    struct mm_source source;
    struct mm_shape shape;
    bool is_transposed;
    uint64_t ld; /* leading dimension of the matrix in a raw body */

    struct mm_matrix view; /* all elements; those of an inline operand lie in the body or in the storage */
    bool column_major;     /* the elements of a single matrix lie column by column, as in Fortran; the view is
                            * valid only after mm_call_apply_layout */
};

struct mm_operands;

/* A kind of endpoint that takes operands. Constant. */
struct mm_operands_kind {
    struct mm_parameter_table table;
    size_t bytes;  /* size of the endpoint's struct, which begins with struct mm_operands. Codecs read into a
                    * copy,  so the struct has no pointers into itself. */
    enum mm_op op; /* the operation whose operands, examples and types apply */
    bool is_row_major; /* the elements must lie row by row, so column_major is never set */

    /* Sets the element types by their names: mm_operands_resolve for the operands, and the result's type if
     * there is one. On failure all types are float32. MM_BAD_REQUEST; MM_UNSUPPORTED lists the types. */
    enum mm_status (*resolve)(struct mm_operands *operands, struct mm_error *error);

    /* Checks sizes once the views are known: mm_operands_sizes for the operands, and the result's size if
     * there is one. MM_TOO_LARGE. */
    enum mm_status (*sizes)(const struct mm_operands *operands, const struct mm_limits *limits,
                            size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);
};

/* The struct owns `storage`. Call mm_operands_init first. */
struct mm_operands {
    struct mm_parameters parameters; /* the first member */
    const struct mm_operands_kind *kind;
    unsigned count;
    struct mm_operand of[MM_OPERANDS_MAX];

    /* Parameters. A dimension is 0 if it is not set (mm_parameter_is_set). */
    uint64_t dimensions[MM_DIMENSION_COUNT];
    char dtype_name[MM_PARAMETER_NAME_MAX + 1];

    enum mm_dtype dtype;              /* element type of all operands; set by kind->resolve */
    struct mm_references *references; /* the stored matrices that the request names; NULL: it may name none */
    bool views_body;                  /* a view points into the body: keep the body until the job is done */
    struct mm_buffer storage;         /* memory of decoded elements; mm_operands_release frees it */
};

/* The index of the operand that a parameter's row belongs to. */
static inline unsigned mm_operand_index(const struct mm_parameter *row) {
    return (unsigned)((row->offset - offsetof(struct mm_operands, of)) / sizeof(struct mm_operand));
}

/* Clears the endpoint's whole struct, and sets dtype to "float32". All operands then come in the body. */
void mm_operands_init(struct mm_operands *operands, const struct mm_operands_kind *kind);

/* Frees the storage and clears the views. */
void mm_operands_release(struct mm_operands *operands, struct mm_reservation *memory);

/* --- sources and types (operand.c) */

/* References to the stored matrices that a request names: one for each name, so a name means one value in the
 * whole request. The owner of an operand list keeps this struct until no copy of the list is used. */
struct mm_references {
    struct mm_store *store; /* NULL: the server stores no matrices */
    uint64_t space;
    unsigned count;
    struct mm_stored *values[MM_OPERANDS_MAX];
};

/* Releases the references. No job may read the values any more. */
void mm_references_release(struct mm_references *references);

/* Reads "uniform(SEED)", "identity()" or the name of a stored matrix, and adds a reference to the matrix to
 * operands->references. `written` is the parameter's name as the client wrote it. MM_UNSUPPORTED lists the
 * sources; MM_NO_SUCH_MATRIX; MM_BAD_REQUEST: the endpoint takes no sources, or the client gave another one
 * before. */
enum mm_status mm_operand_set_source(struct mm_operands *operands, struct mm_operand *operand,
                                     const char *written, struct mm_slice text, struct mm_error *error);

/* The reader for parameter rows of kind SOURCE. */
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

/* Sets operands->dtype: the type of stored operands, or the type that the request names; float32 on failure.
 * MM_BAD_REQUEST: stored operands differ from each other or from the name. MM_UNSUPPORTED lists the types. */
enum mm_status mm_operands_resolve(struct mm_operands *operands, struct mm_error *error);

/* Checks decoded inline operands: each element of type bool must be 0 or 1. MM_BAD_REQUEST. */
enum mm_status mm_operands_check_elements(const struct mm_operands *operands, struct mm_error *error);

/* Fails with MM_BAD_REQUEST: the operand has an element of type bool that is neither 0 nor 1. */
enum mm_status mm_operand_fail_bool(const struct mm_operand *operand, struct mm_error *error);

/* --- shapes (operand_shape.c) */

/* Whether the server knows all shapes without the body: the query names all dimensions or all shapes, or no
 * operand comes in the body. A wrong value counts as named. Stored operands name their dimensions. */
bool mm_operands_name_shapes(const struct mm_operands *operands);

/* The name of the first dimension that is not set. If any shape is set, the name of the first shape that is
 * not set. NULL: nothing is missing. */
const char *mm_operands_missing_dimension(const struct mm_operands *operands);

/* For requests that need neither dimensions nor shapes. MM_BAD_REQUEST: the client gave one. */
enum mm_status mm_operands_refuse_dimensions(const struct mm_operands *operands, struct mm_error *error);

/* For a format without shapes of its own: sets the operands' shapes by the query and by stored matrices.
 * *missing is the name of a missing parameter, or NULL. MM_BAD_REQUEST: the client gave dimensions and whole
 * shapes. MM_BAD_SHAPE: the query contradicts a stored operand. */
enum mm_status mm_operands_set_shapes_by_query(struct mm_operands *operands, const char **missing,
                                               struct mm_error *error);

/* For JSON. An operand without elements, such as [[], []], shows its dimensions only up to the first 0. The
 * function adds the other dimensions from the shape parameter, which then counts as not given. MM_BAD_SHAPE:
 * the operand and the parameter differ. */
enum mm_status mm_operand_complete_shape(struct mm_operands *operands, struct mm_operand *operand,
                                         struct mm_shape *shape, struct mm_error *error);

/* For a format that has shapes of its own: sets the shapes of all operands. shapes[i] is the shape of inline
 * operand i, and NULL for other operands. A generated operand gets its shape from its own parameter, or from
 * the dimensions, which may follow from other operands. MM_BAD_SHAPE: parameters and operands contradict each
 * other. MM_BAD_REQUEST: a dimension is missing, or was given although all operands are inline, or an operand
 * comes from two places. The caller rejects an operand that comes from nowhere. */
enum mm_status mm_operands_set_shapes(struct mm_operands *operands,
                                      const struct mm_shape *const shapes[MM_OPERANDS_MAX],
                                      struct mm_error *error);

/* Sets each operand's view from its shape, and completes its source. The view has data only if the operand is
 * stored in host memory. */
void mm_operands_view(struct mm_operands *operands);

/* Checks the sizes of the operands. For inline operands, bytes[i] is what the view covers in memory. For
 * other operands, the function checks the dimensions, and bytes[i] is 0. MM_TOO_LARGE. */
enum mm_status mm_operands_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                                 size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);
