/* Bodies of type multipart/form-data (RFC 7578, RFC 2046), cut into their parts where they lie, while they
 * arrive. It knows nothing of what the parts mean. One thread at a time for each body: the connection's while
 * it arrives, then perhaps one of the worker pool. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* More is MM_TOO_LARGE: the cost of a hostile body is bounded by its bytes. */
enum {
    MM_MULTIPART_PARTS_MAX = 64,
    MM_MULTIPART_HEADER_BYTES_MAX = 4096, /* of one part, with the empty line that ends them */
    MM_MULTIPART_BOUNDARY_MAX = 70        /* RFC 2046, 5.1.1 */
};

/* What mm_multipart_next has read. */
enum mm_multipart_event {
    MM_MULTIPART_HEAD,     /* the headers of a part: its name, and where its contents begin */
    MM_MULTIPART_CONTENTS, /* the end of these */
    MM_MULTIPART_END,      /* of the last part; what follows does not matter */
    MM_MULTIPART_WAIT,     /* nothing: more of the body has to come */
    MM_MULTIPART_FAULT     /* the body is malformed, or passes a limit */
};

enum mm_multipart_place {
    MM_MULTIPART_PREAMBLE,
    MM_MULTIPART_HEADERS,
    MM_MULTIPART_IN_PART,
    MM_MULTIPART_BEHIND /* the last delimiter */
};

/* Where the reading of a body stands; begins with mm_multipart_begin. After MM_MULTIPART_HEAD the caller may
 * set `at` and `expected` to where the contents begin and probably end: they are not searched for a delimiter
 * if one stands there. */
struct mm_multipart {
    enum mm_multipart_place place;
    size_t at;          /* everything before it was read */
    size_t expected;    /* the end of the contents at hand, if it is known; 0: it is searched */
    size_t retry_bytes; /* nothing is done before so much is here */
    unsigned parts;
    char delimiter[4 + MM_MULTIPART_BOUNDARY_MAX]; /* with the CRLF and the dashes before the boundary */
    size_t delimiter_bytes;
};

/* A part, by places in the body: the name and the file's name as they stand between their quotes, the media
 * type without its parameters, and the contents. What the part lacks has length 0. */
struct mm_part {
    size_t name;
    size_t name_length;
    size_t file;
    size_t file_length;
    size_t type;
    size_t type_length;
    size_t data;
    size_t bytes; /* set with MM_MULTIPART_CONTENTS */
};

/* Whether a Content-Type gives a boundary that a body can be read by. MM_BAD_REQUEST. */
enum mm_status mm_multipart_check_type(const char *content_type, struct mm_error *error);

/* Takes the boundary from the Content-Type. MM_BAD_REQUEST. */
enum mm_status mm_multipart_begin(struct mm_multipart *multipart, const char *content_type,
                                  struct mm_error *error);

/* Reads on. `body` is all that has come, from the beginning, and may have moved between two calls; is_all
 * tells that no more comes. *part is kept between two calls. MM_MULTIPART_FAULT ends the reading with
 * MM_BAD_REQUEST or MM_TOO_LARGE. Time is linear in the body, however it is cut. */
enum mm_multipart_event mm_multipart_next(struct mm_multipart *multipart, const char *body, size_t bytes,
                                          bool is_all, struct mm_part *part, struct mm_error *error);
