/* API keys: a set, read from the text of a key file or from a list; and the set in force, which a reload
 * replaces while requests are checked, with its counts. Knows no HTTP, and never shows a key. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

enum {
    MM_KEY_BYTES_MIN = 16,
    MM_KEY_BYTES_MAX = 256,
    MM_KEYS_MAX = 1024,
    MM_KEY_NAME_MAX = 15, /* less than a key has: names are shown, and a key must not be taken for one */
    MM_KEY_WORDS = MM_KEY_BYTES_MAX / sizeof(uint64_t)
};

#define MM_KEY_NONE ((size_t)-1)

/* A key is filled up with zeros, which no key contains: all have the same length. */
struct mm_key {
    uint64_t words[MM_KEY_WORDS];
    char label[MM_KEY_NAME_MAX + 1]; /* what the key is counted under */
    bool is_named;
    unsigned counter; /* of struct mm_keys, as the next; both 0 before they are known */
    uint64_t space;   /* the namespace of its stored matrices: of its name, or of the key if it has none */
};

struct mm_key_set {
    size_t count;
    struct mm_key keys[MM_KEYS_MAX];
};

/* An empty set; NULL if memory runs out. */
struct mm_key_set *mm_key_set_open(void);

/* Overwrites the keys and frees the set. NULL is allowed. */
void mm_key_set_close(struct mm_key_set *set);

/* Adds the keys of a key file: a line is `KEY` or `NAME KEY` with spaces or tabs around them, or empty, or
 * begins with #. A key is 16 to 256 printable ASCII characters without spaces, once per file. A name begins
 * with a letter, is of [A-Za-z0-9._-], at most 15 long, and may have several keys. The label of a key without
 * a name is its line's number. MM_BAD_REQUEST in *error, which shows no part of a line, if a line is
 * malformed, or if there are no keys or more than MM_KEYS_MAX; only close the set then. */
enum mm_status mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes,
                                   struct mm_error *error);

/* Adds keys separated by commas, which may repeat keys of the set. A key is 16 to 256 printable ASCII
 * characters without spaces and commas. Labels are env:1, env:2, …. MM_BAD_REQUEST in *error, which shows no
 * key, if one is malformed, or if there are none or more than MM_KEYS_MAX; only close the set then. */
enum mm_status mm_key_set_add_list(struct mm_key_set *set, const char *list, struct mm_error *error);

/* The index of this key, or MM_KEY_NONE. Takes the same time for every key, right or wrong. `key` may hold
 * any bytes. Any thread, while none adds. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes);

struct mm_keys;

/* Reads options->api_key_file and options->api_key. *keys is NULL if neither is given: no key is needed.
 * MM_BAD_REQUEST in *error, which shows no key, if one of them is bad; MM_INTERNAL if memory runs out. Warns
 * in the log of a file that all users can read. `options` outlives it. */
enum mm_status mm_keys_open(const struct mm_options *options, struct mm_keys **keys, struct mm_error *error);

/* No thread uses them any more. NULL is allowed. */
void mm_keys_close(struct mm_keys *keys);

/* Reads the file again and logs the result: the new keys are in force for every request checked after the
 * return, or all the old ones stay and it returns false. One thread at a time. */
bool mm_keys_reload(struct mm_keys *keys);

/* Whether this is a key in force; counts its use, and sets *space to its namespace, a number from 1 on. A
 * name or a key without a name keeps its namespace as long as each reload leaves it in force. Waits only
 * while a reload swaps the sets, a moment. Any thread. */
bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes, uint64_t *space);

/* The namespaces of the keys in force, some of them several times, and the highest number of all so far.
 * Returns how many. The thread that reloads. */
size_t mm_keys_spaces(struct mm_keys *keys, uint64_t spaces[MM_KEYS_MAX], uint64_t *newest);

/* The counts: one index per label that was in force since the start. Labels live as long as the keys. Any
 * thread. */
size_t mm_keys_label_count(const struct mm_keys *keys);
const char *mm_keys_label(const struct mm_keys *keys, size_t index);
uint64_t mm_keys_requests(const struct mm_keys *keys, size_t index);
