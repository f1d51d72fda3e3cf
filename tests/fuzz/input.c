/* Pieces of an input, their copies, and the end of a run that has found something. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_ALIGNMENT = 64 }; /* struct mm_body's */

void fuzz_fail(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
    abort();
}

struct piece fuzz_take(struct piece *rest, char separator) {
    const char *stop = rest->bytes == 0 ? NULL : memchr(rest->text, separator, rest->bytes);
    struct piece taken = {rest->text, stop == NULL ? rest->bytes : (size_t)(stop - rest->text)};
    size_t gone = taken.bytes + (stop != NULL);
    if (gone > 0)
        *rest = (struct piece){rest->text + gone, rest->bytes - gone};
    return taken;
}

struct piece fuzz_take_bytes(struct piece *rest, size_t bytes_max) {
    const struct piece taken = {rest->text, bytes_max < rest->bytes ? bytes_max : rest->bytes};
    if (taken.bytes > 0)
        *rest = (struct piece){rest->text + taken.bytes, rest->bytes - taken.bytes};
    return taken;
}

void *fuzz_copy_bytes(struct piece piece) {
    void *copy = NULL;
    if (piece.bytes == 0)
        return NULL;
    if (posix_memalign(&copy, BODY_ALIGNMENT, piece.bytes) != 0)
        abort();
    return memcpy(copy, piece.text, piece.bytes);
}

char *fuzz_copy_text(struct piece piece) {
    size_t length = piece.bytes == 0 ? 0 : strnlen(piece.text, piece.bytes);
    char *copy = malloc(length + 1);
    if (copy == NULL)
        abort();
    if (length > 0)
        memcpy(copy, piece.text, length);
    copy[length] = '\0';
    return copy;
}
