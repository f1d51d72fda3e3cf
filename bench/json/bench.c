/* ./dev bench json: what a number costs the JSON codec, in a request of edge² · edge² and in its reply,
 * beside a codec by Jansson alone. Both take turns, and the medians count. It judges no time: a machine may
 * be slow. Usage: json_bench EDGE ROUNDS */
#include "api/codec.h"
#include "gpu/backend.h"
#include "bench/json/jansson_only.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS_MAX = 100,
    NUMBER_BYTES_MAX = 24,
    DECODE_TARGET_NS = 25,
    ENCODE_TARGET_NS = 30,
    RATIO_TARGET = 8
};

/* A kind of numbers. */
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

static const struct kind kinds[] = {{"random in (-1, 1), nine digits", make_random},
                                    {"short, as -4.5 or 3", make_short}};

/* What is timed: one of these is called in turn, and times[] of each holds a row of rounds. */
enum { DECODE, DECODE_JANSSON, ENCODE, ENCODE_JANSSON, SUBJECTS };

struct bench {
    size_t edge;
    struct mm_buffers *buffers;
    const struct mm_codec *codec;
    float *elements; /* a's, then b's */
    float *read;     /* likewise, as the codec by Jansson alone reads them */
    char *body;
    size_t body_bytes;
    char *reply;
    size_t reply_bytes;
    double ns[SUBJECTS][ROUNDS_MAX];
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
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    const double start = now_ns();
    enum mm_status status = mm_codec_decode(bench->codec, &call, &body, &limits, bench->buffers, &error);
    const double ns = now_ns() - start;
    require(status == MM_OK, error.detail);
    require(memcmp(call.a.data, bench->elements, bytes) == 0 &&
                memcmp(call.b.data, (char *)bench->elements + bytes, bytes) == 0,
            "other elements were read than were written");
    mm_call_release(&call, bench->buffers);
    return ns / (double)(2 * bench->edge * bench->edge);
}

static double decode_jansson(struct bench *bench) {
    const size_t count = bench->edge * bench->edge;
    const double start = now_ns();
    jansson_only_decode(bench->body, bench->body_bytes, bench->edge, bench->read, bench->read + count);
    return (now_ns() - start) / (double)(2 * count);
}

/* The reply is a's elements, as if they were the product. */
static double encode(struct bench *bench) {
    static const struct mm_variant variant = {.name = "blas"};
    static const struct mm_backend backend = {.name = "cpu"};
    const size_t count = bench->edge * bench->edge;
    const uint64_t span_ns[MM_SPAN_COUNT] = {0};
    struct mm_job job = {.backend = &backend, .variant = &variant, .batched = 1};
    job.product.c = mm_matrix_dense(MM_FLOAT32, bench->edge, bench->edge, bench->elements);
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {.buffer = {.data = bench->reply, .bytes = bench->reply_bytes}};
    const double start = now_ns();
    bench->codec->encode(&answer, &body);
    require(bench->codec->finish(&answer, &body, NULL) == MM_OK, "the reply could not be finished");
    return (now_ns() - start) / (double)count;
}

static double encode_jansson(struct bench *bench) {
    const double start = now_ns();
    jansson_only_encode(bench->elements, bench->edge, bench->reply, bench->reply_bytes);
    return (now_ns() - start) / (double)(bench->edge * bench->edge);
}

static int compare(const void *x, const void *y) {
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void print_row(struct bench *bench, size_t rounds, const char *what, int target_ns, int subject) {
    const double ours = median(bench->ns[subject], rounds), theirs = median(bench->ns[subject + 1], rounds);
    printf("| %s | <= %d ns | %.1f ns | %.1f ns | >= %d | %.1f |\n", what, target_ns, ours, theirs,
           RATIO_TARGET, theirs / ours);
}

/* The first round warms up, and does not count. */
static void measure(struct bench *bench, const struct kind *kind, size_t rounds) {
    static double (*const subjects[SUBJECTS])(struct bench *) = {decode, decode_jansson, encode,
                                                                 encode_jansson};
    make_body(bench, kind);
    for (size_t round = 0; round <= rounds; round++)
        for (int subject = 0; subject < SUBJECTS; subject++)
            bench->ns[subject][round == 0 ? 0 : round - 1] = subjects[subject](bench);
    char what[80];
    snprintf(what, sizeof what, "decode, %s", kind->name);
    print_row(bench, rounds, what, DECODE_TARGET_NS, DECODE);
    snprintf(what, sizeof what, "encode, %s", kind->name);
    print_row(bench, rounds, what, ENCODE_TARGET_NS, ENCODE);
    fflush(stdout);
}

static void print_machine(void) {
    char line[256], name[200] = "not known";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "model name : %199[^\n]", name) == 1)
            break;
    if (file != NULL)
        fclose(file);
    printf("- machine: %s\n", name);
}

static void make_bench(struct bench *bench, size_t edge) {
    const size_t count = edge * edge;
    const struct mm_matrix c = mm_matrix_dense(MM_FLOAT32, edge, edge, NULL);
    *bench = (struct bench){.edge = edge, .buffers = mm_buffers_open(SIZE_MAX)};
    require(bench->buffers != NULL, "there is no memory");
    require(mm_codec_for_request("application/json", MM_MATMUL, false, false, 0, &bench->codec, NULL) ==
                    MM_OK &&
                bench->codec->reply_bytes_max(&c, &bench->reply_bytes),
            "there is no JSON codec");
    bench->reply_bytes += count * NUMBER_BYTES_MAX;
    bench->elements = allocate(2 * count * sizeof(float));
    bench->read = allocate(2 * count * sizeof(float));
    bench->body = allocate(2 * count * NUMBER_BYTES_MAX + 64);
    bench->reply = allocate(bench->reply_bytes);
}

static void drop_bench(struct bench *bench) {
    free(bench->reply);
    free(bench->body);
    free(bench->read);
    free(bench->elements);
    mm_buffers_close(bench->buffers);
}

int main(int argc, char **argv) {
    const long edge = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    const long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    require(edge >= 1 && edge <= 8192 && rounds >= 1 && rounds <= ROUNDS_MAX,
            "takes an edge from 1 to 8192 and rounds from 1 to 100");
    struct bench bench;
    jansson_only_begin();
    make_bench(&bench, (size_t)edge);
    printf("# JSON, time per number: %ld x %ld by %ld x %ld, medians of %ld rounds\n\n", edge, edge, edge,
           edge, rounds);
    print_machine();
    puts("\n| what | target | measured | Jansson alone | target | ratio |\n|---|--:|--:|--:|--:|--:|");
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        measure(&bench, &kinds[kind], (size_t)rounds);
    drop_bench(&bench);
    return 0;
}
