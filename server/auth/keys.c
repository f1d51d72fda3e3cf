/* Reads keys line by line, compares them in constant time, and keeps the set in force behind one pointer. */
#include "server/auth/keys.h"

#include "server/auth/secret_file.h"
#include "server/observe/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not ended by a zero. */
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

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Cuts the next word off a line; empty at the end of the line. */
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

/* Cuts off what comes before the next separator or the end. */
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

/* As mm_key_set_find, but fast: no secret from the reader of the keys. */
static bool has_key(const struct mm_key_set *set, struct piece key) {
    for (size_t index = 0; index < set->count; index++) {
        const char *held = (const char *)set->keys[index].words;
        if (strnlen(held, MM_KEY_BYTES_MAX) == key.bytes && memcmp(held, key.text, key.bytes) == 0)
            return true;
    }
    return false;
}

static void add(struct mm_key_set *set, struct piece key, struct piece label) {
    struct mm_key *added = &set->keys[set->count++];
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
    /* An operator who deletes such a line would believe that the key is no longer valid. */
    if (has_key(set, key)) {
        snprintf(problem, size, "%s: its key stands in another line already", where);
        return false;
    }
    add(set, key, label);
    return true;
}

bool mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes, char *problem,
                         size_t problem_size) {
    struct piece rest = {text, bytes};
    const size_t before = set->count;
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

/* No early end: the time of a comparison would tell how much of a guess was right. All words of all keys are
 * compared, and the index is chosen by a mask. The assembly keeps the compiler from knowing `difference`,
 * which could see that the rest changes nothing. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes) {
    uint64_t asked[MM_KEY_WORDS] = {0};
    size_t found = MM_KEY_NONE;
    /* These bounds are no secret. Zeros at the end would match what keys are filled up with. */
    if (bytes < MM_KEY_BYTES_MIN || bytes > MM_KEY_BYTES_MAX || memchr(key, '\0', bytes) != NULL)
        return MM_KEY_NONE;
    memcpy(asked, key, bytes);
    for (size_t index = 0; index < set->count; index++) {
        uint64_t difference = 0;
        for (size_t word = 0; word < MM_KEY_WORDS; word++)
            difference |= asked[word] ^ set->keys[index].words[word];
        __asm__("" : "+r"(difference));
        const uint64_t equal = ((difference | (UINT64_C(0) - difference)) >> 63) - 1; /* all ones, or 0 */
        found = (found & ~equal) | (index & equal);
    }
    return found;
}

enum { LABELS_MAX = 4 * MM_KEYS_MAX, SENTENCE_MAX = 256, FILE_BYTES_MAX = 1 << 20 };

struct counter {
    uint64_t requests; /* __atomic access only */
    char label[MM_KEY_NAME_MAX + 1];
};

struct mm_keys {
    const struct mm_options *options;
    struct mm_key_set *current;
    pthread_rwlock_t lock; /* guards `current`; a reload goes before waiting requests */
    size_t label_count;    /* of complete counters; __atomic access only */
    struct counter counters[LABELS_MAX];
};

static bool add_file(struct mm_key_set *set, const char *path, char *problem, size_t size) {
    static const char what[] = "the key file";
    char sentence[SENTENCE_MAX];
    struct mm_secret_file file;
    if (!mm_secret_file_read(what, path, FILE_BYTES_MAX, true, &file, problem, size))
        return false;
    const bool good = mm_key_set_add_text(set, file.text, file.bytes, sentence, sizeof sentence);
    mm_secret_file_wipe(&file);
    return good ? true : mm_secret_file_fail(what, path, sentence, problem, size);
}

static bool add_environment(struct mm_key_set *set, const char *list, char *problem, size_t size) {
    char sentence[SENTENCE_MAX];
    if (mm_key_set_add_list(set, list, sentence, sizeof sentence))
        return true;
    snprintf(problem, size, "MATMULD_API_KEY: %s", sentence);
    return false;
}

