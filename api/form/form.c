/* Forms (multipart/form-data), read while they arrive. The parts a and b are .npy or CSV files; all other
 * parts are parameters. A .npy header tells the length of its elements, so the elements are skipped and not
 * searched for a delimiter. They move down to an aligned place with the rest of their first chunk, and the
 * operand's view points into the body. CSV files, and stacks in Fortran order, are copied into other memory
 * once the form is complete. */
#include "api/codec.h"
#include "api/csv/csv.h"
#include "api/form/multipart.h"
#include "api/npy/npy.h"
#include "api/slice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are sent in the byte order of memory");

enum {
    ALIGNMENT = 64,               /* of elements, and of the body */
    FILE_HEADER_BYTES_MAX = 4096, /* a longer header is read when its part is complete */
};

struct operand {
    const char *name; /* static */
    bool seen;
    bool is_csv;
    struct mm_npy_header header; /* CSV: only the shape */
    struct mm_csv csv;
    size_t elements; /* offset in the body */
    size_t bytes;    /* from `elements` to the end of the part */
};

struct reading {
    struct mm_operands *into; /* copy behind this struct, with all parameters so far */
    bool is_alone;            /* the body is one file, operand 0, and no form */
    const struct mm_limits *limits;
    struct mm_reservation *memory;
    struct mm_multipart multipart;
    struct mm_part part;
    struct operand operands[MM_OPERANDS_MAX];
    struct operand *operand; /* of the current part; NULL: a parameter */
    bool in_header;          /* the header of the current part, a .npy file, is still arriving */
    bool has_header;         /* the header of a file alone was read */
    size_t bytes;            /* of the body, arrived so far */
    enum mm_multipart_event event;
    struct mm_error error; /* with MM_MULTIPART_FAULT */
};

/* --- parts */

static enum mm_status read_header(struct reading *reading, const char *file, size_t bytes,
                                  struct mm_error *error) {
    struct operand *operand = reading->operand;
    return mm_npy_read_header(operand->name, file, bytes, &operand->header, error);
}

/* Moves the elements that have arrived, and everything behind them, down to an aligned place over their
 * part's headers. Returns the new size of the body. */
static size_t align(struct reading *reading, char *body, size_t bytes) {
    enum { HEADERS_BYTES_MIN = sizeof "Content-Disposition:form-data;name=a\r\n\r\n" - 1 };
    struct operand *operand = reading->operand;
    char *from = body + operand->elements;
    const size_t past = (uintptr_t)from % ALIGNMENT;
    assert(past <= HEADERS_BYTES_MIN + operand->header.bytes);
    memmove(from - past, from, bytes - operand->elements);
    operand->elements -= past;
    return bytes - past;
}

/* Reads a .npy header while it arrives, and sets where the elements end. If the header cannot be read yet, or
 * will be refused, the end of the part is searched for instead. Returns the new size of the body. */
static size_t begin_file(struct reading *reading, char *body, size_t bytes, bool is_all) {
    struct operand *operand = reading->operand;
    const size_t data = reading->part.data, left = bytes - data;
    const size_t looked_at = left < FILE_HEADER_BYTES_MAX ? left : FILE_HEADER_BYTES_MAX;
    size_t file_bytes, end;
    const bool is_read = read_header(reading, body + data, looked_at, NULL) == MM_OK;
    reading->in_header = !is_read && looked_at < FILE_HEADER_BYTES_MAX && !is_all;
    if (!is_read)
        return bytes;
    const struct mm_npy_header *header = &operand->header;
    operand->elements = data + header->bytes;
    if (mm_shape_size(operand->name, &header->shape, header->dtype, reading->limits, &file_bytes, NULL) !=
            MM_OK ||
        !mm_size_add(operand->elements, file_bytes, &end))
        return bytes;
    if (file_bytes > 0)
        bytes = align(reading, body, bytes);
    reading->multipart.at = operand->elements;
    reading->multipart.expected = operand->elements + file_bytes;
    return bytes;
}

/* Whether a file is CSV, by its media type or its name. All other files are .npy. */
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
        mm_parameter_find(&reading->into->parameters, MM_IN_FORM, body + part->name, part->name_length);
    const bool is_operand = row != NULL && row->kind == MM_KIND_OPERAND;
    reading->operand = is_operand ? &reading->operands[mm_operand_index(row)] : NULL;
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
    struct operand *operand = reading->operand;
    enum mm_status status = MM_OK;
    if (operand == NULL)
        status = mm_parameter_set_text(&reading->into->parameters, MM_IN_FORM, body + part->name,
                                       part->name_length, body + part->data, part->bytes, reading->limits,
                                       &reading->error);
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

