/* A .npy file begins with a magic string, a version, and the header's length. The header is a Python dict of
 * three literals. The reader accepts every header that NumPy has ever written, but no other Python text. */
#include "api/npy/npy.h"

#include "api/element.h"
#include "api/codec.h"
#include "api/number/digits.h"
#include "api/slice.h"
#include "api/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = sizeof magic - 1, DESCR_SHOWN_MAX = 40, NUMBER_SHOWN_MAX = 40 };

_Static_assert((int)MM_NPY_HEAD_BYTES_MAX <= (int)MM_REPLY_HEAD_MAX, "a reply has space for the header");

struct reader {
    const char *field;
    const char *text;
    const char *position;
    const char *end;
    bool long_suffix; /* numbers may end in L, as Python 2 wrote them */
    struct mm_error *error;
};

__attribute__((format(printf, 3, 4))) static enum mm_status
fail_file(const char *field, struct mm_error *error, const char *format, ...) {
    char what[240];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return mm_fail_field(error, MM_BAD_REQUEST, field, "the .npy file %s is refused: %s", field, what);
}

/* Fails because the server lacks the element type. The error lists the supported types. */
static enum mm_status fail_descr(const char *field, struct mm_slice descr, struct mm_error *error) {
    char known[96] = "";
    const int shown = descr.length > DESCR_SHOWN_MAX ? DESCR_SHOWN_MAX : (int)descr.length;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        mm_list_add(known, sizeof known, mm_element((enum mm_dtype)dtype)->npy);
    mm_fail_field(
        error, MM_UNSUPPORTED, field,
        "the elements of the .npy file %s are of type '%.*s', but must be one of: %s; convert them, "
        "as NumPy does by %s.astype('float64')",
        field, shown, descr.start, known, field);
    mm_fail_expected(error, "%s", known);
    mm_fail_got(error, "%.*s", shown, descr.start);
    return MM_UNSUPPORTED;
}

static enum mm_status fail_expected(const struct reader *reader, const char *expected) {
    char got[32] = "its end";
    if (reader->position < reader->end) {
        size_t left = (size_t)(reader->end - reader->position);
        snprintf(got, sizeof got, "'%.*s'", left < 16 ? (int)left : 16, reader->position);
    }
    return fail_file(reader->field, reader->error, "character %zu of its header is %s, but should be %s",
                     (size_t)(reader->position - reader->text) + 1, got, expected);
}

static void skip_spaces(struct reader *reader) {
    reader->position = mm_skip_blanks(reader->position, reader->end);
}

/* Skips spaces and then `character`. False if another character comes after the spaces. */
static bool accept(struct reader *reader, char character) {
    skip_spaces(reader);
    if (reader->position == reader->end || *reader->position != character)
        return false;
    reader->position++;
    return true;
}

/* Reads a string in single or double quotes. Escapes are not supported. */
static enum mm_status read_string(struct reader *reader, const char *expected, struct mm_slice *string) {
    skip_spaces(reader);
    const char *start = reader->position;
    if (start == reader->end || (*start != '\'' && *start != '"'))
        return fail_expected(reader, expected);
    const char *stop = memchr(start + 1, *start, (size_t)(reader->end - start - 1));
    if (stop == NULL || memchr(start, '\\', (size_t)(stop - start)) != NULL)
        return fail_expected(reader, expected);
    *string = (struct mm_slice){start + 1, (size_t)(stop - start - 1)};
    reader->position = stop + 1;
    return MM_OK;
}

/* Whether NumPy's type name means this type. The name begins with a mark for the byte order. Any mark may
 * come before a one-byte type. A type that NumPy does not know is written as void, without a byte order. */
static bool is_descr(struct mm_slice descr, enum mm_dtype dtype) {
    const char *npy = mm_element(dtype)->npy;
    const char *marks = mm_dtype_bytes(dtype) == 1 ? "<>=|" : npy[1] == 'V' ? "<|" : "<";
    return descr.length == strlen(npy) && memchr(marks, *descr.start, strlen(marks)) != NULL &&
           memcmp(descr.start + 1, npy + 1, descr.length - 1) == 0;
}

