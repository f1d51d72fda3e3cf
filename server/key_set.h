/* A set of API keys: read from the text of a key file or from a list, and then asked whether a key is one of
 * them. Knows no file, no HTTP and no counters, and never tells a key. */
#ifndef MM_SERVER_KEY_SET_H
#define MM_SERVER_KEY_SET_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MM_KEY_BYTES_MIN = 16,
    MM_KEY_BYTES_MAX = 256,
    MM_KEYS_MAX = 1024,
    MM_KEY_NAME_MAX = 15, /* less than a key has, so that none is taken for a name, which is shown */
    MM_KEY_TEXT_BYTES_MAX = 1 << 20 /* of a whole file or list */
};

#define MM_KEY_NONE ((size_t)-1)

struct mm_key_set;

/* An empty set; NULL when memory is out. */
struct mm_key_set *mm_key_set_open(void);

/* Overwrites the keys and frees the set. NULL is allowed. */
void mm_key_set_close(struct mm_key_set *set);

/* Adds the keys of a key file's text, one a line: `KEY` or `NAME KEY`, with spaces or tabs around them. Empty
 * lines and those that begin with # are passed over. A key is 16 to 256 printable characters of ASCII
 * without spaces, and stands once; a name begins with a letter, is of [A-Za-z0-9._-] and at most 15 long,
 * and may have several keys. The label of a key without a name is its line's number. False, with a sentence
 * in problem that shows no part of a line, where a line is none of these, there is no key at all, or there
 * are more than MM_KEYS_MAX; the set is of no use then. The text is not kept. */
bool mm_key_set_add_text(struct mm_key_set *set, const char *text, size_t bytes, char *problem,
                         size_t problem_size);

/* The same of keys separated by commas, which may repeat keys that the set has. The label of the first is
 * env:1. */
bool mm_key_set_add_list(struct mm_key_set *set, const char *list, char *problem, size_t problem_size);

size_t mm_key_set_count(const struct mm_key_set *set);

/* What a key is counted under; lives as long as the set. */
const char *mm_key_set_label(const struct mm_key_set *set, size_t index);

/* The index of this key, or MM_KEY_NONE. How long that takes depends on how many keys there are, and neither
 * on which of them it is nor on how much of one it is like. `key` may hold any bytes. Any thread, while
 * nobody adds. */
size_t mm_key_set_find(const struct mm_key_set *set, const char *key, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
