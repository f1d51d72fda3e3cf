/* The operation `occupancy`: computes how many blocks of a kernel fit on a multiprocessor, for every
 * combination of the lists in a request. The operation needs no device. Any thread may call these functions.
 * No pointer may be NULL except `error`. */
#pragma once

#include "api/parameter.h"
#include "gpu/lab/occupancy.h"

struct json_t; /* from Jansson */

enum { MM_OCCUPANCY_ROWS_MAX = 256, MM_OCCUPANCY_SHARED_BYTES_MAX = 1 << 20 };

/* The lists of a request. A reply has a row for each combination; the first list changes slowest. */
enum mm_occupancy_list {
    MM_OCCUPANCY_CAPABILITY, /* 10·major + minor */
    MM_OCCUPANCY_THREADS,
    MM_OCCUPANCY_REGISTERS,
    MM_OCCUPANCY_SHARED,
    MM_OCCUPANCY_LIST_COUNT
};

struct mm_occupancy_request {
    struct mm_parameters parameters;
    unsigned counts[MM_OCCUPANCY_LIST_COUNT]; /* 0 if the client gave no list */
    unsigned values[MM_OCCUPANCY_LIST_COUNT][MM_OCCUPANCY_ROWS_MAX];
};

/* Initializes a request. The parameters are members of a JSON body: each is a value or a list of values.
 * Reading a parameter fails with MM_TOO_LARGE (more than MM_OCCUPANCY_ROWS_MAX values) or MM_UNSUPPORTED (an
 * unknown compute capability). */
void mm_occupancy_init(struct mm_occupancy_request *request);

/* Completes a request. If the list of shared memory is missing, blocks use no shared memory. Fails with
 * MM_BAD_REQUEST if the list of threads or registers is missing. Fails with MM_TOO_LARGE if there are more
 * than MM_OCCUPANCY_ROWS_MAX rows. If the client gave no compute capability, the caller must set one
 * afterwards. */
enum mm_status mm_occupancy_complete(struct mm_occupancy_request *request, struct mm_error *error);

/* Both functions write the rows of a complete request. Both return malloc'ed text, which the caller frees, or
 * NULL if memory runs out. *length does not count the NUL at the end. */
char *mm_occupancy_json(const struct mm_occupancy_request *request, size_t *length);
char *mm_occupancy_table(const struct mm_occupancy_request *request, size_t *length);

/* Returns the resources that limit the number of blocks. The caller owns the list. NULL if memory runs
 * out. */
struct json_t *mm_occupancy_limiters(const struct mm_occupancy *occupancy);
