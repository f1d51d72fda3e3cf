/* Files that the build made a part of the program (api/embed.cmake), which needs none beside it. */
#pragma once

#include <stddef.h>

struct mm_embedded_file {
    const char *path; /* as its table names it */
    const unsigned char *text;
    size_t bytes;
    const char *etag; /* by the text */
};

struct mm_embedded_files {
    const struct mm_embedded_file *rows;
    size_t count;
};

/* openapi.json alone. */
extern const struct mm_embedded_files mm_openapi_files;

/* The files of the variants, by their paths from the top folder. */
extern const struct mm_embedded_files mm_source_files;

/* NULL if there is no such file. Any thread. */
const struct mm_embedded_file *mm_embedded_find(const struct mm_embedded_files *files, const char *path);
