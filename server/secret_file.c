/* How a file of secrets is read, and forgotten. */
#include "server/secret_file.h"

#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool mm_secret_file_fail(const char *what, const char *path, const char *why, char *problem,
                         size_t problem_size) {
    snprintf(problem, problem_size, "%s %.300s: %s", what, path, why);
    return false;
}

/* A regular file alone: it is to be read again, and to open a pipe could wait for ever. */
static int open_file(const char *what, const char *path, bool is_secret, char *problem, size_t size) {
    struct stat state;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &state) != 0) {
        mm_secret_file_fail(what, path, strerror(errno), problem, size);
    } else if (!S_ISREG(state.st_mode)) {
        mm_secret_file_fail(what, path, "it is no regular file", problem, size);
    } else {
        if (is_secret && (state.st_mode & S_IROTH) != 0)
            mm_log_warning("%s %s can be read by every user of this machine: chmod o-r", what, path);
        return file;
    }
    if (file >= 0)
        close(file);
    return -1;
}

/* At most `most` bytes; −1 with errno where reading fails. */
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

bool mm_secret_file_read(const char *what, const char *path, size_t bytes_max, bool is_secret,
                         struct mm_secret_file *file, char *problem, size_t problem_size) {
    int opened = open_file(what, path, is_secret, problem, problem_size);
    if (opened < 0)
        return false;
    *file = (struct mm_secret_file){.text = calloc(1, bytes_max), .room = bytes_max};
    ssize_t bytes = file->text == NULL ? -1 : read_all(opened, file->text, bytes_max);
    if (bytes < 0) {
        mm_secret_file_fail(what, path, strerror(errno), problem, problem_size);
        mm_secret_file_wipe(file);
    }
    file->bytes = bytes < 0 ? 0 : (size_t)bytes;
    close(opened);
    return bytes >= 0;
}

void mm_secret_file_wipe(struct mm_secret_file *file) {
    if (file->text != NULL)
        explicit_bzero(file->text, file->room);
    free(file->text);
    *file = (struct mm_secret_file){0};
}
