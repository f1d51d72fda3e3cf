/* Fuzzes the JSON codec's decode. The input is the body. Whatever is taken is held against strtof, number by
 * number, and is the same when it is written out and read again. */
#include "tests/fuzz/fuzz.h"

#include "api/json_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void decode(struct decoding *decoding, char *text, size_t bytes) {
    const struct mm_body body = {.data = text, .bytes = bytes, .content_type = "application/json"};
    mm_call_init(&decoding->call, MM_MATMUL);
    fuzz_decode(decoding, fuzz_codec("application/json"), &body);
}

/* The end of the string that starts here, at its closing quote. */
static const char *string_end(const char *text) {
    for (text++; *text != '"'; text++)
        if (*text == '\\')
            text++;
    return text;
}

static bool is_name(const char *start, const char *end, const char *name) {
    return (size_t)(end - start) == strlen(name) + 1 && memcmp(start + 1, name, strlen(name)) == 0;
}

/* Holds the number that starts here against the element, and gives where it ends. */
static const char *require_number(const char *text, const float *element) {
    if (element != NULL) {
        float nearest = strtof(text, NULL);
        REQUIRE(memcmp(&nearest, element, sizeof nearest) == 0);
    }
    return text + strspn(text, "+-.0123456789Ee");
}

/* Holds a string that stands for a number against the element. One with escapes may be any. */
static void require_special(const char *text, const char *end, const float *element) {
    if (memchr(text, '\\', (size_t)(end - text)) != NULL)
        return;
    REQUIRE(is_name(text, end, "NaN") || is_name(text, end, "Infinity") || is_name(text, end, "-Infinity"));
    REQUIRE(isnan(*element) == is_name(text, end, "NaN"));
    REQUIRE(isnan(*element) || *element == (*(text + 1) == '-' ? -INFINITY : INFINITY));
}

/* Walks over a body that was taken: an object in which only a and b are nested, three deep. Names with
 * escapes end the walk, since they may be other names than they look. */
static void require_elements(const struct mm_call *call, const char *text) {
    const struct mm_matrix *matrix = NULL;
    size_t depth = 0, index = 0;
    while (*text != '\0') {
        const float *element = NULL;
        if (depth == 3 && matrix != NULL && matrix->data != NULL)
            element = (const float *)matrix->data + index;
        if (*text == '"') {
            const char *end = string_end(text);
            if (element != NULL)
                require_special(text, end, element);
            index += element != NULL;
            if (end[1 + strspn(end + 1, " \t\r\n")] == ':') {
                if (memchr(text, '\\', (size_t)(end - text)) != NULL)
                    return;
                matrix = is_name(text, end, "a") ? &call->a : is_name(text, end, "b") ? &call->b : NULL;
                index = 0;
            }
            text = end + 1;
        } else if (strchr("-0123456789", *text) != NULL) {
            REQUIRE(element == NULL || index < matrix->rows * matrix->cols);
            text = require_number(text, element);
            index += element != NULL;
        } else {
            depth += *text == '[' || *text == '{';
            depth -= *text == ']' || *text == '}';
            REQUIRE(depth != 1 || matrix == NULL || *text != ']' || index == matrix->rows * matrix->cols);
            text++;
        }
    }
}

/* Writes both matrices as a new body, which the caller frees. */
static char *write_body(const struct mm_call *call, size_t *bytes) {
    static const char begin[] = "{\"a\":", between[] = ",\"b\":";
    size_t a_bytes_max, b_bytes_max;
    REQUIRE(mm_json_matrix_text_bytes(&call->a, &a_bytes_max));
    REQUIRE(mm_json_matrix_text_bytes(&call->b, &b_bytes_max));
    char *text = malloc(sizeof begin + a_bytes_max + sizeof between + b_bytes_max);
    REQUIRE(text != NULL);
    char *end = stpcpy(text, begin);
    size_t written = mm_json_matrix_write(&call->a, end);
    REQUIRE(written <= a_bytes_max);
    end = stpcpy(end + written, between);
    written = mm_json_matrix_write(&call->b, end);
    REQUIRE(written <= b_bytes_max);
    end += written;
    *end++ = '}';
    *bytes = (size_t)(end - text);
    return text;
}

static void require_round_trip(const struct mm_call *call) {
    struct decoding again;
    size_t bytes;
    char *text = write_body(call, &bytes);
    decode(&again, text, bytes);
    /* The options are not written, so that a result which fits by a transpose may be too large without. */
    REQUIRE(again.status == MM_OK || again.status == MM_TOO_LARGE);
    if (again.status == MM_OK) {
        fuzz_require_same(&call->a, &again.call.a);
        fuzz_require_same(&call->b, &again.call.b);
    }
    fuzz_release(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct decoding decoding;
    const struct piece input = {(const char *)data, bytes};
    char *body = fuzz_copy_bytes(input);
    decode(&decoding, body, bytes);
    if (decoding.status == MM_OK) {
        char *text = fuzz_copy_text(input);
        REQUIRE(strlen(text) == bytes);
        require_elements(&decoding.call, text);
        require_round_trip(&decoding.call);
        free(text);
    }
    fuzz_release(&decoding);
    free(body);
    return 0;
}
