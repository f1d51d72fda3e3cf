#include "server/auth/secret_file.h"

#include "server/observe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum mm_status mm_secret_file_fail(const char *what, const char *path, const char *why,
                                   struct mm_error *error) {
    return mm_fail(error, MM_BAD_REQUEST, "%s %.300s: %s", what, path, why);
}

/* Opens only regular files, because reading a pipe could take forever. Returns −1 with *error on failure. */
static int open_file(const char *what, const char *path, bool is_secret, struct mm_error *error) {
    struct stat state;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &state) != 0) {
        mm_secret_file_fail(what, path, strerror(errno), error);
    } else if (!S_ISREG(state.st_mode)) {
        mm_secret_file_fail(what, path, "it is no regular file", error);
    } else {
        if (is_secret && (state.st_mode & S_IROTH) != 0)
            mm_log_warning("%s %s can be read by every user of this machine: chmod o-r", what, path);
        return file;
    }
    if (file >= 0)
        close(file);
    return -1;
}

static ssize_t read_all(int file, char *text, size_t most) {
    size_t bytes = 0;
    while (bytes < most) {
        ssize_t got = read(file, text + bytes, most - bytes);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        bytes += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)bytes;
}

enum mm_status mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                                   struct mm_secret_file *file, struct mm_error *error) {
    int opened = open_file(what, path, is_secret, error);
    if (opened < 0)
        return error->status;
    const size_t buffer_bytes = bytes_max + 1; /* one byte more, to detect a file that is too long */
    *file = (struct mm_secret_file){.text = calloc(1, buffer_bytes), .buffer_bytes = buffer_bytes};
    const ssize_t bytes = file->text == NULL ? -1 : read_all(opened, file->text, buffer_bytes);
    const int failure = errno;
    char why[64];
    close(opened);
    if (bytes >= 0 && (size_t)bytes <= bytes_max) {
        file->bytes = (size_t)bytes;
        return MM_OK;
    }
    snprintf(why, sizeof why, "it may have %zu bytes, and has more", bytes_max);
    mm_secret_file_wipe(file);
    return mm_secret_file_fail(what, path, bytes < 0 ? strerror(failure) : why, error);
}

void mm_secret_file_wipe(struct mm_secret_file *file) {
    if (file->text != NULL)
        explicit_bzero(file->text, file->buffer_bytes);
    free(file->text);
    *file = (struct mm_secret_file){0};
}
