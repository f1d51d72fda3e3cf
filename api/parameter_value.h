/* The kinds of parameter values, and their reader. A value is text from the query or a form, or a JSON value.
 * Any thread may call these functions. */
#pragma once

#include "api/value.h"
#include "gpu/matrix/source.h"
#include "gpu/product/shape.h"
#include "gpu/store/store.h"

enum { MM_PARAMETER_NAME_MAX = 63 };

/* Whole JSON numbers below 2⁵³ are exact as doubles. MM_KIND_WHOLE and MM_KIND_TIME saturate at 2⁵³. */
#define MM_PARAMETER_WHOLE_MAX (UINT64_C(1) << 53)

/* The kinds of values. A kind uses the member of union mm_parameter_value that has the kind's name, unless
 * the kind's comment says otherwise. */
enum mm_kind {
    MM_KIND_NAME,   /* a longer name is cut to MM_PARAMETER_NAME_MAX bytes */
    MM_KIND_MATRIX, /* the name of a stored matrix */
    MM_KIND_FLAG,
    MM_KIND_PERMISSION, /* uses `flag`: "allow" is true, "never" is false */
    MM_KIND_ACCURACY,   /* uses `flag`: "tf32" is true, "float32" is false */
    MM_KIND_REPLY,
    MM_KIND_RANGE,
    MM_KIND_FIGURES,   /* uses `number`: bits of enum mm_figure */
    MM_KIND_COUNT,     /* uses `number`: from 1 to 2³²−1 */
    MM_KIND_DEVICES,   /* uses `number`: as MM_KIND_COUNT, MM_DEVICES_ALL or MM_DEVICES_AUTO */
    MM_KIND_WHOLE,     /* uses `number`: from 1, saturates at MM_PARAMETER_WHOLE_MAX */
    MM_KIND_TIME,      /* like MM_KIND_WHOLE, but rejects a JSON number beyond all doubles */
    MM_KIND_SECONDS,   /* uses `number`: from 1 to the seconds of a year */
    MM_KIND_DIMENSION, /* uses `number`: from 0, saturates at 2⁶⁴−1 */
    MM_KIND_SIZE,      /* uses `number`: a dimension that must not be 0 */
    MM_KIND_SHAPE,
    MM_KIND_FACTOR,
    MM_KIND_ACTIVATION,
    MM_KIND_SOURCE,  /* mm_operand_read_source reads this kind */
    MM_KIND_OPERAND, /* uses no member: codecs read the matrix */
    MM_KIND_OWN      /* uses no member: the endpoint reads the value */
};

enum mm_reply { MM_REPLY_DEFAULT, MM_REPLY_MATRIX, MM_REPLY_NONE };

/* Rows or columns from `from` to `to` − 1. If `to` is SIZE_MAX, the range has no end. */
struct mm_range {
    bool is_given;
    size_t from;
    size_t to;
};

/* A real number, converted to each type that sums may have. */
struct mm_factor {
    unsigned types; /* MM_DTYPE_BIT of each type that can represent the number, rounded if it is a float */
    union mm_scale of[MM_DTYPE_COUNT]; /* by the type of the sums; undefined for other types */
};

union mm_parameter_value {
    char name[MM_PARAMETER_NAME_MAX + 1];
    char matrix[MM_STORE_NAME_MAX + 1];
    bool flag;
    enum mm_reply reply;
    uint64_t number;
    struct mm_range range;
    struct mm_shape shape;
    struct mm_factor factor;
    enum mm_activation activation;
    struct mm_source source;
};

/* Returns a static text that says which values of a kind are valid. If is_text, the text is for the query or
 * a form. Otherwise it is for JSON. */
const char *mm_kind_form(enum mm_kind kind, bool is_text);

/* Whether values are lists: arrays in JSON, or text with commas. */
static inline bool mm_kind_is_list(enum mm_kind kind) {
    return kind == MM_KIND_SHAPE || kind == MM_KIND_FIGURES;
}

static inline bool mm_kind_is_dimension(enum mm_kind kind) {
    return kind == MM_KIND_DIMENSION || kind == MM_KIND_SIZE;
}

/* Reads a value. False if the value is not of this kind, or the kind is SOURCE, OPERAND or OWN. If is_text,
 * "1" also means true, and "0" means false. Bytes of *value that the kind does not use become 0. */
bool mm_kind_read(enum mm_kind kind, const struct mm_value *given, bool is_text,
                  union mm_parameter_value *value);

/* Writes a value for an error, cut to fit. A text is copied; a JSON value is described in words. */
void mm_kind_describe(const struct mm_value *given, bool is_text, char *out, size_t out_bytes);
