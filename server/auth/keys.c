/* Reads keys line by line, compares them in constant time, and keeps the valid set behind one pointer. */
#include "server/auth/keys.h"

#include "api/slice.h"
#include "server/auth/secret_file.h"
#include "server/observe/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mm_key_set *mm_key_set_open(void) {
    return calloc(1, sizeof(struct mm_key_set));
}

void mm_key_set_close(struct mm_key_set *set) {
    if (set != NULL)
        explicit_bzero(set, sizeof *set);
    free(set);
}

/* The accounts of keys without a name, and of names after the first MM_ACCOUNT_NAMES_MAX */
static const char unnamed[] = "unnamed", other[] = "other";

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static struct mm_slice next_word(struct mm_slice *line) {
    const char *at = line->start, *const end = at + line->length;
    while (at < end && is_space(*at))
        at++;
    const char *stop = at;
    while (stop < end && !is_space(*stop))
        stop++;
    *line = (struct mm_slice){stop, (size_t)(end - stop)};
    return (struct mm_slice){at, (size_t)(stop - at)};
}

static bool is_name(struct mm_slice word) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (word.length > MM_KEY_NAME_MAX || memchr(letters, word.start[0], 52) == NULL)
        return false;
    for (size_t index = 0; index < word.length; index++)
        if (memchr(letters, word.start[index], sizeof letters - 1) == NULL)
            return false;
    return !mm_slice_is(word, unnamed) && !mm_slice_is(word, other);
}

static bool is_printable(struct mm_slice word) {
    for (size_t index = 0; index < word.length; index++)
        if (word.start[index] <= ' ' || word.start[index] > '~')
            return false;
    return true;
}

static enum mm_status check_key(const struct mm_key_set *set, struct mm_slice key, const char *where,
                                struct mm_error *error) {
    if (key.length < MM_KEY_BYTES_MIN || key.length > MM_KEY_BYTES_MAX)
        return mm_fail(error, MM_BAD_REQUEST, "%s: a key must have %d to %d characters, and this one has %zu",
                       where, MM_KEY_BYTES_MIN, MM_KEY_BYTES_MAX, key.length);
    if (!is_printable(key))
        return mm_fail(error, MM_BAD_REQUEST,
                       "%s: a key must be printable characters of ASCII, and this one has others", where);
    if (set->count == MM_KEYS_MAX)
        return mm_fail(error, MM_BAD_REQUEST, "%s: there may be %d keys, and this is one more", where,
                       MM_KEYS_MAX);
    return MM_OK;
}

static bool has_key(const struct mm_key_set *set, struct mm_slice key) {
    return mm_key_set_find(set, key.start, key.length) != MM_KEY_NONE;
}

/* Adds a key. If name.length is 0, the key has no name. */
static void add(struct mm_key_set *set, struct mm_slice key, struct mm_slice name) {
    struct mm_key *added = &set->keys[set->count++];
    memcpy(added->words, key.start, key.length);
    added->is_named = name.length > 0;
    memcpy(added->owner.name, added->is_named ? name.start : unnamed,
           added->is_named ? name.length : sizeof unnamed);
}

static enum mm_status add_line(struct mm_key_set *set, struct mm_slice line, size_t number,
                               struct mm_error *error) {
    char where[32];
    snprintf(where, sizeof where, "line %zu", number);
    struct mm_slice name = {NULL, 0};
    struct mm_slice key = next_word(&line);
    if (key.length == 0 || key.start[0] == '#')
        return MM_OK;
    struct mm_slice second = next_word(&line);
    if (second.length > 0) {
        name = key;
        key = second;
        if (!is_name(name))
            return mm_fail(
                error, MM_BAD_REQUEST,
                "%s: a name must be at most %d letters, digits, dots, dashes and underscores, of which "
                "the first is a letter, and not 'unnamed' or 'other'; this one is not",
                where, MM_KEY_NAME_MAX);
    }
    if (next_word(&line).length > 0)
        return mm_fail(error, MM_BAD_REQUEST,
                       "%s: a line must be KEY or NAME KEY, and this one has more words", where);
    const enum mm_status status = check_key(set, key, where, error);
    if (status != MM_OK)
        return status;
    /* Refuse a key on two lines. An operator who deletes one line would think that the key is gone. */
    if (has_key(set, key))
        return mm_fail(error, MM_BAD_REQUEST, "%s: the key is already on another line; remove one of them",
                       where);
    add(set, key, name);
    return MM_OK;
}

