/* Small files of keys and certificates, read as a whole. Shows nothing of their content. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* To be wiped after a read that succeeded. No zero ends the text. */
struct mm_secret_file {
    char *text;
    size_t bytes;
    size_t room;
};

/* Reads a regular file of at most bytes_max bytes. `what` names it in sentences, as in "the key file".
 * is_secret: warns in the log if all users can read it. MM_OK; or MM_BAD_REQUEST in *error, if it cannot be
 * read or is longer. Any thread. */
enum mm_status mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                                   struct mm_secret_file *file, struct mm_error *error);

/* Overwrites and frees the text. Twice, or all zero, is allowed. */
void mm_secret_file_wipe(struct mm_secret_file *file);

/* Fails by a sentence on the content: `what` `path`: `why`. Returns MM_BAD_REQUEST. */
enum mm_status mm_secret_file_fail(const char *what, const char *path, const char *why,
                                   struct mm_error *error);
