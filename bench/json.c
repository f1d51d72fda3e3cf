/* For ./dev bench json: measures how long the service's JSON codec takes for each number. The request has two
 * matrices of edge × edge, and the reply has one. For comparison, also measures a codec that only uses
 * Jansson and ignores the rules of the API. Prints nanoseconds: KIND.decode, KIND.decode_jansson, KIND.encode
 * or KIND.encode_jansson. The first round warms up, and is not printed. Usage: json_bench EDGE ROUNDS */
#include "api/call.h"
#include "api/codec.h"
#include "gpu/device/backend.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBER_BYTES_MAX = 24 };

struct kind {
    const char *name;
    float (*make)(uint64_t *random);
};

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static float make_random(uint64_t *random) {
    return (float)next(random) / 0x1p30f - 1;
}

static float make_short(uint64_t *random) {
    return (float)((int)(next(random) % 19) - 9) / 2;
}

static const struct kind kinds[] = {{"random", make_random}, {"short", make_short}};

struct bench {
    size_t edge;
    struct mm_budget budget;
    const struct mm_codec *codec;
    float *elements; /* elements of a, followed by the elements of b */
    float *read;     /* elements that Jansson's codec has read */
    char *body;
    size_t body_bytes;
    char *reply;
    size_t reply_bytes;
};

static void require(int condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "bench json: %s\n", what);
    exit(1);
}

