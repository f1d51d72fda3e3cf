/* Turns the tokens of a JSON request into operands and elements; json_parameter.c reads the other members. A
 * syntax error ends the scan. After any other fault the scan continues, because a later syntax error must be
 * reported instead of that fault. */
#include "api/json/json_scan.h"

#include "api/element.h"
#include "api/number/float_text.h"
#include "api/slice.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mm_json_indices indices_here(const struct mm_json_scan *scan, unsigned count) {
    struct mm_json_indices indices = {.count = count};
    memcpy(indices.of, scan->counts, count * sizeof indices.of[0]);
    return indices;
}

static void set_rank(struct mm_json_scanned *operand, unsigned rank) {
    operand->shape.rank = rank;
    operand->known = rank + 1;
}

/* Returns the operand in scan->into that belongs to a scanned operand. */
static struct mm_operand *operand_of(const struct mm_json_scan *scan, const struct mm_json_scanned *scanned) {
    return &scan->into->of[scanned - scan->operands];
}

static void refuse_element(struct mm_json_scan *scan, struct mm_json_token token) {
    struct mm_json_scanned *operand = scan->operand;
    if (!operand->has_refused) {
        operand->has_refused = true;
        operand->refused_at = indices_here(scan, scan->level);
        operand->refused = token;
    }
    mm_json_store_drop(&scan->store);
}

/* Reads the string "NaN", "Infinity" or "-Infinity" as an element. */
static bool read_special(const struct mm_element *type, const char *text, struct mm_json_token token,
                         void *element) {
    char buffer[MM_JSON_TEXT_MAX];
    float value;
    return type->put_special != NULL && mm_float_of_word(mm_json_value(text, token, buffer).text, &value) &&
           type->put_special(value, element);
}

/* Drops the stored elements if an array becomes longer than the limit on dimensions. The scan then only
 * checks elements, and stores none. */
static void check_dimensions(struct mm_json_scan *scan) {
    const size_t dimension_max = scan->store.limits->dimension_max;
    bool passes = false;
    for (unsigned level = 0; level < scan->level; level++)
        passes = passes || scan->counts[level] >= dimension_max;
    if (passes && scan->store.keeps)
        mm_json_store_drop(&scan->store);
}

/* Stores one element that store_numbers cannot read, such as "NaN". */
static void store_element(struct mm_json_scan *scan, const char *text, size_t bytes) {
    const struct mm_json_token token = scan->reader.token;
    const enum mm_dtype dtype = scan->operand->dtype;
    const struct mm_element *type = mm_element(dtype);
    const char *at = text + token.at;
    uint64_t element = 0;
    bool fits = token.kind == MM_VALUE_TEXT && read_special(type, text, token, &element);
    if (token.kind == MM_VALUE_NUMBER) {
        fits = true;
        (void)type->read(at, at + token.bytes, &element, &fits);
    } else if (dtype == MM_BOOL && (token.kind == MM_VALUE_TRUE || token.kind == MM_VALUE_FALSE)) {
        fits = true;
        mm_dtype_put(MM_BOOL, &element, 0, token.kind == MM_VALUE_TRUE);
    }
    check_dimensions(scan);
    void *place = fits ? mm_json_store_next(&scan->store, at + token.bytes, text + bytes) : NULL;
    if (!fits)
        refuse_element(scan, token);
    if (place != NULL) {
        memcpy(place, &element, scan->store.element_bytes);
        scan->store.used_bytes += scan->store.element_bytes;
    }
}

/* Stores a run of numbers with commas between them; a request spends most of its time here. Stops at any
 * other token, and at a number that may continue in the next chunk. mm_json_next then reads that token. */
static void store_numbers(struct mm_json_scan *scan, const char *text, size_t bytes) {
    mm_number_reader *const read = mm_element(scan->operand->dtype)->read;
    struct mm_json_store *const store = &scan->store;
    size_t *const count = &scan->counts[scan->level - 1];
    const char *const end = text + bytes;
    const char *at = mm_json_skip_spaces(text + scan->reader.at, end);
    uint64_t unwanted;
    bool fits = true;
    check_dimensions(scan);
    if (scan->reader.place == MM_JSON_COMMA && at < end && *at == ',') {
        scan->reader.place = MM_JSON_NEXT_VALUE;
        at = mm_json_skip_spaces(at + 1, end);
    }
    if (scan->reader.place == MM_JSON_COMMA)
        return;
    while (at < end) {
        void *element = mm_json_store_next(store, at, end);
        const char *stop = read(at, end, element == NULL ? &unwanted : element, &fits);
        if (stop == NULL || stop == end || !fits)
            break;
        at = stop;
        store->used_bytes += element == NULL ? 0 : store->element_bytes;
        ++*count;
        if (*at != ',') {
            at = mm_json_skip_spaces(at, end);
            scan->reader.place = MM_JSON_COMMA;
            if (at == end || *at != ',')
                break;
        }
        scan->reader.place = MM_JSON_NEXT_VALUE;
        at = mm_json_skip_spaces(at + 1, end);
    }
    scan->reader.at = (size_t)(at - text);
    if (scan->operand->shape.rank == 0 && *count > 0)
        set_rank(scan->operand, scan->level);
}