/* Reads as far as the body has arrived. Returns the new size of the body, because elements may move down. */
static size_t read_on(struct reading *reading, char *body, size_t bytes, bool is_all) {
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

/* --- the operands */

static unsigned list_npy_files(const struct reading *reading, const struct operand *files[MM_OPERANDS_MAX]) {
    unsigned count = 0;
    for (unsigned index = 0; index < reading->into->count; index++)
        if (reading->operands[index].seen && !reading->operands[index].is_csv)
            files[count++] = &reading->operands[index];
    return count;
}

/* Checks that all .npy files have one element type, and that dtype does not contradict it. `asked` is the
 * value of dtype; NULL: not set. If NumPy does not know the type, the request must set dtype. */
static enum mm_status check_dtypes(const struct reading *reading, const struct operand *const *files,
                                   unsigned count, const char *asked, struct mm_error *error) {
    const struct mm_npy_header *first = &files[0]->header;
    const char *first_name = mm_dtype_name(first->dtype);
    char names[MM_OPERANDS_MAX * MM_PARAMETER_NAME_MAX] = "";
    for (unsigned index = 0; index < count; index++) {
        const struct operand *file = files[index];
        strcat(strcat(names, index > 0 ? " and " : ""), file->name);
        if (file->header.dtype != first->dtype)
            return mm_fail_field(error, MM_BAD_REQUEST, file->name,
                                 "%s has elements of type %s ('%s'), but %s of type %s ('%s'); convert one, "
                                 "as NumPy does by %s.astype(%s.dtype)",
                                 file->name, mm_dtype_name(file->header.dtype), file->header.descr,
                                 files[0]->name, first_name, first->descr, file->name, files[0]->name);
    }
    if (first->is_void && asked == NULL)
        return mm_fail_field(error, MM_UNSUPPORTED, "dtype",
                             "the elements of %s are of type '%s', which NumPy writes for types that it does "
                             "not know; if they are %s, add %sdtype=%s",
                             names, first->descr, first_name, reading->is_alone ? "?" : "-F ", first_name);
    if (asked != NULL && strcmp(asked, first_name) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, "dtype",
                             "dtype is '%s', but the elements of %s are of type %s ('%s'); %s", asked, names,
                             first_name, first->descr,
                             first->is_void ? "give that type, or convert them"
                                            : "leave dtype out, since a .npy file names its type");
    return MM_OK;
}

/* Sets the element type of all operands. A .npy file names it; without such a file dtype does, and CSV is
 * read as that type. */
static enum mm_status set_dtype(struct reading *reading, struct mm_error *error) {
    struct mm_operands *into = reading->into;
    const struct operand *files[MM_OPERANDS_MAX];
    const unsigned count = list_npy_files(reading, files);
    const bool is_asked = mm_parameter_is_set(&into->parameters, into->dtype_name);
    enum mm_status status = is_asked || count == 0 ? into->kind->resolve(into, error) : MM_OK;
    if (status != MM_OK || count == 0)
        return status;
    status = check_dtypes(reading, files, count, is_asked ? into->dtype_name : NULL, error);
    if (status != MM_OK)
        return status;
    strcpy(into->dtype_name, mm_dtype_name(files[0]->header.dtype));
    into->parameters.told |=
        mm_parameter_bit(&into->parameters, into->dtype_name); /* a stored operand must have this type too */
    return into->kind->resolve(into, error);
}

static enum mm_status open_csv(struct reading *reading, const char *body, struct mm_error *error) {
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < reading->into->count && status == MM_OK; index++) {
        struct operand *operand = &reading->operands[index];
        if (!operand->is_csv)
            continue;
        status = mm_csv_open(operand->name, body + operand->elements, operand->bytes, reading->into->dtype,
                             &operand->csv, error);
        operand->header.shape = mm_shape_of_matrix(operand->csv.rows, operand->csv.cols);
    }
    return status;
}

/* Whether the elements must be copied: CSV is text, and a view cannot cover a stack in Fortran order. */
static bool is_copied(const struct reading *reading, const struct operand *operand) {
    const unsigned viewed_rank = reading->into->kind->is_row_major ? 1 : 2;
    return operand->is_csv || (operand->header.is_fortran && operand->header.shape.rank > viewed_rank);
}

/* Copies the elements that no view can show into one block of memory. `bytes` has the size of each
 * operand. */
