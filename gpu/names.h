/* Defines an enum and the names of its constants from one table of rows (constant, name, …). Any thread
 * may call the functions that these macros define. */
#pragma once

#include <assert.h>

/* Turns a row of a table into a constant of an enum. */
#define MM_CONSTANT(constant, ...) constant,

#define MM_NAME_ROW(constant, name, ...) [constant] = name,

/* Defines the function const char *FUNCTION(enum TYPE value), which returns the name, a static string. */
#define MM_DEFINE_NAMES(FUNCTION, TYPE, COUNT, TABLE)                                                        \
    const char *FUNCTION(enum TYPE value) {                                                                  \
        static const char *const names[COUNT] = {TABLE(MM_NAME_ROW)};                                        \
        assert(value < COUNT);                                                                               \
        return names[value];                                                                                 \
    }

/* Qualifiers of a function that both the host and CUDA kernels call. */
#ifdef __CUDACC__
#define MM_HOST_AND_DEVICE __host__ __device__ static inline
#else
#define MM_HOST_AND_DEVICE static inline
#endif
