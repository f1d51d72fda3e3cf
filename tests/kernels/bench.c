/* The harness's timing mode: which rows of which devices are timed, over which shapes. How is timing.c's
 * business. The host's rows stand first; beside a GPU its reference alone is timed. */
#include "tests/kernels/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BACKENDS_MAX = 8 };

/* What the host's reference, and its other rows, are asked for without --slow, as m·n·k: seconds a run. */
static const double reference_cost_max = 0x1p31;
static const double host_cost_max = 0x1p36;

/* A device that takes part, with its rows that do. */
struct entrant {
    struct mm_device *device;
    struct subject *subjects; /* owned */
    size_t count;
};

struct field {
    struct entrant entrants[BACKENDS_MAX];
    size_t count;
    bool accelerated; /* one of them is no host */
};

static bool is_host(const struct mm_device *device) {
    return device->compute_capability == 0;
}

static bool is_reference(const struct subject *subject) {
    const struct mm_backend *backend = subject->device->backend;
    size_t first = 0;
    while (backend->variants[first].op != subject->variant->op)
        first++;
    return subject->variant == &backend->variants[first];
}

/* Opens the backends in reverse: the preferred one stands first in their list, the host last. */
static void open_all(const struct options *options, struct field *field) {
    size_t backends = 0;
    while (mm_backends()[backends] != NULL)
        backends++;
    while (backends-- > 0 && field->count < BACKENDS_MAX) {
        const struct mm_backend *backend = mm_backends()[backends];
        if (options->backend != NULL && strcmp(options->backend, backend->name) != 0)
            continue;
        struct mm_device *device = device_open_first(backend);
        if (device == NULL)
            continue;
        field->accelerated = field->accelerated || !is_host(device);
        field->entrants[field->count++].device = device;
    }
    if (field->count > 0 && !field->accelerated)
        printf("- no GPU is timed: the CPU's rows alone\n");
}

static size_t choose(const struct options *options, struct field *field) {
    size_t chosen = 0;
    for (size_t index = 0; index < field->count; index++) {
        struct entrant *entrant = &field->entrants[index];
        size_t count;
        entrant->subjects = subjects_choose(options, entrant->device, options->timing.op, &count);
        for (size_t which = 0; which < count; which++)
            if (!is_host(entrant->device) || !field->accelerated || options->variant_count > 0 ||
                is_reference(&entrant->subjects[which]))
                entrant->subjects[entrant->count++] = entrant->subjects[which];
        chosen += entrant->count;
    }
    return chosen;
}

static void close_all(struct field *field) {
    for (size_t index = 0; index < field->count; index++) {
        free(field->entrants[index].subjects);
        field->entrants[index].device->backend->close(field->entrants[index].device);
    }
}

static bool too_slow(const struct subject *subject, struct shape shape) {
    const double cost = (double)shape.m * (double)shape.n * (double)shape.k;
    return is_host(subject->device) && subject->variant->op == MM_MATMUL &&
           cost > (is_reference(subject) ? reference_cost_max : host_cost_max);
}

/* The rows that are wanted of the shape; tells of those that are left out. */
static size_t make_rows(const struct options *options, const struct entrant *entrant, struct shape shape,
                        struct timed_row *rows) {
    size_t count = 0;
    if (options->timing.op == MM_TRANSPOSE && entrant->count > 0)
        rows[count++] = (struct timed_row){
            .device = entrant->device, .variant = entrant->subjects[0].variant, .copies = true};
    for (size_t index = 0; index < entrant->count; index++) {
        const struct subject *subject = &entrant->subjects[index];
        if (!options->slow && too_slow(subject, shape))
            printf("- %s:%s is left out, since it takes long; --slow times it\n",
                   subject->device->backend->name, subject->variant->name);
        else
            rows[count++] =
                (struct timed_row){.device = subject->device,
                                   .variant = subject->variant,
                                   .tile = subject->tile != 0 ? subject->tile : subject->variant->tile,
                                   .chosen_tile = subject->tile};
    }
    return count;
}

struct totals {
    size_t timed;
    size_t failures;
};

/* A product that a row does not do, or that does not fit into the device's or the host's memory, is no
 * failure; one that is wrong is. */
