/* Times the rows of one device: random data, rotated over several sets of buffers that together pass
 * the caches, the rows in turn (A B A B), medians. Correctness is check.c's business. */
#include "tests/kernels/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    struct layout layout;
    struct set *sets; /* `placed` of them are on the device */
    unsigned set_count;
    unsigned placed;
};

static enum mm_status place(struct bench *bench, struct mm_error *error) {
    struct shape shape = bench->timing->shape;
    for (unsigned index = 0; index < bench->set_count; index++) {
        struct operands operands;
        struct set *set = &bench->sets[index];
        operands_make(&operands, shape, &families[0], random_mix(bench->timing->seed, index));
        image_make_operands(&set->a, &set->b, &operands, &bench->layout);
        image_make_result(&set->c, shape, &bench->layout);
        operands_free(&operands);
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

/* As many sets as pass the caches, at least 1, and within half of the memory. */
static unsigned count_sets(const struct mm_device *device, struct shape shape) {
    double bytes = 4.0 * ((double)shape.m * (double)shape.k + (double)shape.k * (double)shape.n +
                          (double)shape.m * (double)shape.n) +
                   1.0;
    double wanted = device->compute_capability > 0 ? (double)ROTATION_BYTES / bytes + 1.0 : 2.0;
    double room = 0.5 * (double)device->backend->memory_free(device) / bytes;
    double sets = wanted < room ? wanted : room;
    if (sets > SETS_MAX)
        sets = SETS_MAX;
    return sets < 1.0 ? 1 : (unsigned)sets;
}

static enum mm_status measure(const struct bench *bench, const struct subject *subject, unsigned turn,
                              uint64_t *kernel_ns, struct mm_error *error) {
    const struct set *set = &bench->sets[turn % bench->set_count];
    struct mm_product product =
        image_product(&set->a, &set->b, &set->c, bench->timing->shape, &bench->layout, true);
    product.tile = subject->tile;
    const struct mm_variant *row = mm_variant_resolve(subject->variant, bench->device, &product);
    return bench->device->backend->measure(bench->device, row, &product, kernel_ns, error);
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

struct row {
    uint64_t *ns; /* repeats of them */
    enum mm_status status;
    struct mm_error error;
};

static void run_turns(const struct bench *bench, const struct subject *subjects, size_t count,
                      struct row *rows) {
    unsigned turn = 0;
    unsigned warm_ups = bench->device->compute_capability > 0 ? WARM_UPS : 1;
    for (unsigned repeat = 0; repeat < warm_ups + bench->timing->repeats; repeat++) {
        for (size_t index = 0; index < count; index++) {
            struct row *row = &rows[index];
            uint64_t kernel_ns = 0;
            if (row->status == MM_OK)
                row->status = measure(bench, &subjects[index], turn++, &kernel_ns, &row->error);
            if (repeat >= warm_ups)
                row->ns[repeat - warm_ups] = kernel_ns;
        }
    }
}

static double median_ns(const struct row *row, unsigned repeats) {
    return 0.5 * ((double)row->ns[(repeats - 1) / 2] + (double)row->ns[repeats / 2]);
}

static bool print_rows(const struct bench *bench, const struct subject *subjects, size_t count,
                       struct row *rows) {
    unsigned repeats = bench->timing->repeats;
    struct mm_product product = {
        .m = bench->timing->shape.m, .n = bench->timing->shape.n, .k = bench->timing->shape.k};
    double blas_ns = 0.0;
    bool good = true;
    for (size_t index = 0; index < count; index++) {
        qsort(rows[index].ns, repeats, sizeof *rows[index].ns, ascending);
        if (rows[index].status == MM_OK && strcmp(subjects[index].variant->name, "blas") == 0)
            blas_ns = median_ns(&rows[index], repeats);
    }
    printf("| backend | variant | min ms | median ms | max ms | GFLOP/s | %% of blas |\n"
           "|---|---|--:|--:|--:|--:|--:|\n");
    for (size_t index = 0; index < count; index++) {
        const struct row *row = &rows[index];
        printf("| %s | %s ", bench->device->backend->name, subjects[index].name);
        if (row->status != MM_OK) {
            printf("| | | | | %s: %s |\n", mm_status_name(row->status), row->error.detail);
            good = good && row->status == MM_UNSUPPORTED;
            continue;
        }
        double median = median_ns(row, repeats);
        printf("| %.4f | %.4f | %.4f | %.1f | ", (double)row->ns[0] * 1e-6, median * 1e-6,
               (double)row->ns[repeats - 1] * 1e-6, median > 0.0 ? mm_product_flops(&product) / median : 0.0);
        if (blas_ns > 0.0 && median > 0.0)
            printf("%.1f", 100.0 * blas_ns / median);
        printf(" |\n");
    }
    return good;
}

static void print_head(const struct bench *bench) {
    const struct mm_device *device = bench->device;
    char date[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
    printf("\n%s: %s%s%s, %s; m=%zu k=%zu n=%zu float32, U(-1,1) over %u sets of buffers, %u repeats in "
           "turn\n\n",
           device->backend->name, device->name, device->driver[0] != '\0' ? ", driver for CUDA " : "",
           device->driver, date, bench->timing->shape.m, bench->timing->shape.k, bench->timing->shape.n,
           bench->set_count, bench->timing->repeats);
}

bool timing_run(const struct subject *subjects, size_t count, const struct timing *timing) {
    struct bench bench = {.device = subjects[0].device, .timing = timing};
    bench.layout = layout_make(0, 0);
    bench.set_count = count_sets(bench.device, timing->shape);
    bench.sets = harness_allocate(bench.set_count * sizeof *bench.sets);
    memset(bench.sets, 0, bench.set_count * sizeof *bench.sets);
    print_head(&bench);
    struct mm_error error = {0};
    bool good = place(&bench, &error) == MM_OK;
    if (good) {
        struct row *rows = harness_allocate(count * sizeof *rows);
        for (size_t index = 0; index < count; index++)
            rows[index] = (struct row){.ns = harness_allocate(timing->repeats * sizeof(uint64_t))};
        run_turns(&bench, subjects, count, rows);
        good = print_rows(&bench, subjects, count, rows);
        for (size_t index = 0; index < count; index++)
            free(rows[index].ns);
        free(rows);
    } else {
        printf("no place on the device: %s\n", error.detail);
    }
    clear(&bench);
    return good;
}
