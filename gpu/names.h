/* Enums and their names, out of one table of rows (constant, name, …). Any thread may call the functions that
 * it defines. */
#pragma once

#include <assert.h>

/* The rows as members of an enum. */
#define MM_CONSTANT(constant, ...) constant,

#define MM_NAME_ROW(constant, name, ...) [constant] = name,

/* Defines a function that is declared elsewhere: const char *FUNCTION(enum TYPE value). */
#define MM_DEFINE_NAMES(FUNCTION, TYPE, COUNT, TABLE)                                                        \
    const char *FUNCTION(enum TYPE value) {                                                                  \
        static const char *const names[COUNT] = {TABLE(MM_NAME_ROW)};                                        \
        assert(value < COUNT);                                                                               \
        return names[value];                                                                                 \
    }

/* Before a function that the host and the kernels share. */
#ifdef __CUDACC__
#define MM_HOST_AND_DEVICE __host__ __device__ static inline
#else
#define MM_HOST_AND_DEVICE static inline
#endif
