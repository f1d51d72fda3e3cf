/* Finishes a JSON request: turns the result of the scan into operands and parameters, or into an error. */
#include "api/element.h"
#include "api/json/json_scan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_MAX = 2 + MM_RANK_MAX * 22 };

/* Writes a place such as a[1][0]. If is_first, writes 0 for all indices: a[0][0]. */
static const char *write_place(const char *name, const struct mm_json_indices *at, bool is_first,
                               char text[PLACE_MAX]) {
    size_t length = (size_t)snprintf(text, PLACE_MAX, "%s", name);
    for (unsigned index = 0; index < at->count; index++)
        length += (size_t)snprintf(text + length, PLACE_MAX - length, "[%zu]", is_first ? 0 : at->of[index]);
    return text;
}

static enum mm_status fail_operand(const char *name, const char *got, struct mm_error *error) {
    mm_fail_field(error, MM_BAD_REQUEST, name,
                  "%s is %s, but %s must be an array of numbers, or of arrays of them, like [[1, 2], [3, 4]]",
                  name, got, name);
    mm_fail_expected(error, "an array of numbers, or of arrays of them");
    return MM_BAD_REQUEST;
}

static enum mm_status fail_ragged(const struct mm_json_scanned *operand, const char *name,
                                  struct mm_error *error) {
    const size_t got = operand->wrong_length, expected = operand->shape.dims[operand->wrong_at.count];
    char here[PLACE_MAX], first[PLACE_MAX];
    mm_fail_field(error, MM_BAD_REQUEST, name,
                  "%s has %zu element%s, but %s has %zu; make all arrays of one depth equally long",
                  write_place(name, &operand->wrong_at, false, here), got, got == 1 ? "" : "s",
                  write_place(name, &operand->wrong_at, true, first), expected);
    mm_fail_expected(error, "%zu", expected);
    mm_fail_got(error, "%zu", got);
    return MM_BAD_REQUEST;
}

static enum mm_status fail_mixed(const struct mm_json_scanned *operand, const char *name,
                                 struct mm_error *error) {
    const bool is_array = operand->wrong_token.kind == MM_VALUE_ARRAY;
    char here[PLACE_MAX], first[PLACE_MAX];
    return mm_fail_field(error, MM_BAD_REQUEST, name,
                         "%s is %s, but %s is %s; put numbers beside numbers, and arrays beside arrays",
                         write_place(name, &operand->wrong_at, false, here),
                         mm_value_kind_name(operand->wrong_token.kind),
                         write_place(name, &operand->wrong_at, true, first), is_array ? "none" : "an array");
}

static enum mm_status check_shape(const struct mm_json_scanned *operand, const char *name, const char *text,
                                  struct mm_error *error) {
    if (!operand->seen)
        return fail_operand(name, "missing", error);
    switch (operand->wrong) {
    case MM_JSON_RIGHT:
        return MM_OK;
    case MM_JSON_NO_ARRAY:
        fail_operand(name, mm_value_kind_name(operand->wrong_token.kind), error);
        break;
    case MM_JSON_RAGGED:
        fail_ragged(operand, name, error);
        break;
    case MM_JSON_MIXED:
        fail_mixed(operand, name, error);
        break;
    case MM_JSON_DEEP:
        mm_fail_field(error, MM_BAD_REQUEST, name,
                      "%s has more than %u dimensions, but the limit is %u; make its arrays less deep", name,
                      (unsigned)MM_RANK_MAX, (unsigned)MM_RANK_MAX);
        mm_fail_expected(error, "at most %u dimensions", (unsigned)MM_RANK_MAX);
        break;
    }
    mm_json_locate(text, operand->wrong_token, error);
    return MM_BAD_REQUEST;
}

/* Whether the type can represent `number`: a rejected number of the body, rounded to a double. */
static bool is_nearly_held(const struct mm_element *type, double number) {
    char digits[32];
    uint64_t element;
    bool fits = floor(number) == number && fabs(number) < 0x1p64;
    const int length = snprintf(digits, sizeof digits, "%.0f", fits ? number : 0);
    (void)type->read(digits, digits + length, &element, &fits);
    return fits;
}