/* LABELS_MAX if there is no room for another label. */
static unsigned find_counter(struct mm_keys *keys, const char *label) {
    size_t count = mm_keys_label_count(keys);
    for (unsigned index = 0; index < count; index++)
        if (strcmp(keys->counters[index].label, label) == 0)
            return index;
    if (count == LABELS_MAX)
        return LABELS_MAX;
    memcpy(keys->counters[count].label, label, strlen(label));
    __atomic_store_n(&keys->label_count, count + 1, __ATOMIC_RELEASE);
    return (unsigned)count;
}

static bool find_counters(struct mm_keys *keys, struct mm_key_set *made, char *problem, size_t size) {
    for (size_t index = 0; index < made->count; index++) {
        made->keys[index].counter = find_counter(keys, made->keys[index].label);
        if (made->keys[index].counter == LABELS_MAX) {
            snprintf(problem, size, "over %d names of keys were in force since the start: start again",
                     LABELS_MAX);
            return false;
        }
    }
    return true;
}

/* NULL with a sentence in problem. */
static struct mm_key_set *read_keys(struct mm_keys *keys, char *problem, size_t size) {
    const struct mm_options *options = keys->options;
    struct mm_key_set *made = mm_key_set_open();
    bool good = made != NULL;
    if (!good)
        snprintf(problem, size, "the system has no memory for API keys");
    if (good && options->api_key_file != NULL)
        good = add_file(made, options->api_key_file, problem, size);
    if (good && options->api_key != NULL)
        good = add_environment(made, options->api_key, problem, size);
    if (good && find_counters(keys, made, problem, size))
        return made;
    mm_key_set_close(made);
    return NULL;
}

bool mm_keys_open(const struct mm_options *options, struct mm_keys **keys, char *problem,
                  size_t problem_size) {
    *keys = NULL;
    if (options->api_key_file == NULL && options->api_key == NULL)
        return true;
    struct mm_keys *opened = calloc(1, sizeof *opened);
    if (opened == NULL) {
        snprintf(problem, problem_size, "the system has no memory for API keys");
        return false;
    }
    opened->options = options;
    opened->current = read_keys(opened, problem, problem_size);
    if (opened->current == NULL) {
        free(opened);
        return false;
    }
    opened->lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    *keys = opened;
    return true;
}

void mm_keys_close(struct mm_keys *keys) {
    if (keys == NULL)
        return;
    pthread_rwlock_destroy(&keys->lock);
    mm_key_set_close(keys->current);
    free(keys);
}

void mm_keys_reload(struct mm_keys *keys) {
    char problem[640];
    struct mm_key_set *made = read_keys(keys, problem, sizeof problem);
    if (made == NULL) {
        mm_log_error("the API keys stay as they were: %s", problem);
        return;
    }
    const size_t count = made->count;
    pthread_rwlock_wrlock(&keys->lock);
    struct mm_key_set *replaced = keys->current;
    keys->current = made;
    pthread_rwlock_unlock(&keys->lock);
    mm_key_set_close(replaced);
    mm_log_info("API keys in force: %zu", count);
}

bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes) {
    pthread_rwlock_rdlock(&keys->lock);
    const size_t found = mm_key_set_find(keys->current, key, bytes);
    const unsigned counter = found == MM_KEY_NONE ? LABELS_MAX : keys->current->keys[found].counter;
    pthread_rwlock_unlock(&keys->lock);
    if (counter == LABELS_MAX)
        return false;
    __atomic_add_fetch(&keys->counters[counter].requests, 1, __ATOMIC_RELAXED);
    return true;
}

size_t mm_keys_label_count(const struct mm_keys *keys) {
    return __atomic_load_n(&keys->label_count, __ATOMIC_ACQUIRE);
}

const char *mm_keys_label(const struct mm_keys *keys, size_t index) {
    return keys->counters[index].label;
}

uint64_t mm_keys_requests(const struct mm_keys *keys, size_t index) {
    return __atomic_load_n(&keys->counters[index].requests, __ATOMIC_RELAXED);
}
