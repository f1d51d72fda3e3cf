/* Fuzzes forms. The input is a line of chunk lengths, a line with the Content-Type, then the body. */
#include "tests/fuzz/fuzz.h"

#include "api/form/multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUNDARY "=_(fuzz)_="

/* Reads the parts, and checks that each part lies in the body and after the previous part. */
static enum mm_status read_parts(const char *content_type, const struct mm_body *body, struct mm_part *parts,
                                 size_t *count) {
    struct mm_multipart multipart;
    struct mm_error error = {0};
    struct mm_part part;
    size_t position = 0;
    enum mm_multipart_event event = MM_MULTIPART_HEAD;
    *count = 0;
    enum mm_status status = mm_multipart_begin(&multipart, content_type, &error);
    while (status == MM_OK && event != MM_MULTIPART_END) {
        event = mm_multipart_next(&multipart, body->data, body->bytes, true, &part, &error);
        REQUIRE(event != MM_MULTIPART_WAIT);
        if (event == MM_MULTIPART_FAULT)
            status = error.status;
        if (event != MM_MULTIPART_CONTENTS)
            continue;
        REQUIRE(*count < MM_MULTIPART_PARTS_MAX);
        REQUIRE(position <= part.name && part.name + part.name_length <= part.data);
        REQUIRE(part.data <= body->bytes && part.bytes <= body->bytes - part.data);
        position = part.data + part.bytes;
        parts[(*count)++] = part;
    }
    REQUIRE(status == MM_OK || status == MM_BAD_REQUEST || status == MM_TOO_LARGE);
    if (status != MM_OK)
        fuzz_require_error(status, &error);
    return status;
}

static bool is_same(const char *x, size_t x_bytes, const char *y, size_t y_bytes) {
    return x_bytes == y_bytes && (x_bytes == 0 || memcmp(x, y, x_bytes) == 0);
}

/* Writes the parts as a form with another boundary, and reads them again. */
static void require_round_trip(const char *sent, const struct mm_part *parts, size_t count) {
    struct mm_part again[MM_MULTIPART_PARTS_MAX];
    static const char content_type[] = "multipart/form-data; boundary=\"" BOUNDARY "\"";
    struct mm_body body;
    char *text = NULL;
    size_t again_count;
    FILE *stream = open_memstream(&text, &body.bytes);
    REQUIRE(stream != NULL);
    for (size_t index = 0; index < count; index++) {
        fputs("--" BOUNDARY "\r\ncontent-disposition:form-data;name=\"", stream);
        fwrite(sent + parts[index].name, 1, parts[index].name_length, stream);
        fputs("\"\r\n\r\n", stream);
        fwrite(sent + parts[index].data, 1, parts[index].bytes, stream);
        fputs("\r\n", stream);
    }
    fputs("--" BOUNDARY "--", stream);
    REQUIRE(fclose(stream) == 0);
    body.data = text;
    REQUIRE(read_parts(content_type, &body, again, &again_count) == MM_OK && again_count == count);
    for (size_t index = 0; index < count; index++) {
        REQUIRE(is_same(sent + parts[index].name, parts[index].name_length, text + again[index].name,
                        again[index].name_length));
        REQUIRE(is_same(sent + parts[index].data, parts[index].bytes, text + again[index].data,
                        again[index].bytes));
    }
    free(text);
}

/* Returns whether require_round_trip can write the parts. It cannot write a name that has a backslash or is
 * too long, or data that contains our boundary. */
static bool can_be_written(const char *sent, const struct mm_part *parts, size_t count) {
    for (size_t index = 0; index < count; index++)
        if (memchr(sent + parts[index].name, '\\', parts[index].name_length) != NULL ||
            parts[index].name_length > MM_MULTIPART_HEADER_BYTES_MAX / 2 ||
            memmem(sent + parts[index].data, parts[index].bytes, BOUNDARY, sizeof BOUNDARY - 1) != NULL)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const struct mm_codec *codec = fuzz_codec("multipart/form-data");
    struct slice text = {(const char *)data, bytes};
    const struct slice lengths = fuzz_split(&text, '\n');
    char *content_type = fuzz_copy_text(fuzz_split(&text, '\n'));
    const struct mm_body body = {.data = fuzz_copy_bytes(text), .bytes = text.bytes};
    struct mm_part parts[MM_MULTIPART_PARTS_MAX];
    size_t count;
    enum mm_status status = read_parts(content_type, &body, parts, &count);
    if (status == MM_OK && can_be_written(body.data, parts, count))
        require_round_trip(body.data, parts, count);
    free(body.data);

    FUZZ_EACH_OP(op) {
        struct decoding whole;
        mm_call_init(&whole.call, op);
        fuzz_decode(&whole, codec, content_type, text);
        REQUIRE(status == MM_OK || whole.status != MM_OK);
        fuzz_require_read(&whole, codec, MM_LENGTH_UNKNOWN, text, lengths);
        fuzz_require_read(&whole, codec, MM_LENGTH_UNKNOWN, text, (struct slice){NULL, 0});
        fuzz_release(&whole);
    }
    free(content_type);
    return 0;
}
