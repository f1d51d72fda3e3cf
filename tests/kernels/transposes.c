/* The cases of transpositions: every row over shapes, element types, layouts and alignments. Nothing is
 * computed, so nothing is near enough: C must be op(A) bit for bit, whatever its bits mean as numbers, at
 * every run. */
#include "tests/kernels/harness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an element is made of. */
struct pattern {
    const char *name;
    uint64_t (*element)(struct random *random, size_t element_bytes);
};

static uint64_t any_bits(struct random *random, size_t element_bytes) {
    (void)element_bytes;
    return random_next(random);
}

/* Numbers that arithmetic, or a conversion, would not leave as they are: signalling and quiet NaNs with
 * payloads, zeros of both signs, the smallest and largest subnormals, and infinities. */
static uint64_t special_bits(struct random *random, size_t element_bytes) {
    static const uint32_t narrow[] = {0x7f800001, 0xffa5a5a5, 0x7fc0dead, 0x80000000, 0x00000000,
                                      0x00000001, 0x807fffff, 0x7f800000, 0xff800000, 0xffffffff};
    static const uint64_t wide[] = {
        0x7ff0000000000001, 0xfff4a5a5a5a5a5a5, 0x7ff8000000c0dead, 0x8000000000000000, 0x0000000000000000,
        0x0000000000000001, 0x800fffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0xffffffffffffffff};
    _Static_assert(sizeof narrow / sizeof *narrow == sizeof wide / sizeof *wide, "the same kinds of both");
    size_t which = random_below(random, sizeof wide / sizeof *wide);
    return element_bytes == sizeof *narrow ? narrow[which] : wide[which];
}

static const struct pattern patterns[] = {{"any bits", any_bits}, {"NaN, zeros, subnormals", special_bits}};
enum { PATTERN_COUNT = sizeof patterns / sizeof *patterns };

/* How a transposition lies in memory. */
struct placement {
    bool transpose_a;
    size_t a_extra; /* ld − cols, elements */
    size_t c_extra;
    size_t a_shift; /* elements between an aligned address and the matrix */
    size_t c_shift;
};

/* Whether A is transposed, 2² leading dimensions, 2² alignments. */
enum { PLACEMENT_COUNT = 32 };

static struct placement placement_make(unsigned index, uint64_t seed) {
    /* Multiples of 4 keep the alignment of 16-byte accesses where there is one; odd ones break it. */
    static const size_t extras[] = {1, 2, 3, 4, 5, 8, 16, 31};
    struct random random = {random_mix(seed, index)};
    struct placement placement = {.transpose_a = !(index & 1)};
    if (index & 2)
        placement.a_extra = extras[random_below(&random, sizeof extras / sizeof *extras)];
    if (index & 4)
        placement.c_extra = extras[random_below(&random, sizeof extras / sizeof *extras)];
    if (index & 8)
        placement.a_shift = 1 + random_below(&random, 3);
    if (index & 16)
        placement.c_shift = 1 + random_below(&random, 3);
    return placement;
}

struct transposition {
    struct shape shape; /* of C and of op(A) */
    enum mm_dtype dtype;
    const struct pattern *pattern;
    struct placement placement;
    unsigned char *moved; /* op(A), dense, which is what C must be; owned */
};

/* op(A), for all placements of it. */
static struct transposition transposition_make(struct shape shape, enum mm_dtype dtype,
                                               const struct pattern *pattern, uint64_t seed) {
    struct transposition one = {.shape = shape, .dtype = dtype, .pattern = pattern};
    size_t element_bytes = mm_dtype_bytes(dtype);
    struct random random = {seed};
    one.moved = harness_allocate(shape.m * shape.n * element_bytes);
    for (size_t index = 0; index < shape.m * shape.n; index++) {
        /* Of 4 bytes the lower ones are taken, little-endian as everywhere here. */
        uint64_t element = pattern->element(&random, element_bytes);
        memcpy(one.moved + index * element_bytes, &element, element_bytes);
    }
    return one;
}

static void transposition_free(struct transposition *one) {
    free(one->moved);
    *one = (struct transposition){0};
}

/* A's image: op(A), or its transpose, in guarded rows. */
static void pack(struct image *a, const struct transposition *one) {
    const struct placement *placement = &one->placement;
    const size_t element_bytes = mm_dtype_bytes(one->dtype);
    const size_t m = one->shape.m;
    const size_t n = one->shape.n;
    image_make(a, one->dtype, placement->transpose_a ? n : m, placement->transpose_a ? m : n,
               placement->a_extra, placement->a_shift);
    image_guard(a);
    unsigned char *stored = a->view.data;
    size_t row_bytes = (placement->transpose_a ? 1 : a->view.ld) * element_bytes;
    size_t col_bytes = (placement->transpose_a ? a->view.ld : 1) * element_bytes;
    const unsigned char *from = one->moved;
    for (size_t row = 0; row < m; row++)
        for (size_t col = 0; col < n; col++, from += element_bytes)
            memcpy(stored + row * row_bytes + col * col_bytes, from, element_bytes);
}

