/* A text that grows while stdio writes it, and a list of names in an array. open_memstream does not suffice,
 * because in glibc 2.36 it loses bytes if memory runs out, and ferror reports no error. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The caller keeps the struct from open to close. The members are private. */
struct mm_text {
    char *data;
    size_t length;
    size_t capacity; /* bytes of `data` */
};

/* Opens a stream. The calling thread must close it by mm_text_close. NULL if memory runs out. */
FILE *mm_text_open(struct mm_text *text);

/* Closes the stream. Returns malloc'ed text with a NUL at its end, which the caller frees. *length is the
 * number of bytes without the NUL. If memory ran out at any write, returns NULL, and *length is undefined. */
char *mm_text_close(FILE *out, struct mm_text *text, size_t *length);

/* Appends a name to a list, after a comma unless the list is empty. Cuts the list to `bytes` bytes with a
 * NUL. */
void mm_list_add(char *list, size_t bytes, const char *name);
