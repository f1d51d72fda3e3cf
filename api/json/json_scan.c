/* What the tokens of a JSON request mean: operands, their arrays, elements, parameters. A fault of the
 * grammar ends the reading. Of all others the first is noted, since a grammar fault behind it is reported
 * instead. */
#include "api/json/json_scan.h"

#include "api/element.h"
#include "api/number/float_text.h"
#include "api/slice.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- memory */

/* Gives all memory back, and keeps nothing that comes later. */
static void drop(struct mm_json_store *store) {
    store->keeps = false;
    store->used_bytes = store->room_bytes = store->bytes_max = 0;
    if (store->memory.data != NULL)
        mm_reservation_free(store->reservation, &store->memory);
}

/* How many elements may still come. `at` is the begin or the end of the next one; each takes two characters
 * with its comma. If the length of the body is unknown, the room doubles at least, so all moves together copy
 * no more than a few times the elements. */
static uint64_t foretell(const struct mm_json_store *store, const char *at, const char *end,
                         size_t elements) {
    const uint64_t here = (uint64_t)(end - at + 1) / 2 + 1;
    return here + (store->bytes_left == MM_LENGTH_UNKNOWN ? elements : store->bytes_left / 2 + 1);
}

/* How far memory that holds `bytes` grows for `needed` ones. */
static size_t step_to(size_t bytes, size_t needed, size_t bytes_max) {
    const size_t stepped = bytes + mm_reservation_step(bytes);
    return mm_size_min(stepped > needed ? stepped : needed, bytes_max);
}

/* Moves all to memory with room for the next element, which can grow to what is foretold; false if there is
 * none. */
static bool move(struct mm_json_store *store, const char *at, const char *end) {
    const size_t held_bytes = store->used_bytes < store->room_bytes ? store->used_bytes : store->room_bytes;
    const size_t needed = store->used_bytes + store->element_bytes;
    const uint64_t elements = foretell(store, at, end, store->used_bytes / store->element_bytes);
    size_t bytes = store->limits->memory_bytes_max, wanted;
    if (!__builtin_mul_overflow(elements, store->element_bytes, &wanted) &&
        mm_size_add(wanted, store->used_bytes, &wanted) && wanted < bytes)
        bytes = wanted;
    struct mm_buffer memory = {0};
    /* What the second matrix is moved by, to begin aligned, comes on top. */
    if (bytes < needed || !mm_size_add(bytes, MM_JSON_ALIGNMENT, &bytes) || bytes <= store->bytes_max ||
        mm_reservation_grow(store->reservation, step_to(0, needed, bytes), bytes, &memory, NULL) != MM_OK)
        return false;
    if (store->memory.data != NULL) {
        memcpy(memory.data, store->memory.data, held_bytes);
        mm_reservation_free(store->reservation, &store->memory);
    }
    store->memory = memory;
    store->bytes_max = bytes;
    return true;
}

/* Makes room for an element that is about to come. The memory can grow, where it is, to what may follow in
 * the text from `at` to `end`, which is the rest of this piece, and in what is left of the body. The elements
 * of a body of unknown length may have to move: then the old memory is held beside the new. Without memory,
 * all is dropped. */
static void grow(struct mm_json_store *store, const char *at, const char *end) {
    const size_t needed = store->used_bytes + store->element_bytes;
    const bool has_room =
        needed > store->bytes_max
            ? move(store, at, end)
            : mm_reservation_grow(store->reservation, step_to(store->memory.bytes, needed, store->bytes_max),
                                  store->bytes_max, &store->memory, NULL) == MM_OK;
    if (has_room)
        store->room_bytes = store->memory.bytes < store->bytes_max ? store->memory.bytes : store->bytes_max;
    else
        drop(store);
}

/* The place of the element that is about to come, which counts once used_bytes is moved on; NULL if it is not
 * kept. `at` and `end` as above. */
static inline void *place_of_next(struct mm_json_store *store, const char *at, const char *end) {
    if (store->keeps && store->used_bytes + store->element_bytes > store->room_bytes)
        grow(store, at, end);
    return store->keeps ? (char *)store->memory.data + store->used_bytes : NULL;
}

/* --- elements */

/* The first `count` indices of what is read. */
static struct mm_json_indices indices_here(const struct mm_json_scan *scan, unsigned count) {
    struct mm_json_indices indices = {.count = count};
    memcpy(indices.of, scan->counts, count * sizeof indices.of[0]);
    return indices;
}