static enum mm_status copy_files(struct reading *reading, const char *body, const size_t *bytes,
                                 struct mm_error *error) {
    struct mm_operands *into = reading->into;
    const struct operand *operands = reading->operands;
    size_t places[MM_OPERANDS_MAX], all_bytes = 0;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < into->count; index++) {
        places[index] = mm_size_round_up(all_bytes, ALIGNMENT);
        if (is_copied(reading, &operands[index]) && bytes[index] > 0)
            all_bytes = places[index] + bytes[index];
    }
    if (all_bytes > 0)
        status = mm_reservation_acquire(reading->memory, all_bytes, &into->storage, error);
    for (unsigned index = 0; index < into->count && status == MM_OK; index++) {
        const struct operand *operand = &operands[index];
        if (!is_copied(reading, operand) || bytes[index] == 0)
            continue;
        void *data = into->of[index].view.data = (char *)into->storage.data + places[index];
        if (operand->is_csv)
            status = mm_csv_read(&operand->csv, data, error);
        else
            mm_npy_reorder(&operand->header.shape, into->dtype, body + operand->elements, data);
    }
    if (status != MM_OK)
        mm_operands_release(into, reading->memory);
    return status;
}

static enum mm_status check_length(const struct operand *operand, size_t bytes, struct mm_error *error) {
    char shape[MM_NPY_SHAPE_TEXT_MAX];
    const char *name = operand->name;
    const size_t got = operand->bytes;
    if (got == bytes)
        return MM_OK;
    mm_npy_shape_text(&operand->header.shape, shape);
    mm_fail_field(error, MM_BAD_REQUEST, name,
                  "%s has the shape %s of %s by its header, which takes %zu bytes, but %zu bytes follow",
                  name, shape, mm_dtype_name(operand->header.dtype), bytes, got);
    mm_fail_expected(error, "%zu bytes", bytes);
    mm_fail_got(error, "%zu bytes", got);
    return MM_BAD_REQUEST;
}

/* Returns the elements, aligned to `alignment`. If align() could not move them while they arrived, they move
 * down now, over their file's header. */
static void *align_elements(const struct operand *operand, char *body, size_t bytes, size_t alignment) {
    char *data = body + operand->elements;
    size_t past = (uintptr_t)data % alignment;
    if (bytes == 0)
        return NULL;
    assert(past <= operand->header.bytes);
    return past == 0 ? data : memmove(data - past, data, bytes);
}

/* For rank 1 the order makes no difference. */
static bool is_column_major(const struct reading *reading, const struct operand *operand) {
    return operand->header.is_fortran && operand->header.shape.rank == 2 && !is_copied(reading, operand);
}

/* MM_BAD_REQUEST if an operand that must come with the form is missing. */
static enum mm_status check_parts(const struct reading *reading, struct mm_error *error) {
    const struct operand *operands = reading->operands;
    for (unsigned index = 0; index < reading->into->count; index++)
        if (!operands[index].seen && mm_operand_is_inline(&reading->into->of[index]))
            return mm_fail_field(
                error, MM_BAD_REQUEST, operands[index].name,
                "the form has no part named %s; add a .npy or .csv file, as curl does by -F %s=@%s.npy",
                operands[index].name, operands[index].name, operands[index].name);
    return MM_OK;
}

static enum mm_status set_shapes(struct reading *reading, size_t *bytes, struct mm_error *error) {
    struct mm_operands *into = reading->into;
    const struct operand *operands = reading->operands;
    const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
    for (unsigned index = 0; index < into->count; index++)
        if (operands[index].seen)
            shapes[index] = &operands[index].header.shape;
    enum mm_status status = mm_operands_set_shapes(into, shapes, error);
    if (status != MM_OK)
        return status;
    mm_operands_view(into);
    status = into->kind->sizes(into, reading->limits, bytes, error);
    for (unsigned index = 0; index < into->count && status == MM_OK; index++)
        if (operands[index].seen && !operands[index].is_csv)
            status = check_length(&operands[index], bytes[index], error);
    return status;
}

/* Points the views of operands that are not copied into the body. */
static void point_views(struct reading *reading, char *body, const size_t *bytes) {
    struct mm_operands *into = reading->into;
    const struct operand *operands = reading->operands;
    for (unsigned index = 0; index < into->count; index++) {
        into->of[index].column_major = is_column_major(reading, &operands[index]);
        if (is_copied(reading, &operands[index]) || !operands[index].seen)
            continue;
        into->views_body = true;
        into->of[index].view.data =
            align_elements(&operands[index], body, bytes[index], mm_dtype_bytes(into->dtype));
    }
}

static enum mm_status complete_operands(struct reading *reading, char *body, struct mm_error *error) {
    size_t bytes[MM_OPERANDS_MAX];
    enum mm_status status = check_parts(reading, error);
    if (status == MM_OK)
        status = set_dtype(reading, error);
    if (status == MM_OK)
        status = open_csv(reading, body, error);
    if (status == MM_OK)
        status = set_shapes(reading, bytes, error);
    if (status == MM_OK)
        status = copy_files(reading, body, bytes, error);
    if (status == MM_OK)
        point_views(reading, body, bytes);
    return status;
}

