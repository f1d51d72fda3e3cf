/* Looks up the files of the variants. */
#include "api/describe/source_file.h"

#include <string.h>

const struct mm_source_file *mm_source_file_find(const char *path) {
    for (size_t index = 0; index < mm_source_file_count; index++)
        if (strcmp(mm_source_files[index].path, path) == 0)
            return &mm_source_files[index];
    return NULL;
}
