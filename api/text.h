/* A text that grows while stdio writes it. open_memstream is no alternative: if memory runs out, glibc (2.36)
 * drops bytes, and ferror reports nothing. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The caller owns the struct and keeps it from open to close. The members are private. */
struct mm_text {
    char *data;
    size_t length;
    size_t capacity; /* of data, in bytes */
};

/* Opens a stream for one thread. The caller closes it by mm_text_close. NULL if memory runs out. */
FILE *mm_text_open(struct mm_text *text);

/* Closes the stream. Returns the malloc'ed text, which ends by NUL and which the caller frees; *length is its
 * bytes without the NUL. NULL if memory ran out at any write; *length is then undefined. */
char *mm_text_close(FILE *out, struct mm_text *text, size_t *length);
