/* Every backend must verify a product as the host does. Tests all types, transposed operands, epilogues, long
 * rows, elements that are not finite, and a wrong element. usage: verify BACKEND [N [EDGE]] runs every Nth
 * case with dimensions up to EDGE. Exits with 77 without a device. */
#include "gpu/device/backend.h"
#include "gpu/plan/plan.h"
#include "gpu/check/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong with a product, or how large its numbers are. A product with NONE, LARGE or SMALL must
 * pass. */
enum flaw { NONE, LARGE, SMALL, NAN_IN_A, INFINITY_IN_B, WRONG_ELEMENT, FLAW_COUNT };

static const struct mm_backend *backend;
static enum mm_dtype dtype; /* type of the operands */

/* Returns a product that computes only the middle element of C, and sets it to 0, because k is 0. */
static struct mm_product element_of(const struct mm_product *product) {
    struct mm_product one = *product;
    one.epilogue.is_set = false;
    one.m = one.n = 1;
    one.k = 0;
    one.c.rows = one.c.cols = 1;
    one.c.data = (char *)product->c.data +
                 (product->m / 2 * product->c.ld + product->n / 2) * mm_dtype_bytes(product->c.dtype);
    return one;
}

/* the launch function of the naive variant's plan on a CUDA device */
static enum mm_status (*launch)(const struct mm_plan *, const struct mm_product *, struct mm_lane *,
                                struct mm_error *);

static enum mm_status run_plain(const struct mm_plan *plan, const struct mm_product *product,
                                struct mm_lane *lane, struct mm_error *error) {
    return plan == NULL ? backend->variants[0].launch[dtype](product, lane, error)
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
    const enum mm_status status = backend->variants[0].plan[dtype](product, plan, error);
    launch = plan->launch;
    plan->launch = run_and_spoil;
    return status;
}

static const struct mm_variant spoilt = {
    .name = "spoilt", .launch = {MM_EVERY_DTYPE(launch_spoilt)}, .plan = {MM_EVERY_DTYPE(plan_spoilt)}};

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        printf("FAIL: no memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static double number_of(uint64_t seed, size_t index) {
    const double number = (double)mm_random_element(seed, index);
    if (dtype == MM_BOOL)
        return number < 0.5;
    return mm_dtype_is_float(dtype) ? number : floor((dtype == MM_UINT8 ? fabs(number) : number) * 100.0);
}

/* Fills the matrix with random numbers, and the gaps between its rows with NaN or -1. */
static void make(struct mm_matrix *x, enum mm_dtype x_dtype, size_t rows, size_t cols, uint64_t seed) {
    *x = mm_matrix_dense(x_dtype, rows, cols, NULL);
    x->ld = cols + 3;
    x->data = allocate(mm_matrix_bytes(x));
    memset(x->data, 0xff, mm_matrix_bytes(x));
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++)
            mm_dtype_put(x_dtype, x->data, row * x->ld + col, number_of(seed, row * cols + col));
}

static void scale(struct mm_matrix *x, double factor) {
    for (size_t row = 0; row < x->rows; row++)
        for (size_t col = row * x->ld; col < row * x->ld + x->cols; col++)
            mm_dtype_put(dtype, x->data, col, mm_dtype_get(dtype, x->data, col) * factor);
}

/* With LARGE, the squares of the numbers overflow. With SMALL, they underflow. */
static void spoil(struct mm_product *product, enum flaw flaw) {
    if (flaw == LARGE || flaw == SMALL) {
        scale(&product->a, flaw == LARGE ? 1e145 : 1e-145);
        scale(&product->b, flaw == LARGE ? 1e145 : 1e-145);
    }
    if (flaw == NAN_IN_A)
        mm_dtype_put(dtype, product->a.data, product->a.rows / 2 * product->a.ld + product->a.cols / 2,
                     (double)NAN);
    if (flaw == INFINITY_IN_B)
        mm_dtype_put(dtype, product->b.data, product->b.rows / 2 * product->b.ld, (double)INFINITY);
}