/* Records the operand's first fault, and ignores later faults. `count` indices lead to the fault. */
static void note_shape(struct mm_json_scan *scan, enum mm_json_wrong wrong, unsigned count) {
    struct mm_json_scanned *operand = scan->operand;
    if (operand->wrong != MM_JSON_RIGHT)
        return;
    operand->wrong = wrong;
    operand->wrong_at = indices_here(scan, count);
    operand->wrong_token = scan->reader.token;
    mm_json_store_drop(&scan->store);
}

/* The query or an earlier member sets the type of the elements. Without either, the type is float32. */
static void begin_operand(struct mm_json_scan *scan) {
    if (!scan->is_again)
        (void)scan->into->kind->resolve(scan->into, NULL);
    scan->operand->has_elements = true;
    scan->operand->dtype = mm_operand_dtype(scan->into, operand_of(scan, scan->operand));
    scan->store.element_bytes = mm_dtype_bytes(scan->operand->dtype);
    scan->store.used_bytes = scan->operand->offset = mm_json_aligned(scan->store.used_bytes);
    scan->last = scan->operand;
}

static void begin_array(struct mm_json_scan *scan) {
    scan->counts[scan->level++] = 0;
}

/* Ends the innermost array. The first array that ends at a depth sets the dimension of that depth. */
static void end_array(struct mm_json_scan *scan) {
    struct mm_json_scanned *operand = scan->operand;
    const unsigned level = scan->level--;
    const size_t length = scan->counts[level - 1];
    if (operand->shape.rank == 0)
        set_rank(operand, level);
    if (level < operand->known) {
        operand->shape.dims[level - 1] = length;
        operand->known = level;
    } else if (operand->shape.dims[level - 1] != length && operand->wrong == MM_JSON_RIGHT) {
        note_shape(scan, MM_JSON_RAGGED, level - 1);
        operand->wrong_length = length;
    }
    if (level > 1)
        scan->counts[level - 2]++;
}

/* Whether the first innermost array was empty. end_array then reports later arrays that are not empty. */
static bool is_known_empty(const struct mm_json_scanned *operand) {
    const unsigned rank = operand->shape.rank;
    return operand->known <= rank && operand->shape.dims[rank - 1] == 0;
}

/* Reads an item of the innermost array. is_open: the item is an array or object, and only its opening bracket
 * was read. */
static void read_item(struct mm_json_scan *scan, bool is_open, const char *text, size_t bytes) {
    struct mm_json_scanned *operand = scan->operand;
    const bool is_array = is_open && scan->reader.token.kind == MM_VALUE_ARRAY;
    const bool is_first = operand->shape.rank == 0;
    if (is_array && (is_first ? scan->level < MM_RANK_MAX : scan->level < operand->shape.rank)) {
        begin_array(scan);
        return;
    }
    if (is_first)
        set_rank(operand, scan->level);
    if (is_array && is_first)
        note_shape(scan, MM_JSON_DEEP, 0);
    else if (scan->level < operand->shape.rank || (is_array && !is_known_empty(operand)))
        note_shape(scan, MM_JSON_MIXED, scan->level);
    else if (!is_array)
        store_element(scan, text, bytes);
    scan->counts[scan->level - 1]++;
}

/* Whether a token may be c when the result is a number. A string is allowed, because "NaN" is a string. */
static bool is_scalar(struct mm_json_token token) {
    return token.kind == MM_VALUE_NUMBER || token.kind == MM_VALUE_TEXT;
}

/* Reads a value inside `depth` arrays and objects. is_open: the value is an array or object, and only its
 * opening bracket was read. */
static void read_value(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text,
                       size_t bytes) {
    if (scan->level > 0 && depth == scan->level + 1) {
        read_item(scan, is_open, text, bytes);
    } else if (mm_json_read_parameter(scan, depth, is_open, text) || depth != 1) {
        return;
    } else if (is_open) {
        begin_operand(scan);
        begin_array(scan);
    } else if (operand_of(scan, scan->operand)->role.is_optional && is_scalar(scan->reader.token)) {
        begin_operand(scan);
        store_element(scan, text, bytes);
    } else {
        note_shape(scan, MM_JSON_NO_ARRAY, 0);
    }
}

