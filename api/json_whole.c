/* Whole numbers from JSON, exactly or not at all.
 *
 * Lower bounds judge whether a number v is in the range, since a double t = floor(v) passes an end of the
 * range when v does, and refuse what has a fraction that a double can tell. Then the text is read again, by
 * which numbers without point and exponent are v itself. Of others, such as 1e2, the upper bound u is known:
 * v is exact where t = u, and whole where t is. */
#include "api/call.h"
#include "api/json_row.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* An element type: what it holds, and the least double above that. */
struct range {
    enum mm_dtype dtype;
    int64_t least;
    int64_t most;
    double beyond;
};

static const struct range int32_range = {MM_INT32, INT32_MIN, INT32_MAX, 0x1p31};
static const struct range int64_range = {MM_INT64, INT64_MIN, INT64_MAX, 0x1p63};

static enum mm_status fail_element(const struct mm_json_row *row, const struct range *range, size_t col,
                                   const char *got, struct mm_error *error) {
    mm_fail_field(error, MM_BAD_REQUEST, row->field,
                  "%s[%zu][%zu] is %s, but %s takes whole numbers from %" PRId64 " to %" PRId64, row->field,
                  row->index, col, got, mm_dtype_name(range->dtype), range->least, range->most);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "a whole number from %" PRId64 " to %" PRId64,
                 range->least, range->most);
        snprintf(error->got, sizeof error->got, "%s", got);
    }
    return MM_BAD_REQUEST;
}

static void put(void *out, const struct range *range, size_t col, int64_t value) {
    assert(value >= range->least && value <= range->most);
    if (range->dtype == MM_INT32)
        ((int32_t *)out)[col] = (int32_t)value;
    else
        ((int64_t *)out)[col] = value;
}

static int64_t get(const void *out, const struct range *range, size_t col) {
    return range->dtype == MM_INT32 ? ((const int32_t *)out)[col] : ((const int64_t *)out)[col];
}

/* The first look. */
static enum mm_status take_first(const struct mm_json_row *row, const struct range *range, size_t col,
                                 double value, struct mm_error *error) {
    if (floor(value) != value || value < (double)range->least || value >= range->beyond) {
        char got[48];
        mm_call_describe_number(value, got, sizeof got);
        return fail_element(row, range, col, got, error);
    }
    *row->undecided = true;
    if (row->out != NULL)
        put(row->out, range, col, (int64_t)value);
    return MM_OK;
}

static enum mm_status take_whole(const struct mm_json_row *row, const struct range *range, size_t col,
                                 const json_t *element, struct mm_error *error) {
    assert(row->out != NULL);
    int64_t lower = get(row->out, range, col);
    if (json_is_integer(element)) {
        put(row->out, range, col, json_integer_value(element));
    } else if ((double)lower != json_real_value(element)) {
        char got[48];
        snprintf(got, sizeof got, "not exactly %" PRId64, lower);
        return fail_element(row, range, col, got, error);
    }
    return MM_OK;
}

static enum mm_status read_row(const struct mm_json_row *row, const struct range *range,
                               struct mm_error *error) {
    enum mm_status status = MM_OK;
    for (size_t col = 0; col < row->cols && status == MM_OK; col++) {
        const json_t *element = json_array_get(row->elements, col);
        if (!json_is_number(element)) {
            char got[64];
            mm_json_describe(element, got, sizeof got);
            return fail_element(row, range, col, got, error);
        }
        status = row->bound == MM_JSON_WHOLE ? take_whole(row, range, col, element, error)
                                             : take_first(row, range, col, json_number_value(element), error);
    }
    return status;
}

enum mm_status mm_json_read_int32(const struct mm_json_row *row, struct mm_error *error) {
    return read_row(row, &int32_range, error);
}

enum mm_status mm_json_read_int64(const struct mm_json_row *row, struct mm_error *error) {
    return read_row(row, &int64_range, error);
}
