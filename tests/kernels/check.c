/* Runs one case on every subject, in device memory. Each subject runs the case at least twice. Before each
 * run, C is filled with a different pattern. So if the kernel does not write an element, this element differs
 * between runs. */
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
    snprintf(
        text, sizeof text,
        "%s (%zux%zux%zu%s%s, lda+%zu ldb+%zu ldc+%zu, a+%zu b+%zu c+%zu, %s to %s, %s%s%s%s, seed %" PRIu64
        ")",
        what, shape->m, shape->k, shape->n, layout->transpose_a ? ", a transposed" : "",
        layout->transpose_b ? ", b transposed" : "", layout->a_extra, layout->b_extra, layout->c_extra,
        layout->a_shift, layout->b_shift, layout->c_shift, mm_dtype_name(one->dtype),
        mm_dtype_name(one->c_dtype), one->data, one->terms == NULL ? "" : ", epilogue ",
        one->terms == NULL ? "" : one->terms,
        one->addend.elements != NULL && layout->transpose_addend ? " transposed" : "", plan->seed);
    subject_print(subject, text);
}

static void check_values(struct subject *subject, const struct plan *plan, const struct one_case *one,
                         const struct image *c) {
    const struct reference *reference = one->reference;
    const enum mm_arithmetic by = subject_arithmetic(subject, one->dtype);
    struct exactness exactness;
    if (by == MM_OF_TF32 && strcmp(one->data, "subnormals") == 0)
        return; /* tf32 keeps fewer bits of subnormals than the error bound assumes */
    reference_compare(one, c, by, &exactness);
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
                     expected->row, expected->col, value, reference_value(one, exactness.first_wrong),
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
    struct image operands[MM_OPERANDS_MAX];
    struct image c;
    struct image first; /* result of a variant's first run, in host memory only */
    unsigned char *scratch;
};

static enum mm_status run_part(struct subject *subject, const struct stage *stage,
                               const struct mm_product *part, struct mm_error *error) {
    struct mm_device *device = subject->device;
    struct mm_plan planned;
    const enum mm_status status = mm_plan_make(device, subject->variant, part, &planned, error);
    return status == MM_OK ? device->backend->measure(device, &planned, part, NULL, error) : status;
}

/* Fills C with the poison pattern, runs the variant, and copies C to the host. If `parts` is 4, runs the
 * variant on each quarter of C. If `parts` is 1, runs it on the whole product. */
static enum mm_status run_once(struct subject *subject, const struct stage *stage, unsigned parts,
                               unsigned poison, const struct one_case *one, struct mm_error *error) {
    struct mm_device *device = subject->device;
    const struct image *c = &stage->c;
    struct mm_product product = image_product(stage->operands, c, one, true);
    product.tile = subject->tile;
    image_poison(c, poison);
    enum mm_status status = image_upload(c, error);
    const size_t row = parts > 1 ? product.m / 2 : 0, col = parts > 1 ? product.n / 2 : 0;
    for (unsigned index = 0; index < parts && status == MM_OK; index++) {
        const bool is_lower = index / 2 > 0 || parts == 1, is_right = index % 2 > 0 || parts == 1;
        const struct mm_product part = mm_product_part(&product, subject->variant->op, is_lower ? row : 0,
                                                       is_lower ? product.m - row : row, is_right ? col : 0,
                                                       is_right ? product.n - col : col);
        if (part.m > 0 && part.n > 0)
            status = run_part(subject, stage, &part, error);
    }
    if (status == MM_OK)
        status = device->backend->download(device, c->host, c->memory, c->bytes, error);
    return status;
}

