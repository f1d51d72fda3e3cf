/* Small files of keys and certificates, read as a whole. Shows nothing of their content. */
#ifndef MM_SERVER_AUTH_SECRET_FILE_H
#define MM_SERVER_AUTH_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* To be wiped after a read that succeeded. No zero ends the text. */
struct mm_secret_file {
    char *text;
    size_t bytes;
    size_t room;
};

/* Reads a regular file of at most bytes_max bytes. `what` names it in sentences, as in "the key file".
 * is_secret: warns in the log if all users can read it. False, with a sentence in problem, if it cannot be
 * read or is longer. Any thread. */
bool mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                         struct mm_secret_file *file, char *problem, size_t problem_size);

/* Overwrites and frees the text. Twice, or all zero, is allowed. */
void mm_secret_file_wipe(struct mm_secret_file *file);

/* Writes a sentence on the content: `what` `path`: `why`. Returns false. */
bool mm_secret_file_fail(const char *what, const char *path, const char *why, char *problem,
                         size_t problem_size);

#endif
