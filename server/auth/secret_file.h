/* Reads small files that contain keys or certificates. Error messages never quote their content. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* The content of a file, without a NUL at the end. The caller must wipe it. */
struct mm_secret_file {
    char *text;
    size_t bytes;
    size_t buffer_bytes;
};

/* Reads a regular file of at most bytes_max bytes. `what` names the file in messages, as in "the key file".
 * If is_secret is true and all users can read the file, it logs a warning. Fails with MM_BAD_REQUEST if the
 * file cannot be read or is too long; then *file needs no wipe. Any thread may call it. */
enum mm_status mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                                   struct mm_secret_file *file, struct mm_error *error);

/* Overwrites and frees the text. *file may be all zero or wiped already. */
void mm_secret_file_wipe(struct mm_secret_file *file);

/* Sets *error to MM_BAD_REQUEST with the text "`what` `path`: `why`". */
enum mm_status mm_secret_file_fail(const char *what, const char *path, const char *why,
                                   struct mm_error *error);
