/* Key files read line by line, and the comparison that takes as long for every key. */
#include "server/key_set.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_WORDS = MM_KEY_BYTES_MAX / sizeof(uint64_t) };

/* Keys are filled up with zeros, which no key contains, so that all are of one length. */
struct key {
    uint64_t words[KEY_WORDS];
    char label[MM_KEY_NAME_MAX + 1];
};

struct mm_key_set {
    size_t count;
    struct key keys[MM_KEYS_MAX];
};

/* A piece of a text; not ended by a zero. */
struct piece {
    const char *text;
    size_t bytes;
};

struct mm_key_set *mm_key_set_open(void) {
    return calloc(1, sizeof(struct mm_key_set));
}

void mm_key_set_close(struct mm_key_set *set) {
    if (set != NULL)
        explicit_bzero(set, sizeof *set);
    free(set);
}

size_t mm_key_set_count(const struct mm_key_set *set) {
    return set->count;
}

const char *mm_key_set_label(const struct mm_key_set *set, size_t index) {
    return set->keys[index].label;
}

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* The next word of a line, which is shortened by it; of no bytes at the line's end. */
static struct piece take_word(struct piece *line) {
    while (line->bytes > 0 && is_space(*line->text)) {
        line->text++;
        line->bytes--;
    }
    struct piece word = {line->text, 0};
    while (word.bytes < line->bytes && !is_space(line->text[word.bytes]))
        word.bytes++;
    line->text += word.bytes;
    line->bytes -= word.bytes;
    return word;
}

/* What stands before the next separator or the end; *text goes on behind it. */
static struct piece take_part(struct piece *text, char separator) {
    const char *end = memchr(text->text, separator, text->bytes);
    struct piece part = {text->text, end == NULL ? text->bytes : (size_t)(end - text->text)};
    size_t taken = part.bytes + (end != NULL);
    text->text += taken;
    text->bytes -= taken;
    return part;
}

static bool is_name(struct piece word) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (word.bytes > MM_KEY_NAME_MAX || memchr(letters, word.text[0], 52) == NULL)
        return false;
    for (size_t index = 0; index < word.bytes; index++)
        if (memchr(letters, word.text[index], sizeof letters - 1) == NULL)
            return false;
    return true;
}

static bool is_printable(struct piece word) {
    for (size_t index = 0; index < word.bytes; index++)
        if (word.text[index] <= ' ' || word.text[index] > '~')
            return false;
    return true;
}

/* `where` is "line 7" or "key 2". */
static bool judge_key(const struct mm_key_set *set, struct piece key, const char *where, char *problem,
                      size_t size) {
    if (key.bytes < MM_KEY_BYTES_MIN || key.bytes > MM_KEY_BYTES_MAX)
        snprintf(problem, size, "%s: a key must have %d to %d characters, and this one has %zu", where,
                 MM_KEY_BYTES_MIN, MM_KEY_BYTES_MAX, key.bytes);
    else if (!is_printable(key))
        snprintf(problem, size, "%s: a key must be printable characters of ASCII, and this one has others",
                 where);
    else if (set->count == MM_KEYS_MAX)
        snprintf(problem, size, "%s: there may be %d keys, and this is one more", where, MM_KEYS_MAX);
    else
        return true;
    return false;
}

/* As mm_key_set_find, but fast: whoever reads keys has them. */
static bool has_key(const struct mm_key_set *set, struct piece key) {
    for (size_t index = 0; index < set->count; index++) {
        const char *held = (const char *)set->keys[index].words;
        if (strnlen(held, MM_KEY_BYTES_MAX) == key.bytes && memcmp(held, key.text, key.bytes) == 0)
            return true;
    }
    return false;
}

static void add(struct mm_key_set *set, struct piece key, struct piece label) {
    struct key *added = &set->keys[set->count++];
    memcpy(added->words, key.text, key.bytes);
    memcpy(added->label, label.text, label.bytes);
}

