/* Elements are a function of their index, so that a gigabyte of them need not be kept twice to be checked. */
#include "bench/load/message.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NPY_HEADER_BYTES = 128, JSON_NUMBER_BYTES_MAX = 20 };

#define BOUNDARY "matmuld-load-5d1f7a"

static const char *const form_names[] = {"raw", "json", "multipart"};
static const char *const content_types[] = {"application/octet-stream", "application/json",
                                            ("multipart/form-data; boundary=" BOUNDARY)};

/* A number in [-1, 1) of 24 bits, which nine digits tell exactly (splitmix64, Steele and others, 2014). */
static float element(size_t index) {
    uint64_t bits = ((uint64_t)index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    bits ^= bits >> 31;
    return (float)((int32_t)(bits >> 40) - (1 << 23)) * 0x1p-23F;
}

bool mm_load_message_form_find(const char *name, enum mm_load_message_form *form) {
    for (unsigned index = 0; index < sizeof form_names / sizeof form_names[0]; index++)
        if (strcmp(name, form_names[index]) == 0) {
            *form = (enum mm_load_message_form)index;
            return true;
        }
    return false;
}

static void add_elements(struct mm_load_bytes *body, size_t first, size_t count) {
    char *to = mm_load_bytes_reserve(body, count * sizeof(float));
    for (size_t index = 0; index < count; index++) {
        float value = element(first + index);
        memcpy(to + index * sizeof value, &value, sizeof value);
    }
    body->length += count * sizeof(float);
}

static void add_text(struct mm_load_bytes *body, const char *text) {
    mm_load_bytes_add(body, text, strlen(text));
}

static void add_json_matrix(struct mm_load_bytes *body, size_t first, size_t rows, size_t cols) {
    for (size_t row = 0; row < rows; row++) {
        add_text(body, row == 0 ? "[[" : ",[");
        for (size_t col = 0; col < cols; col++) {
            char *to = mm_load_bytes_reserve(body, JSON_NUMBER_BYTES_MAX);
            double value = (double)element(first + row * cols + col);
            body->length += (size_t)snprintf(to, JSON_NUMBER_BYTES_MAX, col == 0 ? "%.9g" : ",%.9g", value);
        }
        add_text(body, "]");
    }
    add_text(body, "]");
}

static void add_npy_part(struct mm_load_bytes *body, const char *name, size_t first, size_t rows,
                         size_t cols) {
    char header[NPY_HEADER_BYTES + 1];
    const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, NPY_HEADER_BYTES - 10, 0};
    memset(header, ' ', sizeof header);
    memcpy(header, magic, sizeof magic);
    int length = snprintf(header + sizeof magic, sizeof header - sizeof magic,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
    header[sizeof magic + (size_t)length] = ' ';
    header[NPY_HEADER_BYTES - 1] = '\n';
    mm_load_bytes_print(body,
                        "--" BOUNDARY
                        "\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s.npy\"\r\n"
                        "Content-Type: application/octet-stream\r\n\r\n",
                        name, name);
    mm_load_bytes_add(body, header, NPY_HEADER_BYTES);
    add_elements(body, first, rows * cols);
    add_text(body, "\r\n");
}

static void make_body(struct mm_load_message *message) {
    struct mm_load_bytes *body = &message->body;
    size_t of_a = message->m * message->k;
    size_t of_b = message->k * message->n;
    switch (message->form) {
    case MM_LOAD_MESSAGE_RAW:
        add_elements(body, 0, of_a + of_b);
        break;
    case MM_LOAD_MESSAGE_JSON:
        add_text(body, "{\"a\": ");
        add_json_matrix(body, 0, message->m, message->k);
        add_text(body, ", \"b\": ");
        add_json_matrix(body, of_a, message->k, message->n);
        add_text(body, "}");
        break;
    case MM_LOAD_MESSAGE_MULTIPART:
        add_npy_part(body, "a", 0, message->m, message->k);
        add_npy_part(body, "b", of_a, message->k, message->n);
        add_text(body, "--" BOUNDARY "--\r\n");
        break;
    }
}

void mm_load_message_make(struct mm_load_message *message) {
    const char *extra = message->extra == NULL ? "" : message->extra;
    char query[128] = "";
    make_body(message);
    if (message->form == MM_LOAD_MESSAGE_RAW)
        snprintf(query, sizeof query, "m=%zu&k=%zu&n=%zu%s", message->m, message->k, message->n,
                 extra[0] != '\0' ? "&" : "");
    mm_load_bytes_print(
        &message->head,
        "POST /v1/matmul?%s%s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", query,
        extra, message->authority, content_types[message->form], message->body.length);
}

void mm_load_message_free(struct mm_load_message *message) {
    mm_load_bytes_free(&message->head);
    mm_load_bytes_free(&message->body);
}

/* An element of the product in float64. */
static double expected(const struct mm_load_message *message, size_t row, size_t col) {
    double sum = 0;
    for (size_t index = 0; index < message->k; index++)
        sum += (double)element(row * message->k + index) *
               (double)element(message->m * message->k + index * message->n + col);
    return sum;
}

/* Far wider than float32's rounding, far narrower than what a wrong product would be off by. */
static bool is_near(const struct mm_load_message *message, size_t row, size_t col, double value,
                    char *problem, size_t problem_bytes) {
    double right = expected(message, row, col);
    if (fabs(value - right) <= 1e-4 * sqrt((double)message->k))
        return true;
    snprintf(problem, problem_bytes, "element %zu, %zu of the product is %g, expected %g", row, col, value,
             right);
    return false;
}

static bool check_json(const struct mm_load_message *message, const char *body, size_t bytes, char *problem,
                       size_t problem_bytes) {
    const char *rows = memmem(body, bytes, "[[", 2);
    if (rows != NULL)
        return is_near(message, 0, 0, strtod(rows + 2, NULL), problem, problem_bytes);
    snprintf(problem, problem_bytes, "the reply has no matrix: %.200s", body);
    return false;
}

bool mm_load_message_check(const struct mm_load_message *message, const char *body, size_t bytes,
                           char *problem, size_t problem_bytes) {
    size_t before = message->form == MM_LOAD_MESSAGE_MULTIPART ? NPY_HEADER_BYTES : 0;
    size_t m = message->m, n = message->n;
    const size_t places[] = {0, n - 1, m / 2 * n + n / 2, m * n - 1};
    if (message->form == MM_LOAD_MESSAGE_JSON)
        return check_json(message, body, bytes, problem, problem_bytes);
    if (bytes != before + m * n * sizeof(float)) {
        snprintf(problem, problem_bytes, "the reply's body has %zu bytes, expected %zu", bytes,
                 before + m * n * sizeof(float));
        return false;
    }
    for (size_t index = 0; index < sizeof places / sizeof places[0]; index++) {
        float value;
        memcpy(&value, body + before + places[index] * sizeof value, sizeof value);
        if (!is_near(message, places[index] / n, places[index] % n, (double)value, problem, problem_bytes))
            return false;
    }
    return true;
}
