/* Elements are a function of their index, so that a gigabyte of them need not be kept twice to be checked. */
#include "bench/load/message.h"

#include "bench/load/memory.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NPY_HEADER_BYTES = 128, PIECE_BYTES = 64 << 10 };

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

static void put_elements(FILE *body, size_t first, size_t count) {
    float values[1024];
    for (size_t index = 0; index < count; index++) {
        const size_t at = index % (sizeof values / sizeof values[0]);
        values[at] = element(first + index);
        if (at + 1 == sizeof values / sizeof values[0] || index + 1 == count)
            fwrite(values, sizeof values[0], at + 1, body);
    }
}

static void put_json_matrix(FILE *body, size_t first, size_t rows, size_t cols) {
    for (size_t index = 0; index < rows * cols; index++) {
        const char *before = index == 0 ? "[[" : index % cols == 0 ? "],[" : ",";
        fprintf(body, "%s%.9g", before, (double)element(first + index));
    }
    fputs("]]", body);
}

static void put_npy_part(FILE *body, const char *name, size_t first, size_t rows, size_t cols) {
    const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, NPY_HEADER_BYTES - 10, 0};
    char header[NPY_HEADER_BYTES];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows,
             cols);
    fprintf(body,
            "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s.npy\"\r\n"
            "Content-Type: application/octet-stream\r\n\r\n",
            name, name);
    fwrite(magic, 1, sizeof magic, body);
    fprintf(body, "%-*s\n", NPY_HEADER_BYTES - (int)sizeof magic - 1, header);
    put_elements(body, first, rows * cols);
    fputs("\r\n", body);
}

static void put_body(FILE *body, const struct mm_load_message *message) {
    const size_t of_a = message->m * message->k;
    switch (message->form) {
    case MM_LOAD_MESSAGE_RAW:
        put_elements(body, 0, of_a + message->k * message->n);
        break;
    case MM_LOAD_MESSAGE_JSON:
        fputs("{\"a\": ", body);
        put_json_matrix(body, 0, message->m, message->k);
        fputs(", \"b\": ", body);
        put_json_matrix(body, of_a, message->k, message->n);
        fputs("}", body);
        break;
    case MM_LOAD_MESSAGE_MULTIPART:
        put_npy_part(body, "a", 0, message->m, message->k);
        put_npy_part(body, "b", of_a, message->k, message->n);
        fputs("--" BOUNDARY "--\r\n", body);
        break;
    }
}

static void require(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "the load client has %s\n", what);
    exit(EXIT_FAILURE);
}

void mm_load_message_make(struct mm_load_message *message) {
    const char *extra = message->extra == NULL ? "" : message->extra;
    FILE *body = open_memstream(&message->body, &message->body_bytes);
    require(body != NULL, "no memory");
    put_body(body, message);
    require(!ferror(body) && fclose(body) == 0, "no memory for the body");
    FILE *head = open_memstream(&message->head, &message->head_bytes);
    require(head != NULL, "no memory");
    fputs("POST /v1/matmul?", head);
    if (message->form == MM_LOAD_MESSAGE_RAW)
        fprintf(head, "m=%zu&k=%zu&n=%zu%s", message->m, message->k, message->n, extra[0] != '\0' ? "&" : "");
    fprintf(head, "%s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", extra,
            message->authority, content_types[message->form], message->body_bytes);
    require(!ferror(head) && fclose(head) == 0, "no memory for the head");
}

void mm_load_message_read(struct mm_load_message *message, const char *path) {
    FILE *file = fopen(path, "rb");
    require(file != NULL, "no such file");
    for (size_t count = 1; count > 0; message->head_bytes += count) {
        message->head = mm_load_resize(message->head, message->head_bytes + PIECE_BYTES);
        count = fread(message->head + message->head_bytes, 1, PIECE_BYTES, file);
    }
    fclose(file);
    require(message->head_bytes > 0, "no request in its file");
}

const char *mm_load_header_in(const char *head, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, length) == 0 && at[2 + length] == ':')
            return at + 2 + length + 1 + strspn(at + 2 + length + 1, " ");
    return NULL;
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
