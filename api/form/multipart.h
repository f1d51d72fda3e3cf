/* Splits bodies of type multipart/form-data (RFC 7578, RFC 2046) into parts while they arrive. Copies
 * nothing, and does not know what the parts mean. One thread at a time may read a body. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* A body with more parts or longer headers is MM_TOO_LARGE. */
enum {
    MM_MULTIPART_PARTS_MAX = 64,
    MM_MULTIPART_HEADER_BYTES_MAX = 4096, /* of one part's headers, with the empty line at the end */
    MM_MULTIPART_BOUNDARY_MAX = 70        /* RFC 2046, 5.1.1 */
};

/* What mm_multipart_next has read. */
enum mm_multipart_event {
    MM_MULTIPART_HEAD,     /* the headers of a part: its name, and where its contents begin */
    MM_MULTIPART_CONTENTS, /* the end of a part's contents */
    MM_MULTIPART_END,      /* the last delimiter; the rest of the body is ignored */
    MM_MULTIPART_WAIT,     /* nothing: more of the body must arrive */
    MM_MULTIPART_FAULT     /* the body is malformed or over a limit */
};

/* The place in the body where the reader is. */
enum mm_multipart_place {
    MM_MULTIPART_PREAMBLE,
    MM_MULTIPART_HEADERS,
    MM_MULTIPART_IN_PART,
    MM_MULTIPART_BEHIND /* the last delimiter was read */
};

/* State of reading one body; mm_multipart_begin sets it. After MM_MULTIPART_HEAD the caller may set `at` and
 * `expected` to where the contents begin and should end. If a delimiter is at `expected`, the contents are
 * not searched for one. */
struct mm_multipart {
    enum mm_multipart_place place;
    size_t at;          /* offset of the first byte that was not read */
    size_t expected;    /* offset where the contents should end; 0: unknown, so they are searched */
    size_t retry_bytes; /* nothing is read before this many bytes have arrived */
    unsigned parts;
    char delimiter[4 + MM_MULTIPART_BOUNDARY_MAX]; /* with the CRLF and the dashes before the boundary */
    size_t delimiter_bytes;
};

/* A part: offsets in the body, and lengths. name and file are the name and the file name, without their
 * quotes; type is the media type without parameters; data are the contents. What the part lacks has length 0.
 */
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

/* MM_BAD_REQUEST if the Content-Type gives no valid boundary. */
enum mm_status mm_multipart_check_type(const char *content_type, struct mm_error *error);

/* Reads the boundary from the Content-Type. MM_BAD_REQUEST if there is no valid one. */
enum mm_status mm_multipart_begin(struct mm_multipart *multipart, const char *content_type,
                                  struct mm_error *error);

/* Reads the next event. `body` is all of the body that has arrived, from its beginning. It may move between
 * calls. is_all: the body is complete. The caller keeps *part between calls. MM_MULTIPART_FAULT ends the
 * reading; *error is then MM_BAD_REQUEST or MM_TOO_LARGE. The time is linear in the body, however it is
 * chunked. */
enum mm_multipart_event mm_multipart_next(struct mm_multipart *multipart, const char *body, size_t bytes,
                                          bool is_all, struct mm_part *part, struct mm_error *error);
