/* Reads a form while it arrives. As soon as the header of a matrix's file is here, the length of the elements
 * is known: they are passed over, not searched, and moved down with the rest of their first piece, so that
 * they and all that follow lie aligned. What they are moved over is kept, since whatever is not as clients
 * usually write it is left to form.c, which is given the body as it was sent.
 *
 * The one difference between the two: elements among which the boundary stands, which RFC 2046 forbids, are
 * elements here, while form.c ends the part, and refuses it as too short. */
#include "api/form.h"
#include "api/formats.h"
#include "api/multipart.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 64,              /* of elements, as of the body */
    FIELD_BYTES_MAX = 4096,      /* of a parameter's value; searched again as long as it is not complete, */
    FILE_HEADER_BYTES_MAX = 4096 /* as a file's header is read again */
};

/* What comes next; the order is that of `steps`. */
enum step { DELIMITER, HEADERS, FIELD, FILE_HEADER, END, LEFT_ALONE };

/* A parameter, by places in the body. */
struct field {
    size_t name, name_length;
    size_t value, value_length;
};

/* A matrix's part. */
struct file {
    bool seen;
    struct mm_npy_header header;
    size_t elements, bytes;
};

/* That all from `to` on has been moved down, over so many bytes. */
struct move {
    size_t to, bytes;
    char covered[ALIGNMENT];
};

struct reading {
    const struct mm_call *call;
    const struct mm_limits *limits;
    struct mm_buffers *buffers;
    struct mm_multipart multipart; /* the delimiter, and how many parts were begun */
    char *body;
    size_t bytes; /* of the body, as far as it is here */
    enum step step;
    size_t at; /* where it begins; behind the elements of a file that may still come */
    struct file files[MM_FORM_OPERANDS_MAX];
    unsigned file; /* the one at hand */
    unsigned move_count;
    struct move moves[MM_FORM_OPERANDS_MAX];
    unsigned field_count;
    struct field fields[MM_MULTIPART_PARTS_MAX];
};

static size_t smaller(size_t x, size_t y) {
    return x < y ? x : y;
}

static bool leave_alone(struct reading *reading) {
    reading->step = LEFT_ALONE;
    return false;
}

/* Goes on to what stands at this place. */
static bool go_on(struct reading *reading, enum step step, size_t at) {
    reading->step = step;
    reading->at = at;
    return true;
}

/* The steps. Each looks at a bounded piece of the body from reading->at on, and tells whether the next one
 * may be taken; what is not all there is looked at again when more has come. */

/* Without blanks behind it, and at the body's begin without its CRLF. */
static bool read_delimiter(struct reading *reading) {
    const struct mm_multipart *multipart = &reading->multipart;
    const size_t missing = multipart->parts == 0 ? 2 : 0, length = multipart->delimiter_bytes - missing;
    if (reading->bytes < reading->at || reading->bytes - reading->at < length + 2)
        return false;
    const char *text = reading->body + reading->at;
    const size_t behind = reading->at + length + 2;
    if (memcmp(text, multipart->delimiter + missing, length) != 0)
        return leave_alone(reading);
    if (memcmp(text + length, "--", 2) == 0)
        return go_on(reading, END, behind);
    if (memcmp(text + length, "\r\n", 2) != 0 || multipart->parts == MM_MULTIPART_PARTS_MAX)
        return leave_alone(reading);
    reading->multipart.parts++;
    return go_on(reading, HEADERS, behind);
}

static bool has_delimiter(const struct reading *reading, const char *text, size_t bytes) {
    return memmem(text, bytes, reading->multipart.delimiter, reading->multipart.delimiter_bytes) != NULL;
}

/* Of a part with contents. The CRLF before the headers could begin a delimiter, as could the last one of
 * them. */
static bool read_headers(struct reading *reading) {
    char *text = reading->body + reading->at;
    const size_t bytes = smaller(reading->bytes - reading->at, MM_MULTIPART_HEADER_BYTES_MAX);
    const char *empty_line = memmem(text, bytes, "\r\n\r\n", 4);
    if (empty_line == NULL)
        return false;
    const size_t length = (size_t)(empty_line - text) + 4;
    struct mm_part part;
    if (has_delimiter(reading, text - 2, length + 2) ||
        mm_multipart_read_headers(&reading->multipart, text, text + length, &part, NULL) != MM_OK)
        return leave_alone(reading);
    const size_t contents = reading->at + length;
    assert(part.data == text + length);
    const unsigned operand = mm_form_find_operand(reading->call, part.name, part.name_length);
    if (operand < mm_call_operands(reading->call)) {
        reading->file = operand;
        return reading->files[operand].seen ? leave_alone(reading) : go_on(reading, FILE_HEADER, contents);
    }
    assert(reading->field_count < MM_MULTIPART_PARTS_MAX);
    reading->fields[reading->field_count++] = (struct field){
        .name = (size_t)(part.name - reading->body), .name_length = part.name_length, .value = contents};
    return go_on(reading, FIELD, contents);
}

/* Up to the first delimiter, which the CRLF before the value may begin already. */
static bool read_field(struct reading *reading) {
    const struct mm_multipart *multipart = &reading->multipart;
    const char *text = reading->body + reading->at;
    const size_t bytes =
        smaller(reading->bytes - reading->at + 2, 2 + FIELD_BYTES_MAX + multipart->delimiter_bytes);
    const char *stop = memmem(text - 2, bytes, multipart->delimiter, multipart->delimiter_bytes);
    if (stop == NULL)
        return false;
    if (stop < text)
        return leave_alone(reading);
    const size_t length = (size_t)(stop - text);
    reading->fields[reading->field_count - 1].value_length = length;
    return go_on(reading, DELIMITER, reading->at + length);
}

