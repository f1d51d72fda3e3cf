/* Reads the members of a JSON request that are not arrays of elements: parameters, lists of values, and
 * operands that are generated or stored. Keeps the error of the first wrong member. */
#include "api/json/json_scan.h"

#include "api/slice.h"

#include <stdio.h>
#include <string.h>

static enum mm_json_event fail_duplicate(struct mm_json_scan *scan) {
    return mm_json_fault(&scan->reader, scan->reader.token, "a name that was not given before");
}

/* Reads a member's name. Finds the name's row in the parameter table, and the operand if the row is an
 * operand's. Reports a fault if the name occurs twice. */
static enum mm_json_event read_member(struct mm_json_scan *scan, const char *text) {
    char buffer[MM_JSON_TEXT_MAX];
    const struct mm_value name = mm_json_value(text, scan->reader.token, buffer);
    const struct mm_parameters *parameters = &scan->into->parameters;
    scan->name = scan->reader.token;
    scan->operand = NULL;
    scan->row = mm_parameter_find(parameters, MM_IN_JSON, name.text, name.length);
    if (scan->row == NULL)
        return MM_JSON_NAME;
    if (scan->row->kind == MM_KIND_OPERAND) {
        scan->operand = &scan->operands[mm_operand_index(scan->row)];
        scan->operand->seen = true;
    }
    const uint64_t bit = UINT64_C(1) << (scan->row - parameters->table->rows);
    const bool is_duplicate = (scan->members & bit) != 0;
    scan->members |= bit;
    return is_duplicate ? fail_duplicate(scan) : MM_JSON_NAME;
}

/* Begins a list. It is collected as text in the query's form ("2,3"), so one function reads both forms. */
static void begin_list(struct mm_json_scan *scan) {
    scan->in_list = true;
    scan->list_length = 0;
}

/* Appends an item to the list's text. Appends "?" if the item is too long, or is an array or an object. No
 * parameter accepts "?", so reading the list fails later. */
static void read_list_item(struct mm_json_scan *scan, bool is_open, const char *text) {
    const struct mm_json_token token = scan->reader.token;
    const size_t left = sizeof scan->list_text - scan->list_length;
    const bool fits = !is_open && token.bytes + 1 < left;
    const unsigned quote = token.kind == MM_VALUE_TEXT && scan->row->kind == MM_KIND_FIGURES;
    const struct mm_slice whole = {text + token.at + quote, token.bytes - 2 * quote}, wrong = {"?", 1};
    const struct mm_slice item = fits ? whole : wrong;
    if (left <= 2)
        return;
    if (scan->list_length > 0)
        scan->list_text[scan->list_length++] = ',';
    memcpy(scan->list_text + scan->list_length, item.start, item.length);
    scan->list_length += item.length;
}

/* Whether parameters are still read. After the first error, parameters are skipped, so even a million unknown
 * members cost little. */
static bool reads_values(const struct mm_json_scan *scan) {
    return !scan->is_again && scan->error.status == MM_OK;
}

void mm_json_end_list(struct mm_json_scan *scan, const char *text) {
    const char *name = scan->row->name;
    scan->in_list = false;
    if (reads_values(scan) &&
        mm_parameter_set_text(&scan->into->parameters, MM_IN_JSON, name, strlen(name), scan->list_text,
                              scan->list_length, scan->store.limits, &scan->error) != MM_OK)
        mm_json_locate(text, scan->name, &scan->error);
}

/* Begins an operand that is an object. If the object lacks "from", the error says that it is no array. */
static void begin_source(struct mm_json_scan *scan) {
    scan->operand->has_source = true;
    scan->operand->wrong = MM_JSON_NO_ARRAY;
    scan->operand->wrong_token = scan->reader.token;
}

static enum mm_json_event read_source_name(struct mm_json_scan *scan, const char *text) {
    char buffer[MM_JSON_TEXT_MAX];
    const struct mm_value name = mm_json_value(text, scan->reader.token, buffer);
    const char *operand = scan->row->name;
    const bool is_from = strcmp(name.text, "from") == 0, is_duplicate = is_from && scan->operand->has_from;
    scan->operand->has_from |= is_from;
    if (is_duplicate)
        return fail_duplicate(scan);
    if (is_from || scan->error.status != MM_OK)
        return MM_JSON_NAME;
    mm_fail_field(&scan->error, MM_BAD_REQUEST, operand, "%s has the member '%.40s', but takes 'from' alone",
                  operand, name.text);
    mm_json_locate(text, scan->reader.token, &scan->error);
    return MM_JSON_NAME;
}

static void read_source(struct mm_json_scan *scan, bool is_open, const char *text) {
    char buffer[MM_JSON_TEXT_MAX];
    if (!reads_values(scan))
        return;
    const struct mm_value value = mm_json_value(text, scan->reader.token, buffer);
    char name[MM_PARAMETER_NAME_MAX];
    enum mm_status status = MM_OK;
    snprintf(name, sizeof name, "%s.from", scan->row->name);
    if (is_open || value.kind != MM_VALUE_TEXT)
        status = mm_value_fail(name, "is", "a string like \"uniform(7)\"", &value, &scan->error);
    else
        status = mm_operand_set_source(scan->into, &scan->into->of[scan->operand - scan->operands], name,
                                       (struct mm_slice){value.text, value.length}, &scan->error);
    if (status != MM_OK)
        mm_json_locate(text, scan->reader.token, &scan->error);
}

static void read_parameter(struct mm_json_scan *scan, const char *text) {
    char name_buffer[MM_JSON_TEXT_MAX], buffer[MM_JSON_TEXT_MAX];
    if (!reads_values(scan))
        return;
    const struct mm_value name = mm_json_value(text, scan->name, name_buffer);
    const struct mm_value value = mm_json_value(text, scan->reader.token, buffer);
    if (mm_parameter_set_value(&scan->into->parameters, MM_IN_JSON, name.text, name.length, &value,
                               scan->store.limits, &scan->error) != MM_OK)
        mm_json_locate(text, scan->reader.token, &scan->error);
}

enum mm_json_event mm_json_read_name(struct mm_json_scan *scan, const char *text) {
    if (scan->reader.depth == 1)
        return read_member(scan, text);
    const bool is_source = scan->reader.depth == 2 && scan->operand != NULL && scan->operand->has_source;
    return is_source ? read_source_name(scan, text) : MM_JSON_NAME;
}

bool mm_json_read_parameter(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text) {
    const bool is_array = is_open && scan->reader.token.kind == MM_VALUE_ARRAY;
    const bool is_list = scan->row != NULL && mm_kind_is_list(scan->row->kind);
    const bool has_source = scan->operand != NULL && scan->operand->has_source;
    if (depth == 1 && is_list && is_array)
        begin_list(scan);
    else if (depth == 1 && scan->operand == NULL)
        read_parameter(scan, text);
    else if (depth == 2 && scan->in_list)
        read_list_item(scan, is_open, text);
    else if (depth == 1 && is_open && !is_array)
        begin_source(scan);
    else if (depth == 2 && has_source)
        read_source(scan, is_open, text);
    else
        return false;
    return true;
}
