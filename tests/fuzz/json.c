/* Fuzzes the JSON codec's decode. The input is the body. Whatever is taken is held against strtof, strtod or
 * strtoll, number by number, and is the same when it is written out and read again. */
#include "tests/fuzz/fuzz.h"

#include "api/json/json_matrix.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decode(struct decoding *decoding, enum mm_op op, char *text, size_t bytes) {
    const struct mm_body body = {.data = text, .bytes = bytes, .content_type = "application/json"};
    mm_call_init(&decoding->call, op);
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

static double read_rounded(const char *text, int rounding) {
    fesetround(rounding);
    double value = strtod(text, NULL);
    fesetround(FE_TONEAREST);
    return value;
}

/* A whole number is its digits; one with a point or an exponent is exact as a double. */
static void require_whole(const char *text, int64_t element) {
    if (strpbrk(text, ".eE") == NULL) {
        errno = 0;
        REQUIRE(strtoll(text, NULL, 10) == element && errno == 0);
        return;
    }
    REQUIRE(read_rounded(text, FE_DOWNWARD) == (double)element);
    REQUIRE(read_rounded(text, FE_UPWARD) == (double)element);
    REQUIRE((int64_t)read_rounded(text, FE_TONEAREST) == element);
}

/* Holds the number that starts here against the element, and gives where it ends. */
static const char *require_number(const char *text, enum mm_dtype dtype, const void *element) {
    const size_t length = strspn(text, "+-.0123456789Ee");
    char *number = fuzz_copy_text((struct piece){text, length});
    const float nearest = strtof(number, NULL);
    const double nearest_double = strtod(number, NULL);
    if (element != NULL && dtype == MM_FLOAT32)
        REQUIRE(memcmp(&nearest, element, sizeof nearest) == 0);
    if (element != NULL && dtype == MM_FLOAT64)
        REQUIRE(memcmp(&nearest_double, element, sizeof nearest_double) == 0);
    if (element != NULL && dtype == MM_INT32)
        require_whole(number, *(const int32_t *)element);
    if (element != NULL && dtype == MM_INT64)
        require_whole(number, *(const int64_t *)element);
    free(number);
    return text + length;
}

/* Holds a string that stands for a number against the element. One with escapes may be any. */
static void require_special(const char *text, const char *end, enum mm_dtype dtype, const void *element) {
    REQUIRE(dtype == MM_FLOAT32 || dtype == MM_FLOAT64);
    if (memchr(text, '\\', (size_t)(end - text)) != NULL)
        return;
    double value = dtype == MM_FLOAT32 ? (double)*(const float *)element : *(const double *)element;
    REQUIRE(is_name(text, end, "NaN") || is_name(text, end, "Infinity") || is_name(text, end, "-Infinity"));
    REQUIRE(isnan(value) == is_name(text, end, "NaN"));
    REQUIRE(isnan(value) || value == (*(text + 1) == '-' ? -INFINITY : INFINITY));
}

/* Walks over a body that was taken: an object in which only the operands are nested, three deep. Names with
 * escapes end the walk, since they may be other names than they look. */
static void require_elements(const struct mm_call *call, const char *text) {
    const struct mm_matrix *matrix = NULL;
    size_t depth = 0, index = 0;
    while (*text != '\0') {
        const char *element = NULL;
        if (depth == 3 && matrix != NULL && matrix->data != NULL)
            element = (const char *)matrix->data + index * mm_dtype_bytes(call->dtype);
        if (*text == '"') {
            const char *end = string_end(text);
            if (element != NULL)
                require_special(text, end, call->dtype, element);
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
            text = require_number(text, call->dtype, element);
            index += element != NULL;
        } else {
            depth += *text == '[' || *text == '{';
            depth -= *text == ']' || *text == '}';
            REQUIRE(depth != 1 || matrix == NULL || *text != ']' || index == matrix->rows * matrix->cols);
            text++;
        }
    }
}

/* Writes the operands as a new body of their type, which the caller frees. */
static char *write_body(const struct mm_call *call, size_t *bytes) {
    static const char begin[] = "{\"a\":", between[] = ",\"b\":";
    char end_text[64];
    size_t a_bytes_max, b_bytes_max;
    REQUIRE(mm_json_matrix_text_bytes(&call->a, &a_bytes_max));
    REQUIRE(mm_json_matrix_text_bytes(&call->b, &b_bytes_max));
    snprintf(end_text, sizeof end_text, ",\"dtype\":\"%s\"}", mm_dtype_name(call->dtype));
    char *text = malloc(sizeof begin + a_bytes_max + sizeof between + b_bytes_max + sizeof end_text);
    REQUIRE(text != NULL);
    char *end = stpcpy(text, begin);
    size_t written = mm_json_matrix_write(&call->a, NULL, end);
    REQUIRE(written <= a_bytes_max);
    end += written;
    if (mm_call_operands(call) == 2) {
        end = stpcpy(end, between);
        written = mm_json_matrix_write(&call->b, NULL, end);
        REQUIRE(written <= b_bytes_max);
        end += written;
    }
    end = stpcpy(end, end_text);
    *bytes = (size_t)(end - text);
    return text;
}

static void require_round_trip(const struct mm_call *call) {
    struct decoding again;
    size_t bytes;
    char *text = write_body(call, &bytes);
    decode(&again, call->op, text, bytes);
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
    const struct piece input = {(const char *)data, bytes};
    char *text = fuzz_copy_text(input);
    FUZZ_EACH_OP(op) {
        struct decoding decoding;
        char *body = fuzz_copy_bytes(input);
        decode(&decoding, op, body, bytes);
        if (decoding.status == MM_OK) {
            REQUIRE(strlen(text) == bytes);
            require_elements(&decoding.call, text);
            require_round_trip(&decoding.call);
        }
        fuzz_release(&decoding);
        free(body);
    }
    free(text);
    return 0;
}
