/* Growing bytes, doubled when full. */
#include "bench/load/bytes.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory) {
    if (memory == NULL) {
        fputs("the load client is out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

void *mm_load_allocate(size_t bytes) {
    return checked(malloc(bytes > 0 ? bytes : 1));
}

void mm_load_bytes_free(struct mm_load_bytes *bytes) {
    free(bytes->data);
    *bytes = (struct mm_load_bytes){0};
}

void mm_load_bytes_clear(struct mm_load_bytes *bytes) {
    bytes->length = 0;
}

char *mm_load_bytes_reserve(struct mm_load_bytes *bytes, size_t count) {
    size_t needed = bytes->length + count + 1; /* the NUL */
    if (needed > bytes->capacity) {
        bytes->capacity = needed > 2 * bytes->capacity ? needed : 2 * bytes->capacity;
        bytes->data = checked(realloc(bytes->data, bytes->capacity));
    }
    return bytes->data + bytes->length;
}

void mm_load_bytes_add(struct mm_load_bytes *bytes, const void *data, size_t count) {
    char *end = mm_load_bytes_reserve(bytes, count);
    if (count > 0)
        memcpy(end, data, count);
    end[count] = '\0';
    bytes->length += count;
}

void mm_load_bytes_print(struct mm_load_bytes *bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    va_start(arguments, format);
    char *end = mm_load_bytes_reserve(bytes, (size_t)length);
    vsnprintf(end, (size_t)length + 1, format, arguments);
    va_end(arguments);
    bytes->length += (size_t)length;
}
