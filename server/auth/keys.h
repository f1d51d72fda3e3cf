/* API keys. struct mm_key_set is a set of keys from a key file or a list. struct mm_keys holds the set that
 * is valid now, and counts requests by key. A reload can replace the valid set at any time. This file knows
 * no HTTP, and never prints a key. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

enum {
    MM_KEY_BYTES_MIN = 16,
    MM_KEY_BYTES_MAX = 256,
    MM_KEYS_MAX = 1024,
    MM_KEY_NAME_MAX = 15, /* shorter than any key, so no name in a log can be a key */
    MM_KEY_WORDS = MM_KEY_BYTES_MAX / sizeof(uint64_t)
};

#define MM_KEY_NONE ((size_t)-1)

/* A key, padded with zeros to a fixed length. The key itself contains no zeros. */
struct mm_key {
    uint64_t words[MM_KEY_WORDS];
    char label[MM_KEY_NAME_MAX + 1]; /* for metrics: the key's name, or its line number, or env:N */
    bool is_named;
    unsigned counter; /* index of the key's counter in struct mm_keys */
    uint64_t space;   /* namespace of the matrices stored with this key; 0: not set yet */
};

struct mm_key_set {
    size_t count;
    struct mm_key keys[MM_KEYS_MAX];
};

/* Returns an empty set; NULL if out of memory. */
struct mm_key_set *mm_key_set_open(void);

/* Overwrites the keys and frees the set. NULL is allowed. */
void mm_key_set_close(struct mm_key_set *set);

/* Adds the keys of a key file. A line is `KEY` or `NAME KEY`, with optional spaces or tabs around them. Empty
 * lines and lines that begin with # are skipped. A key is 16 to 256 printable ASCII characters without
 * spaces, and may appear only once. A name begins with a letter, has at most 15 characters of [A-Za-z0-9._-],
 * and may have several keys. The label of a key without a name is its line number. Fails with MM_BAD_REQUEST
 * if a line is malformed, or if there are no keys or more than MM_KEYS_MAX. *error never quotes a line. After
 * a failure, only close the set. */
enum mm_status mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes,
                                   struct mm_error *error);

/* Adds keys from a list with commas between them. Keys that are already in the set are skipped. A key is 16
 * to 256 printable ASCII characters without spaces and commas. Labels are env:1, env:2, …. Fails with
 * MM_BAD_REQUEST if a key is malformed, or if there are no keys or more than MM_KEYS_MAX. *error never quotes
 * a key. After a failure, only close the set. */
enum mm_status mm_key_set_add_list(struct mm_key_set *set, const char *list, struct mm_error *error);

/* Returns the index of a key, or MM_KEY_NONE if the set lacks the key. The search takes equally long for
 * wrong and valid keys. `key` may contain any bytes. Any thread may call it while no thread adds keys. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes);

struct mm_keys;

/* Reads options->api_key_file and options->api_key. The caller closes *keys. If neither option is given,
 * *keys is NULL and requests need no key. Fails with MM_BAD_REQUEST if the file or the list is bad, or with
 * MM_INTERNAL if out of memory. *error never quotes a key. Logs a warning if all users can read the file.
 * `options` must outlive *keys. */
enum mm_status mm_keys_open(const struct mm_options *options, struct mm_keys **keys, struct mm_error *error);

/* Frees the keys. No thread may use them any more. NULL is allowed. */
void mm_keys_close(struct mm_keys *keys);

/* Reads the keys again and logs the result. Later requests need one of the new keys. On failure it returns
 * false, and the old keys stay valid. Only one thread at a time may call it. */
bool mm_keys_reload(struct mm_keys *keys);

/* Returns whether a key is valid now. If it is, counts the request and sets *space to the key's namespace, a
 * number above 0. Keys with equal names have the same namespace. A name keeps its namespace until a reload
 * drops the name. A key without a name has its own. Can block during a reload. Any thread may call it. */
bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes, uint64_t *space);

/* Lists the namespace of each valid key, and returns the length of the list. Several keys can have the same
 * namespace. Sets *newest to the highest namespace so far. Only the reloading thread may call it. */
size_t mm_keys_spaces(struct mm_keys *keys, uint64_t spaces[MM_KEYS_MAX], uint64_t *newest);

/* Return the number of labels, a label, and the label's count of admitted requests. A label lives as long as
 * `keys`. Any thread may call these functions. */
size_t mm_keys_label_count(const struct mm_keys *keys);
const char *mm_keys_label(const struct mm_keys *keys, size_t index);
uint64_t mm_keys_requests(const struct mm_keys *keys, size_t index);
