/* Collects a stream's output in memory, which grows by doubling. Appends names to lists. */
#include "api/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { CAPACITY_MIN = 1024 };

/* Makes space for `bytes` more bytes and a NUL. */
static int grow(struct mm_text *text, size_t bytes) {
    size_t capacity = text->capacity < CAPACITY_MIN ? CAPACITY_MIN : text->capacity;
    while (capacity - text->length <= bytes)
        capacity *= 2;
    if (capacity == text->capacity)
        return 0;
    char *data = realloc(text->data, capacity);
    if (data == NULL)
        return -1;
    text->data = data;
    text->capacity = capacity;
    return 0;
}

/* stdio calls this to write. Returning 0 means failure. */
static ssize_t append(void *cookie, const char *bytes, size_t count) {
    struct mm_text *text = cookie;
    if (grow(text, count) != 0)
        return 0;
    memcpy(text->data + text->length, bytes, count);
    text->length += count;
    return (ssize_t)count;
}

FILE *mm_text_open(struct mm_text *text) {
    *text = (struct mm_text){0};
    return fopencookie(text, "w", (cookie_io_functions_t){.write = append});
}

char *mm_text_close(FILE *out, struct mm_text *text, size_t *length) {
    const int failed = ferror(out);
    if (fclose(out) != 0 || failed != 0 || grow(text, 0) != 0) {
        free(text->data);
        return NULL;
    }
    text->data[text->length] = '\0';
    *length = text->length;
    return text->data;
}

void mm_list_add(char *list, size_t bytes, const char *name) {
    const size_t length = strlen(list);
    snprintf(list + length, bytes - length, "%s%s", length > 0 ? ", " : "", name);
}
