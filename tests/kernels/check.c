/* Runs the cases: every row of the plan's device over shapes, data and layouts, in the device's memory.
 * Each case is run at least twice, over two different poisons in C: an element that is not written, or
 * that depends on what C held, differs then even where the reference is only a sample. */
#include "tests/kernels/harness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES_TOLD = 5 };

void subject_tell(struct subject *subject, const char *text) {
    if (subject->failures == 0)
        snprintf(subject->first_failure, sizeof subject->first_failure, "%s", text);
    subject->failures++;
    if (subject->failures <= FAILURES_TOLD)
        printf("FAIL %s %s:%s: %s\n", mm_op_name(subject->variant->op), subject->device->backend->name,
               subject->name, text);
}

void subject_fail(struct subject *subject, const struct plan *plan, const struct one_case *one,
                  const char *format, ...) {
    char what[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const struct layout *layout = &one->layout;
    const struct shape *shape = &one->operands->shape;
    char text[sizeof subject->first_failure];
    snprintf(text, sizeof text,
             "%s (%zux%zux%zu%s%s, lda+%zu ldb+%zu ldc+%zu, a+%zu b+%zu c+%zu, %s, seed %" PRIu64 ")", what,
             shape->m, shape->k, shape->n, layout->transpose_a ? ", a transposed" : "",
             layout->transpose_b ? ", b transposed" : "", layout->a_extra, layout->b_extra, layout->c_extra,
             layout->a_shift, layout->b_shift, layout->c_shift, one->family->name, plan->seed);
    subject_tell(subject, text);
}

void subject_judge(struct subject *subject, const struct plan *plan, const struct one_case *one,
                   const struct image *c, double *frobenius) {
    const struct reference *reference = one->reference;
    const float *values = c->view.data;
    struct norms norms = {0};
    size_t wrong = 0;
    size_t first = 0;
    for (size_t index = 0; index < reference->count; index++) {
        const struct expected *expected = &reference->expected[index];
        float value = values[expected->row * c->view.ld + expected->col];
        double fraction;
        if (!reference_judge(expected, reference->shape.k, value, &fraction) && wrong++ == 0)
            first = index;
        if (fraction > subject->fraction_max)
            subject->fraction_max = fraction;
        norms_add(&norms, expected, value);
    }
    *frobenius = norms_error(&norms);
    if (*frobenius > subject->frobenius_max)
        subject->frobenius_max = *frobenius;
    if (wrong > 0) {
        const struct expected *expected = &reference->expected[first];
        subject_fail(subject, plan, one, "C[%zu][%zu] is %.9g, not %.9g (|A||B| %.3g); %zu of %zu wrong",
                     expected->row, expected->col, (double)values[expected->row * c->view.ld + expected->col],
                     expected->sum, expected->magnitude, wrong, reference->count);
    }
}

static bool same_result(const struct image *c, const struct image *before) {
    size_t row_bytes = c->view.ld * sizeof(float);
    const unsigned char *new_rows = c->view.data;
    const unsigned char *old_rows = before->view.data;
    for (size_t row = 0; row < c->view.rows; row++)
        if (memcmp(new_rows + row * row_bytes, old_rows + row * row_bytes, c->view.cols * sizeof(float)) != 0)
            return false;
    return true;
}

/* Where a case lies on the device while all variants run it. */
struct stage {
    struct image a;
    struct image b;
    struct image c;
    struct image first; /* C of a variant's first run; host only */
    unsigned char *scratch;
};

/* Fills C with poison, runs, and fetches it. */
static enum mm_status run_once(struct subject *subject, const struct stage *stage, unsigned poison,
                               const struct one_case *one, struct image *c, struct mm_error *error) {
    struct mm_device *device = subject->device;
    image_poison(c, poison);
    enum mm_status status = image_upload(c, device, error);
    if (status != MM_OK)
        return status;
    struct mm_product product =
        image_product(&stage->a, &stage->b, c, one->operands->shape, &one->layout, true);
    product.tile = subject->tile;
    struct mm_plan planned;
    status = mm_plan_make(device, subject->variant, &product, false, &planned, error);
    if (status == MM_OK)
        status = device->backend->measure(device, &planned, &product, NULL, error);
    if (status == MM_OK)
        status = device->backend->download(device, c->host, c->device, c->bytes, error);
    return status;
}

bool subject_refuses(struct subject *subject, const struct plan *plan, const struct one_case *one,
                     enum mm_status status, const struct mm_error *error) {
    const struct shape *shape = &one->operands->shape;
    const struct mm_product product = {.m = shape->m, .n = shape->n, .k = shape->k};
    const bool takes = mm_variant_takes(subject->variant, &product);
    if (takes)
        return false; /* whatever went wrong, it is no refusal */
    if (status == MM_UNSUPPORTED && error->detail[0] != '\0')
        subject->unsupported++;
    else
        subject_fail(subject, plan, one, "%s, and not unsupported with a reason, for a shape it does not do",
                     mm_status_name(status));
    return true;
}

/* Runs one case on one subject and judges it. Its Frobenius error, negative where there is none. */
static double run_case(struct subject *subject, const struct plan *plan, struct stage *stage,
                       const struct one_case *one) {
    double frobenius = -1.0;
    struct image *c = &stage->c;
    for (unsigned run = 0; run < plan->repeat; run++) {
        struct mm_error error = {0};
        unsigned poison = run % POISON_COUNT;
        enum mm_status status = run_once(subject, stage, poison, one, c, &error);
        ptrdiff_t byte;
        if (subject_refuses(subject, plan, one, status, &error))
            return -1.0;
        if (status != MM_OK) {
            subject_fail(subject, plan, one, "run %u: %s: %s", run, mm_status_name(status), error.detail);
            break;
        }
        if (!image_surroundings_intact(c, poison, &byte)) {
            subject_fail(subject, plan, one, "wrote outside C, at byte %td from its start", byte);
            break;
        }
        if (run == 0) {
            subject_judge(subject, plan, one, c, &frobenius);
            memcpy(stage->first.host, c->host, c->bytes);
        } else if (!same_result(c, &stage->first)) {
            subject_fail(subject, plan, one, "run %u gave other bits than run 0", run);
            break;
        }
    }
    bool intact = image_unchanged(&stage->a, subject->device, stage->scratch) &&
                  image_unchanged(&stage->b, subject->device, stage->scratch);
    if (!intact) {
        struct mm_error error;
        subject_fail(subject, plan, one, "changed an operand, or memory around it");
        image_upload(&stage->a, subject->device, &error);
        image_upload(&stage->b, subject->device, &error);
    }
    subject->cases++;
    return frobenius;
}

/* Notes how near the error comes to what a claim of float32 accuracy allows. */
static void compare_with_naive(struct subject *subject, double error, double naive, size_t elements) {
    const double allowed = norms_allowed(naive, elements);
    if (error < 0.0 || allowed < 0.0)
        return;
    if (error / allowed > subject->against_naive_max)
        subject->against_naive_max = error / allowed;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static void run_layout(struct subject *subjects, size_t count, const struct plan *plan,
                       const struct one_case *one) {
    struct stage stage = {0};
    struct mm_device *device = subjects[0].device;
    struct mm_error error = {0};
    image_make_operands(&stage.a, &stage.b, one->operands, &one->layout);
    image_make_result(&stage.c, one->operands->shape, &one->layout);
    image_make_result(&stage.first, one->operands->shape, &one->layout);
    stage.scratch = harness_allocate(larger(stage.a.bytes, stage.b.bytes));
    enum mm_status status = image_to_device(&stage.a, device, &error);
    if (status == MM_OK)
        status = image_to_device(&stage.b, device, &error);
    if (status == MM_OK)
        status = image_to_device(&stage.c, device, &error);
    if (status == MM_OK)
        status = image_upload(&stage.a, device, &error);
    if (status == MM_OK)
        status = image_upload(&stage.b, device, &error);
    double naive = -1.0;
    for (size_t index = 0; index < count; index++) {
        struct subject *subject = &subjects[index];
        if (status != MM_OK) {
            subject_fail(subject, plan, one, "no place on the device: %s", error.detail);
            continue;
        }
        double frobenius = run_case(subject, plan, &stage, one);
        if (subject->variant == &device->backend->variants[0])
            naive = frobenius;
        compare_with_naive(subject, frobenius, naive, one->reference->count);
    }
    image_leave_device(&stage.c, device);
    image_leave_device(&stage.b, device);
    image_leave_device(&stage.a, device);
    image_free(&stage.first);
    image_free(&stage.c);
    image_free(&stage.b);
    image_free(&stage.a);
    free(stage.scratch);
}

/* Sums of k numbers of either sign come to some 1/√k of |A|·|B|, and the bound is k·2^-23 of it: from k of
 * about 50,000 on zeros are within, and that is no family's fault. */
enum { TELLING_DEPTH_MAX = 16384 };

static void note_vacuity(struct vacuity *vacuity, size_t family, const struct reference *reference) {
    if (reference->shape.k == 0)
        return;
    bool refused = reference_zeros_refused(reference) > 0;
    vacuity->cases[family]++;
    vacuity->telling[family] += reference->shape.k <= TELLING_DEPTH_MAX;
    vacuity->refused[family] += refused;
    if (families[family].positive && !refused)
        vacuity->failures++;
}

void check_run(struct subject *subjects, size_t count, const struct plan *plan, struct vacuity *vacuity) {
    size_t piece = 0;
    size_t mine = plan_take(plan);
    for (size_t which = 0; which < plan->shapes.count; which++) {
        /* However few are tried, one of every shape is. */
        const size_t sure = random_mix(plan->seed, 0x5afe + which) % (FAMILY_COUNT * LAYOUT_COUNT);
        for (size_t family = 0; family < FAMILY_COUNT; family++) {
            if (piece++ != mine)
                continue;
            uint64_t seed = random_mix(plan->seed, which * FAMILY_COUNT + family);
            struct operands operands = {0};
            struct reference reference = {0};
            for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
                if (family * LAYOUT_COUNT + layout != sure &&
                    random_mix(seed, 0x7417 + layout) % plan->thin != 0)
                    continue;
                if (reference.expected == NULL) {
                    operands_make(&operands, plan->shapes.shapes[which], &families[family], seed);
                    reference_make(&reference, &operands, seed);
                    note_vacuity(vacuity, family, &reference);
                }
                struct one_case one = {&operands, &reference, &families[family], layout_make(layout, seed)};
                run_layout(subjects, count, plan, &one);
            }
            reference_free(&reference);
            operands_free(&operands);
            mine = plan_take(plan);
        }
    }
}
