/* The three formats, written and read without api/. */
#include "tests/fuzz/product.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows and columns as stored: a transposition's one operand is m×n. */
static size_t a_rows(const struct product *product) {
    return product->transpose_a ? product->k : product->m;
}
static size_t a_cols(const struct product *product) {
    if (product->is_transposition)
        return product->n;
    return product->transpose_a ? product->m : product->k;
}
static size_t b_rows(const struct product *product) {
    return product->transpose_b ? product->n : product->k;
}
static size_t b_cols(const struct product *product) {
    return product->transpose_b ? product->k : product->n;
}

/* From −8 to 7, two of a byte. */
static void fill(float *elements, size_t count, struct input *input) {
    for (size_t index = 0; index < count; index += 2) {
        const unsigned byte = input_byte(input);
        elements[index] = (float)((int)(byte & 15) - 8);
        if (index + 1 < count)
            elements[index + 1] = (float)((int)(byte >> 4) - 8);
    }
}

void product_make(struct product *product, struct input *input) {
    static const char *const accepts[] = {NULL,
                                          "application/json",
                                          "application/octet-stream",
                                          "application/x-npy",
                                          "*/*",
                                          "text/html, application/x-npy;q=0.2, application/json;q=0.1",
                                          "application/*",
                                          NULL};
    static const char *const variants[] = {"auto", "naive", "tiled_8", "tiled_16"};
    const unsigned form = input_byte(input), way = input_byte(input), shape = input_byte(input);
    *product = (struct product){.format = (enum product_format)(form % PRODUCT_FORMAT_COUNT),
                                .is_transposition = (form & 64) != 0,
                                .is_chunked = (form & 128) != 0,
                                .accept = accepts[way & 7],
                                .variant = variants[way >> 3 & 3],
                                .transpose_a = (way & 32) != 0,
                                .transpose_b = (way & 64) != 0,
                                .is_fortran = (way & 128) != 0,
                                .m = 1 + shape % PRODUCT_EDGE_MAX,
                                .k = 1 + shape / PRODUCT_EDGE_MAX % PRODUCT_EDGE_MAX,
                                .n = 1 + shape / PRODUCT_EDGE_MAX / PRODUCT_EDGE_MAX % PRODUCT_EDGE_MAX};
    if (product->is_transposition) {
        product->transpose_a = product->transpose_b = false;
        product->variant = (way & 8) != 0 ? "naive" : "auto";
    }
    /* Without elements JSON does not say how many columns there are. */
    if (product->format != PRODUCT_JSON && !product->is_transposition && shape == 255)
        product->k = 0;
    fill(product->a, a_rows(product) * a_cols(product), input);
    if (!product->is_transposition)
        fill(product->b, b_rows(product) * b_cols(product), input);
}

void product_target(const struct product *product, char *target, size_t size) {
    int used = snprintf(target, size, "/v1/%s", product->is_transposition ? "transpose" : "matmul");
    char *end = target + used;
    size -= (size_t)used;
    if (product->format != PRODUCT_RAW)
        return;
    if (product->is_transposition)
        snprintf(end, size, "?m=%zu&n=%zu&variant=%s", product->m, product->n, product->variant);
    else
        snprintf(end, size, "?m=%zu&k=%zu&n=%zu&variant=%s&transpose_a=%d&transpose_b=%s", product->m,
                 product->k, product->n, product->variant, product->transpose_a,
                 product->transpose_b ? "true" : "false");
}

const char *product_type(const struct product *product) {
    static const char *const types[PRODUCT_FORMAT_COUNT] = {
        [PRODUCT_JSON] = "application/json",
        [PRODUCT_RAW] = "application/octet-stream",
        [PRODUCT_FORM] = "multipart/form-data; boundary=fuzz-boundary",
    };
    return types[product->format];
}

static void put_rows(FILE *out, const char *name, const float *elements, size_t rows, size_t cols) {
    fprintf(out, "\"%s\":[", name);
    for (size_t row = 0; row < rows; row++) {
        fputs(row > 0 ? ", [" : "[", out);
        for (size_t col = 0; col < cols; col++)
            fprintf(out, "%s%g", col > 0 ? "," : "", (double)elements[row * cols + col]);
        fputc(']', out);
    }
    fputs("],", out);
}

static void put_json(FILE *out, const struct product *product) {
    fputc('{', out);
    put_rows(out, "a", product->a, a_rows(product), a_cols(product));
    if (!product->is_transposition) {
        put_rows(out, "b", product->b, b_rows(product), b_cols(product));
        fprintf(out, "\"transpose_a\":%s,\"transpose_b\":%s,", product->transpose_a ? "true" : "false",
                product->transpose_b ? "true" : "false");
    }
    fprintf(out, "\"variant\":\"%s\"}", product->variant);
}

