/* Inflates a body that its client compressed by gzip (RFC 1952) or deflate (zlib's format, RFC 1950). Works
 * in slices, because a small body can inflate to a large one. Knows no request. */
#pragma once

#include "api/slice.h"
#include "gpu/memory/budget.h"

#define ZLIB_CONST /* zlib does not write to its input */
#include <zlib.h>

/* A body may inflate to this many times its compressed size. Matrices seldom reach a tenth of it. */
enum { MM_INFLATION_RATIO_MAX = 100 };

/* Initialise it with zeros. */
struct mm_inflation {
    int coding; /* how the body is compressed (mm_inflation_coding); 0: not, or not any more */
    z_stream stream;
    struct mm_buffer body; /* lead_bytes unused bytes, then stream.total_out inflated bytes; owned */
};

/* Returns the coding of this name in Content-Encoding, or 0 if the name is unknown. */
int mm_inflation_coding(struct mm_slice name);

/* Inflates the next slice, at most 2 MiB. `compressed` is the whole body, and bytes_max limits the inflated
 * one. These three arguments must be equal in all calls. Takes memory for inflation->body from `memory`. Sets
 * inflation->coding to 0 after the last slice. Fails with MM_BAD_REQUEST, MM_TOO_LARGE or MM_INTERNAL, or
 * with MM_BUSY if memory is short; then the caller can try again. Any thread, one at a time. */
enum mm_status mm_inflation_step(struct mm_inflation *inflation, struct mm_slice compressed,
                                 size_t lead_bytes, size_t bytes_max, struct mm_reservation *memory,
                                 struct mm_error *error);

/* Frees all memory, also that of inflation->body. Does nothing if there is none. */
void mm_inflation_close(struct mm_inflation *inflation, struct mm_reservation *memory);