static void *allocate(size_t bytes) {
    void *data = calloc(1, bytes);
    require(data != NULL, "there is no memory");
    return data;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static char *write_matrix(const float *elements, size_t edge, char *end) {
    for (size_t row = 0; row < edge; row++) {
        for (size_t col = 0; col < edge; col++)
            end += sprintf(end, "%c%.9g", col == 0 ? '[' : ',', (double)elements[row * edge + col]);
        end = stpcpy(end, row + 1 < edge ? "]," : "]");
    }
    return end;
}

static void make_body(struct bench *bench, const struct kind *kind) {
    const size_t count = bench->edge * bench->edge;
    uint64_t random = 1;
    for (size_t index = 0; index < 2 * count; index++)
        bench->elements[index] = kind->make(&random);
    char *end = stpcpy(bench->body, "{\"a\":[");
    end = write_matrix(bench->elements, bench->edge, end);
    end = stpcpy(end, "],\"b\":[");
    end = write_matrix(bench->elements + count, bench->edge, end);
    end = stpcpy(end, "]}");
    bench->body_bytes = (size_t)(end - bench->body);
}

static double decode(struct bench *bench) {
    const struct mm_limits limits = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    const struct mm_body body = {.data = bench->body, .bytes = bench->body_bytes};
    const size_t bytes = bench->edge * bench->edge * sizeof(float);
    struct mm_reservation memory = {.budget = &bench->budget};
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    const double start = now_ns();
    void *reading = bench->codec->reader->begin(&call.operands, NULL, body.bytes, &limits, &memory);
    require(reading != NULL, "there is no memory");
    enum mm_status status = bench->codec->reader->finish(reading, &call.operands, &body, &error);
    const double ns = now_ns() - start;
    require(status == MM_OK, error.detail);
    require(memcmp(call.operands.of[0].view.data, bench->elements, bytes) == 0 &&
                memcmp(call.operands.of[1].view.data, (char *)bench->elements + bytes, bytes) == 0,
            "other elements were read than were written");
    mm_operands_release(&call.operands, &memory);
    mm_reservation_close(&memory);
    return ns / (double)(2 * bench->edge * bench->edge);
}

static void read_rows(const json_t *rows, size_t edge, float *elements) {
    require(json_array_size(rows) == edge, "Jansson read other rows");
    for (size_t row = 0; row < edge; row++) {
        const json_t *numbers = json_array_get(rows, row);
        require(json_array_size(numbers) == edge, "Jansson read another row");
        for (size_t col = 0; col < edge; col++)
            elements[row * edge + col] = (float)json_number_value(json_array_get(numbers, col));
    }
}

static double decode_jansson(struct bench *bench) {
    const size_t count = bench->edge * bench->edge;
    const double start = now_ns();
    json_t *root = json_loadb(bench->body, bench->body_bytes, JSON_REJECT_DUPLICATES, NULL);
    read_rows(json_object_get(root, "a"), bench->edge, bench->read);
    read_rows(json_object_get(root, "b"), bench->edge, bench->read + count);
    json_decref(root);
    return (now_ns() - start) / (double)(2 * count);
}

/* Measures the service's encoder. The reply contains a's elements instead of a real product. */
static double encode(struct bench *bench) {
    static const struct mm_variant variant = {.name = "blas"};
    static const struct mm_backend backend = {.name = "cpu"};
    const size_t count = bench->edge * bench->edge;
    const uint64_t span_ns[MM_SPAN_COUNT] = {0};
    const struct mm_device device = {.backend = &backend};
    const struct mm_outcome outcome = {.ran = &variant, .batched = 1};
    struct mm_buffer result = {0};
    const struct mm_shape shape = mm_shape_of_matrix(bench->edge, bench->edge);
    const struct mm_answer answer = {
        .outcome = &outcome,
        .device = &device,
        .operand_dtype = MM_FLOAT32,
        .matrix = mm_matrix_dense(MM_FLOAT32, bench->edge, bench->edge, bench->elements),
        .has_matrix = true,
        .shape = &shape,
        .result = &result,
        .span_ns = span_ns};
    struct mm_reply_body body = {.buffer = {.data = bench->reply, .bytes = bench->reply_bytes}};
    const double start = now_ns();
    bench->codec->encode(&answer, &body);
    bench->codec->finish(&answer, &body);
    return (now_ns() - start) / (double)count;
}

static double encode_jansson(struct bench *bench) {
    const double start = now_ns();
    json_t *rows = json_array();
    for (size_t row = 0; row < bench->edge; row++) {
        json_t *numbers = json_array();
        for (size_t col = 0; col < bench->edge; col++)
            json_array_append_new(numbers, json_real((double)bench->elements[row * bench->edge + col]));
        json_array_append_new(rows, numbers);
    }
    json_t *root = json_pack("{s:o}", "c", rows);
    const size_t bytes =
        json_dumpb(root, bench->reply, bench->reply_bytes, JSON_COMPACT | JSON_REAL_PRECISION(9));
    require(bytes > 0 && bytes <= bench->reply_bytes, "Jansson's reply has no room");
    json_decref(root);
    return (now_ns() - start) / (double)(bench->edge * bench->edge);
}

static void make_bench(struct bench *bench, size_t edge) {
    const size_t count = edge * edge;
    const struct mm_shape shape = mm_shape_of_matrix(edge, edge);
    *bench = (struct bench){.edge = edge};
    require(mm_budget_open(&bench->budget, SIZE_MAX), "there is no memory");
    require(mm_codec_for_request("application/json", MM_MATMUL, false, false, 0, &bench->codec, NULL) ==
                    MM_OK &&
                bench->codec->reply_bytes_max(&shape, MM_FLOAT32, &bench->reply_bytes),
            "there is no JSON codec");
    bench->reply_bytes += count * NUMBER_BYTES_MAX;
    bench->elements = allocate(2 * count * sizeof(float));
    bench->read = allocate(2 * count * sizeof(float));
    bench->body = allocate(2 * count * NUMBER_BYTES_MAX + 64);
    bench->reply = allocate(bench->reply_bytes);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        double (*run)(struct bench *);
    } subjects[] = {{"decode", decode},
                    {"decode_jansson", decode_jansson},
                    {"encode", encode},
                    {"encode_jansson", encode_jansson}};
    const size_t edge = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    const size_t rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    static struct bench bench;
    require(edge >= 1 && edge <= 8192 && rounds >= 1, "takes an edge from 1 to 8192 and rounds");
    json_set_alloc_funcs(malloc, free); /* restores malloc, because api/ has set other functions */
    make_bench(&bench, edge);
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        make_body(&bench, &kinds[kind]);
        for (size_t round = 0; round <= rounds; round++)
            for (size_t subject = 0; subject < sizeof subjects / sizeof subjects[0]; subject++) {
                const double ns = subjects[subject].run(&bench);
                if (round > 0)
                    printf("%s.%s %.3f\n", kinds[kind].name, subjects[subject].name, ns);
            }
    }
    return 0;
}
