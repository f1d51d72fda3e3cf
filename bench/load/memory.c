#include "bench/load/memory.h"

#include <stdio.h>
#include <stdlib.h>

void *mm_load_resize(void *memory, size_t bytes) {
    void *resized = realloc(memory, bytes > 0 ? bytes : 1);
    if (resized == NULL) {
        fputs("the benchmark server is out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return resized;
}
