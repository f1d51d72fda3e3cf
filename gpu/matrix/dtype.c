/* Looks up properties of element types, and converts elements to and from float64. */
#include "gpu/matrix/dtype.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
    bool is_float;
    struct mm_precision precision;
    enum mm_dtype sum;
    enum mm_dtype result;
    unsigned others;
} table[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word, sum, value, result, others, unit, least, largest)                      \
    [constant] = {name,                                                                                      \
                  sizeof(type),                                                                              \
                  (unit) > 0.0,                                                                              \
                  {unit, least, largest},                                                                    \
                  _Generic((sum)0, float                                                                     \
                           : MM_FLOAT32, double                                                              \
                           : MM_FLOAT64, uint32_t                                                            \
                           : MM_INT32, uint64_t                                                              \
                           : MM_INT64),                                                                      \
                  result,                                                                                    \
                  others},
    MM_DTYPE_TABLE(X)
#undef X
};

#define X(constant, name, type, word, ...) _Static_assert(sizeof(type) == sizeof(word), "of " name);
MM_DTYPE_TABLE(X)
#undef X

#define LOOK_UP(TYPE, FUNCTION, MEMBER)                                                                      \
    TYPE FUNCTION(enum mm_dtype dtype) {                                                                     \
        assert(dtype < MM_DTYPE_COUNT);                                                                      \
        return table[dtype].MEMBER;                                                                          \
    }

LOOK_UP(const char *, mm_dtype_name, name)
LOOK_UP(size_t, mm_dtype_bytes, bytes)
LOOK_UP(bool, mm_dtype_is_float, is_float)
LOOK_UP(struct mm_precision, mm_dtype_precision, precision)
LOOK_UP(enum mm_dtype, mm_dtype_sum, sum)
LOOK_UP(enum mm_dtype, mm_dtype_result, result)

unsigned mm_dtype_results(enum mm_dtype operand) {
    return table[operand].others | MM_DTYPE_BIT(mm_dtype_result(operand));
}

enum mm_status mm_dtype_find(const char *field, const char *name, unsigned dtypes, enum mm_dtype *dtype,
                             struct mm_error *error) {
    char known[128] = "";
    size_t length = 0;
    for (unsigned index = 0; index < MM_DTYPE_COUNT; index++) {
        if ((dtypes & MM_DTYPE_BIT(index)) == 0)
            continue;
        if (strcmp(table[index].name, name) == 0) {
            *dtype = (enum mm_dtype)index;
            return MM_OK;
        }
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                                   table[index].name);
    }
    assert(length < sizeof known);
    return mm_fail_field(error, MM_UNSUPPORTED, field, "%s is '%.64s', but must be one of: %s", field, name,
                         known);
}

double mm_dtype_get(enum mm_dtype dtype, const void *elements, size_t index) {
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        return (double)value(((const type *)elements)[index]);
    MM_DTYPE_SWITCH(dtype, X)
#undef X
    return 0.0;
}

#define nearest_float(value) ((float)(value))
#define nearest_double(value) (value)
#define nearest_mm_float16(value) mm_float16_of(mm_round_to_odd(value))
#define nearest_mm_bfloat16(value) mm_bfloat16_of(mm_round_to_odd(value))
#define nearest_mm_float8_e4m3fn(value) mm_float8_e4m3fn_of(mm_round_to_odd(value))
#define nearest_mm_float8_e5m2(value) mm_float8_e5m2_of(mm_round_to_odd(value))
#define nearest_int8_t(value) ((int8_t)(value))
#define nearest_uint8_t(value) ((uint8_t)(value))
#define nearest_mm_bool(value) ((mm_bool)((value) != 0.0))
#define nearest_int32_t(value) ((int32_t)(value))
#define nearest_int64_t(value) ((int64_t)(value))

void mm_dtype_put(enum mm_dtype dtype, void *elements, size_t index, double value) {
#define X(constant, name, type, ...)                                                                         \
    case constant:                                                                                           \
        ((type *)elements)[index] = nearest_##type(value);                                                   \
        break;
    MM_DTYPE_SWITCH(dtype, X)
#undef X
}
