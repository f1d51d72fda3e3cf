/* Requests as forms (multipart/form-data): the parts named for the operands, a and b or a alone, are .npy
 * files, all others are parameters. The views point into the body, within which elements are moved by a few
 * bytes where they are not aligned. */
#include "api/formats.h"
#include "api/multipart.h"
#include "api/npy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements travel as they lie in memory");

enum { OPERANDS_MAX = 2 };
static const char *const names[OPERANDS_MAX] = {"a", "b"};

/* An operand on its way: the part, and what its header says. */
struct operand {
    struct mm_part part;
    struct mm_npy_header header;
};

static enum mm_status take_part(struct mm_call *call, const struct mm_part *part, struct operand *operands,
                                const struct mm_limits *limits, struct mm_error *error) {
    for (unsigned index = 0; index < mm_call_operands(call); index++) {
        if (part->name_length != 1 || part->name[0] != names[index][0])
            continue;
        if (operands[index].part.data != NULL)
            return mm_fail_field(error, MM_BAD_REQUEST, names[index], "the form has two parts named %s",
                                 names[index]);
        operands[index].part = *part;
        return MM_OK;
    }
    return mm_call_set_field(call, part->name, part->name_length, part->data, part->bytes, limits, error);
}

/* Of a product floating-point numbers are expected, also those that no variant has; of what only moves its
 * elements, integers too. */
static enum mm_npy_types types_of(const struct mm_call *call) {
    return call->op == MM_MATMUL ? MM_NPY_FLOATS : MM_NPY_NUMBERS;
}

static enum mm_status read_parts(struct mm_call *call, const struct mm_body *body, struct operand *operands,
                                 const struct mm_limits *limits, struct mm_error *error) {
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
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++) {
        struct operand *operand = &operands[index];
        if (operand->part.data == NULL)
            return mm_fail_field(error, MM_BAD_REQUEST, names[index],
                                 "the form has no part named %s, expected a file: -F %s=@%s.npy",
                                 names[index], names[index], names[index]);
        status = mm_npy_read_header(names[index], types_of(call), operand->part.data, operand->part.bytes,
                                    &operand->header, error);
    }
    return status;
}

/* The files say the element type: both the same, and no parameter another. */
static enum mm_status agree_on_dtype(struct mm_call *call, const struct operand *operands,
                                     struct mm_error *error) {
    const struct mm_npy_header *a = &operands[0].header;
    const struct mm_npy_header *b = &operands[1].header;
    bool two = mm_call_operands(call) == 2;
    char *asked = call->names[MM_PARAMETER_DTYPE];
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

static enum mm_status check_length(const char *name, const struct operand *operand,
                                   const struct mm_matrix *view, size_t bytes, struct mm_error *error) {
    size_t got = operand->part.bytes - operand->header.bytes;
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
static void *align_elements(const struct operand *operand, size_t bytes, size_t alignment) {
    char *data = operand->part.data + operand->header.bytes;
    size_t past = (uintptr_t)data % alignment;
    if (bytes == 0)
        return NULL;
    assert(past <= operand->header.bytes);
    return past == 0 ? data : memmove(data - past, data, bytes);
}

enum mm_status mm_form_decode(struct mm_call *call, const struct mm_body *body,
                              const struct mm_limits *limits, struct mm_buffers *buffers,
                              struct mm_error *error) {
    (void)buffers;
    const unsigned count = mm_call_operands(call);
    struct operand operands[OPERANDS_MAX] = {0};
    struct mm_matrix *const views[OPERANDS_MAX] = {&call->a, &call->b};
    size_t bytes[OPERANDS_MAX];
    enum mm_status status = read_parts(call, body, operands, limits, error);
    if (status == MM_OK)
        status = agree_on_dtype(call, operands, error);
    if (status != MM_OK)
        return status;
    for (unsigned index = 0; index < OPERANDS_MAX; index++) /* one that is not taken is empty */
        *views[index] =
            mm_matrix_dense(call->dtype, operands[index].header.rows, operands[index].header.cols, NULL);
    status = mm_call_sizes(call, limits, &bytes[0], &bytes[1], error);
    for (unsigned index = 0; index < count && status == MM_OK; index++)
        status = check_length(names[index], &operands[index], views[index], bytes[index], error);
    if (status != MM_OK)
        return status;
    for (unsigned index = 0; index < count; index++)
        views[index]->data = align_elements(&operands[index], bytes[index], mm_dtype_bytes(call->dtype));
    call->a_column_major = operands[0].header.column_major;
    call->b_column_major = operands[1].header.column_major;
    return MM_OK;
}