static void add_rows(struct totals *totals, const struct timed_row *rows, size_t count) {
    for (size_t index = 0; index < count; index++) {
        const enum mm_status status = rows[index].figures.error.status;
        totals->timed += status == MM_OK;
        totals->failures += rows[index].wrong || (status != MM_OK && status != MM_UNSUPPORTED &&
                                                  status != MM_NO_DEVICE_MEMORY && status != MM_TOO_LARGE);
    }
}

static void print_shape(const struct options *options, struct shape shape) {
    if (options->timing.op == MM_TRANSPOSE)
        printf("\n## A %zu×%zu transposed, %s\n\n", shape.n, shape.m, mm_dtype_name(options->timing.dtype));
    else
        printf("\n## A %zu×%zu · B %zu×%zu%s%s\n\n", shape.m, shape.k, shape.k, shape.n,
               options->timing.transpose_a ? ", A stored transposed" : "",
               options->timing.transpose_b ? ", B stored transposed" : "");
}

/* How the rows of a device were timed; of none, there is nothing to tell. */
static void print_sets(const struct options *options, const struct timed_row *rows, size_t count) {
    size_t sets = 0;
    for (size_t index = 0; index < count; index++)
        if (rows[index].figures.error.status == MM_OK)
            sets = rows[index].figures.set_count;
    if (sets > 0)
        printf("- %s: %s, over %zu sets of buffers; the rows in turn, %u repeats, fewer of "
               "what takes over %u s\n",
               rows[0].device->backend->name,
               options->timing.op == MM_MATMUL ? "float32, U(-1,1)" : mm_dtype_name(options->timing.dtype),
               sets, options->timing.repeats, options->timing.seconds);
}

/* Times one shape on all devices, one after the other: the host at work would let a GPU's clocks sink. */
static void time_shape(const struct options *options, const struct field *field, struct shape shape,
                       struct timed_row *rows, FILE *csv, struct totals *totals) {
    size_t count = 0;
    print_shape(options, shape);
    for (size_t index = 0; index < field->count; index++) {
        const struct entrant *entrant = &field->entrants[index];
        struct timed_row *own = &rows[count];
        const size_t own_count = make_rows(options, entrant, shape, own);
        if (own_count == 0)
            continue;
        timing_run(own, own_count, shape, &options->timing);
        print_sets(options, own, own_count);
        count += own_count;
    }
    if (count > 0) {
        printf("\n");
        table_markdown(stdout, rows, count, &options->timing);
    }
    fflush(stdout);
    if (csv != NULL)
        table_csv(csv, rows, count, shape, &options->timing);
    add_rows(totals, rows, count);
}

static int time_all(const struct options *options, const struct field *field, size_t chosen, FILE *csv) {
    struct timed_row *rows = harness_allocate((chosen + field->count) * sizeof *rows); /* and the copies */
    struct totals totals = {0};
    if (csv != NULL)
        table_csv_head(csv);
    for (size_t index = 0; index < options->times.count; index++)
        time_shape(options, field, options->times.shapes[index], rows, csv, &totals);
    free(rows);
    printf("\n%zu rows timed, %zu failures\n", totals.timed, totals.failures);
    return totals.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int bench_run(const struct options *options) {
    struct field field = {0};
    FILE *csv = options->csv == NULL ? NULL : fopen(options->csv, "we");
    if (options->csv != NULL && csv == NULL) {
        fprintf(stderr, "kernels: cannot write %s: %s\n", options->csv, strerror(errno));
        return EXIT_FAILURE;
    }
    open_all(options, &field);
    const size_t chosen = choose(options, &field);
    int code;
    if (field.count == 0) {
        printf("no backend opens here\n");
        code = EXIT_SKIPPED;
    } else if (chosen == 0) {
        printf("FAIL: no variant was run\n");
        code = EXIT_FAILURE;
    } else {
        code = time_all(options, &field, chosen, csv);
    }
    close_all(&field);
    if (csv != NULL && fclose(csv) != 0) {
        fprintf(stderr, "kernels: cannot write %s: %s\n", options->csv, strerror(errno));
        code = EXIT_FAILURE;
    }
    return code;
}
