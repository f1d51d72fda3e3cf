/* Every backend's check of a product against the host's, on the same C and by the same vectors: lines that
 * are cut into parts and lines that are not, both orientations of the operands, what is not finite, and a C
 * with a wrong element. Of these, `verify BACKEND N` takes each Nth, and `verify BACKEND N EDGE` none of a
 * larger shape. Ends with 77 where the backend asked for has no device. */
#include "gpu/backend.h"
#include "gpu/plan.h"
#include "gpu/check/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong with a product. Where nothing is, it is to pass. */
enum flaw { NONE, NAN_IN_A, INFINITY_IN_B, WRONG_ELEMENT, FLAW_COUNT };

static const struct mm_backend *backend;

/* The plain kernel; and a second run of it over one element in the middle of C, without depth, which makes
 * that element 0. */
static struct mm_product element_of(const struct mm_product *product) {
    struct mm_product one = *product;
    one.m = one.n = 1;
    one.k = 0;
    one.c.rows = one.c.cols = 1;
    one.c.data = (float *)product->c.data + product->m / 2 * product->c.ld + product->n / 2;
    return one;
}

/* Of a device whose variants plan. */
static enum mm_status (*launch)(const struct mm_plan *, const struct mm_product *, struct mm_lane *,
                                struct mm_error *);

static enum mm_status run_plain(const struct mm_plan *plan, const struct mm_product *product,
                                struct mm_lane *lane, struct mm_error *error) {
    return plan == NULL ? backend->variants[0].launch[MM_FLOAT32](product, lane, error)
                        : launch(plan, product, lane, error);
}

static enum mm_status run_and_spoil(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product one = element_of(product);
    const enum mm_status status = run_plain(plan, product, lane, error);
    return status == MM_OK ? run_plain(plan, &one, lane, error) : status;
}

static enum mm_status launch_spoilt(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    return run_and_spoil(NULL, product, lane, error);
}

static enum mm_status plan_spoilt(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    const enum mm_status status = backend->variants[0].plan[MM_FLOAT32](product, plan, error);
    launch = plan->launch;
    plan->launch = run_and_spoil;
    return status;
}

static const struct mm_variant spoilt = {
    .name = "spoilt", .launch[MM_FLOAT32] = launch_spoilt, .plan[MM_FLOAT32] = plan_spoilt};

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        printf("FAIL: no memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* Rows that are longer than what is in them, by NaN. */
static void make(struct mm_matrix *x, size_t rows, size_t cols, uint64_t seed) {
    *x = mm_matrix_dense(MM_FLOAT32, rows, cols, NULL);
    x->ld = cols + 3;
    float *data = x->data = allocate(mm_matrix_bytes(x));
    memset(data, 0xff, mm_matrix_bytes(x));
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++)
            data[row * x->ld + col] = mm_random_element(seed, row * cols + col);
}

static void spoil(struct mm_product *product, enum flaw flaw) {
    if (flaw == NAN_IN_A)
        ((float *)product->a.data)[product->a.rows / 2 * product->a.ld + product->a.cols / 2] = NAN;
    if (flaw == INFINITY_IN_B)
        ((float *)product->b.data)[product->b.rows / 2 * product->b.ld] = INFINITY;
}

/* What they make of the error of the whole may differ by what float64 rounds in the sums of a row, which is s
 * at most times `of_float64`, as a part of the rows' own size. All rows have about the same s, and the bound
 * tells it. */
static bool agree_on_whole(const struct mm_verify_bounds *bounds, const struct mm_verification *got,
                           const struct mm_verification *expected) {
    const double here = mm_verification_relative_error(got);
    const double there = mm_verification_relative_error(expected);
    if (here == there)
        return true;
    const double s = expected->bound / (bounds->spread * bounds->relative);
    const double size = sqrt(expected->norm_squares / (double)(MM_VERIFY_VECTORS * expected->rows_judged));
    return fabs(here - there) <= 4.0 * bounds->of_float64 * s / size + 1e-6 * there;
}

static double part_of(const struct mm_verification *verification) {
    return mm_verify_part(verification->residual, verification->bound);
}

/* Two orders of summation differ by what float64 rounds, twice, which as a part of a bound is at most this:
 * the bound is more than `spread` times `relative` of s. */
