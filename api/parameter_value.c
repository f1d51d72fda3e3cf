/* Reads parameter values by their kind. */
#include "api/parameter_value.h"

#include "api/element.h"
#include "api/result.h"
#include "api/slice.h"
#include "gpu/queue/job.h"
#include "gpu/store/store.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

enum { SECONDS_MAX = 365 * 24 * 60 * 60 };

#define ACTIVATIONS "none, relu, gelu, gelu_tanh, silu, sigmoid or tanh"

/* The valid values of each kind in words, for text and for JSON. */
static const struct {
    const char *text;
    const char *value;
} kinds[] = {
    [MM_KIND_NAME] = {"a name without NUL bytes", "a string without NUL characters"},
    [MM_KIND_MATRIX] =
        {"1 to 128 letters, digits, dots, dashes and underscores, and neither . nor ..",
         "a string of 1 to 128 letters, digits, dots, dashes and underscores, and neither . nor .."},
    [MM_KIND_FLAG] = {"true, false, 1 or 0", "true or false"},
    [MM_KIND_PERMISSION] = {"allow or never", "\"allow\" or \"never\""},
    [MM_KIND_ACCURACY] = {"float32 or tf32", "\"float32\" or \"tf32\""},
    [MM_KIND_REPLY] = {"matrix or none", "\"matrix\" or \"none\""},
    [MM_KIND_RANGE] = {"A:B, two decimal numbers, each of which may be left out, like 0:4",
                       "a string like \"0:4\", with two decimal numbers, each of which may be left out"},
    [MM_KIND_FIGURES] =
        {"a list of sum, trace, min, max, max_abs, norm and finite, with commas between them",
         "a string or an array of \"sum\", \"trace\", \"min\", \"max\", \"max_abs\", \"norm\" and "
         "\"finite\""},
    [MM_KIND_COUNT] = {"a whole decimal number from 1 to 4294967295", "a whole number from 1 to 4294967295"},
    [MM_KIND_DEVICES] = {"a whole decimal number from 1 to 4294967295, all or auto",
                         "a whole number from 1 to 4294967295, \"all\" or \"auto\""},
    [MM_KIND_WHOLE] = {"a whole decimal number of at least 1", "a whole number of at least 1"},
    [MM_KIND_TIME] = {"a whole decimal number of at least 1", "a whole number of at least 1"},
    [MM_KIND_SECONDS] = {"a whole decimal number from 1 to 31536000", "a whole number from 1 to 31536000"},
    [MM_KIND_DIMENSION] = {"a decimal non-negative integer", "a whole number of at least 0"},
    [MM_KIND_SIZE] = {"a whole decimal number of at least 1", "a whole number of at least 1"},
    [MM_KIND_SHAPE] = {"1 to 8 decimal non-negative integers with commas between them, like 8,1,5,4",
                       "an array of 1 to 8 whole numbers, like [8, 1, 5, 4]"},
    [MM_KIND_FACTOR] = {"a number, like 0.5 or -2e3", "a number"},
    [MM_KIND_ACTIVATION] = {ACTIVATIONS, "a string: " ACTIVATIONS},
};

_Static_assert(MM_ACTIVATION_COUNT == 7, "their form names all");
_Static_assert(MM_RANK_MAX == 8, "the form of a shape says so");
_Static_assert(MM_STORE_NAME_MAX == 128, "the form of a name says so");

const char *mm_kind_form(enum mm_kind kind, bool is_text) {
    return is_text ? kinds[kind].text : kinds[kind].value;
}

static bool read_name(const struct mm_value *given, union mm_parameter_value *value) {
    if (given->kind != MM_VALUE_TEXT || memchr(given->text, '\0', given->length) != NULL)
        return false;
    const size_t kept = given->length < MM_PARAMETER_NAME_MAX ? given->length : MM_PARAMETER_NAME_MAX;
    memcpy(value->name, given->text, kept);
    return true;
}

static bool read_matrix(const struct mm_value *given, union mm_parameter_value *value) {
    if (given->kind != MM_VALUE_TEXT || given->length > MM_STORE_NAME_MAX)
        return false;
    memcpy(value->matrix, given->text, given->length);
    return strlen(value->matrix) == given->length && mm_store_is_name(value->matrix);
}

static bool text_is(const struct mm_value *given, const char *word) {
    return given->kind == MM_VALUE_TEXT && mm_slice_is((struct mm_slice){given->text, given->length}, word);
}

/* Reads decimals with commas between them. A dimension above 2⁶⁴−1 becomes 2⁶⁴−1, which no limit allows. */
static bool read_shape(const struct mm_value *given, struct mm_shape *shape) {
    struct mm_slice rest = {given->text, given->length}, item;
    while (mm_slice_next(&rest, ',', &item)) {
        uint64_t number;
        if (shape->rank == MM_RANK_MAX || !mm_slice_whole(item, &number, NULL))
            return false;
        shape->dims[shape->rank++] = number;
    }
    return true;
}

void mm_kind_describe(const struct mm_value *given, bool is_text, char *out, size_t out_bytes) {
    if (is_text)
        snprintf(out, out_bytes, "%.*s%s", given->length > 40 ? 40 : (int)given->length, given->text,
                 given->length > 40 ? "..." : "");
    else
        mm_value_describe(given, out, out_bytes);
}