enum mm_status mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes,
                                   struct mm_error *error) {
    struct mm_slice rest = {text, bytes}, line;
    const size_t before = set->count;
    enum mm_status status = MM_OK;
    for (size_t number = 1; status == MM_OK && mm_slice_next(&rest, '\n', &line); number++)
        status = add_line(set, line, number, error);
    if (status == MM_OK && set->count == before)
        return mm_fail(error, MM_BAD_REQUEST, "it has no key");
    return status;
}

enum mm_status mm_key_set_add_list(struct mm_key_set *set, const char *list, struct mm_error *error) {
    struct mm_slice rest = mm_slice_of(list), key;
    for (size_t number = 1; mm_slice_next(&rest, ',', &key); number++) {
        char where[32];
        snprintf(where, sizeof where, "key %zu", number);
        if (has_key(set, key))
            continue;
        const enum mm_status status = check_key(set, key, where, error);
        if (status != MM_OK)
            return status;
        add(set, key, (struct mm_slice){NULL, 0});
    }
    return MM_OK;
}

/* Always compares all words of all keys. If the loop stopped at a difference, its duration would reveal how
 * much of a guess was right. The empty assembly keeps the compiler from adding such a stop. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes) {
    uint64_t asked[MM_KEY_WORDS] = {0};
    size_t found = MM_KEY_NONE;
    /* The length is not secret, so it is checked first. Zero bytes could match another key's padding. */
    if (bytes < MM_KEY_BYTES_MIN || bytes > MM_KEY_BYTES_MAX || memchr(key, '\0', bytes) != NULL)
        return MM_KEY_NONE;
    memcpy(asked, key, bytes);
    for (size_t index = 0; index < set->count; index++) {
        uint64_t difference = 0;
        for (size_t word = 0; word < MM_KEY_WORDS; word++)
            difference |= asked[word] ^ set->keys[index].words[word];
        __asm__("" : "+r"(difference));
        const uint64_t equal = ((difference | (UINT64_C(0) - difference)) >> 63) - 1;
        found = (found & ~equal) | (index & equal);
    }
    return found;
}

enum {
    UNNAMED,
    OTHER,
    FIRST_NAME,
    ACCOUNTS_MAX = FIRST_NAME + MM_ACCOUNT_NAMES_MAX,
    FILE_BYTES_MAX = 1 << 20
};

struct mm_keys {
    const struct mm_options *options;
    struct mm_key_set *current;
    pthread_rwlock_t lock; /* guards `current`; a waiting reload blocks new readers */
    uint64_t space_count;  /* namespaces created since the start; only the thread that reads keys uses it */
    size_t account_count;  /* entries of `accounts` in use; __atomic access only */
    struct mm_account accounts[ACCOUNTS_MAX];
};

static enum mm_status add_file(struct mm_key_set *set, const char *path, struct mm_error *error) {
    static const char what[] = "the key file";
    struct mm_secret_file file;
    struct mm_error why;
    if (mm_secret_file_read(what, path, FILE_BYTES_MAX, true, &file, error) != MM_OK)
        return error->status;
    const enum mm_status status = mm_key_set_add_text(set, file.text, file.bytes, &why);
    mm_secret_file_wipe(&file);
    return status == MM_OK ? MM_OK : mm_secret_file_fail(what, path, why.detail, error);
}

static enum mm_status add_environment(struct mm_key_set *set, const char *list, struct mm_error *error) {
    struct mm_error why;
    if (mm_key_set_add_list(set, list, &why) == MM_OK)
        return MM_OK;
    return mm_fail(error, MM_BAD_REQUEST, "MATMULD_API_KEY: %s", why.detail);
}

/* Returns the account of a name. Adds a missing account while there is space. */
static struct mm_account *find_account(struct mm_keys *keys, const char *name) {
    const size_t count = mm_keys_account_count(keys);
    for (size_t index = 0; index < count; index++)
        if (strcmp(keys->accounts[index].name, name) == 0)
            return &keys->accounts[index];
    if (count == ACCOUNTS_MAX)
        return &keys->accounts[OTHER];
    strcpy(keys->accounts[count].name, name);
    __atomic_store_n(&keys->account_count, count + 1, __ATOMIC_RELEASE);
    return &keys->accounts[count];
}

/* Returns one of the first `count` keys that has the same owner as `key`, or NULL if there is none. Keys with
 * equal names have one owner. A key without a name has an owner of its own. */
