/* The scanner of JSON bodies: which characters belong to the operands' elements, and where these go. Of the
 * rest it knows only strings, and the names of members. It never tells an error: it gives up. */
#include "api/json_scan.h"

#include "api/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* An element type: how numbers become it, and whether it has NaN and the infinities. */
static const struct {
    mm_number_reader *read;
    bool has_specials;
} types[] = {
    [MM_FLOAT32] = {mm_number_float32, true},
    [MM_FLOAT64] = {mm_number_float64, true},
    [MM_INT32] = {mm_number_int32, false},
    [MM_INT64] = {mm_number_int64, false},
};

_Static_assert(sizeof types / sizeof types[0] == MM_DTYPE_COUNT, "every element type has its row");

static const char *const operands[MM_JSON_OPERANDS] = {"a", "b"};

static bool is_space(char character) {
    return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

static bool is_of_number(char character) {
    return (character >= '0' && character <= '9') || character == '-' || character == '+' ||
           character == '.' || (character | 0x20) == 'e';
}

static void set_dtype(struct mm_json_scan *scan, enum mm_dtype dtype) {
    scan->dtype = dtype;
    scan->store.element_bytes = mm_dtype_bytes(dtype);
}

static void give_up(struct mm_json_scan *scan) {
    scan->gave_up = true;
    mm_json_scan_cancel(scan);
}

/* --- elements */

static void put_element(struct mm_json_scan *scan, const void *element, const char *at, const char *end) {
    void *place = mm_json_store_place(&scan->store, at, end);
    if (place != NULL) {
        memcpy(place, element, scan->store.element_bytes);
        scan->store.used_bytes += scan->store.element_bytes;
    }
    scan->col++;
    scan->place = MM_JSON_ELEMENT_ENDED;
}

/* The strings that stand for what JSON has no numbers for. False where the text is none of them. */
static bool read_special(const struct mm_json_scan *scan, const char *text, size_t bytes, void *element) {
    static const struct {
        const char *text;
        float value;
    } specials[] = {{"\"NaN\"", NAN}, {"\"Infinity\"", INFINITY}, {"\"-Infinity\"", -INFINITY}};
    size_t index = 0;
    while (index < sizeof specials / sizeof specials[0] &&
           (strlen(specials[index].text) != bytes || memcmp(specials[index].text, text, bytes) != 0))
        index++;
    if (index == sizeof specials / sizeof specials[0] || !types[scan->dtype].has_specials)
        return false;
    const double wide = (double)specials[index].value;
    if (scan->dtype == MM_FLOAT32)
        memcpy(element, &specials[index].value, sizeof specials[index].value);
    else
        memcpy(element, &wide, sizeof wide);
    return true;
}

/* Takes an element whose text is complete. `at` is what follows it. */
static void take_token(struct mm_json_scan *scan, const char *text, size_t bytes, const char *at,
                       const char *end) {
    uint64_t element = 0;
    bool is_element =
        *text == '"' ? read_special(scan, text, bytes, &element)
                     : types[scan->dtype].read(text, text + bytes, &element, &scan->held) == text + bytes;
    if (!is_element)
        give_up(scan);
    else
        put_element(scan, &element, at, end);
}

/* The end of the element's text that begins with `first`, of which what stands here is a part: NULL where it
 * is not in this piece. */
static const char *find_end(char first, const char *at, const char *end) {
    if (first == '"') {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        return quote == NULL ? NULL : quote + 1;
    }
    while (at < end && is_of_number(*at))
        at++;
    return at < end ? at : NULL;
}

static bool carry(struct mm_json_scan *scan, const char *at, size_t bytes) {
    if (bytes > sizeof scan->carry - scan->carry_bytes) {
        give_up(scan);
        return false;
    }
    memcpy(scan->carry + scan->carry_bytes, at, bytes);
    scan->carry_bytes += bytes;
    return true;
}

/* Goes on with an element that began in the piece before. */
static const char *take_carried(struct mm_json_scan *scan, const char *at, const char *end) {
    const char *stop = find_end(scan->carry[0], at, end);
    if (!carry(scan, at, (size_t)((stop == NULL ? end : stop) - at)) || stop == NULL)
        return end;
    take_token(scan, scan->carry, scan->carry_bytes, stop, end);
    scan->carry_bytes = 0;
    return stop;
}

/* Takes an element of which a number's reader did not know what to make: a string, or one that is cut off by
 * the end of the piece, or none at all. */
static const char *take_unusual(struct mm_json_scan *scan, const char *at, const char *end) {
    const char *stop = find_end(*at, at + 1, end);
    if (stop == NULL) {
        (void)carry(scan, at, (size_t)(end - at));
        return end;
    }
    take_token(scan, at, (size_t)(stop - at), stop, end);
    return stop;
}

/* What passes a limit on dimensions with the element that is about to come needs no memory: it is only
 * judged. */
static void judge_dimensions(struct mm_json_scan *scan) {
    const size_t dimension_max = scan->store.limits->dimension_max;
    if (scan->store.keeps && (scan->matrix->rows >= dimension_max || scan->col >= dimension_max))
        mm_json_store_drop(&scan->store);
}

/* Takes numbers with commas between them for as long as nothing else comes; the first one stands here. This
 * is where the time goes. */
static const char *take_numbers(struct mm_json_scan *scan, const char *at, const char *end) {
    mm_number_reader *const read = types[scan->dtype].read;
    uint64_t unwanted;
    bool held = scan->held;
    judge_dimensions(scan);
    for (;;) {
        void *place = mm_json_store_place(&scan->store, at, end);
        const char *stop = read(at, end, place == NULL ? &unwanted : place, &held);
        scan->held = held;
        if (stop == NULL || stop == end)
            return take_unusual(scan, at, end);
        at = stop;
        scan->store.used_bytes += place == NULL ? 0 : scan->store.element_bytes;
        scan->col++;
        scan->place = MM_JSON_ELEMENT_ENDED;
        if (*at != ',')
            return at;
        scan->place = MM_JSON_ELEMENT;
        do
            at++;
        while (at < end && is_space(*at));
        if (at == end)
            return at;
    }
}

/* --- matrices */

static void begin_matrix(struct mm_json_scan *scan, struct mm_json_scanned *matrix) {
    *matrix = (struct mm_json_scanned){.seen = true, .offset = mm_json_store_align(&scan->store)};
    scan->matrix = matrix;
    scan->place = MM_JSON_MATRIX_OPEN;
}

static void put_rest(struct mm_json_scan *scan, char character) {
    if (scan->rest_bytes == sizeof scan->rest)
        give_up(scan);
    else
        scan->rest[scan->rest_bytes++] = character;
}

/* An array in its place is a token of its own wherever the matrix is one. */
static void end_matrix(struct mm_json_scan *scan) {
    put_rest(scan, '[');
    put_rest(scan, ']');
    scan->place = MM_JSON_REST;
}

static void end_row(struct mm_json_scan *scan) {
    if (scan->matrix->rows == 0)
        scan->matrix->cols = scan->col;
    else if (scan->matrix->cols != scan->col)
        give_up(scan);
    scan->matrix->rows++;
    scan->place = MM_JSON_ROW_ENDED;
}

/* Takes what stands here, which is no space: a bracket, a comma, or elements. */
static const char *take_of_matrix(struct mm_json_scan *scan, const char *at, const char *end) {
    const enum mm_json_place place = scan->place;
    const bool may_close = place != MM_JSON_ROW_EXPECTED && place != MM_JSON_ELEMENT;
    const bool in_row =
        place == MM_JSON_ROW_OPEN || place == MM_JSON_ELEMENT || place == MM_JSON_ELEMENT_ENDED;
    if (*at == ']' && may_close) {
        if (in_row)
            end_row(scan);
        else
            end_matrix(scan);
    } else if (*at == '[' && (place == MM_JSON_MATRIX_OPEN || place == MM_JSON_ROW_EXPECTED)) {
        scan->col = 0;
        scan->place = MM_JSON_ROW_OPEN;
    } else if (*at == ',' && (place == MM_JSON_ELEMENT_ENDED || place == MM_JSON_ROW_ENDED)) {
        scan->place = in_row ? MM_JSON_ELEMENT : MM_JSON_ROW_EXPECTED;
    } else if (place == MM_JSON_ROW_OPEN || place == MM_JSON_ELEMENT) {
        return take_numbers(scan, at, end);
    } else {
        give_up(scan);
    }
    return at + 1;
}

/* --- the rest */

static bool key_is(const struct mm_json_scan *scan, const char *name) {
    return scan->key_bytes == strlen(name) && memcmp(scan->key, name, scan->key_bytes) == 0;
}

/* The operand whose value is expected; NULL: no value is, or another member's. */
static struct mm_json_scanned *expected_operand(struct mm_json_scan *scan) {
    assert(scan->operands <= MM_JSON_OPERANDS);
    if (scan->member == MM_JSON_VALUE_EXPECTED)
        for (unsigned index = 0; index < scan->operands; index++)
            if (key_is(scan, operands[index]))
                return &scan->matrices[index];
    return NULL;
}

/* A type that is told before the elements. Where this is mistaken, they are scanned once more when Jansson
 * has read what there is. */
static void notice_dtype(struct mm_json_scan *scan) {
    char name[16];
    const size_t bytes = scan->rest_bytes - scan->value_start - 1; /* without the quotes */
    if (!key_is(scan, "dtype") || bytes >= sizeof name || scan->matrices[0].seen || scan->matrices[1].seen)
        return;
    memcpy(name, scan->rest + scan->value_start + 1, bytes);
    name[bytes] = '\0';
    enum mm_dtype dtype;
    if (mm_dtype_find(name, mm_op_dtypes(scan->op), &dtype, NULL) == MM_OK)
        set_dtype(scan, dtype);
}

static void begin_string(struct mm_json_scan *scan) {
    scan->in_string = true;
    scan->value_start = scan->rest_bytes;
    if (scan->member == MM_JSON_KEY_EXPECTED) {
        scan->member = MM_JSON_KEY;
        scan->key_bytes = 0;
    } else if (scan->member == MM_JSON_VALUE_EXPECTED) {
        scan->member = MM_JSON_VALUE;
    }
}

static void end_string(struct mm_json_scan *scan) {
    scan->in_string = false;
    if (scan->member == MM_JSON_VALUE)
        notice_dtype(scan);
    if (scan->member == MM_JSON_KEY)
        scan->member = MM_JSON_KEY_ENDED;
}

/* A key with an escape may be another one than it looks. */
static void take_of_string(struct mm_json_scan *scan, char character) {
    if (scan->escaped) {
        scan->escaped = false;
    } else if (character == '\\') {
        scan->escaped = true;
        if (scan->member == MM_JSON_KEY)
            give_up(scan);
    } else if (character == '"') {
        end_string(scan);
    } else if (scan->member == MM_JSON_KEY) {
        if (scan->key_bytes < sizeof scan->key)
            scan->key[scan->key_bytes] = character;
        scan->key_bytes++;
    }
    put_rest(scan, character);
}

/* Takes a character outside of strings and matrices. Spaces are kept as one, since they part words. No
 * parameter is an array or an object, so that what has further brackets is left alone. */
static void take_of_rest(struct mm_json_scan *scan, char character) {
    struct mm_json_scanned *operand = expected_operand(scan);
    if (is_space(character)) {
        if (scan->rest_bytes > 0 && scan->rest[scan->rest_bytes - 1] != ' ')
            put_rest(scan, ' ');
        return;
    }
    if (operand != NULL && character == '[') {
        scan->member = MM_JSON_VALUE;
        begin_matrix(scan, operand);
        return;
    }
    if (operand != NULL || character == '[' || (character == '{') != (scan->member == MM_JSON_BEFORE)) {
        give_up(scan);
        return;
    }
    if (character == '"')
        begin_string(scan);
    else if (character == ':')
        scan->member = MM_JSON_VALUE_EXPECTED;
    else if (character == ',' || character == '{')
        scan->member = MM_JSON_KEY_EXPECTED;
    else if (character == '}')
        scan->member = MM_JSON_BEHIND;
    put_rest(scan, character);
}

/* --- the whole */

static void begin(struct mm_json_scan *scan, enum mm_dtype dtype, uint64_t body_bytes,
                  const struct mm_limits *limits, struct mm_buffers *buffers) {
    mm_json_store_begin(&scan->store, body_bytes, limits, buffers);
    set_dtype(scan, dtype);
    scan->gave_up = scan->in_string = scan->escaped = false;
    scan->held = true;
    memset(scan->matrices, 0, sizeof scan->matrices);
    scan->matrix = NULL;
    scan->place = MM_JSON_REST;
    scan->member = MM_JSON_BEFORE;
    scan->rest_bytes = scan->key_bytes = scan->value_start = scan->carry_bytes = 0;
}

void mm_json_scan_begin(struct mm_json_scan *scan, const struct mm_call *call, uint64_t body_bytes,
                        const struct mm_limits *limits, struct mm_buffers *buffers) {
    enum mm_dtype dtype = MM_FLOAT32;
    (void)mm_dtype_find(call->names[MM_PARAMETER_DTYPE], mm_op_dtypes(call->op), &dtype, NULL);
    scan->op = call->op;
    scan->operands = mm_call_operands(call);
    begin(scan, dtype, body_bytes, limits, buffers);
}

void mm_json_scan_again(struct mm_json_scan *scan, enum mm_dtype dtype, struct mm_buffer storage,
                        const struct mm_body *body) {
    assert(scan->store.memory.data == NULL);
    begin(scan, dtype, body->bytes, scan->store.limits, scan->store.buffers);
    scan->store.keeps = storage.data != NULL;
    scan->store.memory = storage;
    scan->store.room_bytes = storage.bytes;
    (void)mm_json_scan_feed(scan, body->data, body->bytes);
}

bool mm_json_scan_feed(struct mm_json_scan *scan, const char *piece, size_t bytes) {
    if (bytes == 0) /* then there may be no piece to point at */
        return !scan->gave_up;
    const char *at = piece;
    const char *const end = piece + bytes;
    uint64_t *left = &scan->store.bytes_left;
    if (*left != MM_LENGTH_UNKNOWN)
        *left -= bytes < *left ? bytes : *left;
    if (scan->carry_bytes > 0 && !scan->gave_up)
        at = take_carried(scan, at, end);
    while (at < end && !scan->gave_up) {
        if (scan->place != MM_JSON_REST)
            at = is_space(*at) ? at + 1 : take_of_matrix(scan, at, end);
        else if (scan->in_string)
            take_of_string(scan, *at++);
        else
            take_of_rest(scan, *at++);
    }
    return !scan->gave_up;
}

bool mm_json_scan_is_whole(const struct mm_json_scan *scan) {
    return scan->member == MM_JSON_BEHIND && !scan->gave_up;
}

void mm_json_scan_cancel(struct mm_json_scan *scan) {
    mm_json_store_drop(&scan->store);
}
