/* The operation `occupancy` on the wire: how many blocks of a kernel a multiprocessor holds, for every
 * combination of some lists, as JSON and as a table for a terminal. It needs no device. The functions keep no
 * state: any thread. No pointer may be NULL except `error`. */
#pragma once

#include "api/parameter.h"
#include "gpu/lab/occupancy.h"

struct json_t; /* Jansson's */

enum { MM_OCCUPANCY_ROWS_MAX = 256, MM_OCCUPANCY_SHARED_BYTES_MAX = 1 << 20 };

/* The lists of a request. The first one changes slowest from row to row. */
enum mm_occupancy_list {
    MM_OCCUPANCY_CAPABILITY, /* 10·major + minor */
    MM_OCCUPANCY_THREADS,
    MM_OCCUPANCY_REGISTERS,
    MM_OCCUPANCY_SHARED,
    MM_OCCUPANCY_LIST_COUNT
};

/* Begin with mm_occupancy_init. */
struct mm_occupancy_request {
    struct mm_parameters parameters;          /* first */
    unsigned counts[MM_OCCUPANCY_LIST_COUNT]; /* 0: was not given */
    unsigned values[MM_OCCUPANCY_LIST_COUNT][MM_OCCUPANCY_ROWS_MAX];
};

/* With the parameters of the operation, all of them members of a JSON body: a value or a list of values.
 * MM_TOO_LARGE: more than MM_OCCUPANCY_ROWS_MAX values; MM_UNSUPPORTED: a compute capability that the table
 * lacks. */
void mm_occupancy_init(struct mm_occupancy_request *request);

/* Sets what was left out: no shared memory. The caller sets the compute capability, one. MM_BAD_REQUEST:
 * nothing was given for threads or registers; MM_TOO_LARGE: more than MM_OCCUPANCY_ROWS_MAX rows. */
enum mm_status mm_occupancy_complete(struct mm_occupancy_request *request, struct mm_error *error);

/* The rows of a request with all its lists: malloc'ed, ended by NUL, the caller frees; NULL if memory runs
 * out. *length is the text's, in bytes. */
char *mm_occupancy_json(const struct mm_occupancy_request *request, size_t *length);
char *mm_occupancy_table(const struct mm_occupancy_request *request, size_t *length);

/* For the files of api/ alone: the names of the resources that allow no more blocks, as a list. A new
 * reference; NULL if memory runs out. */
struct json_t *mm_occupancy_limiters(const struct mm_occupancy *occupancy);
