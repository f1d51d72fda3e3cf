#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_ALIGNMENT = 64 }; /* alignment of struct mm_body */

void fuzz_fail(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
    abort();
}

struct slice fuzz_split(struct slice *rest, char separator) {
    const char *stop = rest->bytes == 0 ? NULL : memchr(rest->text, separator, rest->bytes);
    struct slice taken = {rest->text, stop == NULL ? rest->bytes : (size_t)(stop - rest->text)};
    size_t gone = taken.bytes + (stop != NULL);
    if (gone > 0)
        *rest = (struct slice){rest->text + gone, rest->bytes - gone};
    return taken;
}

struct slice fuzz_split_bytes(struct slice *rest, size_t bytes_max) {
    const struct slice taken = {rest->text, bytes_max < rest->bytes ? bytes_max : rest->bytes};
    if (taken.bytes > 0)
        *rest = (struct slice){rest->text + taken.bytes, rest->bytes - taken.bytes};
    return taken;
}

void *fuzz_copy_bytes(struct slice slice) {
    void *copy = NULL;
    if (slice.bytes == 0)
        return NULL;
    if (posix_memalign(&copy, BODY_ALIGNMENT, slice.bytes) != 0)
        abort();
    return memcpy(copy, slice.text, slice.bytes);
}

char *fuzz_copy_text(struct slice slice) {
    size_t length = slice.bytes == 0 ? 0 : strnlen(slice.text, slice.bytes);
    char *copy = malloc(length + 1);
    if (copy == NULL)
        abort();
    if (length > 0)
        memcpy(copy, slice.text, length);
    copy[length] = '\0';
    return copy;
}
