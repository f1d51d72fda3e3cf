/* Bytes that grow as they are written to. A load client without memory has nothing to prove, so that
 * running out of it ends the process. */
#ifndef MM_LOAD_BYTES_H
#define MM_LOAD_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as {0}. data[length] is always a NUL once anything was written. The owner frees. */
struct mm_load_bytes {
    char *data;
    size_t length;
    size_t capacity;
};

/* Keeps the memory for the next use. */
void mm_load_bytes_clear(struct mm_load_bytes *bytes);

void mm_load_bytes_free(struct mm_load_bytes *bytes);

/* Room for `count` more bytes, and the place where they go; length is the caller's to raise. */
char *mm_load_bytes_reserve(struct mm_load_bytes *bytes, size_t count);

void mm_load_bytes_add(struct mm_load_bytes *bytes, const void *data, size_t count);
void mm_load_bytes_print(struct mm_load_bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* malloc that ends the process where it fails; never NULL. */
void *mm_load_allocate(size_t bytes);

#endif
