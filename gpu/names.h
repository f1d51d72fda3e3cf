/* Names by an enum, out of the table of rows (constant, name, …) that makes the enum. Any thread may call the
 * functions that it defines. */
#ifndef MM_GPU_NAMES_H
#define MM_GPU_NAMES_H

#include <assert.h>

#define MM_NAME_ROW(constant, name, ...) [constant] = name,

/* Defines a function that is declared elsewhere: const char *FUNCTION(enum TYPE value). */
#define MM_DEFINE_NAMES(FUNCTION, TYPE, COUNT, TABLE)                                                        \
    const char *FUNCTION(enum TYPE value) {                                                                  \
        static const char *const names[COUNT] = {TABLE(MM_NAME_ROW)};                                        \
        assert(value < COUNT);                                                                               \
        return names[value];                                                                                 \
    }

#endif