static bool agree(const struct mm_product *product, const struct mm_verification *got,
                  const struct mm_verification *expected) {
    const struct mm_verify_bounds bounds = mm_verify_bounds_of(product);
    const double off = 2.0 * bounds.of_float64 / (bounds.spread * bounds.relative);
    if (got->rows_judged != expected->rows_judged || got->rows_unjudged != expected->rows_unjudged ||
        mm_verification_verdict(got) != mm_verification_verdict(expected) || !got->is_done)
        return false;
    if (!agree_on_whole(&bounds, got, expected))
        return false;
    if (got->row == expected->row && !(fabs(got->bound - expected->bound) <= 1e-9 * expected->bound))
        return false;
    return part_of(got) == part_of(expected) || fabs(part_of(got) - part_of(expected)) <= off;
}

/* Where sums are short, the bound is far below an element. */
static bool must_fail(const struct mm_product *product, enum flaw flaw) {
    return flaw == WRONG_ELEMENT && product->k <= 255;
}

static bool judge(const struct mm_job *job, enum flaw flaw, void *memory) {
    const struct mm_product *product = &job->product;
    struct mm_verification expected;
    mm_verify(product, job->verification.seed, memory, &expected);
    const enum mm_verdict verdict = mm_verification_verdict(&job->verification);
    if (agree(product, &job->verification, &expected) && (flaw != NONE || verdict == MM_VERDICT_PASSED) &&
        (flaw != INFINITY_IN_B || verdict == MM_VERDICT_UNJUDGED) &&
        (!must_fail(product, flaw) || verdict == MM_VERDICT_FAILED))
        return true;
    printf("relative error %.17g, not %.17g; ", mm_verification_relative_error(&job->verification),
           mm_verification_relative_error(&expected));
    printf("row %zu: %.17g of %.17g, not row %zu: %.17g of %.17g; %zu rows judged, not %zu\n",
           job->verification.row, job->verification.residual, job->verification.bound, expected.row,
           expected.residual, expected.bound, job->verification.rows_judged, expected.rows_judged);
    return false;
}

static bool check(struct mm_device *device, const size_t *shape, unsigned layout, enum flaw flaw) {
    const size_t m = shape[0], k = shape[1], n = shape[2];
    struct mm_job job = {.backend = backend,
                         .variant = flaw == WRONG_ELEMENT ? &spoilt : &backend->variants[0],
                         .verify = true,
                         .product = {.transpose_a = (layout & 1) != 0, .transpose_b = (layout & 2) != 0}};
    struct mm_product *product = &job.product;
    make(&product->a, product->transpose_a ? k : m, product->transpose_a ? m : k, 1);
    make(&product->b, product->transpose_b ? n : k, product->transpose_b ? k : n, 2);
    make(&product->c, m, n, 3);
    mm_product_conform(MM_MATMUL, product, NULL);
    spoil(product, flaw);
    void *memory = job.verify_memory = allocate(mm_verify_bytes(product));
    const bool good = mm_device_run(device, &job) == MM_OK && judge(&job, flaw, memory);
    if (!good)
        printf("FAIL %s: %zux%zux%zu, layout %u, flaw %d %s\n", backend->name, m, k, n, layout, (int)flaw,
               job.error.status != MM_OK ? job.error.detail : "");
    free(memory);
    free(product->c.data);
    free(product->b.data);
    free(product->a.data);
    return good;
}

int main(int argc, char **argv) {
    static const size_t shapes[][3] = {{1, 1, 1},      {3, 0, 5},        {37, 101, 67},
                                       {8, 255, 9},    {1, 300000, 1},   {1, 3, 100000},
                                       {100000, 3, 1}, {513, 1000, 257}, {17, 20000, 33}};
    struct mm_device *device = NULL;
    struct mm_error error;
    const unsigned thin = argc >= 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    const size_t edge_max = argc == 4 ? strtoul(argv[3], NULL, 10) : SIZE_MAX;
    unsigned count = 0;
    bool good = true;
    backend = argc >= 2 && argc <= 4 && thin > 0 ? mm_backend_find(argv[1]) : NULL;
    if (backend == NULL || backend->open(0, &device, &error) != MM_OK) {
        printf("no such device: %s\n", backend == NULL ? "usage: verify BACKEND [N [EDGE]]" : error.detail);
        return 77;
    }
    for (size_t index = 0; index < sizeof shapes / sizeof shapes[0]; index++)
        for (unsigned layout = 0; layout < 4; layout++)
            for (unsigned flaw = 0; flaw < (shapes[index][1] > 0 ? FLAW_COUNT : NAN_IN_A); flaw++)
                if (count++ % thin == 0 && shapes[index][0] <= edge_max && shapes[index][1] <= edge_max &&
                    shapes[index][2] <= edge_max)
                    good = check(device, shapes[index], layout, (enum flaw)flaw) && good;
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    backend->close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
