/* JSON values that Jansson does not make by itself: text with foreign bytes, unsigned counts. */
#include "api/json_value.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at text, which ends in NUL; 0 where there is none. The
 * bounds of the second byte keep out overlong forms, surrogates and what lies beyond U+10FFFF (the
 * Unicode standard, table 3-7). */
static size_t sequence_bytes(const unsigned char *text) {
    unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < low || text[1] > high)
        return 0;
    size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (size_t index = 2; index < bytes; index++)
        if ((text[index] & 0xC0) != 0x80)
            return 0;
    return bytes;
}

json_t *mm_json_text(const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    enum { REPLACEMENT_BYTES = sizeof replacement - 1 };
    char *clean = malloc(strlen(text) * REPLACEMENT_BYTES + 1);
    if (clean == NULL)
        return NULL;
    char *end = clean;
    while (*text != '\0') {
        size_t bytes = sequence_bytes((const unsigned char *)text);
        memcpy(end, bytes > 0 ? text : replacement, bytes > 0 ? bytes : REPLACEMENT_BYTES);
        end += bytes > 0 ? bytes : REPLACEMENT_BYTES;
        text += bytes > 0 ? bytes : 1;
    }
    json_t *string = json_stringn(clean, (size_t)(end - clean));
    free(clean);
    return string;
}

/* Ahead of each piece of memory that Jansson has. Those of one reading are in a ring, all others in one
 * alone. */
struct block {
    _Alignas(max_align_t) struct block *next;
    struct block *previous;
};

/* A text that is being read, and where to go on where memory runs out. */
struct reading {
    struct block blocks; /* of their ring */
    jmp_buf ran_out;
};

static _Thread_local struct reading *reading; /* NULL: none */

/* While a text is read, a failure does not return: what Jansson has by then is freed by mm_json_load. */
static void *allocate(size_t bytes) {
    struct block *block = bytes > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + bytes);
    if (block == NULL && reading != NULL)
        longjmp(reading->ran_out, 1);
    if (block == NULL)
        return NULL;
    block->next = block->previous = block;
    if (reading != NULL) {
        block->next = reading->blocks.next;
        block->previous = &reading->blocks;
        block->next->previous = block->previous->next = block;
    }
    return block + 1;
}

static void unlink_block(struct block *block) {
    block->next->previous = block->previous;
    block->previous->next = block->next;
}

static void release(void *memory) {
    struct block *block = memory == NULL ? NULL : (struct block *)memory - 1;
    if (block != NULL)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it forgets that the last one left the ring */
        unlink_block(block);
    free(block);
}

/* Before there is a second thread, which might be within Jansson. */
__attribute__((constructor)) static void watch_jansson(void) {
    json_set_alloc_funcs(allocate, release);
}

/* False where memory ran out. */
static bool load(struct reading *mine, const char *text, size_t bytes, size_t flags, json_error_t *fault,
                 json_t **value) {
    reading = mine;
    if (setjmp(mine->ran_out) != 0)
        return false;
    *value = json_loadb(text, bytes, flags, fault);
    return true;
}

json_t *mm_json_load(const char *text, size_t bytes, size_t flags, json_error_t *fault) {
    struct reading mine = {.blocks = {.next = &mine.blocks, .previous = &mine.blocks}};
    json_t *value = NULL;
    memset(fault, 0, sizeof *fault); /* Jansson leaves its code unset where it has nothing to say */
    errno = 0;
    const bool had_memory = load(&mine, text, bytes, flags, fault, &value);
    reading = NULL;
    while (!had_memory && mine.blocks.next != &mine.blocks)
        release(mine.blocks.next + 1);
    unlink_block(&mine.blocks); /* what was read goes on without it */
    if (!had_memory) {
        memset(fault, 0, sizeof *fault);
        errno = ENOMEM;
    }
    return had_memory ? value : NULL;
}

/* A text that grows. */
struct text {
    char *start;
    size_t bytes;
    size_t room;
    bool failed; /* for good: whoever prints may go on all the same */
};

static bool make_room(struct text *text, size_t bytes) {
    enum { LEAST = 512 };
    if (bytes <= text->room - text->bytes)
        return true;
    if (bytes > SIZE_MAX / 2 - text->room)
        return false;
    const size_t room = 2 * text->room + bytes + LEAST;
    char *start = realloc(text->start, room);
    if (start == NULL)
        return false;
    text->start = start;
    text->room = room;
    return true;
}

static int append(const char *piece, size_t bytes, void *argument) {
    struct text *text = argument;
    text->failed = text->failed || !make_room(text, bytes + 1);
    if (text->failed)
        return -1;
    memcpy(text->start + text->bytes, piece, bytes);
    text->bytes += bytes;
    text->start[text->bytes] = '\0';
    return 0;
}

char *mm_json_print(const json_t *value, size_t flags, size_t *length) {
    struct text text = {0};
    if (value == NULL || json_dump_callback(value, append, &text, flags) != 0 || text.failed) {
        free(text.start);
        return NULL;
    }
    *length = text.bytes;
    return text.start;
}

json_t *mm_json_count(uint64_t value) {
    return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}
