/* A text that grows as it is written, by the functions of stdio. open_memstream will not do: if memory runs
 * out, glibc (2.36) drops what it has no room for, and ferror reports nothing. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The caller's, from open to close. Not to be touched. */
struct mm_text {
    char *data;
    size_t length;
    size_t capacity; /* of data, in bytes */
};

/* A stream for one thread, which the caller closes by mm_text_close. NULL if memory runs out. */
FILE *mm_text_open(struct mm_text *text);

/* Closes the stream. Returns the text, malloc'ed and ended by NUL, the caller frees; *length is its bytes
 * without that NUL. NULL if memory ran out, at whichever write; *length is undefined then. */
char *mm_text_close(FILE *out, struct mm_text *text, size_t *length);
