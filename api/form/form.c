/* Reads forms (multipart/form-data) while they arrive. The parts named a, b, c and bias are .npy or CSV
 * files; every other part is a parameter. A .npy header tells how long the elements are, so the reader does
 * not search the elements for a delimiter. Elements move down to an aligned address while the body arrives.
 */
#include "api/form/form_operands.h"
#include "api/form/multipart.h"
#include "api/media.h"
#include "api/slice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are sent in the byte order of memory");

enum {
    FILE_HEADER_BYTES_MAX = 4096 /* a longer .npy header is read only when its part is complete */
};

struct reading {
    struct mm_form form; /* form.into is a copy, allocated after this struct */
    struct mm_multipart multipart;
    struct mm_part part;
    struct mm_form_operand *operand; /* the current part's file; NULL if the part is a parameter */
    bool in_header;                  /* the .npy header of the current part is still arriving */
    bool has_header;                 /* the body is one .npy file, and its header was read */
    size_t bytes;                    /* length of the body so far */
    enum mm_multipart_event event;
    struct mm_error error; /* the error if event is MM_MULTIPART_FAULT */
};

static enum mm_status read_header(struct reading *reading, const char *file, size_t bytes,
                                  struct mm_error *error) {
    struct mm_form_operand *operand = reading->operand;
    return mm_npy_read_header(operand->name, file, bytes, &operand->header, error);
}

/* Moves the elements that have arrived, and all bytes after them, down to an aligned address. The moved bytes
 * overwrite the end of the part's headers, which were already read. Returns the body's new length. */
static size_t align(struct reading *reading, char *body, size_t bytes) {
    enum { HEADERS_BYTES_MIN = sizeof "Content-Disposition:form-data;name=a\r\n\r\n" - 1 };
    struct mm_form_operand *operand = reading->operand;
    char *from = body + operand->elements;
    const size_t past = (uintptr_t)from % MM_FORM_ALIGNMENT;
    assert(past <= HEADERS_BYTES_MIN + operand->header.bytes);
    memmove(from - past, from, bytes - operand->elements);
    operand->elements -= past;
    return bytes - past;
}

/* Reads a .npy header while it arrives, and computes where the elements end. If the header is incomplete or
 * wrong, the multipart reader searches for the end of the part instead. Returns the body's new length. */
static size_t begin_file(struct reading *reading, char *body, size_t bytes, bool is_all) {
    struct mm_form_operand *operand = reading->operand;
    const size_t data = reading->part.data, left = bytes - data;
    const size_t looked_at = left < FILE_HEADER_BYTES_MAX ? left : FILE_HEADER_BYTES_MAX;
    size_t file_bytes, end;
    const bool is_read = read_header(reading, body + data, looked_at, NULL) == MM_OK;
    reading->in_header = !is_read && looked_at < FILE_HEADER_BYTES_MAX && !is_all;
    if (!is_read)
        return bytes;
    const struct mm_npy_header *header = &operand->header;
    operand->elements = data + header->bytes;
    if (mm_shape_size(operand->name, &header->shape, header->dtype, reading->form.limits, &file_bytes,
                      NULL) != MM_OK ||
        !mm_size_add(operand->elements, file_bytes, &end))
        return bytes;
    if (file_bytes > 0)
        bytes = align(reading, body, bytes);
    reading->multipart.at = operand->elements;
    reading->multipart.expected = operand->elements + file_bytes;
    return bytes;
}

/* Whether a part is a CSV file, by media type or file name. Every other file is read as .npy. */
static bool is_csv(const struct mm_part *part, const char *body) {
    static const char suffix[] = ".csv";
    enum { SUFFIX_BYTES = sizeof suffix - 1 };
    const char *file_end = body + part->file + part->file_length;
    return mm_slice_is_any_case((struct mm_slice){body + part->type, part->type_length}, MM_CSV_TYPE) ||
           (part->file_length >= SUFFIX_BYTES &&
            mm_slice_is_any_case((struct mm_slice){file_end - SUFFIX_BYTES, SUFFIX_BYTES}, suffix));
}

