/* The table of requests, and their bodies. A path has one row: what comes to the same allocations is not
 * here. */
#include "tests/faults/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON "Content-Type: application/json\r\n"
#define RAW "Content-Type: application/octet-stream\r\n"
#define CLOSE "Connection: close\r\n"
#define FORM "Content-Type: multipart/form-data; boundary=edge\r\n"
#define TWO_BY_TWO "{\"a\":[[1,2],[3,4]],\"b\":[[5,6],[7,8]]}"
#define TO_BENCHMARK "{\"m\":16,\"k\":16,\"n\":16,\"variants\":[\"naive\",\"tiled_8\"],\"repeats\":2}"

#define NOTHING                                                                                              \
    { NULL, 0, 0, false }
#define TEXT(text)                                                                                           \
    { text, 0, 0, false }
#define ZEROS(bytes)                                                                                         \
    { NULL, bytes, 0, false }
#define ONES(edge)                                                                                           \
    { NULL, 0, edge, false }
#define FILES(edge)                                                                                          \
    { NULL, 0, edge, true }

/* clang-format off */
const struct request requests[] = {
    {"matmul", "json", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT(TWO_BY_TWO), 200, "[[19", 0},
    {"matmul", "json_again", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT(TWO_BY_TWO), 200, "[[19", SECOND},
    {"matmul", "json_queued", "POST /v1/matmul", JSON, CHUNKED, ONES(32), 200, "[[32", 0},
    {"matmul", "json_by_crew", "POST /v1/matmul", JSON, WITH_LENGTH, ONES(260), 200, "[[260", 0},
    {"matmul", "json_escapes", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT("{\"\\u0061\":[[\"NaN\",2],[12345678901234567890.5,1]],\"b\":[[5],[7]],\"variant\":\"naive\"}"), 200, "NaN", 0},
    {"refused", "bad_text", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT("{\"a\":[[1]],\"b\":[[1]],\"variant\":\"fifteen letters\",\"backend\":\"fourteen chars\"}"), 422, "fourteen chars", 0},
    {"matmul", "json_options", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT("{\"variant\":\"tiled_8\",\"backend\":\"cpu\",\"transpose_a\":true,\"timeout_ms\":9000,\"a\":[[1,3],[2,4]],\"b\":[[5,6],[7,8]]}"), 200, "[[19", 0},
    {"matmul", "json_verify", "POST /v1/matmul?verify=1", JSON, WITH_LENGTH, TEXT(TWO_BY_TWO), 200, "\"residual\"", 0},
    {"matmul", "untyped", "POST /v1/matmul", NULL, WITH_LENGTH, TEXT(TWO_BY_TWO), 200, "[[19", 0},
    {"matmul", "raw", "POST /v1/matmul?m=2&k=2&n=2", RAW, WITH_LENGTH, ZEROS(32), 200, NULL, 0},
    {"matmul", "raw_expected", "POST /v1/matmul?m=64&k=64&n=64&variant=tiled_8", RAW "Expect: 100-continue\r\n", WITH_LENGTH, ZEROS(32768), 200, NULL, 0},
    {"matmul", "blas", "POST /v1/matmul?m=128&k=128&n=128&variant=blas", RAW, WITH_LENGTH, ZEROS(131072), 200, NULL, SHORT_OF_LARGE},
    {"matmul", "raw_as_json", "POST /v1/matmul?m=2&k=2&n=2", RAW "Accept: application/json\r\n", WITH_LENGTH, ZEROS(32), 200, "[[0", 0},
    {"matmul", "npy", "POST /v1/matmul", FORM, WITH_LENGTH, FILES(8), 200, "NUMPY", 0},
    {"matmul", "npy_as_json", "POST /v1/matmul?variant=tiled_16", FORM "Accept: application/json\r\n", CHUNKED, FILES(260), 200, "[[260", 0},
    {"other", "transpose_json", "POST /v1/transpose", JSON, WITH_LENGTH, TEXT("{\"a\":[[1,2],[3,4]]}"), 200, "[[1", 0},
    {"other", "transpose_raw", "POST /v1/transpose?m=2&n=8", RAW, WITH_LENGTH, ZEROS(64), 200, NULL, 0},
    {"other", "benchmark_json", "POST /v1/benchmark", JSON, WITH_LENGTH, TEXT(TO_BENCHMARK), 200, "\"rows\"", 0},
    {"other", "benchmark_text", "POST /v1/benchmark", JSON "Accept: text/plain\r\n", WITH_LENGTH, TEXT(TO_BENCHMARK), 200, "naive", 0},
    {"other", "benchmark_transpose", "POST /v1/benchmark", JSON, WITH_LENGTH, TEXT("{\"op\":\"transpose\",\"m\":16,\"n\":16,\"repeats\":1}"), 200, "\"rows\"", 0},
    {"other", "variants", "GET /v1/variants", NULL, NO_BODY, NOTHING, 200, "\"variants\"", STEADY},
    {"other", "devices", "GET /v1/devices", NULL, NO_BODY, NOTHING, 200, "\"devices\"", 0},
    {"other", "page", "GET /", NULL, NO_BODY, NOTHING, 200, "</html>", STEADY},
    {"other", "healthz", "GET /healthz", NULL, NO_BODY, NOTHING, 200, "ok", STEADY},
    {"other", "readyz", "GET /readyz", NULL, NO_BODY, NOTHING, 200, "ok", STEADY},
    {"other", "metrics", "GET /metrics", NULL, NO_BODY, NOTHING, 200, "matmuld_build_info", 0},
    {"other", "options", "OPTIONS /v1/matmul", NULL, NO_BODY, NOTHING, 204, NULL, 0},
    {"other", "openapi", "GET /openapi.json", NULL, NO_BODY, NOTHING, 200, "\"openapi\"", STEADY},
    {"refused", "not_found", "GET /nothing", NULL, NO_BODY, NOTHING, 404, "not_found", 0},
    {"refused", "method", "DELETE /v1/matmul", NULL, NO_BODY, NOTHING, 405, "method_not_allowed", 0},
    {"refused", "no_length", "POST /v1/matmul", JSON, NO_BODY, NOTHING, 411, "length_required", 0},
    {"refused", "too_large", "POST /v1/matmul", JSON "Expect: 100-continue\r\n", WITH_LENGTH, ZEROS(5 << 20), 413, "too_large", 0},
    {"refused", "too_large_unread", "POST /v1/matmul", JSON, WITH_LENGTH, ZEROS(5 << 20), 413, "too_large", 0},
    {"refused", "media_type", "POST /v1/matmul", "Content-Type: image/png\r\n", WITH_LENGTH, ZEROS(16), 415, "unsupported_media_type", 0},
    {"refused", "not_acceptable", "POST /v1/matmul", JSON "Accept: image/png\r\n", WITH_LENGTH, TEXT(TWO_BY_TWO), 406, "not_acceptable", 0},
    {"refused", "bad_query", "POST /v1/matmul?m=x", RAW, WITH_LENGTH, ZEROS(16), 400, "bad_request", 0},
    {"refused", "bad_http", "GET /healthz", "Content-Length: 0\r\nContent-Length: 1\r\n", NO_BODY, NOTHING, 400, "bad_request", 0},
    {"refused", "bad_json", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT("{\"a\":[[1,2],[3]],\"b\":[[1]]}"), 400, "bad_request", 0},
    {"refused", "bad_member", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT("{\"a\":[[1]],\"b\":[[1]],\"x\":\"y\"}"), 400, "bad_request", 0},
    {"refused", "bad_form", "POST /v1/matmul", FORM, WITH_LENGTH, TEXT("--edge\r\nnothing"), 400, "bad_request", 0},
    {"refused", "bad_benchmark", "POST /v1/benchmark", JSON, WITH_LENGTH, TEXT("{\"m\":[1,\"x\"]}"), 400, "bad_request", 0},
    {"refused", "bad_shape", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT("{\"a\":[[1,2]],\"b\":[[1,2]]}"), 422, "bad_shape", 0},
    {"large", "raw_mapped", "POST /v1/matmul?m=1&k=131072&n=1", RAW CLOSE, WITH_LENGTH, ZEROS(1 << 20), 200, NULL, MAPPED},
    {"large", "chunked", "POST /v1/matmul?m=1&k=131072&n=1", RAW CLOSE, CHUNKED, ZEROS(1 << 20), 200, NULL, MAPPED},
    {"large", "transpose_mapped", "POST /v1/transpose?m=512&n=512", RAW CLOSE, WITH_LENGTH, ZEROS(1 << 20), 200, NULL, MAPPED},
    {"keys", "without_key", "POST /v1/matmul", JSON, WITH_LENGTH, TEXT(TWO_BY_TWO), 401, "unauthorized", 0},
    {"keys", "with_key", "POST /v1/matmul", JSON "Authorization: Bearer 0123456789abcdef\r\n", WITH_LENGTH, TEXT(TWO_BY_TWO), 200, "[[19", 0},
    {"keys", "of_another_origin", "POST /v1/matmul", JSON "Authorization: Bearer 0123456789abcdef\r\nOrigin: https://example.org\r\n", WITH_LENGTH, TEXT(TWO_BY_TWO), 200, "[[19", 0},
    {"keys", "preflight", "OPTIONS /v1/matmul", "Origin: https://example.org\r\nAccess-Control-Request-Method: POST\r\n", NO_BODY, NOTHING, 204, NULL, 0},
    {NULL, NULL, NULL, NULL, NO_BODY, NOTHING, 0, NULL, 0}};
