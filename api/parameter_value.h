/* The kinds of values that parameters have, and how a value is read: from text, of the query or of a form's
 * field, or from a value of JSON. Knows no parameter by name. Any thread may call these functions. */
#pragma once

#include "api/value.h"
#include "gpu/matrix/source.h"
#include "gpu/product/shape.h"

enum { MM_CALL_NAME_MAX = 63, MM_CALL_MATRIX_MAX = 128 };

/* Below it a whole number of JSON, read as a double, is exact. Times are cut to it. */
#define MM_CALL_WHOLE_MAX (UINT64_C(1) << 53)

enum mm_kind {
    MM_KIND_NAME,
    MM_KIND_FLAG,
    MM_KIND_PERMISSION,
    MM_KIND_ACCURACY,
    MM_KIND_REPLY,
    MM_KIND_SOURCE,
    MM_KIND_MATRIX,
    MM_KIND_RANGE,
    MM_KIND_FIGURES,
    MM_KIND_COUNT,
    MM_KIND_WHOLE,
    MM_KIND_SECONDS,
    MM_KIND_DIMENSION,
    MM_KIND_SHAPE,
    MM_KIND_OWN
};

/* Rows or columns from `from` on and before `to`; SIZE_MAX: to the end. */
struct mm_range {
    size_t from;
    size_t to;
};

/* A value in its normal form; the kind tells which member counts. All zeros before it is read. */
struct mm_parameter_value {
    char name[MM_CALL_MATRIX_MAX + 1];
    uint64_t number;
    struct mm_shape shape; /* what lies behind its rank is 0 */
    struct mm_source source;
    struct mm_range range;
};

/* What a kind takes, in words: as text, or as a value of JSON. */
const char *mm_kind_form(enum mm_kind kind, bool is_text);

/* Reads a value; false if it is none of this kind. Of text true is also 1, and 0 is a dimension. is_body: of
 * a member of a JSON body, in which 0 is a dimension too, and the largest double is refused, since it stands
 * for every number beyond it. Not for MM_KIND_SOURCE and MM_KIND_OWN. */
bool mm_kind_read(enum mm_kind kind, bool is_body, const struct mm_value *given, bool is_text,
                  struct mm_parameter_value *value);

/* A value as an error shows it: text as it came, a value of JSON in words. */
void mm_kind_describe(const struct mm_value *given, bool is_text, char *out, size_t out_bytes);
