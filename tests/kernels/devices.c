/* Tests on one device that shares of a product have the bits of the whole: devices BACKEND [VARIANT]. The
 * device computes each product as a whole, and then one share after another, as several devices would. On a
 * GPU, B is generated, or stored on a second device, which is the first by another address. So shares with a
 * stored B run in panels. */
#include "gpu/device/backend.h"
#include "gpu/queue/share.h"
#include "gpu/queue/worker.h"
#include "gpu/store/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 8 };

struct shape {
    size_t m, n, k;
    bool transpose_a, transpose_b;
    bool has_epilogue;
};

static struct mm_queue *queue; /* has DEVICES_MAX workers without threads, all for one device */
static struct mm_device elsewhere;
static struct mm_stored stored_b;
static unsigned products, shares_run, uncut, tails, in_panels;

static struct mm_matrix operand(enum mm_dtype dtype, size_t rows, size_t cols, bool is_transposed,
                                void *data) {
    return is_transposed ? mm_matrix_dense(dtype, cols, rows, data)
                         : mm_matrix_dense(dtype, rows, cols, data);
}

/* Stores random elements on `elsewhere`. Returns NULL on failure. */
static struct mm_device_copy *store(struct mm_device *device, struct mm_matrix b) {
    static struct mm_device_copy only_copy;
    const struct mm_source random = {.kind = MM_SOURCE_UNIFORM, .seed = 2};
    const size_t bytes = mm_matrix_bytes(&b);
    struct mm_device_copy *copy = NULL;
    struct mm_error error;
    device->memory_bytes = 128 * bytes; /* so B is large enough for panels, and may be stored */
    b.data = malloc(bytes);
    if (b.data == NULL)
        return NULL;
    (void)mm_source_generate(&random, &b, 0, b.rows * b.cols, NULL);
    const bool is_stored = device->backend->acquire_copy(device, bytes, &copy, &error) == MM_OK &&
                           copy->write(copy, 0, b.data, bytes, &error) == MM_OK;
    free(b.data);
    if (!is_stored)
        return NULL;
    elsewhere = *device;
    only_copy = (struct mm_device_copy){.device = &elsewhere, .data = copy->data};
    stored_b = (struct mm_stored){.bytes = bytes, .only_copy = &only_copy};
    return copy;
}

static void drop_copies(void) {
    struct mm_device_copy *copy;
    while ((copy = stored_b.copies) != NULL) {
        stored_b.copies = copy->next;
        copy->release(copy);
    }
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
        drop_copies();
        in_panels += mm_job_copies_in_panels(share, device);
        if (mm_device_run(device, share) != MM_OK) {
            printf("FAIL share %u: %s\n", index, share->work.error.detail);
            return false;
        }
        shares_run++;
    }
    return memcmp(c, whole, bytes) == 0;
}

static bool check_shape(struct mm_device *device, const struct mm_variant *variant, enum mm_dtype dtype,
                        const struct shape *shape, bool stores_b) {
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
    if (shape->has_epilogue) {
        product->epilogue =
            (struct mm_epilogue){.is_set = true, .alpha = mm_scale_of(mm_dtype_sum(dtype), 2)};
        product->bias = mm_matrix_dense(product->c.dtype, 1, shape->n,
                                        malloc(shape->n * mm_dtype_bytes(product->c.dtype)));
    }
    const size_t bytes = mm_matrix_bytes(&product->c), memory_bytes = device->memory_bytes;
    struct mm_device_copy *copy = stores_b ? store(device, product->b) : NULL;
    if (stores_b)
        job.sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &stored_b};
    char *whole = malloc(bytes), *c = malloc(bytes);
    const struct mm_source random = {.kind = MM_SOURCE_UNIFORM, .seed = 1};
    bool good = job.shares != NULL && product->a.data != NULL && whole != NULL && c != NULL &&
                (copy != NULL || !stores_b) && (product->bias.data != NULL || !shape->has_epilogue);
    if (good)
        (void)mm_source_generate(&random, &product->a, 0, a_elements, NULL);
    if (good && shape->has_epilogue)
        (void)mm_source_generate(&random, &product->bias, 0, shape->n, NULL);
    if (good && is_host)
        (void)mm_source_generate(&random, &product->b, 0, b_elements, NULL);
    product->c.data = whole;
    if (good && mm_device_run(device, &job) == MM_OK) {
        products++;
        for (unsigned index = 0; index < sizeof counts / sizeof counts[0]; index++)
            if (!check(&job, counts[index], whole, c, bytes)) {
                printf("FAIL %s of %s, %zux%zux%zu%s%s%s, %u devices\n", variant->name, mm_dtype_name(dtype),
                       shape->m, shape->k, shape->n, shape->transpose_a ? ", A transposed" : "",
                       shape->transpose_b ? ", B transposed" : "", stores_b ? ", B stored" : "",
                       counts[index]);
                good = false;
            }
    }
    drop_copies();
    if (copy != NULL)
        copy->release(copy);
    device->memory_bytes = memory_bytes;
    free(product->a.data);
    free(product->b.data);
    free(product->bias.data);
    free(job.shares);
    free(whole);
    free(c);
    return good;
}

int main(int argc, char **argv) {
    static const struct shape small[] = {{130, 97, 64, false, false, false}, {97, 300, 33, true, true, true}};
    static const struct shape large[] = {{300, 200, 100, false, false, false},
                                         {1030, 4100, 515, true, false, true},
                                         {4096, 4096, 1024, false, false, false},
                                         {5000, 3000, 1100, false, true, false},
                                         {8448, 6144, 2048, true, true, false}};
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
                    mm_variant_missing(variant, device, dtype) == NULL) {
                    good = check_shape(device, variant, dtype, &shapes[index], false) && good;
                    if (!backend->is_host)
                        good = check_shape(device, variant, dtype, &shapes[index], true) && good;
                }
    }
    printf("%s on %s: %u products, %u shares, %u in panels, %u times with shared tiles, %u times on fewer "
           "devices\n",
           good ? "equal bits" : "other bits", device->name, products, shares_run, in_panels, tails, uncut);
    free(queue);
    backend->close(device);
    good = good && (in_panels > 0 || backend->is_host || argc > 2); /* some variants do not run in panels */
    return good && shares_run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
