/* Looks up embedded files by their path. */
#include "api/embedded.h"

#include <string.h>

const struct mm_embedded_file *mm_embedded_find(const struct mm_embedded_files *files, const char *path) {
    for (size_t index = 0; index < files->count; index++)
        if (strcmp(files->rows[index].path, path) == 0)
            return &files->rows[index];
    return NULL;
}
