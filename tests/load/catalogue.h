/* What can be chosen at the service, learned from GET /v1/variants. */
#ifndef MM_LOAD_CATALOGUE_H
#define MM_LOAD_CATALOGUE_H

#include "bench/load/connection.h"

enum { MM_LOAD_VARIANTS_MAX = 128, MM_LOAD_NAME_BYTES = 64 };

struct mm_load_variant {
    char name[MM_LOAD_NAME_BYTES];
    char backend[MM_LOAD_NAME_BYTES];
    size_t multiple_of; /* what m, n and k must be multiples of; 0: anything */
};

/* The variants of matmul that are available for float32, `auto` among them. */
struct mm_load_catalogue {
    struct mm_load_variant variants[MM_LOAD_VARIANTS_MAX];
    size_t count;
    char default_backend[MM_LOAD_NAME_BYTES]; /* what backend=auto means: the first that is listed */
};

/* Asks the service. `backend` keeps one backend's variants only; NULL: all. */
bool mm_load_catalogue_fetch(struct mm_load_catalogue *catalogue, const struct addrinfo *address,
                             const char *host, const char *backend, char *problem);

/* NULL where there is none. */
const struct mm_load_variant *mm_load_catalogue_find(const struct mm_load_catalogue *catalogue,
                                                     const char *name, const char *backend);

#endif