static enum mm_status read_descr(struct reader *reader, struct mm_npy_header *header) {
    struct mm_slice descr = {.start = ""};
    unsigned dtype = 0;
    enum mm_status status = read_string(reader, "a simple type such as '<f4'", &descr);
    if (status != MM_OK)
        return status;
    while (dtype < MM_DTYPE_COUNT && !is_descr(descr, (enum mm_dtype)dtype))
        dtype++;
    if (dtype == MM_DTYPE_COUNT)
        return fail_descr(reader->field, descr, reader->error);
    header->dtype = (enum mm_dtype)dtype;
    header->is_void = descr.start[1] == 'V';
    snprintf(header->descr, sizeof header->descr, "%.*s", (int)descr.length, descr.start);
    return MM_OK;
}

static enum mm_status read_order(struct reader *reader, struct mm_npy_header *header) {
    skip_spaces(reader);
    size_t left = (size_t)(reader->end - reader->position);
    header->is_fortran = left >= 4 && memcmp(reader->position, "True", 4) == 0;
    if (!header->is_fortran && (left < 5 || memcmp(reader->position, "False", 5) != 0))
        return fail_expected(reader, "True or False");
    reader->position += header->is_fortran ? 4 : 5;
    return MM_OK;
}

/* Reads a decimal number without sign and leading zeros. A number above 2⁶⁴−1 becomes 2⁶⁴−1. */
static enum mm_status read_number(struct reader *reader, uint64_t *number) {
    const char *start = reader->position;
    while (reader->position < reader->end && mm_is_digit(*reader->position))
        reader->position++;
    const struct mm_slice digits = {start, (size_t)(reader->position - start)};
    if (!mm_slice_whole(digits, number, NULL) || (digits.length > 1 && *start == '0')) {
        reader->position = start;
        return fail_expected(reader, "a dimension, a decimal non-negative integer");
    }
    if (reader->long_suffix && reader->position < reader->end && *reader->position == 'L')
        reader->position++;
    return MM_OK;
}

static enum mm_status fail_rank(const struct reader *reader, unsigned long rank, struct mm_slice shape) {
    int shown = shape.length > NUMBER_SHOWN_MAX ? NUMBER_SHOWN_MAX : (int)shape.length;
    fail_file(reader->field, reader->error,
              "its shape is %.*s%s, of rank %lu, but the rank may be %u at most; reshape it", shown,
              shape.start, shape.length > NUMBER_SHOWN_MAX ? "..." : "", rank, (unsigned)MM_RANK_MAX);
    mm_fail_expected(reader->error, "rank 0 to %u", (unsigned)MM_RANK_MAX);
    mm_fail_got(reader->error, "rank %lu", rank);
    return MM_BAD_REQUEST;
}

/* Reads a tuple. A comma may follow the last element, and must follow the only one: (3, 4), (3, 4,), (3,). */
static enum mm_status read_shape(struct reader *reader, struct mm_npy_header *header) {
    struct mm_shape shape = {0};
    unsigned long rank = 0;
    bool comma = true;
    skip_spaces(reader);
    const char *start = reader->position;
    if (!accept(reader, '('))
        return fail_expected(reader, "the shape, a tuple such as (2, 3)");
    while (!accept(reader, ')')) {
        uint64_t number;
        if (!comma)
            return fail_expected(reader, "',' or ')'");
        enum mm_status status = read_number(reader, &number);
        if (status != MM_OK)
            return status;
        if (rank < MM_RANK_MAX)
            shape.dims[rank] = number;
        rank++;
        comma = accept(reader, ',');
    }
    if (rank == 1 && !comma)
        return fail_expected(reader, "a tuple, which of one number has a comma, as (3,)");
    if (rank > MM_RANK_MAX)
        return fail_rank(reader, rank, (struct mm_slice){start, (size_t)(reader->position - start)});
    shape.rank = (unsigned)rank;
    header->shape = shape;
    return MM_OK;
}

/* Readers for the dict's members, which may come in any order. */
static const struct {
    const char *key;
    enum mm_status (*read)(struct reader *reader, struct mm_npy_header *header);
} members[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};

enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

