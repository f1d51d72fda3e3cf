/* Prints the variants of all backends, a line each: op backend|name|summary. Opens no device. */
#include "gpu/device/backend.h"

#include <stdio.h>

int main(void) {
    for (const struct mm_backend *const *backend = mm_backends_known(); *backend != NULL; backend++)
        for (size_t index = 0; index < (*backend)->variant_count; index++)
            printf("%s %s|%s|%s\n", mm_op_name((*backend)->variants[index].op), (*backend)->name,
                   (*backend)->variants[index].name, (*backend)->variants[index].summary);
    return 0;
}
