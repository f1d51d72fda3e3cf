/* The kinds of parameter values, and their reader. A value comes from text of the query or of a form's field,
 * or it is a JSON value. Knows no parameter by name. Any thread may call these functions. */
#pragma once

#include "api/value.h"
#include "gpu/matrix/source.h"
#include "gpu/product/shape.h"
#include "gpu/store/store.h"

enum { MM_PARAMETER_NAME_MAX = 63 };

/* Below this limit a whole JSON number is exact after it is read as a double. The reader
 * reduces a larger time to this limit. */
#define MM_PARAMETER_WHOLE_MAX (UINT64_C(1) << 53)

/* The kinds of values. Each comment begins with the member of union mm_parameter_value that has the value. */
enum mm_kind {
    MM_KIND_NAME,       /* name: cut to MM_PARAMETER_NAME_MAX characters */
    MM_KIND_MATRIX,     /* matrix: the name of a stored matrix */
    MM_KIND_FLAG,       /* flag */
    MM_KIND_PERMISSION, /* flag: allow, else never */
    MM_KIND_ACCURACY,   /* flag: tf32, else float32 */
    MM_KIND_REPLY,      /* reply */
    MM_KIND_RANGE,      /* range */
    MM_KIND_FIGURES,    /* number: bits of enum mm_figure */
    MM_KIND_COUNT,      /* number: from 1 to 2³²−1 */
    MM_KIND_WHOLE,      /* number: from 1, cut to MM_PARAMETER_WHOLE_MAX */
    MM_KIND_TIME,       /* number: from 1, cut to MM_PARAMETER_WHOLE_MAX; rejects JSON numbers past doubles */
    MM_KIND_SECONDS,    /* number: from 1 to a year */
    MM_KIND_DIMENSION,  /* number: from 0; 2⁶⁴−1 stands for all larger numbers */
    MM_KIND_SIZE,       /* number: a dimension from 1 */
    MM_KIND_SHAPE,      /* shape */
    MM_KIND_SOURCE,     /* source: read by mm_operand_read_source (api/operand.h) */
    MM_KIND_OPERAND,    /* no member: a matrix, which codecs read */
    MM_KIND_OWN         /* no member: a value that the endpoint reads */
};

enum mm_reply { MM_REPLY_DEFAULT, MM_REPLY_MATRIX, MM_REPLY_NONE };

/* Rows or columns from `from` up to but not including `to`. If `to` is SIZE_MAX, the range has no end. */
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

/* Returns the values that a kind takes, in words. is_text: in the query or a form, not in JSON. Static. */
const char *mm_kind_form(enum mm_kind kind, bool is_text);

/* Whether a value is a list: an array in JSON, or text with commas. */
static inline bool mm_kind_is_list(enum mm_kind kind) {
    return kind == MM_KIND_SHAPE || kind == MM_KIND_FIGURES;
}

/* Whether mm_limits.dimension_max limits the value. */
static inline bool mm_kind_is_dimension(enum mm_kind kind) {
    return kind == MM_KIND_DIMENSION || kind == MM_KIND_SIZE;
}

/* Reads a value. False if the value is not of this kind, or the kind is SOURCE, OPERAND or OWN. In text, 1
 * means true and 0 means false. Bytes of *value that the kind's member does not use become zeros. */
bool mm_kind_read(enum mm_kind kind, const struct mm_value *given, bool is_text,
                  union mm_parameter_value *value);

/* Writes a value for an error, cut to fit. Text stays as the client wrote it; a JSON value is put in words.
 */
void mm_kind_describe(const struct mm_value *given, bool is_text, char *out, size_t out_bytes);