static enum mm_status read_member(struct reader *reader, struct mm_npy_header *header, unsigned *seen) {
    static const char expected[] = "one of the keys 'descr', 'fortran_order' and 'shape', each once";
    const char *start = reader->position;
    struct mm_slice key = {.start = ""};
    unsigned index = 0;
    enum mm_status status = read_string(reader, expected, &key);
    if (status != MM_OK)
        return status;
    while (index < MEMBER_COUNT && !mm_slice_is(key, members[index].key))
        index++;
    if (index == MEMBER_COUNT || (*seen & 1u << index) != 0) {
        reader->position = start;
        return fail_expected(reader, expected);
    }
    *seen |= 1u << index;
    if (!accept(reader, ':'))
        return fail_expected(reader, "':'");
    return members[index].read(reader, header);
}

static enum mm_status read_dict(struct reader *reader, struct mm_npy_header *header) {
    unsigned seen = 0;
    bool comma = true;
    if (!accept(reader, '{'))
        return fail_expected(reader, "'{'");
    while (!accept(reader, '}')) {
        if (!comma)
            return fail_expected(reader, "',' or '}'");
        enum mm_status status = read_member(reader, header, &seen);
        if (status != MM_OK)
            return status;
        comma = accept(reader, ',');
    }
    for (unsigned index = 0; index < MEMBER_COUNT; index++)
        if ((seen & 1u << index) == 0)
            return fail_file(reader->field, reader->error, "its header has no '%s'", members[index].key);
    skip_spaces(reader);
    if (reader->position < reader->end && *reader->position == '\n')
        reader->position++;
    return reader->position == reader->end ? MM_OK : fail_expected(reader, "its end");
}

/* Fails because the data is not a .npy file. The error shows the first bytes. If the client forgot curl's @,
 * these bytes are a file's name. */
static enum mm_status fail_magic(const char *field, const char *data, size_t bytes, struct mm_error *error) {
    char got[24] = "is empty";
    size_t shown = 0;
    while (shown < bytes && shown < 8 && data[shown] > ' ' && data[shown] <= '~')
        shown++;
    if (bytes > 0 && shown == 0)
        snprintf(got, sizeof got, "begins with no text");
    else if (bytes > 0)
        snprintf(got, sizeof got, "begins with '%.*s'", (int)shown, data);
    return mm_fail_field(error, MM_BAD_REQUEST, field,
                         "%s %s and is not a .npy file; numpy.save('%s.npy', %s) makes one, and curl "
                         "sends it by -F %s=@%s.npy",
                         field, got, field, field, field, field);
}

enum mm_status mm_npy_read_header(const char *field, const void *data, size_t bytes_max,
                                  struct mm_npy_header *header, struct mm_error *error) {
    const unsigned char *file = data;
    if (bytes_max < MAGIC_BYTES + 2 || memcmp(file, magic, MAGIC_BYTES) != 0)
        return fail_magic(field, data, bytes_max, error);
    unsigned major = file[MAGIC_BYTES];
    unsigned minor = file[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor != 0)
        return fail_file(field, error, "its version is %u.%u, but must be 1.0, 2.0 or 3.0", major, minor);
    size_t length_bytes = major == 1 ? 2 : 4;
    size_t start = MAGIC_BYTES + 2 + length_bytes;
    if (bytes_max < start)
        return fail_file(field, error, "it ends after %zu bytes, within the header's length", bytes_max);
    size_t length = 0;
    for (size_t index = length_bytes; index > 0; index--)
        length = length << 8 | file[MAGIC_BYTES + 2 + index - 1];
    if (length > bytes_max - start)
        return fail_file(field, error, "its header should take %zu bytes, but only %zu are left", length,
                         bytes_max - start);
    const char *text = (const char *)file + start;
    struct reader reader = {.field = field,
                            .text = text,
                            .position = text,
                            .end = text + length,
                            .long_suffix = major < 3,
                            .error = error};
    header->bytes = start + length;
    return read_dict(&reader, header);
}

char *mm_npy_shape_text(const struct mm_shape *shape, char text[MM_NPY_SHAPE_TEXT_MAX]) {
    char *end = mm_put_text(text, "(");
    for (unsigned dim = 0; dim < shape->rank; dim++)
        end = mm_put_digits(mm_put_text(end, dim > 0 ? ", " : ""), shape->dims[dim]);
    end = mm_put_text(end, shape->rank == 1 ? ",)" : ")");
    *end = '\0';
    return end;
}

