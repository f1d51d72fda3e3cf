/* The kinds of parameter values, and their reader. A value is text from the query or a form, or a JSON value.
 * Any thread may call these functions. */
#pragma once

#include "api/value.h"
#include "gpu/matrix/source.h"
#include "gpu/product/shape.h"
#include "gpu/store/store.h"

enum { MM_PARAMETER_NAME_MAX = 63 };

/* Whole JSON numbers below this limit are exact as doubles. A larger time becomes this limit. */
#define MM_PARAMETER_WHOLE_MAX (UINT64_C(1) << 53)

/* The kinds of values. A comment begins with the member of union mm_parameter_value that is used. */
enum mm_kind {
    MM_KIND_NAME,       /* name, cut to MM_PARAMETER_NAME_MAX characters */
    MM_KIND_MATRIX,     /* matrix, the name of a stored one */
    MM_KIND_FLAG,       /* flag */
    MM_KIND_PERMISSION, /* flag: "allow" is true, "never" is false */
    MM_KIND_ACCURACY,   /* flag: "tf32" is true, "float32" is false */
    MM_KIND_REPLY,      /* reply */
    MM_KIND_RANGE,      /* range */
    MM_KIND_FIGURES,    /* number: bits of enum mm_figure */
    MM_KIND_COUNT,      /* number from 1 to 2³²−1 */
    MM_KIND_WHOLE,      /* number from 1; saturates at MM_PARAMETER_WHOLE_MAX */
    MM_KIND_TIME,       /* number like MM_KIND_WHOLE; rejects a JSON number beyond all doubles */
    MM_KIND_SECONDS,    /* number from 1 to a year's seconds */
    MM_KIND_DIMENSION,  /* number from 0; saturates at 2⁶⁴−1 */
    MM_KIND_SIZE,       /* number: a dimension that must not be 0 */
    MM_KIND_SHAPE,      /* shape */
    MM_KIND_SOURCE,     /* source, which mm_operand_read_source reads */
    MM_KIND_OPERAND,    /* none: a matrix, which codecs read */
    MM_KIND_OWN         /* none: a value that the endpoint reads */
};

enum mm_reply { MM_REPLY_DEFAULT, MM_REPLY_MATRIX, MM_REPLY_NONE };

/* Rows or columns from `from` to `to` − 1. If `to` is SIZE_MAX, the range has no end. */
struct mm_range {
    bool is_given;
    size_t from;
    size_t to;
};

union mm_parameter_value {
    char name[MM_PARAMETER_NAME_MAX + 1];
    char matrix[MM_STORE_NAME_MAX + 1];
    bool flag;
    enum mm_reply reply;
    uint64_t number;
    struct mm_range range;
    struct mm_shape shape;
    struct mm_source source;
};

/* Returns the valid values of a kind in words. is_text: for the query or a form, not for JSON. Static. */
const char *mm_kind_form(enum mm_kind kind, bool is_text);

/* Whether values are lists: arrays in JSON, or text with commas. */
static inline bool mm_kind_is_list(enum mm_kind kind) {
    return kind == MM_KIND_SHAPE || kind == MM_KIND_FIGURES;
}

static inline bool mm_kind_is_dimension(enum mm_kind kind) {
    return kind == MM_KIND_DIMENSION || kind == MM_KIND_SIZE;
}

/* Reads a value. False if the value is not of this kind, or the kind is SOURCE, OPERAND or OWN. is_text: 1
 * also means true, and 0 false. Bytes of *value that the kind does not use become 0. */
bool mm_kind_read(enum mm_kind kind, const struct mm_value *given, bool is_text,
                  union mm_parameter_value *value);

/* Writes a value for an error, cut to fit. A text is copied; a JSON value is described in words. */
void mm_kind_describe(const struct mm_value *given, bool is_text, char *out, size_t out_bytes);
