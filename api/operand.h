/* The operands of a request: a list of matrices with names, which codecs decode. An operand comes in the body
 * (inline), or the server generates it, or it is a stored matrix (gpu/matrix/source.h). A generated operand
 * has the request's element type. A stored operand decides the request's element type.
 *
 * The addend c and the bias of a product are optional. They have the result's type, and its shape unless the
 * client says theirs. They set neither types nor dimensions.
 *
 * The list belongs to its request. One thread at a time uses it: the connection's thread, or the worker
 * thread that decodes the body. */
#pragma once

#include "api/parameter.h"
#include "api/slice.h"
#include "gpu/memory/budget.h"
#include "gpu/plan/variant.h"

enum mm_dimension { MM_DIMENSION_M, MM_DIMENSION_K, MM_DIMENSION_N, MM_DIMENSION_COUNT };

/* The role of an operand in an operation: its name on the wire and its dimensions. */
struct mm_operand_role {
    const char *name;
    enum mm_dimension rows, cols; /* after transpose_a or transpose_b */
    bool is_column;               /* a vector as this operand is a column */
    bool is_optional;             /* absent unless the request gives it, as c and bias */
};

struct mm_operand {
    struct mm_operand_role role;

    /* Parameters. mm_operands_view completes the source. Codecs set the shape before a transpose. The shape
     * stays 0×0 if the operand is absent, or the endpoint does not take it. */
    struct mm_source source;
    struct mm_shape shape;
    bool is_transposed;
    bool in_body; /* an optional operand is inline; set by codecs, or by c=body in the query */
    uint64_t ld;  /* leading dimension in a raw body, in elements */

    struct mm_matrix view; /* all elements; data of an inline operand is in the body or the storage */
    bool column_major;     /* Fortran order; the view is valid only after mm_call_apply_layout */
};

struct mm_operands;

/* What all endpoints of one kind have in common. The struct never changes. */
struct mm_operands_kind {
    struct mm_parameter_table table;
    /* Size of the endpoint's struct. Codecs copy that struct, so it must have no pointers into itself. */
    size_t bytes;
    enum mm_op op;     /* decides the operands, their types and the examples */
    bool is_row_major; /* matrices must be row-major, so column_major is never set */

    /* Calls mm_operands_resolve, and sets the result's type if there is a result. On failure all types are
     * float32. */
    enum mm_status (*resolve)(struct mm_operands *operands, struct mm_error *error);

    /* Calls mm_operands_sizes when the views are known, and checks the result's size if there is a result. */
    enum mm_status (*sizes)(const struct mm_operands *operands, const struct mm_limits *limits,
                            size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);
};

/* Call mm_operands_init first. The struct owns `storage`. */
struct mm_operands {
    struct mm_parameters parameters; /* must be first: pointers to it are cast to this struct */
    const struct mm_operands_kind *kind;
    unsigned count;
    struct mm_operand of[MM_OPERANDS_MAX];

    /* Parameters. A dimension that is not set is 0. */
    uint64_t dimensions[MM_DIMENSION_COUNT];
    char dtype_name[MM_PARAMETER_NAME_MAX + 1];

    enum mm_dtype dtype;        /* type of the operands that are not optional; set by kind->resolve */
    enum mm_dtype result_dtype; /* type of the result and the optional operands; set by mm_call_resolve */
    struct mm_references *references; /* stored matrices that the request uses; NULL if it may use none */
    bool views_body;          /* a view points into the body, so keep the body until the job is done */
    struct mm_buffer storage; /* memory of decoded elements */
};

/* Returns the index of the operand that a parameter belongs to. */
static inline unsigned mm_operand_index(const struct mm_parameter *row) {
    return (unsigned)((row->offset - offsetof(struct mm_operands, of)) / sizeof(struct mm_operand));
}

/* Clears the endpoint's whole struct, and sets dtype to "float32". All operands are then inline. */
void mm_operands_init(struct mm_operands *operands, const struct mm_operands_kind *kind);

/* Frees the storage, which came from `memory`, and clears the views. */
void mm_operands_release(struct mm_operands *operands, struct mm_reservation *memory);

/* References to the stored matrices that a request uses. Each name has one reference, so a name means one
 * value in the whole request. The owner keeps this struct until no copy of the operand list is used. */
struct mm_references {
    struct mm_store *store; /* NULL if the server stores no matrices */
    uint64_t space;
    unsigned count;
    struct mm_stored *values[MM_OPERANDS_MAX];
};

/* Releases the references. Call this only when no job reads the values any more. */
void mm_references_release(struct mm_references *references);

/* Reads a source: "uniform(SEED)", "identity()" or the name of a stored matrix, which gets a reference in
 * operands->references. `written` is the parameter's name for errors. Fails with MM_UNSUPPORTED, with
 * MM_NO_SUCH_MATRIX, or with MM_BAD_REQUEST if the endpoint takes no sources or the client gave a different
 * source before. */
enum mm_status mm_operand_set_source(struct mm_operands *operands, struct mm_operand *operand,
                                     const char *written, struct mm_slice text, struct mm_error *error);