/* How many bytes the elements take by their header; false where it says something that will be refused. */
static bool foretell(const struct reading *reading, struct file *file) {
    const struct mm_npy_header *header = &file->header;
    enum mm_dtype dtype;
    return mm_dtype_find(header->dtype_name, mm_op_dtypes(reading->call->op), &dtype, NULL) == MM_OK &&
           mm_matrix_size(mm_form_operands[reading->file], dtype, header->rows, header->cols, header->cols,
                          reading->limits, &file->bytes, NULL) == MM_OK;
}

/* Moves all that has come of the elements, and what is behind them, down to where they are aligned. What they
 * are moved over is always of their own part. */
static void align(struct reading *reading, struct file *file) {
    enum { HEADERS_BYTES_MIN = sizeof "Content-Disposition:form-data;name=a\r\n\r\n" - 1 };
    struct move *move = &reading->moves[reading->move_count++];
    char *from = reading->body + file->elements;
    move->bytes = (uintptr_t)from % ALIGNMENT;
    assert(move->bytes <= HEADERS_BYTES_MIN + file->header.bytes);
    char *to = from - move->bytes;
    memcpy(move->covered, to, move->bytes);
    memmove(to, from, reading->bytes - file->elements);
    file->elements -= move->bytes;
    reading->bytes -= move->bytes;
    move->to = file->elements;
}

static bool read_file_header(struct reading *reading) {
    struct file *file = &reading->files[reading->file];
    const size_t bytes = smaller(reading->bytes - reading->at, FILE_HEADER_BYTES_MAX);
    if (mm_form_read_header(reading->call, reading->file, reading->body + reading->at, bytes, &file->header,
                            NULL) != MM_OK)
        return false;
    size_t end;
    file->elements = reading->at + file->header.bytes;
    if (!foretell(reading, file) || !mm_size_add(file->elements, file->bytes, &end))
        return leave_alone(reading);
    file->seen = true;
    if (file->bytes > 0)
        align(reading, file);
    return go_on(reading, DELIMITER, file->elements + file->bytes);
}

/* NULL: nothing is done before all has come. */
static bool (*const steps[])(struct reading *reading) = {[DELIMITER] = read_delimiter,
                                                         [HEADERS] = read_headers,
                                                         [FIELD] = read_field,
                                                         [FILE_HEADER] = read_file_header,
                                                         [END] = NULL,
                                                         [LEFT_ALONE] = NULL};

/* The body, as it was sent. */
static struct mm_body restore(const struct reading *reading, const struct mm_body *body) {
    struct mm_body sent = *body;
    for (unsigned count = reading->move_count; count > 0; count--) {
        const struct move *move = &reading->moves[count - 1];
        char *to = (char *)body->data + move->to;
        memmove(to + move->bytes, to, sent.bytes - move->to);
        memcpy(to, move->covered, move->bytes);
        sent.bytes += move->bytes;
    }
    return sent;
}

static enum mm_status complete(const struct reading *reading, struct mm_call *call,
                               const struct mm_body *body, struct mm_error *error) {
    char *text = body->data;
    struct mm_form_operand operands[MM_FORM_OPERANDS_MAX] = {0};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < reading->field_count && status == MM_OK; index++) {
        const struct field *field = &reading->fields[index];
        status = mm_call_set_field(call, text + field->name, field->name_length, text + field->value,
                                   field->value_length, reading->limits, error);
    }
    if (status != MM_OK)
        return status;
    for (unsigned index = 0; index < MM_FORM_OPERANDS_MAX; index++) {
        const struct file *file = &reading->files[index];
        operands[index] = (struct mm_form_operand){.seen = file->seen,
                                                   .header = file->header,
                                                   .elements = text + file->elements,
                                                   .bytes = file->bytes};
    }
    return mm_form_complete(call, operands, reading->limits, error);
}

static void *begin_reading(const struct mm_call *call, const char *content_type, uint64_t body_bytes,
                           const struct mm_limits *limits, struct mm_buffers *buffers) {
    struct reading *reading = malloc(sizeof *reading);
    (void)body_bytes;
    if (reading == NULL)
        return NULL;
    *reading = (struct reading){.call = call, .limits = limits, .buffers = buffers};
    if (mm_multipart_begin(&reading->multipart, content_type, NULL) == MM_OK)
        return reading;
    free(reading);
    return NULL;
}

static size_t feed_reading(void *argument, void *body, size_t body_bytes, size_t piece_bytes) {
    struct reading *reading = argument;
    (void)piece_bytes;
    reading->body = body;
    reading->bytes = body_bytes;
    while (steps[reading->step] != NULL && steps[reading->step](reading))
        continue;
    return reading->bytes;
}

/* Whether all was read: with nothing behind the last delimiter but a line's end and what follows it. */
static bool is_whole(const void *argument) {
    const struct reading *reading = argument;
    if (reading->step != END)
        return false;
    for (unsigned index = 0; index < mm_call_operands(reading->call); index++)
        if (!reading->files[index].seen)
            return false;
    const size_t behind = reading->bytes - reading->at;
    return behind == 0 || (behind >= 2 && memcmp(reading->body + reading->at, "\r\n", 2) == 0);
}

static enum mm_status finish_reading(void *argument, struct mm_call *call, const struct mm_body *body,
                                     struct mm_error *error) {
    struct reading *reading = argument;
    enum mm_status status;
    if (is_whole(reading)) {
        status = complete(reading, call, body, error);
    } else {
        const struct mm_body sent = restore(reading, body);
        status = mm_form_decode(call, &sent, reading->limits, reading->buffers, error);
    }
    free(reading);
    return status;
}

const struct mm_body_reader mm_form_reader = {begin_reading, feed_reading, is_whole, finish_reading, free};