static void set_rank(struct mm_json_scanned *operand, unsigned rank) {
    operand->shape.rank = rank;
    operand->known = rank + 1;
}

static void refuse_element(struct mm_json_scan *scan, struct mm_json_token token) {
    struct mm_json_scanned *operand = scan->operand;
    if (!operand->has_refused) {
        operand->has_refused = true;
        operand->refused_at = indices_here(scan, scan->level);
        operand->refused = token;
    }
    drop(&scan->store);
}

/* "NaN", "Infinity" and "-Infinity". */
static bool read_special(const struct mm_element *type, const char *text, struct mm_json_token token,
                         void *element) {
    char room[MM_JSON_ROOM];
    float value;
    return type->put_special != NULL && mm_float_of_word(mm_json_value(text, token, room).text, &value) &&
           type->put_special(value, element);
}

/* If the next element passes a limit on dimensions, no memory is needed: the rest is only judged. */
static void judge_dimensions(struct mm_json_scan *scan) {
    const size_t dimension_max = scan->store.limits->dimension_max;
    bool passes = false;
    for (unsigned level = 0; level < scan->level; level++)
        passes = passes || scan->counts[level] >= dimension_max;
    if (passes && scan->store.keeps)
        drop(&scan->store);
}

/* Takes an element that take_numbers has left. */
static void take_element(struct mm_json_scan *scan, const char *text, size_t bytes) {
    const struct mm_json_token token = scan->reader.token;
    const struct mm_element *type = mm_element(scan->dtype);
    const char *at = text + token.at;
    uint64_t element = 0;
    bool held = token.kind == MM_VALUE_TEXT && read_special(type, text, token, &element);
    if (token.kind == MM_VALUE_NUMBER) {
        held = true;
        (void)type->read(at, at + token.bytes, &element, &held);
    } else if (scan->dtype == MM_BOOL && (token.kind == MM_VALUE_TRUE || token.kind == MM_VALUE_FALSE)) {
        held = true;
        mm_dtype_put(MM_BOOL, &element, 0, token.kind == MM_VALUE_TRUE);
    }
    judge_dimensions(scan);
    void *place = held ? place_of_next(&scan->store, at + token.bytes, text + bytes) : NULL;
    if (!held)
        refuse_element(scan, token);
    if (place != NULL) {
        memcpy(place, &element, scan->store.element_bytes);
        scan->store.used_bytes += scan->store.element_bytes;
    }
}

/* Takes numbers with commas between them. This is where the time goes. A number that the end of the piece may
 * have cut off, and all else, is left to the reader. */
