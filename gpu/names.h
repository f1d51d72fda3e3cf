/* Defines an enum and the names of its constants from one table of rows (constant, name, …). Any thread
 * may call the functions that these macros define. */
#pragma once

#include <assert.h>

/* Turns a row of a table into a constant of an enum. */
#define MM_CONSTANT(constant, ...) constant,

#define MM_NAME_ROW(constant, name, ...) [constant] = name,
#define MM_TITLE_ROW(constant, name, title) [constant] = title,

/* Defines the function const char *FUNCTION(enum TYPE value), which returns a static string. ROW is
 * MM_NAME_ROW for the name, or MM_TITLE_ROW for the title. MM_DEFINE_NAMES defines a function for the name.
 */
#define MM_DEFINE_TEXTS(FUNCTION, TYPE, COUNT, TABLE, ROW)                                                   \
    const char *FUNCTION(enum TYPE value) {                                                                  \
        static const char *const texts[COUNT] = {TABLE(ROW)};                                                \
        assert(value < COUNT);                                                                               \
        return texts[value];                                                                                 \
    }
#define MM_DEFINE_NAMES(FUNCTION, TYPE, COUNT, TABLE)                                                        \
    MM_DEFINE_TEXTS(FUNCTION, TYPE, COUNT, TABLE, MM_NAME_ROW)

/* Qualifiers of a function that both the host and CUDA kernels call. */
#ifdef __CUDACC__
#define MM_HOST_AND_DEVICE __host__ __device__ static inline
#else
#define MM_HOST_AND_DEVICE static inline
#endif