static bool add_line(struct mm_key_set *set, struct piece line, size_t number, char *problem, size_t size) {
    char where[32];
    char digits[24];
    snprintf(where, sizeof where, "line %zu", number);
    struct piece label = {digits, (size_t)snprintf(digits, sizeof digits, "%zu", number)};
    struct piece key = take_word(&line);
    if (key.bytes == 0 || key.text[0] == '#')
        return true;
    struct piece second = take_word(&line);
    if (second.bytes > 0) {
        label = key;
        key = second;
        if (!is_name(label)) {
            snprintf(problem, size,
                     "%s: a name must be at most %d letters, digits, dots, dashes and underscores, of which "
                     "the first is a letter, and this one is not",
                     where, MM_KEY_NAME_MAX);
            return false;
        }
    }
    if (take_word(&line).bytes > 0) {
        snprintf(problem, size, "%s: a line must be KEY or NAME KEY, and this one has more words", where);
        return false;
    }
    if (!judge_key(set, key, where, problem, size))
        return false;
    /* Who takes such a line out would believe that its key is no longer in force. */
    if (has_key(set, key)) {
        snprintf(problem, size, "%s: its key stands in another line already", where);
        return false;
    }
    add(set, key, label);
    return true;
}

static bool judge_text(size_t bytes, char *problem, size_t size) {
    if (bytes <= MM_KEY_TEXT_BYTES_MAX)
        return true;
    snprintf(problem, size, "it may have %d bytes, and has more", MM_KEY_TEXT_BYTES_MAX);
    return false;
}

bool mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes, char *problem,
                         size_t problem_size) {
    struct piece rest = {text, bytes};
    const size_t before = set->count;
    if (!judge_text(bytes, problem, problem_size))
        return false;
    for (size_t number = 1; rest.bytes > 0; number++)
        if (!add_line(set, take_part(&rest, '\n'), number, problem, problem_size))
            return false;
    if (set->count > before)
        return true;
    snprintf(problem, problem_size, "it has no key");
    return false;
}

bool mm_key_set_add_list(struct mm_key_set *set, const char *list, char *problem, size_t problem_size) {
    struct piece rest = {list, strlen(list)};
    if (!judge_text(rest.bytes, problem, problem_size))
        return false;
    for (size_t number = 1; number == 1 || rest.text[-1] == ','; number++) {
        char where[32];
        char name[32];
        snprintf(where, sizeof where, "key %zu", number);
        struct piece label = {name, (size_t)snprintf(name, sizeof name, "env:%zu", number)};
        struct piece key = take_part(&rest, ',');
        if (has_key(set, key))
            continue;
        if (!judge_key(set, key, where, problem, problem_size))
            return false;
        add(set, key, label);
    }
    return true;
}

/* No early end: a comparison that stops at the first difference tells by its time how much of a guess was
 * right, and so gives a key away character by character; one that stops at the key that matches tells who is
 * who. So all words of all keys are compared, and the index is chosen by a mask. The compiler, which could
 * see that the rest changes nothing, is kept from knowing `difference`. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes) {
    uint64_t asked[KEY_WORDS] = {0};
    size_t found = MM_KEY_NONE;
    /* These bounds are no secret, and zeros at the end would be taken for what keys are filled up with. */
    if (bytes < MM_KEY_BYTES_MIN || bytes > MM_KEY_BYTES_MAX || memchr(key, '\0', bytes) != NULL)
        return MM_KEY_NONE;
    memcpy(asked, key, bytes);
    for (size_t index = 0; index < set->count; index++) {
        uint64_t difference = 0;
        for (size_t word = 0; word < KEY_WORDS; word++)
            difference |= asked[word] ^ set->keys[index].words[word];
        __asm__("" : "+r"(difference));
        const uint64_t equal = ((difference | (UINT64_C(0) - difference)) >> 63) - 1; /* all ones, or 0 */
        found = (found & ~equal) | (index & equal);
    }
    return found;
}