/* Reads parameters of kind MM_KIND_SOURCE. */
mm_parameter_reader mm_operand_read_source;

/* Reads `body` in the query as the place of an optional operand. */
mm_parameter_reader mm_operand_read_place;

static inline bool mm_operand_is_inline(const struct mm_operand *operand) {
    return operand->source.kind == MM_SOURCE_HOST && (operand->in_body || !operand->role.is_optional);
}
static inline bool mm_operand_is_absent(const struct mm_operand *operand) {
    return operand->source.kind == MM_SOURCE_HOST && !mm_operand_is_inline(operand);
}
static inline bool mm_operand_is_generated(const struct mm_operand *operand) {
    return mm_source_is_generated(&operand->source);
}
static inline bool mm_operand_is_stored(const struct mm_operand *operand) {
    return operand->source.kind == MM_SOURCE_STORED;
}

/* Whether an operand is inline, and whether none is generated or stored. */
bool mm_operands_have_inline(const struct mm_operands *operands);
bool mm_operands_are_inline(const struct mm_operands *operands);

static inline enum mm_dtype mm_operand_dtype(const struct mm_operands *operands,
                                             const struct mm_operand *operand) {
    return operand->role.is_optional ? operands->result_dtype : operands->dtype;
}

/* Returns the result's shape from the operands' shapes. If the stacks of a and b do not broadcast, the shape
 * has no stack. */
struct mm_shape mm_operands_result(const struct mm_operands *operands);

/* Sets operands->dtype to the type of stored operands, or to the type that the request names. Fails with
 * MM_BAD_REQUEST if stored operands differ in type from each other or from the named type, and with
 * MM_UNSUPPORTED if the name is unknown. On failure the type is float32. */
enum mm_status mm_operands_resolve(struct mm_operands *operands, struct mm_error *error);

/* Checks that an optional operand has the result's type. `dtype` is the type of its file or stored matrix.
 * Fails with MM_UNSUPPORTED. */
enum mm_status mm_operand_check_type(const struct mm_operands *operands, const struct mm_operand *operand,
                                     enum mm_dtype dtype, struct mm_error *error);

/* Checks that elements of type bool are 0 or 1 in decoded inline operands. Fails with MM_BAD_REQUEST. */
enum mm_status mm_operands_check_elements(const struct mm_operands *operands, struct mm_error *error);

/* Fails with MM_BAD_REQUEST: an element of type bool is neither 0 nor 1. */
enum mm_status mm_operand_fail_bool(const struct mm_operand *operand, struct mm_error *error);

/* Whether all shapes are known without the body: the query has all dimensions or all shapes, or no operand is
 * inline. A wrong value counts too, and so does a dimension of a stored operand. */
bool mm_operands_name_shapes(const struct mm_operands *operands);

/* Returns the name of the first dimension that is not set, or NULL. If the client gives whole shapes, returns
 * the name of the first shape that is not set, or NULL. */
const char *mm_operands_missing_dimension(const struct mm_operands *operands);

/* Fails with MM_BAD_REQUEST if the client gave a dimension or shape that the request does not need. */
enum mm_status mm_operands_refuse_dimensions(const struct mm_operands *operands, struct mm_error *error);

/* For a format without shapes of its own: sets the operands' shapes by the query and by stored matrices.
 * *missing becomes the name of a missing parameter, or NULL. Fails with MM_BAD_REQUEST if the client gave
 * both dimensions and whole shapes, and with MM_BAD_SHAPE if the query contradicts a stored operand. */
enum mm_status mm_operands_set_shapes_by_query(struct mm_operands *operands, const char **missing,
                                               struct mm_error *error);

/* For JSON: an array without elements, such as [[], []], shows dimensions only up to the first 0. The
 * function adds the other dimensions from the shape parameter, which then counts as not given. Fails with
 * MM_BAD_SHAPE if the array and the parameter differ. */
enum mm_status mm_operand_complete_shape(struct mm_operands *operands, struct mm_operand *operand,
                                         struct mm_shape *shape, struct mm_error *error);

/* For a format that has shapes of its own: sets the shapes of all operands. shapes[i] is the shape of inline
 * operand i, and NULL for other operands. A generated operand gets its shape from its own parameter, or from
 * the dimensions, which may follow from other operands. Fails with MM_BAD_SHAPE if parameters and operands
 * contradict each other. Fails with MM_BAD_REQUEST if a dimension is missing or not needed, or if an operand
 * is both inline and generated or stored. An operand without any source is not reported here. */
enum mm_status mm_operands_set_shapes(struct mm_operands *operands,
                                      const struct mm_shape *const shapes[MM_OPERANDS_MAX],
                                      struct mm_error *error);

/* Sets each operand's view from its shape, and completes its source. The view has data only if the operand is
 * stored in host memory. */
void mm_operands_view(struct mm_operands *operands);

/* Checks the sizes of the operands. bytes[i] becomes the size of inline operand i in memory. For other
 * operands only the dimensions are checked, and bytes[i] is 0. Fails with MM_TOO_LARGE. */
enum mm_status mm_operands_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                                 size_t bytes[MM_OPERANDS_MAX], struct mm_error *error);
