/* Runs one case on every subject, in device memory. Each subject runs the case at least twice. Before each
 * run C gets a different pattern, so an element that the kernel does not write differs between runs. */
#include "tests/kernels/harness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES_TOLD = 5 };

void subject_print(struct subject *subject, const char *text) {
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
    const struct shape *shape = &one->shape;
    char text[400];
    snprintf(text, sizeof text,
             "%s (%zux%zux%zu%s%s, lda+%zu ldb+%zu ldc+%zu, a+%zu b+%zu c+%zu, %s to %s, %s, seed %" PRIu64
             ")",
             what, shape->m, shape->k, shape->n, layout->transpose_a ? ", a transposed" : "",
             layout->transpose_b ? ", b transposed" : "", layout->a_extra, layout->b_extra, layout->c_extra,
             layout->a_shift, layout->b_shift, layout->c_shift, mm_dtype_name(one->dtype),
             mm_dtype_name(one->c_dtype), one->data, plan->seed);
    subject_print(subject, text);
}

static void check_values(struct subject *subject, const struct plan *plan, const struct one_case *one,
                         const struct image *c) {
    const struct reference *reference = one->reference;
    const enum mm_arithmetic by = subject_arithmetic(subject, one->dtype);
    struct exactness exactness;
    if (by == MM_OF_TF32 && strcmp(one->data, "subnormals") == 0)
        return; /* in subnormals tf32 keeps fewer bits than the error bound assumes */
    reference_compare(reference, c, by, &exactness);
    const bool is_rounded =
        one->c_dtype !=
        mm_dtype_sum(one->dtype); /* rounding to C's type always brings the error near the bound */
    if (exactness.fraction_max > subject->fraction_max && !is_rounded)
        subject->fraction_max = exactness.fraction_max;
    if (exactness.wrong > 0) {
        const struct expected *expected = &reference->expected[exactness.first_wrong];
        const double value =
            mm_dtype_get(c->view.dtype, c->view.data, expected->row * c->view.ld + expected->col);
        subject_fail(subject, plan, one, "C[%zu][%zu] is %.17g, not %.17g (|A||B| %.3g); %zu of %zu wrong",
                     expected->row, expected->col, value, expected->sum / expected->scale,
                     expected->magnitude / expected->scale, exactness.wrong, reference->count);
    }
}

static void check_bits(struct subject *subject, const struct plan *plan, const struct one_case *one,
                       const struct image *c) {
    const size_t element_bytes = mm_dtype_bytes(one->dtype);
    for (size_t index = 0; index < one->shape.m * one->shape.n; index++) {
        const size_t row = index / one->shape.n;
        const size_t col = index % one->shape.n;
        uint64_t got = 0;
        uint64_t expected = 0;
        memcpy(&got, (const char *)c->view.data + (row * c->view.ld + col) * element_bytes, element_bytes);
        memcpy(&expected, (const char *)one->a + index * element_bytes, element_bytes);
        if (got != expected) {
            subject_fail(subject, plan, one, "C[%zu][%zu] is %#" PRIx64 ", not %#" PRIx64, row, col, got,
                         expected);
            return;
        }
    }
}

void subject_check(struct subject *subject, const struct plan *plan, const struct one_case *one,
                   const struct image *c) {
    if (one->reference != NULL)
        check_values(subject, plan, one, c);
    else
        check_bits(subject, plan, one, c);
}

static bool same_result(const struct image *c, const struct image *before) {
    const size_t element_bytes = mm_dtype_bytes(c->view.dtype);
    const size_t row_bytes = c->view.ld * element_bytes;
    const unsigned char *new_rows = c->view.data;
    const unsigned char *old_rows = before->view.data;
    for (size_t row = 0; row < c->view.rows; row++)
        if (memcmp(new_rows + row * row_bytes, old_rows + row * row_bytes, c->view.cols * element_bytes) != 0)
            return false;
    return true;
}

/* Device memory that all variants of a case use. */
struct stage {
    struct image a;
    struct image b;
    struct image c;
    struct image first; /* result of a variant's first run, in host memory only */
    unsigned char *scratch;
};