static void make_result(struct image *c, const struct transposition *one) {
    image_make(c, one->dtype, one->shape.m, one->shape.n, one->placement.c_extra, one->placement.c_shift);
}

static struct mm_product product_of(const struct transposition *one, const struct image *a,
                                    const struct image *c, bool on_device) {
    struct mm_product product = {
        .a = image_view(a, on_device),
        .c = image_view(c, on_device),
        .transpose_a = one->placement.transpose_a,
    };
    mm_product_conform_transposition(&product);
    return product;
}

static void fail(struct subject *subject, const struct plan *plan, const struct transposition *one,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

static void fail(struct subject *subject, const struct plan *plan, const struct transposition *one,
                 const char *format, ...) {
    const struct placement *placement = &one->placement;
    char what[200];
    char text[sizeof subject->first_failure];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text,
             "%s (C %zux%zu, %s%s, lda+%zu ldc+%zu, a at +%zu c at +%zu, %s, seed %" PRIu64 ")", what,
             one->shape.m, one->shape.n, mm_dtype_name(one->dtype),
             placement->transpose_a ? ", a transposed" : "", placement->a_extra, placement->c_extra,
             placement->a_shift, placement->c_shift, one->pattern->name, plan->seed);
    subject_tell(subject, text);
}

/* The bits of an element, for people. */
static uint64_t bits_of(const unsigned char *element, size_t element_bytes) {
    uint64_t bits = 0;
    memcpy(&bits, element, element_bytes);
    return bits;
}

/* Whether C, as it lies in the image, is op(A); else the subject has failed. */
static bool judge(struct subject *subject, const struct plan *plan, const struct transposition *one,
                  const struct image *c, unsigned run) {
    const size_t element_bytes = mm_dtype_bytes(one->dtype);
    const size_t cols_bytes = one->shape.n * element_bytes;
    size_t wrong = 0;
    size_t first = 0;
    for (size_t row = 0; row < one->shape.m; row++) {
        const unsigned char *got = (const unsigned char *)c->view.data + row * c->view.ld * element_bytes;
        const unsigned char *expected = one->moved + row * cols_bytes;
        if (memcmp(got, expected, cols_bytes) == 0)
            continue;
        for (size_t col = 0; col < one->shape.n; col++)
            if (memcmp(got + col * element_bytes, expected + col * element_bytes, element_bytes) != 0 &&
                wrong++ == 0)
                first = row * one->shape.n + col;
    }
    if (wrong == 0)
        return true;
    size_t row = first / one->shape.n;
    size_t col = first % one->shape.n;
    const unsigned char *got = c->view.data;
    fail(subject, plan, one, "run %u: C[%zu][%zu] is %#" PRIx64 ", not %#" PRIx64 "; %zu of %zu wrong", run,
         row, col, bits_of(got + (row * c->view.ld + col) * element_bytes, element_bytes),
         bits_of(one->moved + first * element_bytes, element_bytes), wrong, one->shape.m * one->shape.n);
    return false;
}

/* Runs once over a C full of poison, fetches it and judges it. */
static bool run_once(struct subject *subject, const struct plan *plan, const struct transposition *one,
                     const struct image *a, struct image *c, unsigned run) {
    struct mm_device *device = subject->device;
    unsigned poison = run % POISON_COUNT;
    struct mm_product product = product_of(one, a, c, true);
    struct mm_plan planned;
    struct mm_error error = {0};
    ptrdiff_t byte;
    image_poison(c, poison);
    enum mm_status status = image_upload(c, device, &error);
    if (status == MM_OK)
        status = mm_plan_make(device, subject->variant, &product, false, &planned, &error);
    if (status == MM_OK)
        status = device->backend->measure(device, &planned, &product, NULL, &error);
    if (status == MM_OK)
        status = device->backend->download(device, c->host, c->device, c->bytes, &error);
    if (status != MM_OK) {
        fail(subject, plan, one, "run %u: %s: %s", run, mm_status_name(status), error.detail);
        return false;
    }
    if (!image_surroundings_intact(c, poison, &byte)) {
        fail(subject, plan, one, "wrote outside C, at byte %td from its start", byte);
        return false;
    }
    return judge(subject, plan, one, c, run);
}

static void run_case(struct subject *subject, const struct plan *plan, const struct transposition *one,
                     const struct image *a, struct image *c, unsigned char *scratch) {
    struct mm_error ignored;
    for (unsigned run = 0; run < plan->repeat; run++)
        if (!run_once(subject, plan, one, a, c, run))
            break;
    if (!image_unchanged(a, subject->device, scratch)) {
        fail(subject, plan, one, "changed a, or memory around it");
        image_upload(a, subject->device, &ignored);
    }
    subject->cases++;
}