static bool read_flag(const struct mm_value *given, bool is_text, bool *flag) {
    *flag = given->kind == MM_VALUE_TRUE || (is_text && (text_is(given, "true") || text_is(given, "1")));
    return *flag || given->kind == MM_VALUE_FALSE ||
           (is_text && (text_is(given, "false") || text_is(given, "0")));
}

static bool read_word(enum mm_kind kind, const struct mm_value *given, bool *flag) {
    static const char *const words[][2] = {/* for false and true */
                                           [MM_KIND_PERMISSION] = {"never", "allow"},
                                           [MM_KIND_ACCURACY] = {"float32", "tf32"}};
    *flag = text_is(given, words[kind][1]);
    return *flag || text_is(given, words[kind][0]);
}

static bool read_reply(const struct mm_value *given, enum mm_reply *reply) {
    *reply = text_is(given, "matrix") ? MM_REPLY_MATRIX
             : text_is(given, "none") ? MM_REPLY_NONE
                                      : MM_REPLY_DEFAULT;
    return *reply != MM_REPLY_DEFAULT;
}

/* Reads a number in each type that sums may have. False if the text is no JSON number. */
static bool read_factor(struct mm_slice text, struct mm_factor *factor) {
    static const enum mm_dtype sums[] = {MM_FLOAT32, MM_FLOAT64, MM_INT32, MM_INT64};
    const char *const end = text.start + text.length;
    for (size_t index = 0; index < sizeof sums / sizeof sums[0]; index++) {
        bool fits = true;
        if (mm_element(sums[index])->read(text.start, end, &factor->of[sums[index]], &fits) != end)
            return false;
        factor->types |= fits ? MM_DTYPE_BIT(sums[index]) : 0;
    }
    return true;
}

static bool read_activation(const struct mm_value *given, enum mm_activation *activation) {
    *activation = MM_ACTIVATION_NONE;
    while (*activation < MM_ACTIVATION_COUNT && !text_is(given, mm_activation_name(*activation)))
        ++*activation;
    return *activation < MM_ACTIVATION_COUNT;
}

static bool read_bounded(enum mm_kind kind, const struct mm_value *given, bool is_text, uint64_t *number) {
    const unsigned least = kind == MM_KIND_DIMENSION ? 0 : 1;
    const struct mm_slice text = {given->text, given->length};
    if (is_text ? !mm_slice_whole(text, number, NULL) || *number < least
                : !mm_value_whole(given, least, DBL_MAX, number))
        return false;
    if (kind == MM_KIND_COUNT)
        return *number <= UINT32_MAX;
    if (kind == MM_KIND_SECONDS)
        return *number <= SECONDS_MAX;
    if (kind == MM_KIND_WHOLE || kind == MM_KIND_TIME)
        *number = *number < MM_PARAMETER_WHOLE_MAX ? *number : MM_PARAMETER_WHOLE_MAX;
    return kind != MM_KIND_TIME || is_text || given->number < DBL_MAX;
}

static bool read_devices(const struct mm_value *given, bool is_text, uint64_t *number) {
    const bool is_all = text_is(given, "all");
    *number = is_all ? MM_DEVICES_ALL : MM_DEVICES_AUTO;
    return is_all || text_is(given, "auto") || read_bounded(MM_KIND_COUNT, given, is_text, number);
}

bool mm_kind_read(enum mm_kind kind, const struct mm_value *given, bool is_text,
                  union mm_parameter_value *value) {
    const struct mm_slice text = {given->text, given->length};
    memset(value, 0, sizeof *value);
    switch (kind) {
    case MM_KIND_NAME:
        return read_name(given, value);
    case MM_KIND_MATRIX:
        return read_matrix(given, value);
    case MM_KIND_FLAG:
        return read_flag(given, is_text, &value->flag);
    case MM_KIND_PERMISSION:
    case MM_KIND_ACCURACY:
        return read_word(kind, given, &value->flag);
    case MM_KIND_REPLY:
        return read_reply(given, &value->reply);
    case MM_KIND_RANGE:
        return given->kind == MM_VALUE_TEXT && mm_result_read_range(text, &value->range);
    case MM_KIND_FIGURES:
        return given->kind == MM_VALUE_TEXT && mm_result_read_figures(text, &value->number);
    case MM_KIND_DEVICES:
        return read_devices(given, is_text, &value->number);
    case MM_KIND_COUNT:
    case MM_KIND_WHOLE:
    case MM_KIND_TIME:
    case MM_KIND_SECONDS:
    case MM_KIND_DIMENSION:
    case MM_KIND_SIZE:
        return read_bounded(kind, given, is_text, &value->number);
    case MM_KIND_SHAPE:
        return is_text && read_shape(given, &value->shape);
    case MM_KIND_FACTOR:
        return given->kind == (is_text ? MM_VALUE_TEXT : MM_VALUE_NUMBER) &&
               read_factor(text, &value->factor);
    case MM_KIND_ACTIVATION:
        return read_activation(given, &value->activation);
    case MM_KIND_SOURCE:
    case MM_KIND_OPERAND:
    case MM_KIND_OWN:
        break;
    }
    return false;
}
