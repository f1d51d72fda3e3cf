/* Finds a parameter's row, reads the value by its kind, and writes the errors. */
#include "api/parameter.h"

#include "api/slice.h"
#include "api/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct mm_parameter no_row; /* not counted: `rows` of a table must not be NULL */
const struct mm_parameter_table mm_parameters_none = {&no_row, 0};

static uint64_t bit_of(const struct mm_parameters *values, const struct mm_parameter *row) {
    return UINT64_C(1) << (row - values->table->rows);
}

const struct mm_parameter *mm_parameter_find(const struct mm_parameters *values,
                                             enum mm_parameter_place place, const char *name, size_t length) {
    const struct mm_slice wanted = {name, length};
    const struct mm_parameter *row = values->table->rows, *const end = row + values->table->count;
    for (; length > 0 && row < end; row++)
        if (*row->name == *name && (row->places & place) != 0 && mm_slice_is(wanted, row->name))
            return row;
    return NULL;
}

const struct mm_parameter *mm_parameter_of(const struct mm_parameters *values, const void *value) {
    const size_t offset = (size_t)((const char *)value - (const char *)values);
    for (unsigned index = 0; index < values->table->count; index++)
        if (values->table->rows[index].offset == offset)
            return &values->table->rows[index];
    return NULL;
}

uint64_t mm_parameter_bit(const struct mm_parameters *values, const void *value) {
    const struct mm_parameter *row = mm_parameter_of(values, value);
    return row == NULL ? 0 : bit_of(values, row);
}

/* Fails because the name is unknown. The error lists the known names, and suggests a name that differs only
 * in letter case. */
static enum mm_status fail_unknown(const struct mm_parameters *values, enum mm_parameter_place place,
                                   const char *name, size_t length, struct mm_error *error) {
    const struct mm_slice given = {name, length};
    char known[320] = "", field[MM_PARAMETER_NAME_MAX + 1], hint[64] = "";
    for (unsigned index = 0; index < values->table->count; index++) {
        const struct mm_parameter *row = &values->table->rows[index];
        if ((row->places & place) == 0)
            continue;
        mm_list_add(known, sizeof known, row->name);
        if (mm_slice_is_any_case(given, row->name))
            snprintf(hint, sizeof hint, "; did you mean '%s'?", row->name);
    }
    snprintf(field, sizeof field, "%.*s", (int)(length < sizeof field ? length : sizeof field), name);
    return mm_fail_field(error, MM_BAD_REQUEST, field, "'%s' is unknown in the %s, which takes%s%s%s", field,
                         place == MM_IN_QUERY    ? "query"
                         : place == MM_IN_OBJECT ? "object"
                                                 : "body",
                         known[0] == '\0' ? " no parameters" : ": ", known, hint);
}

enum mm_status mm_parameter_set(struct mm_parameters *values, const struct mm_parameter *row,
                                const union mm_parameter_value *value, struct mm_error *error) {
    char *held = (char *)values + row->offset;
    assert(row->bytes <= sizeof *value);
    if ((values->given & bit_of(values, row)) != 0 && memcmp(held, value, row->bytes) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, row->name,
                             "%s is given twice with different values; give it once", row->name);
    memcpy(held, value, row->bytes);
    values->given |= bit_of(values, row);
    return MM_OK;
}

static enum mm_status check_dimension(const char *name, uint64_t number, const struct mm_value *given,
                                      bool is_text, const struct mm_limits *limits, struct mm_error *error) {
    char got[64];
    if (number <= limits->dimension_max && number < UINT64_MAX)
        return MM_OK;
    mm_kind_describe(given, is_text, got, sizeof got);
    mm_fail_limit(error, name, limits->dimension_max, "%s is %s, but the limit is %zu (--max-dimension)",
                  name, got, limits->dimension_max);
    mm_fail_got(error, "%s", got);
    return MM_TOO_LARGE;
}

static enum mm_status fail_value(const struct mm_parameter *row, const struct mm_value *given, bool is_text,
                                 struct mm_error *error) {
    char got[60], quoted[64];
    if (!is_text)
        return mm_value_fail(row->name, "is", mm_kind_form(row->kind, false), given, error);
    mm_kind_describe(given, is_text, got, sizeof got);
    snprintf(quoted, sizeof quoted, "'%s'", got);
    return mm_fail_form(row->name, "is", mm_kind_form(row->kind, true), quoted, error);
}

static enum mm_status set(struct mm_parameters *values, enum mm_parameter_place place, const char *name,
                          size_t length, const struct mm_value *given, bool is_text,
                          const struct mm_limits *limits, struct mm_error *error) {
    const struct mm_parameter *row = mm_parameter_find(values, place, name, length);
    union mm_parameter_value value;
    if (row == NULL)
        return fail_unknown(values, place, name, length, error);
    values->named |= bit_of(values, row);
    if (row->read != NULL)
        return row->read(values, row, given, error);
    if (row->kind == MM_KIND_OWN) /* the endpoint reads the value */
        return MM_OK;
    if (!mm_kind_read(row->kind, given, is_text, &value))
        return fail_value(row, given, is_text, error);
    if (mm_kind_is_dimension(row->kind) &&
        check_dimension(row->name, value.number, given, is_text, limits, error) != MM_OK)
        return MM_TOO_LARGE;
    return mm_parameter_set(values, row, &value, error);
}

enum mm_status mm_parameter_set_text(struct mm_parameters *values, enum mm_parameter_place place,
                                     const char *name, size_t name_length, const char *text, size_t length,
                                     const struct mm_limits *limits, struct mm_error *error) {
    const struct mm_value given = {.kind = MM_VALUE_TEXT, .text = text == NULL ? "" : text, .length = length};
    return set(values, place, name, name_length, &given, true, limits, error);
}

enum mm_status mm_parameter_set_value(struct mm_parameters *values, enum mm_parameter_place place,
                                      const char *name, size_t name_length, const struct mm_value *given,
                                      const struct mm_limits *limits, struct mm_error *error) {
    return set(values, place, name, name_length, given, false, limits, error);
}
