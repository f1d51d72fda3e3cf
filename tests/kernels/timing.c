/* Times the rows of one device: random data, rotated over several sets of buffers that together pass
 * the caches, the rows in turn (A B A B), medians. Correctness is check.c's business, and what people are
 * shown table.c's. */
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

/* Three times the L2 of the largest GPUs; a CPU's caches hold what they can, as in use. */
enum { ROTATION_BYTES = 180 * 1000 * 1000, SETS_MAX = 256, WARM_UPS = 5 };

struct set {
    struct image a;
    struct image b;
    struct image c;
};

struct bench {
    struct mm_device *device;
    const struct timing *timing;
    struct shape shape;
    struct layout layout;
    struct set *sets; /* `placed` of them are on the device */
    unsigned set_count;
    unsigned placed;
};

static void make_product_set(const struct bench *bench, struct set *set, uint64_t seed) {
    struct operands operands;
    operands_make(&operands, bench->shape, &families[0], seed);
    image_make_operands(&set->a, &set->b, &operands, &bench->layout);
    image_make_result(&set->c, bench->shape, &bench->layout);
    operands_free(&operands);
}

/* Random, since memory of one word over and over takes less power to move. B stays empty. */
static void make_transposition_set(const struct bench *bench, struct set *set, uint64_t seed) {
    struct random random = {.state = seed};
    const enum mm_dtype dtype = bench->timing->dtype;
    image_make(&set->a, dtype, bench->shape.n, bench->shape.m, 0, 0);
    image_make(&set->b, dtype, 0, 0, 0, 0);
    image_make(&set->c, dtype, bench->shape.m, bench->shape.n, 0, 0);
    image_guard(&set->b);
    for (size_t at = 0; at + sizeof(uint64_t) <= set->a.bytes; at += sizeof(uint64_t)) {
        const uint64_t word = random_next(&random);
        memcpy(set->a.host + at, &word, sizeof word);
    }
}

static enum mm_status place(struct bench *bench, struct mm_error *error) {
    for (unsigned index = 0; index < bench->set_count; index++) {
        struct set *set = &bench->sets[index];
        const uint64_t seed = random_mix(bench->timing->seed, index);
        if (bench->timing->op == MM_MATMUL)
            make_product_set(bench, set, seed);
        else
            make_transposition_set(bench, set, seed);
        bench->placed++;
        struct image *const images[] = {&set->a, &set->b, &set->c};
        image_poison(&set->c, 0);
        for (unsigned which = 0; which < 3; which++) {
            enum mm_status status = image_to_device(images[which], bench->device, error);
            if (status == MM_OK)
                status = image_upload(images[which], bench->device, error);
            if (status != MM_OK)
                return status;
        }
    }
    return MM_OK;
}

static void clear(struct bench *bench) {
    for (unsigned index = 0; index < bench->placed; index++) {
        struct image *const images[] = {&bench->sets[index].a, &bench->sets[index].b, &bench->sets[index].c};
        for (unsigned which = 0; which < 3; which++) {
            image_leave_device(images[which], bench->device);
            image_free(images[which]);
        }
    }
    free(bench->sets);
}

/* As many sets as pass the caches, within half of the memory; 0 where not one fits there. */
static unsigned count_sets(const struct mm_device *device, struct shape shape, const struct timing *timing) {
    const double m = (double)shape.m, n = (double)shape.n, k = (double)shape.k;
    const double elements = timing->op == MM_MATMUL ? m * k + k * n + m * n : 2.0 * m * n;
    double bytes = (double)mm_dtype_bytes(timing->dtype) * elements + 1.0;
    double wanted = device->compute_capability > 0 ? (double)ROTATION_BYTES / bytes + 1.0 : 2.0;
    double room = 0.5 * (double)device->backend->memory_free(device) / bytes;
    double sets = wanted < room ? wanted : room;
    return sets > SETS_MAX ? SETS_MAX : (unsigned)sets;
}

static struct mm_product product_of(const struct bench *bench, const struct set *set, bool copies) {
    if (bench->timing->op == MM_MATMUL)
        return image_product(&set->a, &set->b, &set->c, bench->shape, &bench->layout, true);
    struct mm_product product = {
        .a = image_view(&set->a, true), .c = image_view(&set->c, true), .transpose_a = !copies};
    if (copies)
        product.a = mm_matrix_dense(product.a.dtype, product.c.rows, product.c.cols, product.a.data);
    mm_product_conform_transposition(&product);
    return product;
}

