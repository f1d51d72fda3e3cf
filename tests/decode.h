/* Decodes a complete body in one call, for tests. The server decodes in steps (server/handlers/input.c). */
#pragma once

#include "api/codec.h"

static inline enum mm_status decode_whole(const struct mm_codec *codec, const char *content_type,
                                          struct mm_operands *into, const struct mm_body *body,
                                          const struct mm_limits *limits, struct mm_reservation *memory,
                                          struct mm_error *error) {
    if (codec->reader == NULL) {
        codec->decode(into, body);
        return MM_OK;
    }
    if (codec->check_type != NULL && codec->check_type(content_type, error) != MM_OK)
        return MM_BAD_REQUEST;
    void *reading = codec->reader->begin(into, content_type, body->bytes, limits, memory);
    if (reading == NULL)
        return mm_fail(error, MM_INTERNAL, "memory ran out while the body was read");
    const enum mm_status status = codec->reader->finish(reading, into, body, error);
    if (status == MM_BUSY)
        codec->reader->cancel(reading);
    return status;
}