/* Returns whether the variant claims to support the case. */
static bool takes(const struct subject *subject, const struct one_case *one) {
    const bool reads_operands =
        !one->epilogue.is_set || !mm_scale_is(mm_dtype_sum(one->dtype), &one->epilogue.alpha, 0);
    const struct mm_product product = {
        .m = one->shape.m, .n = one->shape.n, .k = reads_operands ? one->shape.k : 0, .a.dtype = one->dtype};
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

/* Runs the product in four parts, to test that each part uses the right elements of the addend and of the
 * bias. */
static void run_parts(struct subject *subject, const struct plan *plan, const struct stage *stage,
                      const struct one_case *one) {
    struct mm_error error = {0};
    ptrdiff_t byte;
    const bool has_nan = strcmp(one->data, "NaN and Inf") == 0; /* the sign of a NaN may differ */
    const enum mm_status status = run_once(subject, stage, 4, 0, one, &error);
    if (status == MM_UNSUPPORTED)
        return; /* the variant cannot compute the edges of a part */
    if (status != MM_OK)
        subject_fail(subject, plan, one, "parts: %s: %s", mm_status_name(status), error.detail);
    else if (!image_surroundings_intact(&stage->c, 0, &byte))
        subject_fail(subject, plan, one, "parts: wrote outside C, at byte %td from its start", byte);
    else if (subject_has_one_order(subject, one->dtype) && !has_nan && !same_result(&stage->c, &stage->first))
        subject_fail(subject, plan, one, "parts have other bits than the whole");
    else
        subject_check(subject, plan, one, &stage->c);
}

/* Runs the product without its epilogue, which must change no bit. The payload of a NaN may change. For the
 * sums of an epilogue a library may choose another kernel. */
static void run_plain(struct subject *subject, const struct plan *plan, const struct stage *stage,
                      const struct one_case *one) {
    struct one_case plain = *one;
    struct mm_error error = {0};
    const bool has_nan = strcmp(one->data, "NaN and Inf") == 0;
    const bool is_library = strcmp(subject->variant->name, "blas") == 0;
    plain.epilogue.is_set = false;
    const enum mm_status status = run_once(subject, stage, 1, 0, &plain, &error);
    if (status != MM_OK)
        subject_fail(subject, plan, one, "plain: %s: %s", mm_status_name(status), error.detail);
    else if (!has_nan && !is_library && !same_result(&stage->c, &stage->first))
        subject_fail(subject, plan, one, "absent terms changed bits");
}

static void run_case(struct subject *subject, const struct plan *plan, struct stage *stage,
                     const struct one_case *one) {
    const struct image *c = &stage->c;
    for (unsigned run = 0; run < plan->repeat; run++) {
        struct mm_error error = {0};
        unsigned poison = run % POISON_COUNT;
        enum mm_status status = run_once(subject, stage, 1, poison, one, &error);
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
    if (one->terms != NULL)
        run_parts(subject, plan, stage, one);
    if (one->changes_nothing)
        run_plain(subject, plan, stage, one);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        struct mm_error error;
        if (image_unchanged(&stage->operands[index], stage->scratch))
            continue;
        subject_fail(subject, plan, one, "changed an operand, or memory around it");
        image_upload(&stage->operands[index], &error);
    }
    subject->cases++;
}

void check_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one) {
    struct stage stage = {0};
    struct mm_device *device = subjects[0].device;
    struct mm_error error = {0};
    enum mm_status status;
    size_t bytes_max = 0;
    image_make_operands(stage.operands, one);
    image_make_result(&stage.c, one);
    image_make_result(&stage.first, one);
    status = image_to_device(&stage.c, device, &error);
    for (unsigned index = 0; index < MM_OPERANDS_MAX && status == MM_OK; index++) {
        struct image *image = &stage.operands[index];
        status = image_to_device(image, device, &error);
        if (status == MM_OK)
            status = image_upload(image, &error);
        bytes_max = image->bytes > bytes_max ? image->bytes : bytes_max;
    }
    stage.scratch = harness_allocate(bytes_max);
    for (size_t index = 0; index < count; index++) {
        if (status == MM_OK)
            run_case(&subjects[index], plan, &stage, one);
        else
            subject_fail(&subjects[index], plan, one, "cannot copy to the device: %s", error.detail);
    }
    image_free(&stage.first);
    image_free(&stage.c);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        image_free(&stage.operands[index]);
    free(stage.scratch);
}