static void run_placement(struct subject *subjects, size_t count, const struct plan *plan,
                          const struct transposition *one) {
    struct mm_device *device = subjects[0].device;
    struct mm_error error = {0};
    struct image a;
    struct image c;
    pack(&a, one);
    make_result(&c, one);
    unsigned char *scratch = harness_allocate(a.bytes);
    enum mm_status status = image_to_device(&a, device, &error);
    if (status == MM_OK)
        status = image_to_device(&c, device, &error);
    if (status == MM_OK)
        status = image_upload(&a, device, &error);
    for (size_t index = 0; index < count; index++) {
        struct subject *subject = &subjects[index];
        if (status == MM_OK)
            run_case(subject, plan, one, &a, &c, scratch);
        else
            fail(subject, plan, one, "no place on the device: %s", error.detail);
    }
    image_leave_device(&c, device);
    image_leave_device(&a, device);
    image_free(&c);
    image_free(&a);
    free(scratch);
}

void transposes_check(struct subject *subjects, size_t count, const struct plan *plan,
                      struct vacuity *ignored) {
    size_t mine = plan_take(plan);
    (void)ignored; /* no bound, no vacuity */
    for (size_t which = 0; which < plan->shapes.count * MM_DTYPE_COUNT; which++) {
        if (which != mine)
            continue;
        uint64_t seed = random_mix(plan->seed, 0x7a5e + which);
        const struct pattern *pattern = &patterns[seed % PATTERN_COUNT];
        enum mm_dtype dtype = (enum mm_dtype)(which % MM_DTYPE_COUNT);
        struct shape shape = plan->shapes.shapes[which / MM_DTYPE_COUNT];
        struct transposition one = {0};
        const unsigned sure = (unsigned)(random_mix(seed, 0x5afe) % PLACEMENT_COUNT); /* is always tried */
        for (unsigned index = 0; index < PLACEMENT_COUNT; index++) {
            if (index != sure && random_mix(seed, 0x91ace + index) % plan->thin != 0)
                continue;
            if (one.moved == NULL)
                one = transposition_make(shape, dtype, pattern, seed);
            one.placement = placement_make(index, seed);
            run_placement(subjects, count, plan, &one);
        }
        transposition_free(&one);
        mine = plan_take(plan);
    }
}

/* One case, begun on every lane with a C of its own, and then ended. */
static void run_jobs(struct subject *subject, const struct plan *plan, const struct transposition *one) {
    struct mm_device *device = subject->device;
    unsigned lanes = device->lane_count < LANES_MAX ? device->lane_count : LANES_MAX;
    struct image a;
    struct image c[LANES_MAX];
    struct mm_job job[LANES_MAX];
    struct mm_job *started[LANES_MAX];
    bool begun[LANES_MAX];
    ptrdiff_t byte;
    pack(&a, one);
    for (unsigned lane = 0; lane < lanes; lane++) {
        make_result(&c[lane], one);
        image_poison(&c[lane], lane % POISON_COUNT);
        struct mm_product product = product_of(one, &a, &c[lane], false);
        job_prepare(&job[lane], subject, &product);
        started[lane] = &job[lane];
        device->backend->begin(device, lane, &started[lane], 1);
        begun[lane] = job[lane].error.status == MM_OK;
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        const struct mm_error *error = &job[lane].error;
        if (begun[lane])
            device->backend->end(device, lane, &started[lane], 1);
        if (error->status != MM_OK)
            fail(subject, plan, one, "job: %s: %s", mm_status_name(error->status), error->detail);
        else if (!job_told(&job[lane]))
            fail(subject, plan, one, "job: its spans or its batch are not told");
        else if (!image_surroundings_intact(&c[lane], lane % POISON_COUNT, &byte))
            fail(subject, plan, one, "job: wrote outside C, at byte %td from its start", byte);
        else
            judge(subject, plan, one, &c[lane], 0);
        subject->cases++;
        image_free(&c[lane]);
    }
    image_free(&a);
}

void transposes_run_jobs(struct subject *subjects, size_t count, const struct plan *plan) {
    struct shape_list shapes = {0};
    shapes_named(MM_TRANSPOSE, "tiny", plan->seed, &shapes);
    for (size_t which = 0; which < shapes.count * MM_DTYPE_COUNT; which++) {
        uint64_t seed = random_mix(plan->seed, 0x10b57 + which);
        struct transposition one =
            transposition_make(shapes.shapes[which / MM_DTYPE_COUNT], (enum mm_dtype)(which % MM_DTYPE_COUNT),
                               &patterns[seed % PATTERN_COUNT], seed);
        for (unsigned index = which % 5; index < PLACEMENT_COUNT; index += 5) {
            if (index >= 5 && random_mix(seed, 0x91ace + index) % plan->thin != 0)
                continue;
            one.placement = placement_make(index, seed);
            for (size_t subject = 0; subject < count; subject++)
                run_jobs(&subjects[subject], plan, &one);
        }
        transposition_free(&one);
    }
    shapes_free(&shapes);
}
