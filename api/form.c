/* Requests as forms (multipart/form-data): the parts named for the operands, a and b or a alone, are .npy
 * files, all others are parameters. The views point into the body, within which elements are moved by a few
 * bytes where they are not aligned. This is the reading of a whole body, and the last word on what is wrong
 * with one; form_read.c reads most of them while they arrive. */
#include "api/form.h"
#include "api/formats.h"
#include "api/multipart.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements travel as they lie in memory");

const char *const mm_form_operands[MM_FORM_OPERANDS_MAX] = {"a", "b"};

unsigned mm_form_find_operand(const struct mm_call *call, const char *name, size_t name_length) {
    const unsigned count = mm_call_operands(call);
    unsigned index = 0;
    while (index < count && (name_length != 1 || name[0] != mm_form_operands[index][0]))
        index++;
    return index;
}

/* An operand's elements are its whole file yet. */
static enum mm_status take_part(struct mm_call *call, const struct mm_part *part,
                                struct mm_form_operand *operands, const struct mm_limits *limits,
                                struct mm_error *error) {
    const unsigned index = mm_form_find_operand(call, part->name, part->name_length);
    if (index == mm_call_operands(call))
        return mm_call_set_field(call, part->name, part->name_length, part->data, part->bytes, limits, error);
    const char *name = mm_form_operands[index];
    if (operands[index].seen)
        return mm_fail_field(error, MM_BAD_REQUEST, name, "the form has two parts named %s", name);
    operands[index] = (struct mm_form_operand){.seen = true, .elements = part->data, .bytes = part->bytes};
    return MM_OK;
}

/* Of a product floating-point numbers are expected, also those that no variant has; of what only moves its
 * elements, integers too. */
enum mm_status mm_form_read_header(const struct mm_call *call, unsigned operand, const void *file,
                                   size_t bytes_max, struct mm_npy_header *header, struct mm_error *error) {
    const enum mm_npy_types types = call->op == MM_MATMUL ? MM_NPY_FLOATS : MM_NPY_NUMBERS;
    return mm_npy_read_header(mm_form_operands[operand], types, file, bytes_max, header, error);
}

static enum mm_status open_file(const struct mm_call *call, unsigned index, struct mm_form_operand *operand,
                                struct mm_error *error) {
    const char *name = mm_form_operands[index];
    if (!operand->seen)
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "the form has no part named %s, expected a file: -F %s=@%s.npy", name, name,
                             name);
    enum mm_status status =
        mm_form_read_header(call, index, operand->elements, operand->bytes, &operand->header, error);
    if (status != MM_OK)
        return status;
    operand->elements += operand->header.bytes;
    operand->bytes -= operand->header.bytes;
    return MM_OK;
}

static enum mm_status read_parts(struct mm_call *call, const struct mm_body *body,
                                 struct mm_form_operand *operands, const struct mm_limits *limits,
                                 struct mm_error *error) {
    struct mm_multipart multipart;
    struct mm_part part;
    bool found;
    enum mm_status status = mm_multipart_open(&multipart, body->content_type, body->data, body->bytes, error);
    while (status == MM_OK) {
        status = mm_multipart_next(&multipart, &part, &found, error);
        if (status != MM_OK || !found)
            break;
        status = take_part(call, &part, operands, limits, error);
    }
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++)
        status = open_file(call, index, &operands[index], error);
    return status;
}

/* The files say the element type: both the same, and no parameter another. */
static enum mm_status agree_on_dtype(struct mm_call *call, const struct mm_form_operand *operands,
                                     struct mm_error *error) {
    const struct mm_npy_header *a = &operands[0].header;
    const struct mm_npy_header *b = &operands[1].header;
    bool two = mm_call_operands(call) == 2;
    char *asked = call->names[MM_PARAMETER_DTYPE];
    assert(a->dtype_name != NULL && (!two || b->dtype_name != NULL));
    if (two && strcmp(a->dtype_name, b->dtype_name) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, "b",
                             "b is a file of %s ('%s'), but a is one of %s ('%s'): both must be of one type",
                             b->dtype_name, b->descr, a->dtype_name, a->descr);
    if (mm_call_has(call, MM_PARAMETER_DTYPE) && strcmp(asked, a->dtype_name) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, "dtype",
                             "dtype is '%s', but %s of %s ('%s'), which says it already", asked,
                             two ? "a and b are files" : "a is a file", a->dtype_name, a->descr);
    snprintf(asked, sizeof call->names[MM_PARAMETER_DTYPE], "%s", a->dtype_name);
    return mm_call_resolve(call, error);
}

static enum mm_status check_length(const char *name, const struct mm_form_operand *operand,
                                   const struct mm_matrix *view, size_t bytes, struct mm_error *error) {
    const size_t got = operand->bytes;
    if (got == bytes)
        return MM_OK;
    mm_fail_field(error, MM_BAD_REQUEST, name,
                  "%s is %zu×%zu of %s by its header, which takes %zu bytes, but %zu bytes follow", name,
                  view->rows, view->cols, operand->header.dtype_name, bytes, got);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "%zu bytes", bytes);
        snprintf(error->got, sizeof error->got, "%zu bytes", got);
    }
    return MM_BAD_REQUEST;
}

/* The elements, aligned: moved down over their own header, of which all is known. */
static void *align_elements(const struct mm_form_operand *operand, size_t bytes, size_t alignment) {
    char *data = operand->elements;
    size_t past = (uintptr_t)data % alignment;
    if (bytes == 0)
        return NULL;
    assert(past <= operand->header.bytes);
    return past == 0 ? data : memmove(data - past, data, bytes);
}

enum mm_status mm_form_complete(struct mm_call *call, const struct mm_form_operand *operands,
                                const struct mm_limits *limits, struct mm_error *error) {
    const unsigned count = mm_call_operands(call);
    struct mm_matrix *const views[MM_FORM_OPERANDS_MAX] = {&call->a, &call->b};
    size_t bytes[MM_FORM_OPERANDS_MAX];
    enum mm_status status = agree_on_dtype(call, operands, error);
    if (status != MM_OK)
        return status;
    for (unsigned index = 0; index < MM_FORM_OPERANDS_MAX; index++) /* one that is not taken is empty */
        *views[index] =
            mm_matrix_dense(call->dtype, operands[index].header.rows, operands[index].header.cols, NULL);
    status = mm_call_sizes(call, limits, &bytes[0], &bytes[1], error);
    for (unsigned index = 0; index < count && status == MM_OK; index++)
        status = check_length(mm_form_operands[index], &operands[index], views[index], bytes[index], error);
    if (status != MM_OK)
        return status;
    for (unsigned index = 0; index < count; index++)
        views[index]->data = align_elements(&operands[index], bytes[index], mm_dtype_bytes(call->dtype));
    call->a_column_major = operands[0].header.column_major;
    call->b_column_major = operands[1].header.column_major;
    return MM_OK;
}

enum mm_status mm_form_decode(struct mm_call *call, const struct mm_body *body,
                              const struct mm_limits *limits, struct mm_buffers *buffers,
                              struct mm_error *error) {
    (void)buffers;
    struct mm_form_operand operands[MM_FORM_OPERANDS_MAX] = {0};
    enum mm_status status = read_parts(call, body, operands, limits, error);
    return status == MM_OK ? mm_form_complete(call, operands, limits, error) : status;
}
