#include "server/http/inflation.h"

#include "gpu/matrix/matrix.h"

#include <microhttpd.h>

enum { SLICE_BYTES = 2 << 20 };

int mm_inflation_coding(struct mm_slice name) {
    if (mm_slice_is_any_case(name, "gzip") || mm_slice_is_any_case(name, "x-gzip"))
        return MAX_WBITS + 16; /* zlib's way to say gzip */
    return mm_slice_is_any_case(name, "deflate") ? MAX_WBITS : 0;
}

static enum mm_status fail(struct mm_error *error, const char *what) {
    return mm_fail_field(error, MM_BAD_REQUEST, MHD_HTTP_HEADER_CONTENT_ENCODING,
                         "the compressed body %s; send one gzip member, or deflate in zlib's format", what);
}

static enum mm_status fail_memory(struct mm_error *error) {
    return mm_fail(error, MM_INTERNAL, "the system has no memory to inflate the body");
}

static enum mm_status fail_size(size_t compressed_bytes, size_t bytes_max, struct mm_error *error) {
    const bool is_by_ratio = bytes_max / MM_INFLATION_RATIO_MAX == compressed_bytes;
    return mm_fail_limit(error, "", bytes_max, "the body inflates to more than %zu bytes, which is %s",
                         bytes_max,
                         is_by_ratio ? "a hundred times its compressed size; send it without compression"
                                     : "the limit (the smaller of --max-body and fifteen sixteenths of "
                                       "--memory-budget)");
}

/* Makes space for the next bytes, first in memory that is already reserved. */
static enum mm_status grow(struct mm_inflation *inflation, size_t bytes, size_t bytes_max,
                           struct mm_reservation *memory, struct mm_error *error) {
    const size_t unused = mm_reservation_unused(memory);
    const size_t more = unused > 0 ? unused : mm_reservation_step(memory->bytes);
    return mm_reservation_grow(memory, more < bytes_max - bytes ? bytes + more : bytes_max, bytes_max,
                               &inflation->body, error);
}

enum mm_status mm_inflation_step(struct mm_inflation *inflation, struct mm_slice compressed,
                                 size_t lead_bytes, size_t bytes_max, struct mm_reservation *memory,
                                 struct mm_error *error) {
    z_stream *stream = &inflation->stream;
    const size_t used = lead_bytes + stream->total_out, left = compressed.length - stream->total_in;
    if (compressed.length == 0)
        return fail(error, "is empty");
    if (stream->state == NULL && inflateInit2(stream, inflation->coding) != Z_OK)
        return fail_memory(error);
    if (used >= inflation->body.bytes && stream->total_out < bytes_max) {
        const enum mm_status status = grow(inflation, used, lead_bytes + bytes_max, memory, error);
        if (status != MM_OK)
            return status;
    }
    stream->next_in = (const Bytef *)compressed.start + stream->total_in;
    stream->avail_in = (uInt)mm_size_min(left, SLICE_BYTES);
    stream->next_out = (Bytef *)inflation->body.data + used;
    stream->avail_out = (uInt)mm_size_min(inflation->body.bytes - used, SLICE_BYTES);
    switch (inflate(stream, Z_NO_FLUSH)) {
    case Z_OK:
        return MM_OK;
    case Z_STREAM_END:
        inflation->coding = 0;
        return stream->total_in == compressed.length ? MM_OK : fail(error, "has bytes after its end");
    case Z_BUF_ERROR: /* no progress: there is no more input, or no space below the limit */
        return left == 0 ? fail(error, "ends too early") : fail_size(compressed.length, bytes_max, error);
    case Z_MEM_ERROR:
        return fail_memory(error);
    default:
        return fail(error, "is not valid");
    }
}

void mm_inflation_close(struct mm_inflation *inflation, struct mm_reservation *memory) {
    mm_reservation_free(memory, &inflation->body);
    (void)inflateEnd(&inflation->stream);
}
