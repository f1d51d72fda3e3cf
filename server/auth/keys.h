/* API keys: a set of keys, read from a key file or a list; and the set in force, which a reload replaces
 * while requests are checked, with its counts. Knows no HTTP, and never shows a key. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

enum {
    MM_KEY_BYTES_MIN = 16,
    MM_KEY_BYTES_MAX = 256,
    MM_KEYS_MAX = 1024,
    MM_KEY_NAME_MAX = 15, /* shorter than any key: names are shown, so none may be mistaken for a key */
    MM_KEY_WORDS = MM_KEY_BYTES_MAX / sizeof(uint64_t)
};

#define MM_KEY_NONE ((size_t)-1)

/* Zeros fill up a key. No key contains zeros, so all keys have one length. */
struct mm_key {
    uint64_t words[MM_KEY_WORDS];
    char label[MM_KEY_NAME_MAX + 1]; /* name of the key's counter */
    bool is_named;
    unsigned counter; /* of struct mm_keys; 0 until it is known */
    uint64_t space; /* namespace of its stored matrices, which keys of one name share; 0 until it is known */
};

struct mm_key_set {
    size_t count;
    struct mm_key keys[MM_KEYS_MAX];
};

/* Returns an empty set; NULL if out of memory. */
struct mm_key_set *mm_key_set_open(void);

/* Overwrites the keys and frees the set. NULL is allowed. */
void mm_key_set_close(struct mm_key_set *set);

/* Adds the keys of a key file. A line is `KEY` or `NAME KEY`, with spaces or tabs around them, or empty, or
 * begins with #. A key is 16 to 256 printable ASCII characters without spaces, and comes once. A name begins
 * with a letter, has at most 15 characters of [A-Za-z0-9._-], and may have several keys. The label of a key
 * without a name is the number of its line. MM_BAD_REQUEST if a line is malformed, or if
 * there are no keys or more than MM_KEYS_MAX; *error never quotes a line. After a failure the set may only be
 * closed. */
enum mm_status mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes,
                                   struct mm_error *error);

/* Adds keys separated by commas, which may repeat keys of the set. A key is 16 to 256 printable ASCII
 * characters without spaces and commas. Labels are env:1, env:2, …. MM_BAD_REQUEST in *error, which shows no
 * key, if one is malformed, or if there are none or more than MM_KEYS_MAX; only close the set then. */
enum mm_status mm_key_set_add_list(struct mm_key_set *set, const char *list, struct mm_error *error);

/* Finds the index of a key; MM_KEY_NONE if there is none. A wrong key takes as long as a right one.
 * `key` may have any bytes. Any thread may call it, while none adds keys. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes);

struct mm_keys;

/* Reads options->api_key_file and options->api_key. The caller closes *keys, which is NULL if neither is
 * given, so no key is needed. MM_BAD_REQUEST in *error, which shows no key, if one of them is bad;
 * MM_INTERNAL if out of memory. Logs a warning if all users can read the file. `options` must outlive
 * *keys. */
enum mm_status mm_keys_open(const struct mm_options *options, struct mm_keys **keys, struct mm_error *error);

/* Frees the keys. No thread may use them any more. NULL is allowed. */
void mm_keys_close(struct mm_keys *keys);

/* Reads the keys again and logs the result. The new keys are in force for every request that is checked after
 * the return. On failure all old keys stay, and it returns false. One thread at a time may call it. */
bool mm_keys_reload(struct mm_keys *keys);

/* Whether a key is in force. If so, counts its use, and sets *space to its namespace, a number from 1 on. A
 * name, or a key without a name, keeps its namespace as long as each reload leaves it in force. Waits only
 * while a reload swaps the sets. Any thread may call it. */
bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes, uint64_t *space);

/* Lists the namespaces of the keys in force, some of them several times, and returns how many. *newest is the
 * highest namespace so far. Only the thread that reloads may call it. */
size_t mm_keys_spaces(struct mm_keys *keys, uint64_t spaces[MM_KEYS_MAX], uint64_t *newest);

/* Counts admitted requests: one index for each label that was in force since the start. Labels live as long
 * as `keys`. Any thread may call these functions. */
size_t mm_keys_label_count(const struct mm_keys *keys);
const char *mm_keys_label(const struct mm_keys *keys, size_t index);
uint64_t mm_keys_requests(const struct mm_keys *keys, size_t index);