/* Compares the relative errors of two verifications. The errors may differ by the rounding of float64 sums,
 * which is proportional to the size of the rows. The function computes this size from the bound. */
static bool agree_on_whole(const struct mm_verify_bounds *bounds, const struct mm_verification *got,
                           const struct mm_verification *expected) {
    const double here = mm_verification_relative_error(got);
    const double there = mm_verification_relative_error(expected);
    if (here == there)
        return true;
    const double s = expected->bound / (bounds->spread * bounds->relative);
    const double size =
        mm_squares_root(&expected->norm, 1.0) / sqrt((double)(MM_VERIFY_VECTORS * expected->rows_checked));
    return fabs(here - there) <= 4.0 * bounds->of_float64 * s / size + 1e-6 * there;
}

static double part_of(const struct mm_verification *verification) {
    return mm_verify_part(verification->residual, verification->bound);
}

/* Returns whether the two verifications agree. They add float64 numbers in different orders, so they round
 * differently. The rounding grows with the error. A wrong float64 element makes the error about 10¹¹ times
 * the bound. */
static bool agree(const struct mm_product *product, const struct mm_verification *got,
                  const struct mm_verification *expected) {
    const struct mm_verify_bounds bounds =
        mm_verify_bounds_of(product, backend->is_host ? MM_ROUNDED : MM_CUT_OFF);
    const double off = 2.0 * bounds.of_float64 / (bounds.spread * bounds.relative), bounds_differ = 1e-9;
    if (got->rows_checked != expected->rows_checked || got->rows_unjudged != expected->rows_unjudged ||
        mm_verification_verdict(got) != mm_verification_verdict(expected) || !got->is_done)
        return false;
    if (!mm_dtype_is_float(dtype))
        return got->row == expected->row && got->residual == expected->residual;
    if (!agree_on_whole(&bounds, got, expected))
        return false;
    if (got->row == expected->row && !(fabs(got->bound - expected->bound) <= bounds_differ * expected->bound))
        return false;
    return part_of(got) == part_of(expected) ||
           fabs(part_of(got) - part_of(expected)) <= off + bounds_differ * part_of(expected);
}

/* Returns whether the check must find the flaw. The check can miss a flaw if the bound is wide, as for float8
 * on tensor cores or a narrow C. A short sum of integers may really be 0, so setting it to 0 is no flaw. */
static bool must_fail(const struct mm_product *product, enum flaw flaw) {
    const bool is_wide = mm_dtype_bytes(product->c.dtype) >= 4;
    const bool is_exact = mm_dtype_bytes(dtype) >= 4 || backend->is_host;
    if (!mm_dtype_is_float(dtype))
        return flaw == WRONG_ELEMENT && product->k > 100;
    return flaw == WRONG_ELEMENT && product->k <= 255 && is_wide && is_exact;
}

static bool agrees(const struct mm_job *job, enum flaw flaw, void *memory) {
    const struct mm_product *product = &job->product;
    struct mm_verification expected;
    mm_verify(product, backend->is_host ? MM_ROUNDED : MM_CUT_OFF, job->outcome.verification.seed, memory,
              &expected);
    const enum mm_verdict verdict = mm_verification_verdict(&job->outcome.verification);
    if (agree(product, &job->outcome.verification, &expected) &&
        (flaw > SMALL || verdict == MM_VERDICT_PASSED) &&
        (flaw == NONE || flaw > SMALL || mm_verification_relative_error(&job->outcome.verification) < 1.0) &&
        (flaw != INFINITY_IN_B || verdict == MM_VERDICT_UNJUDGED) &&
        (!must_fail(product, flaw) || verdict == MM_VERDICT_FAILED))
        return true;
    printf("relative error %.17g, not %.17g; ", mm_verification_relative_error(&job->outcome.verification),
           mm_verification_relative_error(&expected));
    printf("row %zu: %.17g of %.17g, not row %zu: %.17g of %.17g; %zu rows checked, not %zu\n",
           job->outcome.verification.row, job->outcome.verification.residual, job->outcome.verification.bound,
           expected.row, expected.residual, expected.bound, job->outcome.verification.rows_checked,
           expected.rows_checked);
    return false;
}