static void read_close(struct mm_json_scan *scan, const char *text) {
    if (scan->in_list && scan->reader.depth == 1)
        mm_json_end_list(scan, text);
    if (scan->level > 0 && scan->reader.depth == scan->level)
        end_array(scan);
}

/* Whether the next token may be an element of a matrix. */
static bool is_among_elements(const struct mm_json_scan *scan) {
    return scan->level > 0 && scan->reader.depth == scan->level + 1 &&
           (scan->operand->shape.rank == 0 || scan->operand->shape.rank == scan->level);
}

static void read_on(struct mm_json_scan *scan, const char *text, size_t bytes, bool is_all) {
    struct mm_json_reader *reader = &scan->reader;
    enum mm_json_event event = MM_JSON_NAME;
    while (event < MM_JSON_END && !scan->is_over) {
        if (is_among_elements(scan) && (is_all || bytes >= reader->retry_bytes))
            store_numbers(scan, text, bytes);
        event = mm_json_next(reader, text, bytes, is_all);
        if (event == MM_JSON_NAME)
            event = mm_json_read_name(scan, text);
        else if (event == MM_JSON_VALUE)
            read_value(scan, reader->depth, false, text, bytes);
        else if (event == MM_JSON_OPEN)
            read_value(scan, reader->depth - 1, true, text, bytes);
        else if (event == MM_JSON_CLOSE)
            read_close(scan, text);
    }
    scan->is_over = scan->is_over || event != MM_JSON_WAIT;
    if (event != MM_JSON_NAME)
        scan->event = event;
    if (scan->event == MM_JSON_FAULT)
        mm_json_store_drop(&scan->store);
}

static void begin(struct mm_json_scan *scan, uint64_t body_bytes, const struct mm_limits *limits,
                  struct mm_reservation *memory) {
    scan->store = (struct mm_json_store){
        .limits = limits, .reservation = memory, .bytes_left = body_bytes, .keeps = true};
    memset(scan->operands, 0, sizeof scan->operands);
    memset(&scan->reader, 0, sizeof scan->reader);
    scan->last = scan->operand = NULL;
    scan->members = 0;
    scan->row = NULL;
    scan->in_list = false;
    scan->level = 0;
    scan->is_over = false;
    scan->event = MM_JSON_WAIT;
    scan->body_bytes = body_bytes;
}

void *mm_json_scan_begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                         const struct mm_limits *limits, struct mm_reservation *memory) {
    struct mm_json_scan *scan = malloc(sizeof *scan + into->kind->bytes);
    if (scan == NULL)
        return NULL;
    scan->into = memcpy(scan + 1, into, into->kind->bytes);
    scan->error.status = MM_OK;
    scan->is_again = false;
    begin(scan, body_bytes, limits, memory);
    return scan;
}

void mm_json_scan_again(struct mm_json_scan *scan, struct mm_buffer storage, const struct mm_body *body) {
    assert(scan->store.memory.data == NULL);
    scan->is_again = true;
    begin(scan, body->bytes, scan->store.limits, scan->store.reservation);
    scan->store.keeps = storage.data != NULL;
    scan->store.memory = storage;
    scan->store.capacity_bytes = scan->store.bytes_max = storage.bytes;
    mm_json_scan_complete(scan, body);
    assert(scan->event == MM_JSON_END);
}

size_t mm_json_scan_feed(void *reading, void *body, size_t bytes) {
    struct mm_json_scan *scan = reading;
    if (scan->body_bytes != MM_LENGTH_UNKNOWN)
        scan->store.bytes_left = scan->body_bytes > bytes ? scan->body_bytes - bytes : 0;
    read_on(scan, body, bytes, false);
    return bytes;
}

void mm_json_scan_complete(struct mm_json_scan *scan, const struct mm_body *body) {
    scan->store.bytes_left = 0;
    read_on(scan, body->data, body->bytes, true);
}

bool mm_json_scan_is_typed(const struct mm_json_scan *scan) {
    (void)scan->into->kind->resolve(scan->into, NULL);
    for (unsigned index = 0; index < scan->into->count; index++) {
        const struct mm_json_scanned *scanned = &scan->operands[index];
        if (scanned->has_elements &&
            scanned->dtype != mm_operand_dtype(scan->into, operand_of(scan, scanned)))
            return false;
    }
    return true;
}

bool mm_json_scan_is_quick(const void *reading) {
    const struct mm_json_scan *scan = reading;
    return scan->reader.place == MM_JSON_BEHIND && scan->store.keeps && mm_json_scan_is_typed(scan);
}

void mm_json_scan_yield(void *reading) {
    mm_json_store_drop(&((struct mm_json_scan *)reading)->store);
}

void mm_json_scan_cancel(void *reading) {
    mm_json_scan_yield(reading);
    free(reading);
}
