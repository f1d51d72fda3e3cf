/* The API keys in force: read from a file and from the environment, replaced while requests are judged by
 * them, and counted. Knows no HTTP; what a key is made of is key_set.h's business. */
#ifndef MM_SERVER_KEYS_H
#define MM_SERVER_KEYS_H

#include "server/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_keys;

/* Reads the keys of options->api_key_file and options->api_key together. *keys is NULL where neither is
 * given: there are no keys then, and none are asked for. False, with a sentence in problem that shows no key,
 * where something is wrong with one of them. Warns in the log of a file that others can read. `options`
 * outlives it. */
bool mm_keys_open(const struct mm_options *options, struct mm_keys **keys, char *problem,
                  size_t problem_size);

/* Nobody asks any more. NULL is allowed. */
void mm_keys_close(struct mm_keys *keys);

/* Reads the file again, and logs what came of it: the new keys are in force for every request that is judged
 * after the return, or the old ones stay, all of them. Waits for those who are judging at the moment, which
 * is microseconds. One thread at a time. */
void mm_keys_reload(struct mm_keys *keys);

/* Whether this is a key in force; counts it then. Takes no lock and no memory. Any thread. */
bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes);

/* The counts: an index for every label that was in force since the start. The label lives as long as the
 * keys. Any thread. */
size_t mm_keys_label_count(const struct mm_keys *keys);
const char *mm_keys_label(const struct mm_keys *keys, size_t index);
uint64_t mm_keys_requests(const struct mm_keys *keys, size_t index);

#ifdef __cplusplus
}
#endif
#endif