/* Gives the product factors, an addend, which may be stored transposed, and a bias. */
static void set_epilogue(struct mm_product *product, bool transpose) {
    const enum mm_dtype sum = mm_dtype_sum(dtype), c_dtype = product->c.dtype;
    product->epilogue =
        (struct mm_epilogue){.is_set = true, .alpha = mm_scale_of(sum, -3), .beta = mm_scale_of(sum, 5)};
    product->transpose_addend = transpose;
    make(&product->addend, c_dtype, transpose ? product->n : product->m, transpose ? product->m : product->n,
         4);
    make(&product->bias, c_dtype, 1, product->n, 5);
}

/* Bits of `layout`: A is transposed, B is transposed, and the product has an epilogue. */
static bool check(struct mm_device *device, const size_t *shape, unsigned layout, enum flaw flaw) {
    const size_t m = shape[0], k = shape[1], n = shape[2];
    struct mm_job job = {.work.backend = backend,
                         .variant = flaw == WRONG_ELEMENT ? &spoilt : &backend->variants[0],
                         .verify = true,
                         .product = {.transpose_a = (layout & 1) != 0, .transpose_b = (layout & 2) != 0}};
    struct mm_product *product = &job.product;
    make(&product->a, dtype, product->transpose_a ? k : m, product->transpose_a ? m : k, 1);
    make(&product->b, dtype, product->transpose_b ? n : k, product->transpose_b ? k : n, 2);
    make(&product->c, mm_dtype_result(dtype), m, n, 3);
    mm_product_conform(MM_MATMUL, product, NULL);
    if ((layout & 4) != 0)
        set_epilogue(product, (layout & 1) != 0);
    spoil(product, flaw);
    void *memory = job.verify_memory = allocate(mm_verify_bytes(product));
    const bool good = mm_device_run(device, &job) == MM_OK && agrees(&job, flaw, memory);
    if (!good)
        printf("FAIL %s: %s, %zux%zux%zu, layout %u, flaw %d %s\n", backend->name, mm_dtype_name(dtype), m, k,
               n, layout, (int)flaw, job.work.error.status != MM_OK ? job.work.error.detail : "");
    free(memory);
    free(product->c.data);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        free(mm_product_operand(product, index)->data);
    return good;
}

/* Returns whether the flaw is possible. Integers are finite, and a product with k = 0 is never wrong. */
static bool exists(const size_t *shape, enum flaw flaw) {
    const bool is_special = flaw == NAN_IN_A || flaw == INFINITY_IN_B;
    if (flaw == LARGE || flaw == SMALL)
        return dtype == MM_FLOAT64 && shape[1] > 0;
    return flaw == NONE || (shape[1] > 0 && (!is_special || mm_dtype_is_float(dtype)));
}

/* Returns N for a type: one in N cases runs. On the host the check is compared with itself, so few cases
 * suffice. */
static unsigned thin_of(unsigned thin) {
    return dtype == MM_FLOAT32 ? thin : backend->is_host ? 100 * thin : 5 * thin;
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
    for (dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < sizeof shapes / sizeof shapes[0]; index++)
            for (unsigned layout = 0; layout < 8; layout++)
                for (unsigned flaw = 0; flaw < FLAW_COUNT; flaw++)
                    if (exists(shapes[index], (enum flaw)flaw) && count++ % thin_of(thin) == 0 &&
                        shapes[index][0] <= edge_max && shapes[index][1] <= edge_max &&
                        shapes[index][2] <= edge_max)
                        good = check(device, shapes[index], layout, (enum flaw)flaw) && good;
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    backend->close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
