/* Files that the build embeds in the program (api/embed.cmake), so the program needs no files at run time. */
#pragma once

#include <stddef.h>

struct mm_embedded_file {
    const char *path; /* relative; the file's key in its table */
    const unsigned char *text;
    size_t bytes;
    const char *etag; /* the file's HTTP entity tag, computed from the text */
};

struct mm_embedded_files {
    const struct mm_embedded_file *rows;
    size_t count;
};

/* One row: openapi.json. */
extern const struct mm_embedded_files mm_openapi_files;

/* The source files of the variants. Paths begin at the repository's top folder. */
extern const struct mm_embedded_files mm_source_files;

/* Finds the file with this path. NULL: there is none. Any thread may call this function. */
const struct mm_embedded_file *mm_embedded_find(const struct mm_embedded_files *files, const char *path);