static void take_numbers(struct mm_json_scan *scan, const char *text, size_t bytes) {
    mm_number_reader *const read = mm_element(scan->dtype)->read;
    struct mm_json_store *const store = &scan->store;
    size_t *const count = &scan->counts[scan->level - 1];
    const char *const end = text + bytes;
    const char *at = mm_json_skip_spaces(text + scan->reader.at, end);
    uint64_t unwanted;
    bool held = true;
    judge_dimensions(scan);
    if (scan->reader.place == MM_JSON_COMMA && at < end && *at == ',') {
        scan->reader.place = MM_JSON_NEXT_VALUE;
        at = mm_json_skip_spaces(at + 1, end);
    }
    if (scan->reader.place == MM_JSON_COMMA)
        return;
    while (at < end) {
        void *element = place_of_next(store, at, end);
        const char *stop = read(at, end, element == NULL ? &unwanted : element, &held);
        if (stop == NULL || stop == end || !held)
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

/* --- operands */

/* What is wrong stands at the first `count` indices. */
static void note_shape(struct mm_json_scan *scan, enum mm_json_wrong wrong, unsigned count) {
    struct mm_json_scanned *operand = scan->operand;
    if (operand->wrong != MM_JSON_RIGHT)
        return;
    operand->wrong = wrong;
    operand->wrong_at = indices_here(scan, count);
    operand->wrong_token = scan->reader.token;
    drop(&scan->store);
}

/* The query or a member may have named the type before. */
static void begin_operand(struct mm_json_scan *scan) {
    if (scan->last == NULL && !scan->is_again) {
        if (scan->into->kind->resolve(scan->into, NULL) == MM_OK)
            scan->dtype = scan->into->dtype;
        scan->store.element_bytes = mm_dtype_bytes(scan->dtype);
    }
    scan->store.used_bytes = scan->operand->offset = mm_json_aligned(scan->store.used_bytes);
    scan->last = scan->operand;
}

/* An array in another one is open, and its elements are read. */
static void begin_array(struct mm_json_scan *scan) {
    scan->counts[scan->level++] = 0;
}

/* The innermost array is over. The first one of its depth tells the dimension: all indices before it are 0.
 */
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

/* Whether the first array of elements has none: then one that has any is wrong when it ends. */
static bool is_known_empty(const struct mm_json_scanned *operand) {
    const unsigned rank = operand->shape.rank;
    return operand->known <= rank && operand->shape.dims[rank - 1] == 0;
}

/* Takes what stands in the innermost array, or its beginning. */
static void take_item(struct mm_json_scan *scan, bool is_open, const char *text, size_t bytes) {
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
        take_element(scan, text, bytes);
    scan->counts[scan->level - 1]++;
}

/* --- members */

static enum mm_json_event fail_duplicate(struct mm_json_scan *scan) {
    return mm_json_fault(&scan->reader, scan->reader.token, "a name that was not given before");
}

/* Finds what the member's name stands for. It stands once. */
static enum mm_json_event take_name(struct mm_json_scan *scan, const char *text) {
    char room[MM_JSON_ROOM];
    const struct mm_value name = mm_json_value(text, scan->reader.token, room);
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

/* A parameter whose value is a list: gathers the items as the query has them. */
static void begin_list(struct mm_json_scan *scan) {
    scan->in_list = true;
    scan->list_length = 0;
}

/* An item that does not fit, or that is an array, makes the list malformed. */
static void take_list_item(struct mm_json_scan *scan, bool is_open, const char *text) {
    const struct mm_json_token token = scan->reader.token;
    const size_t room = sizeof scan->list_text - scan->list_length;
    const bool fits = !is_open && token.bytes + 1 < room;
    const unsigned quote = token.kind == MM_VALUE_TEXT && scan->row->kind == MM_KIND_FIGURES;
    const struct mm_slice whole = {text + token.at + quote, token.bytes - 2 * quote}, wrong = {"?", 1};
    const struct mm_slice item = fits ? whole : wrong;
    if (room <= 2)
        return;
    if (scan->list_length > 0)
        scan->list_text[scan->list_length++] = ',';
    memcpy(scan->list_text + scan->list_length, item.start, item.length);
    scan->list_length += item.length;
}

/* The first error is the one that is told. A body of a million unknown members costs no more than one of as
 * many numbers. */
static bool takes_values(const struct mm_json_scan *scan) {
    return !scan->is_again && scan->error.status == MM_OK;
}

static void end_list(struct mm_json_scan *scan, const char *text) {
    const char *name = scan->row->name;
    scan->in_list = false;
    if (takes_values(scan) &&
        mm_parameter_set_text(&scan->into->parameters, MM_IN_JSON, name, strlen(name), scan->list_text,
                              scan->list_length, scan->store.limits, &scan->error) != MM_OK)
        mm_json_locate(text, scan->name, &scan->error);
}

/* An operand that is an object: the server makes it. It is refused as no array if the object says not how. */
static void begin_source(struct mm_json_scan *scan) {
    scan->operand->has_source = true;
    scan->operand->wrong = MM_JSON_NO_ARRAY;
    scan->operand->wrong_token = scan->reader.token;
}

static enum mm_json_event take_source_name(struct mm_json_scan *scan, const char *text) {
    char room[MM_JSON_ROOM];
    const struct mm_value name = mm_json_value(text, scan->reader.token, room);
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

/* {"from": "uniform(7)"} of the operand a is the parameter a_from. */
static void take_source(struct mm_json_scan *scan, bool is_open, const char *text) {
    char room[MM_JSON_ROOM];
    if (!takes_values(scan))
        return;
    const struct mm_value value = mm_json_value(text, scan->reader.token, room);
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

static void take_parameter(struct mm_json_scan *scan, const char *text) {
    char name_room[MM_JSON_ROOM], room[MM_JSON_ROOM];
    if (!takes_values(scan))
        return;
    const struct mm_value name = mm_json_value(text, scan->name, name_room);
    const struct mm_value value = mm_json_value(text, scan->reader.token, room);
    if (mm_parameter_set_value(&scan->into->parameters, name.text, name.length, &value, scan->store.limits,
                               &scan->error) != MM_OK)
        mm_json_locate(text, scan->reader.token, &scan->error);
}

/* Takes a value, or its beginning, within `depth` arrays and objects. */
static void take_value(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text,
                       size_t bytes) {
    const bool is_array = is_open && scan->reader.token.kind == MM_VALUE_ARRAY;
    const bool is_list = scan->row != NULL && mm_kind_is_list(scan->row->kind);
    if (depth == 1 && is_list && is_array) {
        begin_list(scan);
    } else if (depth == 1 && scan->operand == NULL) {
        take_parameter(scan, text);
    } else if (depth == 2 && scan->in_list) {
        take_list_item(scan, is_open, text);
    } else if (depth == 1 && is_open && !is_array) {
        begin_source(scan);
    } else if (depth == 2 && scan->operand != NULL && scan->operand->has_source) {
        take_source(scan, is_open, text);
    } else if (depth == 1 && is_array) {
        begin_operand(scan);
        begin_array(scan);
    } else if (depth == 1) {
        note_shape(scan, MM_JSON_NO_ARRAY, 0);
    } else if (scan->level > 0 && depth == scan->level + 1) {
        take_item(scan, is_open, text, bytes);
    }
}

static void take_close(struct mm_json_scan *scan, const char *text) {
    if (scan->in_list && scan->reader.depth == 1)
        end_list(scan, text);
    if (scan->level > 0 && scan->reader.depth == scan->level)
        end_array(scan);
}

/* Whether what comes next can be an element. */
static bool is_among_elements(const struct mm_json_scan *scan) {
    return scan->level > 0 && scan->reader.depth == scan->level + 1 &&
           (scan->operand->shape.rank == 0 || scan->operand->shape.rank == scan->level);
}

/* --- the whole */

static void read_on(struct mm_json_scan *scan, const char *text, size_t bytes, bool is_all) {
    struct mm_json_reader *reader = &scan->reader;
    enum mm_json_event event = MM_JSON_NAME;
    while (event < MM_JSON_END && !scan->is_over) {
        if (is_among_elements(scan) && (is_all || bytes >= reader->retry_bytes))
            take_numbers(scan, text, bytes);
        event = mm_json_next(reader, text, bytes, is_all);
        if (event == MM_JSON_NAME && reader->depth == 1)
            event = take_name(scan, text);
        else if (event == MM_JSON_NAME && reader->depth == 2 && scan->operand != NULL &&
                 scan->operand->has_source)
            event = take_source_name(scan, text);
        else if (event == MM_JSON_VALUE)
            take_value(scan, reader->depth, false, text, bytes);
        else if (event == MM_JSON_OPEN)
            take_value(scan, reader->depth - 1, true, text, bytes);
        else if (event == MM_JSON_CLOSE)
            take_close(scan, text);
    }
    scan->is_over = scan->is_over || event != MM_JSON_WAIT;
    if (event != MM_JSON_NAME)
        scan->event = event;
    if (scan->event == MM_JSON_FAULT)
        drop(&scan->store);
}

static void begin(struct mm_json_scan *scan, uint64_t body_bytes, const struct mm_limits *limits,
                  struct mm_reservation *memory) {
    scan->store = (struct mm_json_store){.limits = limits,
                                         .reservation = memory,
                                         .bytes_left = body_bytes,
                                         .element_bytes = mm_dtype_bytes(scan->dtype),
                                         .keeps = true};
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
    scan->dtype = MM_FLOAT32;
    scan->is_again = false;
    begin(scan, body_bytes, limits, memory);
    return scan;
}

void mm_json_scan_again(struct mm_json_scan *scan, enum mm_dtype dtype, struct mm_buffer storage,
                        const struct mm_body *body) {
    assert(scan->store.memory.data == NULL);
    scan->dtype = dtype;
    scan->is_again = true;
    begin(scan, body->bytes, scan->store.limits, scan->store.reservation);
    scan->store.keeps = storage.data != NULL;
    scan->store.memory = storage;
    scan->store.room_bytes = scan->store.bytes_max = storage.bytes;
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

bool mm_json_scan_is_quick(const void *reading) {
    const struct mm_json_scan *scan = reading;
    return scan->reader.place == MM_JSON_BEHIND && scan->store.keeps &&
           strcmp(scan->into->dtype_name, mm_dtype_name(scan->dtype)) == 0;
}

void mm_json_scan_yield(void *reading) {
    drop(&((struct mm_json_scan *)reading)->store);
}

void mm_json_scan_cancel(void *reading) {
    mm_json_scan_yield(reading);
    free(reading);
}