/* Fills C with the poison pattern, runs the variant, and copies C to the host. */
static enum mm_status run_once(struct subject *subject, const struct stage *stage, unsigned poison,
                               const struct one_case *one, struct mm_error *error) {
    struct mm_device *device = subject->device;
    const struct image *c = &stage->c;
    struct mm_product product = image_product(&stage->a, &stage->b, c, one, true);
    struct mm_plan planned;
    product.tile = subject->tile;
    image_poison(c, poison);
    enum mm_status status = image_upload(c, error);
    if (status == MM_OK)
        status = mm_plan_make(device, subject->variant, &product, false, &planned, error);
    if (status == MM_OK)
        status = device->backend->measure(device, &planned, &product, NULL, error);
    if (status == MM_OK)
        status = device->backend->download(device, c->host, c->memory, c->bytes, error);
    return status;
}

/* Returns whether the variant claims to support the case. */
static bool takes(const struct subject *subject, const struct one_case *one) {
    const struct mm_product product = {
        .m = one->shape.m, .n = one->shape.n, .k = one->shape.k, .a.dtype = one->dtype};
    const bool has_result = one->b == NULL || subject->device->backend->is_host ||
                            subject->variant->converts || one->c_dtype == mm_dtype_result(one->dtype);
    return has_result && mm_variant_supports_shape(subject->variant, &product);
}

bool subject_refuses(struct subject *subject, const struct plan *plan, const struct one_case *one,
                     enum mm_status status, const struct mm_error *error) {
    if (takes(subject, one))
        return false;
    if (status == MM_UNSUPPORTED && error->detail[0] != '\0')
        subject->unsupported++;
    else
        subject_fail(subject, plan, one,
                     "%s, and not unsupported with a reason, for what its row does not take",
                     mm_status_name(status));
    return true;
}

static void run_case(struct subject *subject, const struct plan *plan, struct stage *stage,
                     const struct one_case *one) {
    const struct image *c = &stage->c;
    for (unsigned run = 0; run < plan->repeat; run++) {
        struct mm_error error = {0};
        unsigned poison = run % POISON_COUNT;
        enum mm_status status = run_once(subject, stage, poison, one, &error);
        ptrdiff_t byte;
        if (subject_refuses(subject, plan, one, status, &error))
            return;
        if (status != MM_OK) {
            subject_fail(subject, plan, one, "run %u: %s: %s", run, mm_status_name(status), error.detail);
            break;
        }
        if (!image_surroundings_intact(c, poison, &byte)) {
            subject_fail(subject, plan, one, "wrote outside C, at byte %td from its start", byte);
            break;
        }
        if (run == 0) {
            subject_check(subject, plan, one, c);
            memcpy(stage->first.host, c->host, c->bytes);
        } else if (!same_result(c, &stage->first)) {
            subject_fail(subject, plan, one, "run %u gave bits that differ from run 0", run);
            break;
        }
    }
    if (!image_unchanged(&stage->a, stage->scratch) || !image_unchanged(&stage->b, stage->scratch)) {
        struct mm_error error;
        subject_fail(subject, plan, one, "changed an operand, or memory around it");
        image_upload(&stage->a, &error);
        image_upload(&stage->b, &error);
    }
    subject->cases++;
}

void check_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one) {
    struct stage stage = {0};
    struct image *const images[] = {&stage.a, &stage.b, &stage.c};
    struct mm_device *device = subjects[0].device;
    struct mm_error error = {0};
    enum mm_status status = MM_OK;
    image_make_operands(&stage.a, &stage.b, one);
    image_make_result(&stage.c, one);
    image_make_result(&stage.first, one);
    stage.scratch = harness_allocate(stage.a.bytes > stage.b.bytes ? stage.a.bytes : stage.b.bytes);
    for (size_t index = 0; index < 3 && status == MM_OK; index++)
        status = image_to_device(images[index], device, &error);
    for (size_t index = 0; index < 2 && status == MM_OK; index++)
        status = image_upload(images[index], &error);
    for (size_t index = 0; index < count; index++) {
        if (status == MM_OK)
            run_case(&subjects[index], plan, &stage, one);
        else
            subject_fail(&subjects[index], plan, one, "cannot copy to the device: %s", error.detail);
    }
    image_free(&stage.first);
    image_free(&stage.c);
    image_free(&stage.b);
    image_free(&stage.a);
    free(stage.scratch);
}