static enum mm_status measure(const struct bench *bench, struct timed_row *row, unsigned turn,
                              uint64_t *kernel_ns) {
    struct mm_product product = product_of(bench, &bench->sets[turn % bench->set_count], row->copies);
    product.tile = row->chosen_tile;
    row->ran = mm_variant_resolve(row->variant, bench->device, &product);
    return bench->device->backend->measure(bench->device, row->ran, &product, kernel_ns, &row->error);
}

/* The times of a row, as they come. */
struct samples {
    uint64_t *ns; /* room for all repeats */
    unsigned count;
    unsigned warm_ups; /* runs that are not counted */
    uint64_t spent_ns;
    bool done;
};

/* Runs the row once more. What takes a good part of its time is warm by the end of it, so that then the first
 * run counts too. */
static void take_turn(const struct bench *bench, struct timed_row *row, struct samples *samples,
                      unsigned turn) {
    const uint64_t budget_ns = (uint64_t)bench->timing->seconds * 1000000000;
    const unsigned warm_ups = bench->device->compute_capability > 0 ? WARM_UPS : 1;
    uint64_t kernel_ns = 0;
    row->status = measure(bench, row, turn, &kernel_ns);
    samples->spent_ns += kernel_ns;
    if (samples->warm_ups < warm_ups && samples->spent_ns < budget_ns / 10)
        samples->warm_ups++;
    else
        samples->ns[samples->count++] = kernel_ns;
    samples->done =
        row->status != MM_OK || samples->count == bench->timing->repeats || samples->spent_ns >= budget_ns;
}

static void run_turns(const struct bench *bench, struct timed_row *rows, struct samples *samples,
                      size_t count) {
    unsigned turn = 0;
    for (size_t going = count; going > 0;) {
        going = 0;
        for (size_t index = 0; index < count; index++) {
            if (samples[index].done)
                continue;
            take_turn(bench, &rows[index], &samples[index], turn++);
            going += !samples[index].done;
        }
    }
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void sum_up(struct timed_row *row, const struct samples *samples) {
    struct mm_error none;
    if (row->status != MM_OK)
        return;
    const uint64_t *ns = samples->ns;
    const unsigned count = samples->count;
    qsort(samples->ns, count, sizeof *samples->ns, ascending);
    row->repeats = count;
    row->min_ns = (double)ns[0];
    row->median_ns = 0.5 * ((double)ns[(count - 1) / 2] + (double)ns[count / 2]);
    row->max_ns = (double)ns[count - 1];
    if (row->copies || row->device->backend->attributes(row->device, row->ran, row->chosen_tile,
                                                        &row->attributes, &none) != MM_OK)
        row->attributes = (struct mm_attributes){0};
}

static void time_rows(const struct bench *bench, struct timed_row *rows, size_t count) {
    struct samples *samples = harness_allocate(count * sizeof *samples);
    for (size_t index = 0; index < count; index++)
        samples[index] = (struct samples){.ns = harness_allocate(bench->timing->repeats * sizeof(uint64_t))};
    run_turns(bench, rows, samples, count);
    for (size_t index = 0; index < count; index++) {
        sum_up(&rows[index], &samples[index]);
        free(samples[index].ns);
    }
    free(samples);
}

unsigned timing_run(struct timed_row *rows, size_t count, struct shape shape, const struct timing *timing) {
    struct bench bench = {.device = rows[0].device, .timing = timing, .shape = shape};
    struct mm_error error = {0};
    bench.layout = layout_make(0, 0);
    bench.layout.transpose_a = timing->transpose_a;
    bench.layout.transpose_b = timing->transpose_b;
    bench.set_count = count_sets(bench.device, shape, timing);
    bench.sets = harness_allocate(bench.set_count * sizeof *bench.sets);
    memset(bench.sets, 0, bench.set_count * sizeof *bench.sets);
    enum mm_status status =
        bench.set_count > 0
            ? place(&bench, &error)
            : mm_fail(&error, MM_NO_DEVICE_MEMORY, "the matrices take more than half of the free memory");
    if (status == MM_OK)
        time_rows(&bench, rows, count);
    for (size_t index = 0; index < count && status != MM_OK; index++) {
        rows[index].ran = rows[index].variant;
        rows[index].status = status;
        rows[index].error = error;
    }
    clear(&bench);
    return status == MM_OK ? bench.set_count : 0;
}