static enum mm_status fail_element(const struct mm_json_scan *scan, const struct mm_json_scanned *operand,
                                   const char *name, const char *text, struct mm_error *error) {
    const struct mm_element *type = mm_element(operand->dtype);
    char buffer[MM_JSON_TEXT_MAX], got[64], here[PLACE_MAX];
    const struct mm_value value = mm_json_value(text, operand->refused, buffer);
    const bool is_near = value.kind == MM_VALUE_NUMBER && is_nearly_held(type, value.number);
    const bool has_point = memchr(text + operand->refused.at, '.', operand->refused.bytes) != NULL;
    if (is_near)
        snprintf(got, sizeof got, "not exactly %.0f", value.number);
    else
        mm_value_describe(&value, got, sizeof got);
    mm_fail_field(error, MM_BAD_REQUEST, name, "%s is %s, but %s takes %s%s",
                  write_place(name, &operand->refused_at, false, here), got, mm_dtype_name(operand->dtype),
                  type->takes, is_near && has_point ? "; write whole numbers without a point" : "");
    mm_fail_expected(error, "%s", type->takes);
    mm_fail_got(error, "%s", got);
    mm_json_locate(text, operand->refused, error);
    return MM_BAD_REQUEST;
}

static enum mm_status check_elements(const struct mm_json_scan *scan, const char *text,
                                     struct mm_error *error) {
    for (unsigned index = 0; index < scan->into->count; index++)
        if (scan->operands[index].has_refused)
            return fail_element(scan, &scan->operands[index], scan->into->of[index].role.name, text, error);
    return MM_OK;
}

static bool is_empty_array(const struct mm_shape *shape) {
    return shape->rank == 1 && shape->dims[0] == 0;
}

/* Returns the shape of an operand. [] is a vector if the operand is a bias, and a 0×0 matrix otherwise. */
static struct mm_shape shape_of(const struct mm_json_scan *scan, unsigned index) {
    const struct mm_shape *shape = &scan->operands[index].shape;
    return is_empty_array(shape) && index != MM_OPERAND_BIAS ? mm_shape_of_matrix(0, 0) : *shape;
}

/* Sets the dtype, the shapes, and views without data. An unsupported dtype counts as float32 here, because
 * malformed elements must be reported first. complete() rejects the dtype later. */
static enum mm_status set_shapes(struct mm_json_scan *scan, const char *text, struct mm_error *error) {
    struct mm_operands *into = scan->into;
    struct mm_shape of_operands[MM_OPERANDS_MAX];
    const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
    struct mm_error contradiction;
    bool is_addend_open = false;
    if (into->kind->resolve(into, &contradiction) == MM_BAD_REQUEST) {
        if (error != NULL)
            *error = contradiction;
        return MM_BAD_REQUEST;
    }
    for (unsigned index = 0; index < into->count; index++) {
        const struct mm_json_scanned *scanned = &scan->operands[index];
        struct mm_operand *operand = &into->of[index];
        if (!mm_operand_is_inline(operand) && (!scanned->seen || scanned->has_from))
            continue;
        if (check_shape(scanned, operand->role.name, text, error) != MM_OK)
            return MM_BAD_REQUEST;
        of_operands[index] = shape_of(scan, index);
        if ((scan->members & mm_parameter_bit(&into->parameters, &operand->shape)) != 0) {
            of_operands[index] = scanned->shape;
            if (mm_operand_complete_shape(into, operand, &of_operands[index], error) != MM_OK)
                return MM_BAD_SHAPE;
        } else if (index == MM_OPERAND_ADDEND) {
            is_addend_open = is_empty_array(&scanned->shape);
        }
        shapes[index] = &of_operands[index];
    }
    const enum mm_status status = mm_operands_set_shapes(into, shapes, error);
    if (status == MM_OK && is_addend_open)
        mm_operands_reshape_addend(into);
    if (status == MM_OK)
        mm_operands_view(into);
    return status;
}