/* clang-format on */

const struct request request_of_all_memory = {NULL,      "all_memory", "POST /v1/matmul?m=1&k=340000&n=1",
                                              RAW CLOSE, WITH_LENGTH,  ZEROS(2720000),
                                              200,       NULL,         0};

/* --- bodies --------------------------------------------------------------------------------------- */

static void write_json_matrix(FILE *out, size_t edge) {
    for (size_t row = 0; row < edge; row++) {
        fputs(row == 0 ? "[[1" : ",[1", out);
        for (size_t col = 1; col < edge; col++)
            fputs(",1", out);
        fputc(']', out);
    }
    fputc(']', out);
}

static void write_npy(FILE *out, size_t edge) {
    const float one = 1.0F;
    char head[119];
    snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", edge,
             edge);
    fwrite("\x93NUMPY\1\0v\0", 1, 10, out); /* version 1.0, and a head of 118 bytes */
    fprintf(out, "%-117s\n", head);
    for (size_t index = 0; index < edge * edge; index++)
        fwrite(&one, sizeof one, 1, out);
}

static void write_form(FILE *out, size_t edge) {
    for (int name = 'a'; name <= 'b'; name++) {
        fprintf(out, "--edge\r\nContent-Disposition: form-data; name=\"%c\"; filename=\"%c.npy\"\r\n\r\n",
                name, name);
        write_npy(out, edge);
        fputs("\r\n", out);
    }
    fputs("--edge--\r\n", out);
}

