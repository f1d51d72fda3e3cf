/* Splits multipart/form-data bodies (RFC 7578, RFC 2046) into parts while they arrive. Copies nothing, and
 * does not know what the parts mean. One thread at a time may read a body. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* The reader rejects a body that exceeds one of the first two limits with MM_TOO_LARGE. */
enum {
    MM_MULTIPART_PARTS_MAX = 64,
    MM_MULTIPART_HEADER_BYTES_MAX = 4096, /* headers of one part, with the empty line */
    MM_MULTIPART_BOUNDARY_MAX = 70        /* RFC 2046, 5.1.1 */
};

/* What mm_multipart_next has read. */
enum mm_multipart_event {
    MM_MULTIPART_HEAD,     /* the headers of a part */
    MM_MULTIPART_CONTENTS, /* all contents of a part */
    MM_MULTIPART_END,      /* the last delimiter; later bytes are ignored */
    MM_MULTIPART_WAIT,     /* nothing, because more of the body must arrive */
    MM_MULTIPART_FAULT
};

/* What the reader expects next. */
enum mm_multipart_place {
    MM_MULTIPART_PREAMBLE,
    MM_MULTIPART_HEADERS,
    MM_MULTIPART_IN_PART,
    MM_MULTIPART_BEHIND /* nothing, because the last delimiter was read */
};

/* The state of reading one body. If the part is a file, its header may tell where the contents begin and end.
 * After MM_MULTIPART_HEAD, the caller may therefore set `at` and `expected`. If a delimiter is at offset
 * `expected`, the reader does not search the contents. */
struct mm_multipart {
    enum mm_multipart_place place;
    size_t at;          /* offset of the next byte to read */
    size_t expected;    /* offset where the contents should end; 0 if unknown */
    size_t retry_bytes; /* wait until this many bytes have arrived */
    unsigned parts;
    char delimiter[4 + MM_MULTIPART_BOUNDARY_MAX]; /* CRLF, two dashes and the boundary */
    size_t delimiter_bytes;
};

/* A part as offsets and lengths in the body: the name and the file name without quotes, the media type
 * without parameters, and the contents (data). The length of a missing value is 0. */
struct mm_part {
    size_t name;
    size_t name_length;
    size_t file;
    size_t file_length;
    size_t type;
    size_t type_length;
    size_t data;
    size_t bytes; /* length of the contents; set at MM_MULTIPART_CONTENTS */
};

/* Fails with MM_BAD_REQUEST if the Content-Type has no valid boundary. */
enum mm_status mm_multipart_check_type(const char *content_type, struct mm_error *error);

/* Initializes the state with the Content-Type's boundary. Fails with MM_BAD_REQUEST if it has no valid
 * boundary. */
enum mm_status mm_multipart_begin(struct mm_multipart *multipart, const char *content_type,
                                  struct mm_error *error);

/* Reads the next event. `body` has all bytes that have arrived since the beginning of the body. The address
 * of `body` may change between calls. If is_all, nothing more will arrive. The caller keeps *part between
 * calls. MM_MULTIPART_FAULT ends the reading, and *error is then MM_BAD_REQUEST or MM_TOO_LARGE. The time is
 * linear in the length of the body, even if the body arrives in small chunks. */
enum mm_multipart_event mm_multipart_next(struct mm_multipart *multipart, const char *body, size_t bytes,
                                          bool is_all, struct mm_part *part, struct mm_error *error);