static const struct mm_key *find_owner(const struct mm_key_set *set, size_t count, const struct mm_key *key) {
    const char *text = (const char *)key->words;
    size_t index = 0;
    if (!key->is_named)
        index = mm_key_set_find(set, text, strnlen(text, MM_KEY_BYTES_MAX));
    else
        while (index < count &&
               !(set->keys[index].is_named && strcmp(set->keys[index].owner.name, key->owner.name) == 0))
            index++;
    return index < count && set->keys[index].is_named == key->is_named ? &set->keys[index] : NULL;
}

/* Gives each key of the new set `made` an account and a namespace. If the key's owner already has a namespace
 * in `made` or in the current set, the key gets that namespace. */
static void find_owners(struct mm_keys *keys, struct mm_key_set *made) {
    for (size_t index = 0; index < made->count; index++) {
        struct mm_key *key = &made->keys[index];
        const struct mm_key *owner = find_owner(made, index, key);
        if (owner == NULL && keys->current != NULL)
            owner = find_owner(keys->current, keys->current->count, key);
        key->owner.space = owner != NULL ? owner->owner.space : ++keys->space_count;
        key->owner.account = find_account(keys, key->owner.name);
    }
}

static enum mm_status fail_memory(struct mm_error *error) {
    return mm_fail(error, MM_INTERNAL, "the system has no memory for API keys");
}

static struct mm_key_set *read_keys(struct mm_keys *keys, struct mm_error *error) {
    const struct mm_options *options = keys->options;
    struct mm_key_set *made = mm_key_set_open();
    enum mm_status status = MM_OK;
    if (made == NULL) {
        fail_memory(error);
        return NULL;
    }
    if (options->api_key_file != NULL)
        status = add_file(made, options->api_key_file, error);
    if (status == MM_OK && options->api_key != NULL)
        status = add_environment(made, options->api_key, error);
    if (status == MM_OK) {
        find_owners(keys, made);
        return made;
    }
    mm_key_set_close(made);
    return NULL;
}

enum mm_status mm_keys_open(const struct mm_options *options, struct mm_keys **keys, struct mm_error *error) {
    *keys = NULL;
    if (options->api_key_file == NULL && options->api_key == NULL)
        return MM_OK;
    struct mm_keys *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return fail_memory(error);
    opened->options = options;
    strcpy(opened->accounts[UNNAMED].name, unnamed);
    strcpy(opened->accounts[OTHER].name, other);
    opened->account_count = FIRST_NAME;
    opened->current = read_keys(opened, error);
    if (opened->current == NULL) {
        free(opened);
        return error->status;
    }
    opened->lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    *keys = opened;
    return MM_OK;
}

void mm_keys_close(struct mm_keys *keys) {
    if (keys == NULL)
        return;
    pthread_rwlock_destroy(&keys->lock);
    mm_key_set_close(keys->current);
    free(keys);
}

bool mm_keys_reload(struct mm_keys *keys) {
    struct mm_error error;
    struct mm_key_set *made = read_keys(keys, &error);
    if (made == NULL) {
        mm_log_error("the API keys stay as they were: %s", error.detail);
        return false;
    }
    const size_t count = made->count;
    pthread_rwlock_wrlock(&keys->lock);
    struct mm_key_set *replaced = keys->current;
    keys->current = made;
    pthread_rwlock_unlock(&keys->lock);
    mm_key_set_close(replaced);
    mm_log_info("API keys in force: %zu", count);
    return true;
}

bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes, struct mm_key_owner *owner) {
    pthread_rwlock_rdlock(&keys->lock);
    const size_t found = mm_key_set_find(keys->current, key, bytes);
    if (found != MM_KEY_NONE)
        *owner = keys->current->keys[found].owner;
    pthread_rwlock_unlock(&keys->lock);
    if (found != MM_KEY_NONE)
        __atomic_add_fetch(&owner->account->requests, 1, __ATOMIC_RELAXED);
    return found != MM_KEY_NONE;
}

size_t mm_keys_spaces(struct mm_keys *keys, uint64_t spaces[MM_KEYS_MAX], uint64_t *newest) {
    *newest = keys->space_count;
    pthread_rwlock_rdlock(&keys->lock);
    const size_t count = keys->current->count;
    for (size_t index = 0; index < count; index++)
        spaces[index] = keys->current->keys[index].owner.space;
    pthread_rwlock_unlock(&keys->lock);
    return count;
}

size_t mm_keys_account_count(const struct mm_keys *keys) {
    return __atomic_load_n(&keys->account_count, __ATOMIC_ACQUIRE);
}

const struct mm_account *mm_keys_account(const struct mm_keys *keys, size_t index) {
    return &keys->accounts[index];
}
