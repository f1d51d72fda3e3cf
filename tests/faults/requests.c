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

const struct request requests[] = {
    {"matmul",
     "json",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 200,
     .expected = "[[19"},
    {"matmul",
     "json_again",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 200,
     .expected = "[[19",
     .is_second = true},
    {"matmul",
     "json_queued",
     "POST /v1/matmul",
     JSON,
     CHUNKED,
     {.edge = 32},
     .status = 200,
     .expected = "[[32"},
    {"matmul",
     "json_by_crew",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.edge = 260},
     .status = 200,
     .expected = "[[260"},
    {"matmul",
     "json_as_tree",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = "{\"\\u0061\":[[\"NaN\",2],[12345678901234567890.5,1]],\"b\":[[5],[7]],\"variant\":\"naive\"}"},
     .status = 200,
     .expected = "NaN"},
    {"refused",
     "bad_text",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = "{\"a\":[[1]],\"b\":[[1]],\"variant\":\"fifteen letters\",\"backend\":\"fourteen chars\"}"},
     .status = 422,
     .expected = "fourteen chars"},
    {"matmul",
     "json_options",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = "{\"variant\":\"tiled_8\",\"backend\":\"cpu\",\"transpose_a\":true,\"timeout_"
              "ms\":9000,"
              "\"a\":[[1,3],[2,4]],\"b\":[[5,6],[7,8]]}"},
     .status = 200,
     .expected = "[[19"},
    {"matmul",
     "json_verify",
     "POST /v1/matmul?verify=1",
     JSON,
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 200,
     .expected = "\"residual\""},
    {"matmul",
     "untyped",
     "POST /v1/matmul",
     NULL,
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 200,
     .expected = "[[19"},
    {"matmul", "raw", "POST /v1/matmul?m=2&k=2&n=2", RAW, WITH_LENGTH, {.zeros = 32}, .status = 200},
    {"matmul",
     "raw_expected",
     "POST /v1/matmul?m=64&k=64&n=64&variant=tiled_8",
     RAW "Expect: 100-continue\r\n",
     WITH_LENGTH,
     {.zeros = 32768},
     .status = 200},
    {"matmul",
     "blas",
     "POST /v1/matmul?m=128&k=128&n=128&variant=blas",
     RAW,
     WITH_LENGTH,
     {.zeros = 131072},
     .status = 200,
     .is_short_of_large = true},
    {"matmul",
     "raw_as_json",
     "POST /v1/matmul?m=2&k=2&n=2",
     RAW "Accept: application/json\r\n",
     WITH_LENGTH,
     {.zeros = 32},
     .status = 200,
     .expected = "[[0"},
    {"matmul",
     "npy",
     "POST /v1/matmul",
     FORM,
     WITH_LENGTH,
     {.is_npy = true, .edge = 8},
     .status = 200,
     .expected = "NUMPY"},
    {"matmul",
     "npy_as_json",
     "POST /v1/matmul?variant=tiled_16",
     FORM "Accept: application/json\r\n",
     CHUNKED,
     {.is_npy = true, .edge = 260},
     .status = 200,
     .expected = "[[260"},

    {"other",
     "transpose_json",
     "POST /v1/transpose",
     JSON,
     WITH_LENGTH,
     {.text = "{\"a\":[[1,2],[3,4]]}"},
     .status = 200,
     .expected = "[[1"},
    {"other", "transpose_raw", "POST /v1/transpose?m=2&n=8", RAW, WITH_LENGTH, {.zeros = 64}, .status = 200},
    {"other",
     "benchmark_json",
     "POST /v1/benchmark",
     JSON,
     WITH_LENGTH,
     {.text = TO_BENCHMARK},
     .status = 200,
     .expected = "\"rows\""},
    {"other",
     "benchmark_text",
     "POST /v1/benchmark",
     JSON "Accept: text/plain\r\n",
     WITH_LENGTH,
     {.text = TO_BENCHMARK},
     .status = 200,
     .expected = "naive"},
    {"other",
     "benchmark_transpose",
     "POST /v1/benchmark",
     JSON,
     WITH_LENGTH,
     {.text = "{\"op\":\"transpose\",\"m\":16,\"n\":16,\"repeats\":1}"},
     .status = 200,
     .expected = "\"rows\""},
    {"other",
     "variants",
     "GET /v1/variants",
     NULL,
     NO_BODY,
     {0},
     .status = 200,
     .expected = "\"variants\"",
     .is_steady = true},
    {"other", "devices", "GET /v1/devices", NULL, NO_BODY, {0}, .status = 200, .expected = "\"devices\""},
    {"other", "page", "GET /", NULL, NO_BODY, {0}, .status = 200, .expected = "</html>", .is_steady = true},
    {"other",
     "healthz",
     "GET /healthz",
     NULL,
     NO_BODY,
     {0},
     .status = 200,
     .expected = "ok",
     .is_steady = true},
    {"other",
     "readyz",
     "GET /readyz",
     NULL,
     NO_BODY,
     {0},
     .status = 200,
     .expected = "ok",
     .is_steady = true},
    {"other", "metrics", "GET /metrics", NULL, NO_BODY, {0}, .status = 200, .expected = "matmuld_build_info"},
    {"other", "options", "OPTIONS /v1/matmul", NULL, NO_BODY, {0}, .status = 204},
    {"other",
     "openapi",
     "GET /openapi.json",
     NULL,
     NO_BODY,
     {0},
     .status = 200,
     .expected = "\"openapi\"",
     .is_steady = true},

    {"refused", "not_found", "GET /nothing", NULL, NO_BODY, {0}, .status = 404, .expected = "not_found"},
    {"refused",
     "method",
     "DELETE /v1/matmul",
     NULL,
     NO_BODY,
     {0},
     .status = 405,
     .expected = "method_not_allowed"},
    {"refused",
     "no_length",
     "POST /v1/matmul",
     JSON,
     NO_BODY,
     {0},
     .status = 411,
     .expected = "length_required"},
    {"refused",
     "too_large",
     "POST /v1/matmul",
     JSON "Expect: 100-continue\r\n",
     WITH_LENGTH,
     {.zeros = 5 << 20},
     .status = 413,
     .expected = "too_large"},
    {"refused",
     "too_large_unread",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.zeros = 5 << 20},
     .status = 413,
     .expected = "too_large"},
    {"refused",
     "media_type",
     "POST /v1/matmul",
     "Content-Type: image/png\r\n",
     WITH_LENGTH,
     {.zeros = 16},
     .status = 415,
     .expected = "unsupported_media_type"},
    {"refused",
     "not_acceptable",
     "POST /v1/matmul",
     JSON "Accept: image/png\r\n",
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 406,
     .expected = "not_acceptable"},
    {"refused",
     "bad_query",
     "POST /v1/matmul?m=x",
     RAW,
     WITH_LENGTH,
     {.zeros = 16},
     .status = 400,
     .expected = "bad_request"},
    {"refused",
     "bad_http",
     "GET /healthz",
     "Content-Length: 0\r\nContent-Length: 1\r\n",
     NO_BODY,
     {0},
     .status = 400,
     .expected = "bad_request"},
    {"refused",
     "bad_json",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = "{\"a\":[[1,2],[3]],\"b\":[[1]]}"},
     .status = 400,
     .expected = "bad_request"},
    {"refused",
     "bad_member",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = "{\"a\":[[1]],\"b\":[[1]],\"x\":\"y\"}"},
     .status = 400,
     .expected = "bad_request"},
    {"refused",
     "bad_form",
     "POST /v1/matmul",
     FORM,
     WITH_LENGTH,
     {.text = "--edge\r\nnothing"},
     .status = 400,
     .expected = "bad_request"},
    {"refused",
     "bad_benchmark",
     "POST /v1/benchmark",
     JSON,
     WITH_LENGTH,
     {.text = "{\"m\":[1,\"x\"]}"},
     .status = 400,
     .expected = "bad_request"},
    {"refused",
     "bad_shape",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = "{\"a\":[[1,2]],\"b\":[[1,2]]}"},
     .status = 422,
     .expected = "bad_shape"},

    {"large",
     "raw_mapped",
     "POST /v1/matmul?m=1&k=131072&n=1",
     RAW CLOSE,
     WITH_LENGTH,
     {.zeros = 1 << 20},
     .status = 200,
     .is_mapped = true},
    {"large",
     "chunked",
     "POST /v1/matmul?m=1&k=131072&n=1",
     RAW CLOSE,
     CHUNKED,
     {.zeros = 1 << 20},
     .status = 200,
     .is_mapped = true},
    {"large",
     "transpose_mapped",
     "POST /v1/transpose?m=512&n=512",
     RAW CLOSE,
     WITH_LENGTH,
     {.zeros = 1 << 20},
     .status = 200,
     .is_mapped = true},

    {"keys",
     "without_key",
     "POST /v1/matmul",
     JSON,
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 401,
     .expected = "unauthorized"},
    {"keys",
     "with_key",
     "POST /v1/matmul",
     JSON "Authorization: Bearer 0123456789abcdef\r\n",
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 200,
     .expected = "[[19"},
    {"keys",
     "of_another_origin",
     "POST /v1/matmul",
     JSON "Authorization: Bearer 0123456789abcdef\r\nOrigin: https://example.org\r\n",
     WITH_LENGTH,
     {.text = TWO_BY_TWO},
     .status = 200,
     .expected = "[[19"},
    {"keys",
     "preflight",
     "OPTIONS /v1/matmul",
     "Origin: https://example.org\r\nAccess-Control-Request-Method: POST\r\n",
     NO_BODY,
     {0},
     .status = 204},
    {0},
};

const struct request request_of_all_memory = {"",           "all_memory", "POST /v1/matmul?m=1&k=340000&n=1",
                                              RAW CLOSE,    WITH_LENGTH,  {.zeros = 2720000},
                                              .status = 200};

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
        fprintf(out, "%s HTTP/1.1\r\nHost: here\r\n%s", request->line,
                request->headers == NULL ? "" : request->headers);
        write_framed(out, request->framing, body, body_bytes);
        fclose(out);
    }
    free(body);
    return text;
}
