/* Small files of keys and certificates, read as a whole. Errors show nothing of their content. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* A file that was read. The caller must wipe it. No NUL ends the text. */
struct mm_secret_file {
    char *text;
    size_t bytes;
    size_t buffer_bytes;
};

/* Reads a regular file of at most bytes_max bytes. `what` names it in sentences, as in "the key file".
 * is_secret: logs a warning if all users can read it. MM_BAD_REQUEST in *error if it cannot be read or is
 * longer; then there is nothing to wipe. Any thread may call it. */
enum mm_status mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                                   struct mm_secret_file *file, struct mm_error *error);

/* Overwrites and frees the text. *file may be wiped already, or all zero. */
void mm_secret_file_wipe(struct mm_secret_file *file);

/* Sets *error to MM_BAD_REQUEST with the sentence "`what` `path`: `why`". */
enum mm_status mm_secret_file_fail(const char *what, const char *path, const char *why,
                                   struct mm_error *error);