/* --- the codec's functions */

static struct reading *begin_any(const struct mm_operands *into, const struct mm_limits *limits,
                                 struct mm_reservation *memory) {
    struct reading *reading = malloc(sizeof *reading + into->kind->bytes);
    if (reading == NULL)
        return NULL;
    *reading = (struct reading){.limits = limits, .memory = memory, .event = MM_MULTIPART_WAIT};
    reading->into = memcpy(reading + 1, into, into->kind->bytes);
    for (unsigned index = 0; index < into->count; index++)
        reading->operands[index].name = into->of[index].role.name;
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
    return read_on(reading, body, body_bytes, false);
}

/* Quick: nothing is copied, and at most a short rest is unread. MM_MULTIPART_END may be missing, because the
 * last line may lack its CRLF. */
static bool is_quick(const void *argument) {
    enum { SHORT = 4096 };
    const struct reading *reading = argument;
    for (unsigned index = 0; index < reading->into->count; index++)
        if (is_copied(reading, &reading->operands[index]))
            return false;
    const struct mm_multipart *multipart = &reading->multipart;
    const size_t begun = multipart->expected > multipart->at ? multipart->expected : multipart->at;
    return reading->event == MM_MULTIPART_END || (begun <= reading->bytes && reading->bytes - begun <= SHORT);
}

static enum mm_status finish(void *argument, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error) {
    struct reading *reading = argument;
    (void)read_on(reading, body->data, body->bytes, true);
    enum mm_status status = reading->error.status;
    if (reading->event == MM_MULTIPART_END)
        status = complete_operands(reading, body->data, error);
    else if (error != NULL)
        *error = reading->error;
    if (status == MM_OK)
        memcpy(into, reading->into, into->kind->bytes);
    if (status != MM_BUSY)
        free(reading);
    return status;
}

static const struct mm_body_reader reader = {begin, feed, NULL, is_quick, finish, free};

const struct mm_codec mm_form_codec = {
    .media_type = "multipart/form-data",
    .natural_reply = MM_NPY_TYPE,
    .example = {[MM_MATMUL] = "-F a=@a.npy -F b=@b.npy -o c.npy", [MM_TRANSPOSE] = "-F a=@a.npy -o c.npy"},
    .check_type = mm_multipart_check_type,
    .reader = &reader,
};

/* --- a file alone, which is operand 0 */

static struct reading *begin_alone(const struct mm_operands *into, const struct mm_limits *limits,
                                   struct mm_reservation *memory, bool is_csv) {
    struct reading *reading = begin_any(into, limits, memory);
    if (reading == NULL)
        return NULL;
    reading->is_alone = true;
    reading->operand = &reading->operands[0];
    reading->operand->seen = true;
    reading->operand->is_csv = is_csv;
    return reading;
}

static void *begin_npy(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                       const struct mm_limits *limits, struct mm_reservation *memory) {
    return begin_alone(into, limits, memory, false);
}

static void *begin_csv(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                       const struct mm_limits *limits, struct mm_reservation *memory) {
    return begin_alone(into, limits, memory, true);
}

/* Reads only the header, which tells whether the elements are copied. */
static size_t feed_alone(void *argument, void *body, size_t body_bytes) {
    struct reading *reading = argument;
    struct operand *operand = reading->operand;
    if (!operand->is_csv && !reading->has_header)
        reading->has_header = read_header(reading, body, body_bytes, NULL) == MM_OK;
    return body_bytes;
}

static bool is_quick_alone(const void *argument) {
    const struct reading *reading = argument;
    return reading->has_header && !is_copied(reading, reading->operand);
}

static enum mm_status finish_alone(void *argument, struct mm_operands *into, const struct mm_body *body,
                                   struct mm_error *error) {
    struct reading *reading = argument;
    struct operand *operand = reading->operand;
    char *data = body->data;
    char none[1];
    enum mm_status status = MM_OK;
    if (!operand->is_csv)
        status = read_header(reading, data, body->bytes, error);
    if (status == MM_OK) {
        operand->elements = operand->is_csv ? 0 : operand->header.bytes;
        operand->bytes = body->bytes - operand->elements;
        status = complete_operands(reading, data == NULL ? none : data, error);
    }
    if (status == MM_OK)
        memcpy(into, reading->into, into->kind->bytes);
    if (status != MM_BUSY)
        free(reading);
    return status;
}

const struct mm_body_reader mm_npy_file_reader = {begin_npy,      feed_alone,   NULL,
                                                  is_quick_alone, finish_alone, free};
const struct mm_body_reader mm_csv_file_reader = {begin_csv,      feed_alone,   NULL,
                                                  is_quick_alone, finish_alone, free};
