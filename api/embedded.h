/* Files that the build embeds in the program (api/embed.cmake). */
#pragma once

#include <stddef.h>

struct mm_embedded_file {
    const char *path;
    const unsigned char *text;
    size_t bytes;
    const char *etag; /* HTTP entity tag, a hash of the text */
};

struct mm_embedded_files {
    const struct mm_embedded_file *rows;
    size_t count;
};

/* Contains only openapi.json. */
extern const struct mm_embedded_files mm_openapi_files;

/* The source files of the variants. Paths are relative to the repository. */
extern const struct mm_embedded_files mm_source_files;

/* Returns the file with this path, or NULL. Any thread may call this function. */
const struct mm_embedded_file *mm_embedded_find(const struct mm_embedded_files *files, const char *path);