size_t mm_npy_write_head(const struct mm_shape *shape, enum mm_dtype dtype,
                         char head[MM_NPY_HEAD_BYTES_MAX]) {
    enum { START = MAGIC_BYTES + 4, ALIGNMENT = 64 };
    memset(head, ' ', MM_NPY_HEAD_BYTES_MAX);
    char *end = mm_put_text(head + START, "{'descr': '");
    end = mm_put_text(end, mm_element(dtype)->npy);
    end = mm_put_text(end, "', 'fortran_order': False, 'shape': ");
    end = mm_npy_shape_text(shape, end);
    end = mm_put_text(end, ", }");
    const size_t used = (size_t)(end - head) + 1; /* with the newline */
    const size_t bytes = used <= MM_NPY_HEAD_BYTES ? MM_NPY_HEAD_BYTES : mm_size_round_up(used, ALIGNMENT);
    const size_t length = bytes - START;
    assert(bytes <= MM_NPY_HEAD_BYTES_MAX && length < 256);
    memcpy(head, magic, MAGIC_BYTES);
    memcpy(head + MAGIC_BYTES, (const unsigned char[]){1, 0, (unsigned char)length, 0}, 4);
    head[bytes - 1] = '\n';
    return bytes;
}

/* Defines a function that transposes a matrix. The function works in tiles that fit in the cache, because
 * elements of one row are far apart in `from`. Steps are in elements. */
#define TILE_COPIER(BITS)                                                                                    \
    static void copy_##BITS(const void *from, size_t from_step, void *to, size_t to_step, size_t rows,       \
                            size_t cols) {                                                                   \
        enum { TILE = 32, BYTES = BITS / 8 };                                                                \
        for (size_t top = 0; top < rows; top += TILE)                                                        \
            for (size_t left = 0; left < cols; left += TILE)                                                 \
                for (size_t row = top; row < rows && row < top + TILE; row++)                                \
                    for (size_t col = left; col < cols && col < left + TILE; col++)                          \
                        memcpy((char *)to + (row * to_step + col) * BYTES,                                   \
                               (const char *)from + (row + col * from_step) * BYTES, BYTES);                 \
    }

TILE_COPIER(8)
TILE_COPIER(16)
TILE_COPIER(32)
TILE_COPIER(64)

/* The first and the last dimension form matrices: one for each combination of the other indices. The function
 * transposes one matrix after another. The index of the second dimension changes fastest, because matrices
 * that are neighbours in that dimension share cache lines of `from`. */
void mm_npy_reorder(const struct mm_shape *shape, enum mm_dtype dtype, const void *from, void *to) {
    const size_t bytes = mm_dtype_bytes(dtype);
    const unsigned last = shape->rank - 1;
    size_t from_steps[MM_RANK_MAX] = {1}, to_steps[MM_RANK_MAX] = {0};
    size_t between = 1;
    assert(shape->rank >= 2);
    to_steps[last] = 1;
    for (unsigned dim = 0; dim < last; dim++) {
        from_steps[dim + 1] = from_steps[dim] * shape->dims[dim];
        to_steps[last - dim - 1] = to_steps[last - dim] * shape->dims[last - dim];
        between *= dim > 0 ? shape->dims[dim] : 1;
    }
    for (size_t index = 0; index < between; index++) {
        size_t left = index, from_at = 0, to_at = 0;
        for (unsigned dim = 1; dim < last; dim++) {
            from_at += left % shape->dims[dim] * from_steps[dim];
            to_at += left % shape->dims[dim] * to_steps[dim];
            left /= shape->dims[dim];
        }
        (bytes == 1   ? copy_8
         : bytes == 2 ? copy_16
         : bytes == 4 ? copy_32
                      : copy_64)((const char *)from + from_at * bytes, from_steps[last],
                                 (char *)to + to_at * bytes, to_steps[0], shape->dims[0], shape->dims[last]);
    }
}

/* Copies no element: the header goes into body->head, and the result's buffer into the body. */
static void encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    body->head_bytes = mm_npy_write_head(answer->shape, answer->matrix.dtype, body->head);
    mm_raw_codec.encode(answer, body);
}

/* The codec has no media_type, because clients send .npy files only in forms or as matrices to store. */
const struct mm_codec mm_npy_codec = {
    .reply_type = MM_NPY_TYPE,
    .file_extension = ".npy",
    .first = '\x93',
    .reader = &mm_file_reader,
    .reply_rank_max = MM_RANK_MAX,
    .encode = encode,
};
