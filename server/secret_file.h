/* Small files that an operator writes and that are read as a whole: keys and certificates. Knows nothing of
 * what is in them, and shows none of it. */
#ifndef MM_SERVER_SECRET_FILE_H
#define MM_SERVER_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The caller's, from a read that went well to the wipe. No zero ends the text. */
struct mm_secret_file {
    char *text;
    size_t bytes;
    size_t room;
};

/* Reads at most bytes_max bytes of a regular file; that there are more is not told. `what` is how sentences
 * call it, as in "the key file". is_secret: warns in the log where every user of the machine can read it.
 * False, with a sentence in problem that names the path, where it cannot be read; *file needs no wipe then.
 * Any thread. */
bool mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                         struct mm_secret_file *file, char *problem, size_t problem_size);

/* Leaves nothing of the text in memory. What was never read, or wiped before, may be given if it is all zero.
 */
void mm_secret_file_wipe(struct mm_secret_file *file);

/* The sentence for a file whose content is at fault: `what` `path`: `why`. Returns false. */
bool mm_secret_file_fail(const char *what, const char *path, const char *why, char *problem,
                         size_t problem_size);

#ifdef __cplusplus
}
#endif
#endif
