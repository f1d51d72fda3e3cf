/* Bodies of type multipart/form-data (RFC 7578, RFC 2046), cut into their parts where they lie. It knows
 * nothing of what the parts mean. */
#ifndef MM_API_MULTIPART_H
#define MM_API_MULTIPART_H

#include "gpu/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits, so that the cost of a hostile body is bounded by its bytes: one more is MM_TOO_LARGE. */
enum {
    MM_MULTIPART_PARTS_MAX = 64,
    MM_MULTIPART_HEADER_BYTES_MAX = 4096, /* of one part, with the empty line that ends them */
    MM_MULTIPART_BOUNDARY_MAX = 70        /* RFC 2046, 5.1.1 */
};

/* Where the reading of a body stands; made by mm_multipart_open. It points into the body. */
struct mm_multipart {
    char *position; /* behind the delimiter of the part that comes next */
    char *end;
    unsigned parts;
    char delimiter[4 + MM_MULTIPART_BOUNDARY_MAX]; /* with the CRLF and the dashes before the boundary */
    size_t delimiter_bytes;
};

/* A part. Both pieces lie in the body: the name as it stands between its quotes, and the contents. */
struct mm_part {
    const char *name;
    size_t name_length;
    char *data;
    size_t bytes;
};

/* Whether a Content-Type gives a boundary that a body can be read by. MM_BAD_REQUEST. */
enum mm_status mm_multipart_judge_type(const char *content_type, struct mm_error *error);

/* The two steps by which form_read.c reads a body that still arrives: takes the delimiter from the
 * Content-Type, and sets nothing else but `parts`, to 0; MM_BAD_REQUEST. */
enum mm_status mm_multipart_begin(struct mm_multipart *multipart, const char *content_type,
                                  struct mm_error *error);

/* Reads the headers at the beginning of a part, which lies from text to end; what follows their empty line is
 * its contents. MM_BAD_REQUEST: they are malformed, not ended, or give no name. MM_TOO_LARGE: the limit. */
enum mm_status mm_multipart_read_headers(const struct mm_multipart *multipart, char *text, char *end,
                                         struct mm_part *part, struct mm_error *error);

/* Begins to read a body by the boundary that its Content-Type gives, and passes over the preamble.
 * data may be NULL where bytes is 0. MM_BAD_REQUEST. */
enum mm_status mm_multipart_open(struct mm_multipart *multipart, const char *content_type, void *data,
                                 size_t bytes, struct mm_error *error);

/* Gives the next part, and sets *found to false where the last one was read. MM_BAD_REQUEST: the final
 * boundary is missing, or the part's headers are malformed or give no name. MM_TOO_LARGE: a limit. */
enum mm_status mm_multipart_next(struct mm_multipart *multipart, struct mm_part *part, bool *found,
                                 struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