static void write_body(FILE *out, const struct body *body) {
    if (body->text != NULL) {
        fputs(body->text, out);
    } else if (body->is_npy) {
        write_form(out, body->edge);
    } else if (body->edge > 0) {
        fputs("{\"variant\":\"tiled_16\",\"a\":", out);
        write_json_matrix(out, body->edge);
        fputs(",\"b\":", out);
        write_json_matrix(out, body->edge);
        fputc('}', out);
    } else {
        for (size_t index = 0; index < body->zeros; index++)
            fputc(0, out);
    }
}

static void write_framed(FILE *out, enum framing framing, const char *body, size_t bytes) {
    enum { CHUNK = 16000 };
    if (framing == NO_BODY) {
        fputs("\r\n", out);
    } else if (framing == WITH_LENGTH) {
        fprintf(out, "Content-Length: %zu\r\n\r\n", bytes);
        fwrite(body, 1, bytes, out);
    } else {
        fputs("Transfer-Encoding: chunked\r\n\r\n", out);
        for (size_t from = 0; from < bytes; from += CHUNK) {
            const size_t count = bytes - from < CHUNK ? bytes - from : CHUNK;
            fprintf(out, "%zx\r\n", count);
            fwrite(body + from, 1, count, out);
            fputs("\r\n", out);
        }
        fputs("0\r\n\r\n", out);
    }
}

char *request_text(const struct request *request, size_t *bytes) {
    char *body = NULL, *text = NULL;
    size_t body_bytes = 0;
    FILE *out = open_memstream(&body, &body_bytes);
    if (out == NULL)
        return NULL;
    write_body(out, &request->body);
    fclose(out);
    out = open_memstream(&text, bytes);
    if (out != NULL) {
        fprintf(out, "%s HTTP/1.1\r\nHost: localhost\r\n%s", request->line,
                request->headers == NULL ? "" : request->headers);
        write_framed(out, request->framing, body, body_bytes);
        fclose(out);
    }
    free(body);
    return text;
}