/* NumPy's format 1.0; a header of any length whose end is aligned. */
static void put_file(FILE *out, const struct product *product, const char *name, const float *elements,
                     size_t rows, size_t cols) {
    char header[119];
    memset(header, ' ', sizeof header);
    int used = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': %s, 'shape': (%zu, %zu), }",
                        product->is_fortran ? "True" : "False", rows, cols);
    header[used] = ' ';
    header[117] = '\n';
    fprintf(out,
            "--fuzz-boundary\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s.npy\"\r\n\r\n",
            name, name);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out);
    fwrite(header, 1, 118, out);
    if (!product->is_fortran)
        fwrite(elements, sizeof *elements, rows * cols, out);
    for (size_t col = 0; product->is_fortran && col < cols; col++)
        for (size_t row = 0; row < rows; row++)
            fwrite(&elements[row * cols + col], sizeof *elements, 1, out);
    fputs("\r\n", out);
}

static void put_field(FILE *out, const char *name, const char *value) {
    fprintf(out, "--fuzz-boundary\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", name, value);
}

static void put_form(FILE *out, const struct product *product) {
    put_field(out, "variant", product->variant);
    put_file(out, product, "a", product->a, a_rows(product), a_cols(product));
    if (!product->is_transposition) {
        put_file(out, product, "b", product->b, b_rows(product), b_cols(product));
        put_field(out, "transpose_a", product->transpose_a ? "1" : "0");
        put_field(out, "transpose_b", product->transpose_b ? "true" : "false");
    }
    fputs("--fuzz-boundary--\r\n", out);
}

void product_body(const struct product *product, char **body, size_t *bytes) {
    FILE *out = open_memstream(body, bytes);
    REQUIRE(out != NULL);
    switch (product->format) {
    case PRODUCT_JSON:
        put_json(out, product);
        break;
    case PRODUCT_RAW:
        fwrite(product->a, sizeof(float), a_rows(product) * a_cols(product), out);
        if (!product->is_transposition)
            fwrite(product->b, sizeof(float), b_rows(product) * b_cols(product), out);
        break;
    default:
        put_form(out, product);
    }
    REQUIRE(fclose(out) == 0);
}

static float element(const struct product *product, size_t row, size_t col) {
    float sum = 0;
    if (product->is_transposition)
        return product->a[col * product->n + row];
    for (size_t index = 0; index < product->k; index++) {
        const float a = product->transpose_a ? product->a[index * product->m + row]
                                             : product->a[row * product->k + index];
        const float b = product->transpose_b ? product->b[col * product->k + index]
                                             : product->b[index * product->n + col];
        sum += a * b;
    }
    return sum;
}

static void judge_json(const struct product *product, const struct reply *reply, size_t rows, size_t cols) {
    json_t *root = json_loadb(reply->body.text, reply->body.bytes, JSON_REJECT_DUPLICATES, NULL);
    const json_t *c = json_object_get(root, "c");
    REQUIRE(json_array_size(c) == rows);
    for (size_t row = 0; row < rows; row++) {
        const json_t *line = json_array_get(c, row);
        REQUIRE(json_array_size(line) == cols);
        for (size_t col = 0; col < cols; col++)
            REQUIRE(json_number_value(json_array_get(line, col)) == (double)element(product, row, col));
    }
    json_decref(root);
}

static void judge_bytes(const struct product *product, struct piece bytes, size_t rows, size_t cols) {
    REQUIRE(bytes.bytes == rows * cols * sizeof(float));
    for (size_t index = 0; index < rows * cols; index++) {
        float found;
        memcpy(&found, bytes.text + index * sizeof found, sizeof found);
        REQUIRE(found == element(product, index / cols, index % cols));
    }
}

static struct piece skip_header(struct piece file) {
    REQUIRE(file.bytes >= 10 && memcmp(file.text, "\x93NUMPY\x01\x00", 8) == 0);
    const size_t header = 10 + (unsigned char)file.text[8] + 256 * (size_t)(unsigned char)file.text[9];
    REQUIRE(header <= file.bytes && header % 64 == 0);
    return (struct piece){file.text + header, file.bytes - header};
}

/* The format that the reply has to have: what Accept names, or what the request had. */
static const char *expected_type(const struct product *product) {
    static const char *const natural[PRODUCT_FORMAT_COUNT] = {"application/json", "application/octet-stream",
                                                              "application/x-npy"};
    if (product->accept == NULL || strchr(product->accept, '*') != NULL)
        return natural[product->format];
    return strncmp(product->accept, "text/html", 9) == 0 ? "application/x-npy" : product->accept;
}

void product_judge(const struct product *product, const struct reply *reply) {
    const size_t rows = product->is_transposition ? product->n : product->m;
    const size_t cols = product->is_transposition ? product->m : product->n;
    const struct piece type = reply_header(reply, "Content-Type");
    char shape[64];
    snprintf(shape, sizeof shape, "%zu, %zu", rows, cols);
    REQUIRE(piece_is(type, expected_type(product)));
    REQUIRE(piece_is(reply_header(reply, "Matmul-Shape"), shape));
    REQUIRE(piece_is(reply_header(reply, "Matmul-Dtype"), "float32"));
    REQUIRE(strcmp(product->variant, "auto") == 0 ||
            piece_is(reply_header(reply, "Matmul-Variant"), product->variant));
    if (piece_is(type, "application/json"))
        judge_json(product, reply, rows, cols);
    else if (piece_is(type, "application/x-npy"))
        judge_bytes(product, skip_header(reply->body), rows, cols);
    else
        judge_bytes(product, reply->body, rows, cols);
}
