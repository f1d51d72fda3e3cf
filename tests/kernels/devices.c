/* Tests on one device that shares of a product have the bits of the whole: devices BACKEND [VARIANT]. The
 * device computes each product as a whole, and then one share after another, as several devices would. */
#include "gpu/device/backend.h"
#include "gpu/queue/share.h"
#include "gpu/queue/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 8 };

struct shape {
    size_t m, n, k;
    bool transpose_a, transpose_b;
};

static struct mm_queue *queue; /* has DEVICES_MAX workers without threads, all for one device */
static unsigned products, shares_run, uncut, tails;

static struct mm_matrix operand(enum mm_dtype dtype, size_t rows, size_t cols, bool is_transposed,
                                void *data) {
    return is_transposed ? mm_matrix_dense(dtype, cols, rows, data)
                         : mm_matrix_dense(dtype, rows, cols, data);
}

/* Computes the job by shares. Returns false if the shares differ from `whole`. */
static bool check(struct mm_job *job, unsigned count, const void *whole, void *c, size_t bytes) {
    struct mm_device *device = queue->workers[0].device;
    job->devices = count;
    job->product.c.data = c;
    job->work.worker = &queue->workers[0];
    if (mm_job_plan(job, device, &job->work.error) != MM_OK)
        return false;
    mm_shares_make(queue, job);
    const struct mm_shares *made = job->shares;
    uncut += made->count < count;
    tails += made->count > 1 && job->plan.cuts.tail_cols > 0;
    if (made->count < 2)
        return true;
    memset(c, 0xa5, bytes);
    for (unsigned index = 0; index < made->count; index++) {
        struct mm_job *share = (struct mm_job *)&job->shares->of[index].job;
        if (mm_device_run(device, share) != MM_OK) {
            printf("FAIL share %u: %s\n", index, share->work.error.detail);
            return false;
        }
        shares_run++;
    }
    return memcmp(c, whole, bytes) == 0;
}

static bool check_shape(struct mm_device *device, const struct mm_variant *variant, enum mm_dtype dtype,
                        const struct shape *shape) {
    static const unsigned counts[] = {2, 3, 4, 6, 8};
    const bool is_host = device->backend->is_host;
    const size_t b_elements = shape->k * shape->n, a_elements = shape->m * shape->k;
    struct mm_job job = {
        .work = {.backend = device->backend},
        .variant = variant,
        .shares = malloc(mm_shares_bytes(DEVICES_MAX)),
        .sources[MM_OPERAND_B] = {.kind = is_host ? MM_SOURCE_HOST : MM_SOURCE_UNIFORM, .seed = 2}};
    struct mm_product *product = &job.product;
    product->transpose_a = shape->transpose_a;
    product->transpose_b = shape->transpose_b;
    product->a =
        operand(dtype, shape->m, shape->k, shape->transpose_a, malloc(a_elements * mm_dtype_bytes(dtype)));
    product->b = operand(dtype, shape->k, shape->n, shape->transpose_b,
                         is_host ? malloc(b_elements * mm_dtype_bytes(dtype)) : NULL);
    (void)mm_product_conform(MM_MATMUL, product, NULL);
    product->c = mm_product_result(MM_MATMUL, product);
    const size_t bytes = mm_matrix_bytes(&product->c);
    char *whole = malloc(bytes), *c = malloc(bytes);
    const struct mm_source random = {.kind = MM_SOURCE_UNIFORM, .seed = 1};
    bool good = job.shares != NULL && product->a.data != NULL && whole != NULL && c != NULL;
    if (good)
        (void)mm_source_generate(&random, &product->a, 0, a_elements, NULL);
    if (good && is_host)
        (void)mm_source_generate(&random, &product->b, 0, b_elements, NULL);
    product->c.data = whole;
    if (good && mm_device_run(device, &job) == MM_OK) {
        products++;
        for (unsigned index = 0; index < sizeof counts / sizeof counts[0]; index++)
            if (!check(&job, counts[index], whole, c, bytes)) {
                printf("FAIL %s of %s, %zux%zux%zu%s%s, %u devices\n", variant->name, mm_dtype_name(dtype),
                       shape->m, shape->k, shape->n, shape->transpose_a ? ", A transposed" : "",
                       shape->transpose_b ? ", B transposed" : "", counts[index]);
                good = false;
            }
    }
    free(product->a.data);
    free(product->b.data);
    free(job.shares);
    free(whole);
    free(c);
    return good;
}

int main(int argc, char **argv) {
    static const struct shape small[] = {{130, 97, 64, false, false}, {97, 300, 33, true, true}};
    static const struct shape large[] = {{300, 200, 100, false, false},
                                         {1030, 4100, 515, true, false},
                                         {4096, 4096, 1024, false, false},
                                         {5000, 3000, 1100, false, true},
                                         {8448, 6144, 2048, true, true}};
    const struct mm_backend *backend = argc > 1 ? mm_backend_find(argv[1]) : NULL;
    struct mm_device *device = NULL;
    struct mm_error error;
    bool good = true;
    if (backend == NULL || backend->open(0, &device, &error) != MM_OK) {
        printf("no such device: %s\n", backend == NULL ? "usage: devices BACKEND [VARIANT]" : error.detail);
        return 77;
    }
    queue = calloc(1, sizeof *queue + DEVICES_MAX * sizeof queue->workers[0]);
    if (queue == NULL)
        return EXIT_FAILURE;
    queue->worker_count = DEVICES_MAX;
    for (unsigned index = 0; index < DEVICES_MAX; index++)
        queue->workers[index].device = device;
    const struct shape *shapes = backend->is_host ? small : large;
    for (size_t row = 0; row < backend->variant_count; row++) {
        const struct mm_variant *variant = &backend->variants[row];
        /* Variants that may be cut anywhere are slow. */
        const size_t count = backend->is_host || variant->is_row_by_row ? 2 : sizeof large / sizeof large[0];
        if (variant->op != MM_MATMUL || mm_variant_is_auto(variant) || variant->wrong_on_purpose ||
            (argc > 2 && strcmp(argv[2], variant->name) != 0))
            continue;
        for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
            for (size_t index = 0; index < count; index++)
                if (mm_variant_has_dtype(variant, dtype) &&
                    mm_variant_missing(variant, device, dtype) == NULL)
                    good = check_shape(device, variant, dtype, &shapes[index]) && good;
    }
    printf("%s on %s: %u products, %u shares, %u times with shared tiles, %u times on fewer devices\n",
           good ? "equal bits" : "other bits", device->name, products, shares_run, tails, uncut);
    free(queue);
    backend->close(device);
    return good && shares_run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