static enum mm_multipart_event begin_part(struct reading *reading, const char *body) {
    const struct mm_part *part = &reading->part;
    const struct mm_parameter *row =
        mm_parameter_find(&reading->form.into->parameters, MM_IN_FORM, body + part->name, part->name_length);
    const bool is_operand = row != NULL && row->kind == MM_KIND_OPERAND;
    reading->operand = is_operand ? &reading->form.operands[mm_operand_index(row)] : NULL;
    reading->in_header = reading->operand != NULL && !is_csv(part, body);
    if (reading->operand == NULL)
        return MM_MULTIPART_HEAD;
    if (reading->operand->seen) {
        const char *name = reading->operand->name;
        mm_fail_field(&reading->error, MM_BAD_REQUEST, name, "the form has two parts named %s; send one",
                      name);
        return MM_MULTIPART_FAULT;
    }
    reading->operand->seen = true;
    reading->operand->is_csv = !reading->in_header;
    return MM_MULTIPART_HEAD;
}

static enum mm_multipart_event end_part(struct reading *reading, const char *body) {
    const struct mm_part *part = &reading->part;
    struct mm_form_operand *operand = reading->operand;
    enum mm_status status = MM_OK;
    if (operand == NULL)
        status = mm_parameter_set_text(&reading->form.into->parameters, MM_IN_FORM, body + part->name,
                                       part->name_length, body + part->data, part->bytes,
                                       reading->form.limits, &reading->error);
    else if (operand->is_csv) {
        operand->elements = part->data;
        operand->bytes = part->bytes;
    } else if (reading->multipart.expected > 0)
        operand->bytes = part->bytes;
    else if ((status = read_header(reading, body + part->data, part->bytes, &reading->error)) == MM_OK) {
        operand->elements = part->data + operand->header.bytes;
        operand->bytes = part->bytes - operand->header.bytes;
    }
    return status == MM_OK ? MM_MULTIPART_CONTENTS : MM_MULTIPART_FAULT;
}

/* Reads the bytes that have arrived. Returns the body's new length, which shrinks if elements move down. */
static size_t read_available(struct reading *reading, char *body, size_t bytes, bool is_all) {
    while (reading->event < MM_MULTIPART_END || reading->event == MM_MULTIPART_WAIT) {
        if (reading->in_header)
            bytes = begin_file(reading, body, bytes, is_all);
        if (reading->in_header)
            break;
        reading->event =
            mm_multipart_next(&reading->multipart, body, bytes, is_all, &reading->part, &reading->error);
        if (reading->event == MM_MULTIPART_HEAD)
            reading->event = begin_part(reading, body);
        else if (reading->event == MM_MULTIPART_CONTENTS)
            reading->event = end_part(reading, body);
        else if (reading->event == MM_MULTIPART_WAIT)
            break;
    }
    reading->bytes = bytes;
    return bytes;
}

static struct reading *begin_any(const struct mm_operands *into, const struct mm_limits *limits,
                                 struct mm_reservation *memory) {
    struct reading *reading = malloc(sizeof *reading + into->kind->bytes);
    if (reading == NULL)
        return NULL;
    *reading = (struct reading){.form = {.limits = limits, .memory = memory}, .event = MM_MULTIPART_WAIT};
    reading->form.into = memcpy(reading + 1, into, into->kind->bytes);
    for (unsigned index = 0; index < into->count; index++)
        reading->form.operands[index].name = into->of[index].role.name;
    return reading;
}

static void *begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                   const struct mm_limits *limits, struct mm_reservation *memory) {
    struct reading *reading = begin_any(into, limits, memory);
    if (reading == NULL || mm_multipart_begin(&reading->multipart, content_type, NULL) == MM_OK)
        return reading;
    free(reading);
    return NULL;
}

