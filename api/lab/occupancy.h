/* The operation `occupancy` on the wire: how many blocks of a kernel a multiprocessor holds, for every
 * combination of lists that the client gives. The reply is JSON or a table for a terminal. The operation
 * needs no device. Any thread may call these functions. No pointer may be NULL except `error`. */
#pragma once

#include "api/parameter.h"
#include "gpu/lab/occupancy.h"

struct json_t; /* a JSON value of Jansson */

enum { MM_OCCUPANCY_ROWS_MAX = 256, MM_OCCUPANCY_SHARED_BYTES_MAX = 1 << 20 };

/* The lists of a request. The first one changes slowest from row to row. */
enum mm_occupancy_list {
    MM_OCCUPANCY_CAPABILITY, /* 10·major + minor */
    MM_OCCUPANCY_THREADS,
    MM_OCCUPANCY_REGISTERS,
    MM_OCCUPANCY_SHARED,
    MM_OCCUPANCY_LIST_COUNT
};

/* Call mm_occupancy_init first. */
struct mm_occupancy_request {
    struct mm_parameters parameters;          /* the first member */
    unsigned counts[MM_OCCUPANCY_LIST_COUNT]; /* 0: the client gave no list */
    unsigned values[MM_OCCUPANCY_LIST_COUNT][MM_OCCUPANCY_ROWS_MAX];
};

/* Clears a request. Its parameters are members of a JSON body: each is a value or a list of values. Reading
 * one fails with MM_TOO_LARGE (more than MM_OCCUPANCY_ROWS_MAX values) or MM_UNSUPPORTED (a compute
 * capability that the table lacks). */
void mm_occupancy_init(struct mm_occupancy_request *request);

/* Completes a request: without a list of shared memory, blocks use none. The caller sets one compute
 * capability if the client gave none. MM_BAD_REQUEST: the list of threads or of registers is missing.
 * MM_TOO_LARGE: more than MM_OCCUPANCY_ROWS_MAX rows. */
enum mm_status mm_occupancy_complete(struct mm_occupancy_request *request, struct mm_error *error);

/* Write the rows of a request that has all lists. They return malloc'ed text, which ends by NUL and which the
 * caller frees, or NULL if memory runs out. *length is in bytes. */
char *mm_occupancy_json(const struct mm_occupancy_request *request, size_t *length);
char *mm_occupancy_table(const struct mm_occupancy_request *request, size_t *length);

/* Only for files of api/. Returns a list of the resources that allow no more blocks. The caller owns the
 * reference; NULL if memory runs out. */
struct json_t *mm_occupancy_limiters(const struct mm_occupancy *occupancy);