/* Returns the bytes that the elements of all operands need. The elements of each operand begin at an aligned
 * offset. The operand scan->last comes last. */
static size_t storage_bytes(const struct mm_json_scan *scan, const size_t bytes[MM_OPERANDS_MAX]) {
    const size_t last = scan->last == NULL ? 0 : bytes[scan->last - scan->operands];
    size_t before = 0;
    for (unsigned index = 0; index < scan->into->count; index++)
        if (&scan->operands[index] != scan->last && bytes[index] > 0)
            before = mm_json_aligned(before) + bytes[index];
    return last == 0 ? before : mm_json_aligned(before) + last;
}

/* Scans the body again if dtype came after the elements, or if memory was short. The second scan needs one
 * block of exactly the right size, which may be free now. If a limit is exceeded, nothing is stored. But
 * malformed elements must be reported before the limit, so elements are still checked as the new type. */
static enum mm_status read_again(struct mm_json_scan *scan, const struct mm_body *body,
                                 struct mm_error *error) {
    const bool is_checked = mm_json_scan_is_typed(scan);
    struct mm_buffer storage = {0};
    size_t bytes[MM_OPERANDS_MAX] = {0};
    enum mm_status status = is_checked ? check_elements(scan, body->data, error) : MM_OK;
    if (status != MM_OK)
        return status;
    status = scan->into->kind->sizes(scan->into, scan->store.limits, bytes, error);
    if (status == MM_OK && is_checked && scan->store.keeps)
        return MM_OK;
    mm_json_scan_yield(scan);
    const size_t all_bytes = status == MM_OK ? storage_bytes(scan, bytes) : 0;
    if (all_bytes > 0)
        status = mm_reservation_acquire(scan->store.reservation, all_bytes, &storage, error);
    if (status == MM_BUSY || status == MM_INTERNAL || (status != MM_OK && is_checked))
        return status;
    mm_json_scan_again(scan, storage, body);
    return check_elements(scan, body->data, error) == MM_OK ? status : MM_BAD_REQUEST;
}

static enum mm_status complete(struct mm_json_scan *scan, const struct mm_body *body,
                               struct mm_error *error) {
    struct mm_operands *into = scan->into;
    if (scan->error.status != MM_OK) {
        if (error != NULL)
            *error = scan->error;
        return scan->error.status;
    }
    enum mm_status status = set_shapes(scan, body->data, error);
    if (status == MM_OK)
        status = read_again(scan, body, error);
    if (status == MM_OK)
        status = into->kind->resolve(into, error);
    if (status != MM_OK)
        return status;
    into->storage = scan->store.memory;
    scan->store.memory = (struct mm_buffer){0};
    for (unsigned index = 0; index < into->count && into->storage.data != NULL; index++)
        if (mm_operand_is_inline(&into->of[index]))
            into->of[index].view.data = (char *)into->storage.data + scan->operands[index].offset;
    return MM_OK;
}

static enum mm_status finish(void *reading, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error) {
    struct mm_json_scan *scan = reading;
    const char *example = mm_json_codec.example[scan->into->kind->op];
    enum mm_status status;
    mm_json_scan_complete(scan, body);
    if (body->bytes == 0)
        status = mm_json_fail_empty(example, error);
    else if (scan->event == MM_JSON_FAULT)
        status = mm_json_fail(&scan->reader, body->data, example, error);
    else
        status = complete(scan, body, error);
    if (status == MM_OK)
        memcpy(into, scan->into, into->kind->bytes);
    if (status != MM_BUSY)
        mm_json_scan_cancel(scan);
    return status;
}

const struct mm_body_reader mm_json_reader = {
    mm_json_scan_begin, mm_json_scan_feed, mm_json_scan_yield, mm_json_scan_is_quick, finish,
    mm_json_scan_cancel};