static size_t feed(void *reading, void *body, size_t body_bytes) {
    return read_available(reading, body, body_bytes, false);
}

/* `finish` is quick if no operand is copied and at most SHORT bytes are unread. MM_MULTIPART_END may be
 * missing, because the last line may lack its CRLF. */
static bool is_quick(const void *argument) {
    enum { SHORT = 4096 };
    const struct reading *reading = argument;
    for (unsigned index = 0; index < reading->form.into->count; index++)
        if (mm_form_is_copied(&reading->form, &reading->form.operands[index]))
            return false;
    const struct mm_multipart *multipart = &reading->multipart;
    const size_t begun = multipart->expected > multipart->at ? multipart->expected : multipart->at;
    return reading->event == MM_MULTIPART_END || (begun <= reading->bytes && reading->bytes - begun <= SHORT);
}

/* Ends the reading with this status. After MM_BUSY the caller may call `finish` again. */
static enum mm_status end(struct reading *reading, struct mm_operands *into, enum mm_status status) {
    if (status == MM_OK)
        memcpy(into, reading->form.into, into->kind->bytes);
    if (status != MM_BUSY)
        free(reading);
    return status;
}

static enum mm_status finish(void *argument, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error) {
    struct reading *reading = argument;
    (void)read_available(reading, body->data, body->bytes, true);
    enum mm_status status = reading->error.status;
    if (reading->event == MM_MULTIPART_END)
        status = mm_form_complete(&reading->form, body->data, error);
    else if (error != NULL)
        *error = reading->error;
    return end(reading, into, status);
}

static const struct mm_body_reader reader = {begin, feed, NULL, is_quick, finish, free};

const struct mm_codec mm_form_codec = {
    .media_type = "multipart/form-data",
    .natural_reply = MM_NPY_TYPE,
    .example = {[MM_MATMUL] = "-F a=@a.npy -F b=@b.npy -o c.npy", [MM_TRANSPOSE] = "-F a=@a.npy -o c.npy"},
    .check_type = mm_multipart_check_type,
    .reader = &reader,
};

/* --- functions for a body that is a single file */

static void *begin_alone(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                         const struct mm_limits *limits, struct mm_reservation *memory) {
    struct reading *reading = begin_any(into, limits, memory);
    if (reading == NULL)
        return NULL;
    reading->form.is_alone = true;
    reading->operand = &reading->form.operands[0];
    reading->operand->seen = true;
    reading->operand->is_csv = mm_media_is(content_type, MM_CSV_TYPE);
    return reading;
}

/* Reads the .npy header, because is_quick_alone must know whether the elements will be copied. */
static size_t feed_alone(void *argument, void *body, size_t body_bytes) {
    struct reading *reading = argument;
    struct mm_form_operand *operand = reading->operand;
    if (!operand->is_csv && !reading->has_header)
        reading->has_header = read_header(reading, body, body_bytes, NULL) == MM_OK;
    return body_bytes;
}

static bool is_quick_alone(const void *argument) {
    const struct reading *reading = argument;
    return reading->has_header && !mm_form_is_copied(&reading->form, reading->operand);
}

static enum mm_status finish_alone(void *argument, struct mm_operands *into, const struct mm_body *body,
                                   struct mm_error *error) {
    struct reading *reading = argument;
    struct mm_form_operand *operand = reading->operand;
    char *data = body->data;
    char none[1];
    enum mm_status status = MM_OK;
    if (!operand->is_csv)
        status = read_header(reading, data, body->bytes, error);
    if (status == MM_OK) {
        operand->elements = operand->is_csv ? 0 : operand->header.bytes;
        operand->bytes = body->bytes - operand->elements;
        status = mm_form_complete(&reading->form, data == NULL ? none : data, error);
    }
    return end(reading, into, status);
}

const struct mm_body_reader mm_file_reader = {begin_alone,    feed_alone,   NULL,
                                              is_quick_alone, finish_alone, free};
