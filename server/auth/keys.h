/* API keys. struct mm_key_set is a set of keys from a key file or a list. struct mm_keys holds the set that
 * is valid now, and an account for each name. A reload can replace the valid set at any time. This file knows
 * no HTTP, and never prints a key. */
#pragma once

#include "server/auth/account.h"
#include "server/options.h"

enum {
    MM_KEY_BYTES_MIN = 16,
    MM_KEY_BYTES_MAX = 256,
    MM_KEYS_MAX = 1024,
    MM_KEY_WORDS = MM_KEY_BYTES_MAX / sizeof(uint64_t)
};

#define MM_KEY_NONE ((size_t)-1)

struct mm_key_owner {
    char name[MM_KEY_NAME_MAX + 1]; /* "unnamed" if the key has no name */
    struct mm_account *account;     /* not owned; NULL: not set yet */
    uint64_t space;                 /* namespace of the matrices stored with this key; 0: not set yet */
};

/* A key, padded with zeros to a fixed length. The key itself contains no zeros. */
struct mm_key {
    uint64_t words[MM_KEY_WORDS];
    bool is_named;
    struct mm_key_owner owner;
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
 * is not "unnamed" or "other", and may have several keys. Fails with MM_BAD_REQUEST if a line is malformed,
 * or if there are no keys or more than MM_KEYS_MAX. *error never quotes a line. After a failure, only close
 * the set. */
enum mm_status mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes,
                                   struct mm_error *error);

/* Adds keys from a list with commas between them. Keys that are already in the set are skipped. A key is 16
 * to 256 printable ASCII characters without spaces and commas. Fails with MM_BAD_REQUEST if a key is
 * malformed, or if there are no keys or more than MM_KEYS_MAX. *error never quotes a key. After a failure,
 * only close the set. */
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

/* Returns whether a key is valid now. If it is, counts the request and sets *owner. Keys with equal names
 * have the same namespace, a number above 0. A name keeps its namespace until a reload drops the name. A key
 * without a name has its own. Can block during a reload. Any thread may call it. */
bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes, struct mm_key_owner *owner);

/* Lists the namespace of each valid key, and returns the length of the list. Several keys can have the same
 * namespace. Sets *newest to the highest namespace so far. Only the reloading thread may call it. */
size_t mm_keys_spaces(struct mm_keys *keys, uint64_t spaces[MM_KEYS_MAX], uint64_t *newest);

/* Return the number of accounts, and an account. There is one for each of the first MM_ACCOUNT_NAMES_MAX
 * names since the start, also if a reload drops the name. The account "unnamed" is for keys without a name,
 * and "other" for all other names. An account lives as long as `keys`. Any thread may call these functions.
 */
enum { MM_ACCOUNT_NAMES_MAX = 256 };
size_t mm_keys_account_count(const struct mm_keys *keys);
const struct mm_account *mm_keys_account(const struct mm_keys *keys, size_t index);
