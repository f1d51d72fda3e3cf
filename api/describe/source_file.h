/* The files of the variants, which the build made a part of the program (api/CMakeLists.txt). */
#pragma once

#include <stddef.h>

struct mm_source_file {
    const char *path; /* from the top folder */
    const unsigned char *text;
    const size_t *bytes;
};

extern const struct mm_source_file mm_source_files[];
extern const size_t mm_source_file_count;

/* NULL if there is no such file. Any thread. */
const struct mm_source_file *mm_source_file_find(const char *path);
