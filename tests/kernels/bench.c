/* The timing mode of the test program. It uses gpu/lab/benchmark.h to measure exactly like the service.
 * Beside a GPU, the host times only its reference variant. The user can name other variants of the host. */
#include "tests/kernels/options.h"
#include "tests/kernels/benchmark_wrong.h"
#include "tests/kernels/table.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

/* Without --slow, the host times no product with a larger m·n·k. Its reference variant has its own limit. */
static const double reference_cost_max = 0x1p31;
static const double host_cost_max = 0x1p36;

struct entrant {
    struct mm_device *device;
    struct subject *subjects;
    size_t count;
};

struct timed_row {
    const struct subject *subject;   /* NULL for the plain copy that transpositions are compared with */
    struct mm_benchmark_row figures; /* `ran` is NULL if no variant was chosen */
    double rate;                     /* GFLOP/s, or GB/s for a transposition; 0 if the row failed */
    bool wrong;                      /* result of benchmark_is_wrong; the plain copy is not checked */
    struct mm_attributes attributes; /* of the variant that ran; all 0 if the device reports none */
    struct mm_traffic traffic;       /* predicted for one run; unknown for the plain copy */
};

static bool is_reference(const struct subject *subject) {
    const struct mm_variant *first = subject->device->backend->variants;
    while (first->op != subject->variant->op)
        first++;
    return subject->variant == first;
}

static struct entrant entrant_make(const struct options *options, struct mm_device *device,
                                   bool is_accelerated) {
    struct entrant entrant = {.device = device};
    size_t count;
    entrant.subjects = subjects_choose(options, device, options->timing.op, options->timing.dtype, &count);
    for (size_t which = 0; which < count; which++)
        if (!device->backend->is_host || !is_accelerated || options->variant_count > 0 ||
            is_reference(&entrant.subjects[which]))
            entrant.subjects[entrant.count++] = entrant.subjects[which];
    return entrant;
}

static bool too_slow(const struct subject *subject, struct shape shape) {
    const double cost = (double)shape.m * (double)shape.n * (double)shape.k;
    return subject->device->backend->is_host && subject->variant->op == MM_MATMUL &&
           cost > (is_reference(subject) ? reference_cost_max : host_cost_max);
}

/* Collects the variants to time, and prints the variants that are too slow for the shape. */
static size_t make_rows(const struct options *options, const struct entrant *entrant, struct shape shape,
                        struct timed_row *rows) {
    size_t count = 0;
    if (options->timing.op == MM_TRANSPOSE && entrant->count > 0)
        rows[count++] = (struct timed_row){0};
    for (size_t index = 0; index < entrant->count; index++) {
        const struct subject *subject = &entrant->subjects[index];
        if (!options->slow && too_slow(subject, shape))
            printf("- %s:%s is left out, since it takes long; --slow times it\n",
                   subject->device->backend->name, subject->variant->name);
        else
            rows[count++] = (struct timed_row){.subject = subject};
    }
    return count;
}

/* In a request for a transposition, m×n is the shape of the result, not of op(A). */
static struct mm_benchmark_request make_request(const struct timed_row *rows, size_t count,
                                                struct shape shape, const struct timing *timing) {
    const bool multiplies = timing->op == MM_MATMUL;
    struct mm_benchmark_request request = {.op = timing->op,
                                           .m = multiplies ? shape.m : shape.n,
                                           .n = multiplies ? shape.n : shape.m,
                                           .k = multiplies ? shape.k : 0,
                                           .dtype = timing->dtype,
                                           .c_dtype = mm_dtype_result(timing->dtype),
                                           .transpose_a = timing->transpose_a,
                                           .transpose_b = timing->transpose_b,
                                           .repeats = timing->repeats,
                                           .row_ns = (uint64_t)timing->seconds * 1000000000};
    for (size_t index = 0; index < count; index++) {
        const struct subject *subject = rows[index].subject;
        if (subject == NULL)
            continue;
        assert(request.subject_count < MM_BENCHMARK_ROWS_MAX);
        request.subjects[request.subject_count++] = (struct mm_benchmark_subject){
            .backend = subject->device->backend, .variant = subject->variant, .tile = subject->tile};
    }
    return request;
}

/* On the host, limits the matrices to half of the free memory. On a GPU, the benchmark itself finds out
 * whether the matrices fit. */
static enum mm_status open_benchmark(const struct mm_device *device,
                                     const struct mm_benchmark_request *request,
                                     struct mm_benchmark **benchmark, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    const struct mm_limits matrices = {.dimension_max = SIZE_MAX,
                                       .memory_bytes_max =
                                           backend->is_host ? backend->memory_free(device) / 2 : SIZE_MAX};
    const struct mm_benchmark_limits limits = {.matrices = &matrices, .repeats_max = UINT_MAX};
    enum mm_status status = mm_benchmark_check_size(request, &limits, error);
    if (status != MM_OK)
        return status;
    *benchmark = mm_benchmark_open(request, matrices.memory_bytes_max);
    return *benchmark != NULL ? MM_OK : mm_fail(error, MM_INTERNAL, "no memory for the benchmark");
}

static void tell(const struct mm_benchmark *benchmark, struct mm_device *device, struct timed_row *rows,
                 size_t count) {
    const struct mm_benchmark_row *first = mm_benchmark_rows(benchmark), *next = first;
    const struct mm_backend *backend = device->backend;
    for (size_t index = 0; index < count; index++) {
        struct timed_row *row = &rows[index];
        const size_t number = (size_t)(next - first);
        const struct mm_plan *plan = row->subject == NULL ? NULL : mm_benchmark_plan(benchmark, number);
        struct mm_error none;
        row->traffic = row->subject == NULL ? mm_traffic_unknown() : mm_benchmark_traffic(benchmark, number);
        row->figures = row->subject == NULL ? *benchmark_copy(benchmark) : *next++;
        row->rate = mm_benchmark_rate(benchmark, &row->figures);
        row->wrong = benchmark_is_wrong(benchmark, &row->figures);
        if (plan == NULL || row->figures.error.status != MM_OK || backend->attributes == NULL ||
            backend->attributes(device, plan, &row->attributes, &none) != MM_OK)
            row->attributes = (struct mm_attributes){0};
    }
}

/* Times the rows in groups of at most MM_BENCHMARK_ROWS_MAX, because a benchmark cannot have more rows. */
static void time_rows(struct mm_device *device, struct timed_row *rows, size_t count, struct shape shape,
                      const struct timing *timing) {
    const struct mm_benchmark_request request = make_request(rows, count, shape, timing);
    struct mm_benchmark *benchmark = NULL;
    struct mm_error error = {0};
    struct mm_task task = {.shares = false};
    if (open_benchmark(device, &request, &benchmark, &error) == MM_OK) {
        while (mm_benchmark_next_task(benchmark, &task))
            while (task.run(&task, device, false) == MM_TASK_AGAIN)
                continue;
        tell(benchmark, device, rows, count);
    } else {
        for (size_t index = 0; index < count; index++)
            rows[index].figures = (struct mm_benchmark_row){.error = error};
    }
    mm_benchmark_close(benchmark);
}

static void print_row(struct table *table, const struct timed_row *row, const struct mm_device *device,
                      struct shape shape, const struct timing *timing) {
    const struct mm_benchmark_row *figures = &row->figures;
    const struct mm_attributes *uses = &row->attributes;
    const struct subject *subject = row->subject;
    const bool multiplies = timing->op == MM_MATMUL;
    const bool timed = figures->error.status == MM_OK;
    const bool is_checked = timed && subject != NULL;
    const bool told = uses->threads_per_block > 0;
    const double rate = table_known(row->rate, timed);
    const double percent = table_known(100.0 * figures->of_yardstick, figures->of_yardstick > 0.0);
    const unsigned tile = subject == NULL ? 0 : subject->tile != 0 ? subject->tile : subject->variant->tile;
    const char *name = subject == NULL ? "copy" : subject->variant->name;
    do {
        table_text(table, "op", NULL, mm_op_name(timing->op));
        table_text(table, "dtype", NULL, mm_dtype_name(timing->dtype));
        table_number(table, "m", NULL, 0, (double)shape.m);
        table_number(table, "k", NULL, 0, (double)shape.k);
        table_number(table, "n", NULL, 0, (double)shape.n);
        table_number(table, "transpose_a", NULL, 0, timing->transpose_a);
        table_number(table, "transpose_b", NULL, 0, timing->transpose_b);
        table_text(table, "backend", "backend", device->backend->name);
        table_text(table, "variant", "variant", name);
        table_text(table, "ran", "ran", subject == NULL || figures->ran == NULL ? name : figures->ran->name);
        table_number(table, "tile", "tile", 0, table_known(tile, tile > 0));
        table_text(table, "status", "status", row->wrong ? "wrong" : mm_status_name(figures->error.status));
        table_number(table, "repeats", "repeats", 0, timed ? figures->repeats : 0);
        table_number(table, NULL, "sets of buffers", 0, table_known((double)figures->set_count, timed));
        const int ms_digits = table->is_csv ? 6 : 4;
        table_number(table, "min_ms", "min ms", ms_digits, table_known(figures->min_ns * 1e-6, timed));
        table_number(table, "median_ms", "median ms", ms_digits,
                     table_known(figures->median_ns * 1e-6, timed));
        table_number(table, "max_ms", "max ms", ms_digits, table_known(figures->max_ns * 1e-6, timed));
        table_number(table, "gflops", multiplies ? "GFLOP/s" : NULL, table->is_csv ? 6 : 1,
                     table_known(rate, multiplies));
        table_number(table, "percent_of_blas", multiplies ? "% of blas" : NULL, table->is_csv ? 3 : 1,
                     table_known(percent, multiplies));
        table_number(table, "gigabytes_per_second", multiplies ? NULL : "GB/s", table->is_csv ? 6 : 1,
                     table_known(rate, !multiplies));
        table_number(table, "percent_of_copy", multiplies ? NULL : "% of copy", table->is_csv ? 3 : 1,
                     table_known(percent, !multiplies));
        table_number(table, "max_error", "max error", -3, table_known(figures->max_error, is_checked));
        table_number(table, "relative_error", "relative error", -3,
                     table_known(figures->relative_error, is_checked && multiplies));
        table_number(table, "threads_per_block", NULL, 0, table_known(uses->threads_per_block, told));
        table_number(table, "registers_per_thread", "registers", 0,
                     table_known(uses->registers_per_thread, told));
        table_number(table, "static_shared_bytes", "static shared bytes", 0,
                     table_known((double)uses->static_shared_bytes, told));
        table_number(table, "dynamic_shared_bytes", "dynamic shared bytes", 0,
                     table_known((double)uses->dynamic_shared_bytes, told));
        table_number(table, "local_bytes", NULL, 0, table_known((double)uses->local_bytes, told));
        table_number(table, "blocks_per_multiprocessor", "blocks per multiprocessor", 0,
                     table_known(uses->blocks_per_multiprocessor, told));
        for (enum mm_traffic_figure figure = 0; figure < MM_TRAFFIC_COUNT; figure++)
            table_number(table, mm_traffic_name(figure), NULL, 0,
                         table_known((double)row->traffic.figures[figure],
                                     timed && row->traffic.figures[figure] != MM_TRAFFIC_UNKNOWN));
        table_text(table, "device", NULL, device->name);
        table_text(table, NULL, "remark", timed ? "" : figures->error.detail);
    } while (table_end(table));
}

struct field {
    const struct options *options;
    struct entrant entrants[DEVICES_MAX];
    size_t count;
    struct table csv; /* `out` is NULL if the user wants no CSV */
    size_t timed;
    size_t failures;
};

/* Counts the row as timed or as failed. A row is no failure if it does not fit into memory or is not
 * supported. */
static void add_row(struct field *field, const struct timed_row *row) {
    const enum mm_status status = row->figures.error.status;
    field->timed += status == MM_OK;
    field->failures += row->wrong || (status != MM_OK && status != MM_UNSUPPORTED &&
                                      status != MM_NO_DEVICE_MEMORY && status != MM_TOO_LARGE);
}

static void time_device(struct field *field, const struct entrant *entrant, struct shape shape) {
    const struct timing *timing = &field->options->timing;
    struct timed_row *rows =
        harness_allocate((entrant->count + 1) * sizeof *rows); /* one more for the plain copy */
    struct table markdown = {.out = stdout, .is_head = true};
    const size_t count = make_rows(field->options, entrant, shape, rows);
    if (count > 0) {
        time_rows(entrant->device, rows, count, shape, timing);
        printf("- %s: %s; the rows in turn, %u repeats, fewer of what takes over %u s\n\n",
               entrant->device->backend->name, mm_dtype_name(timing->dtype), timing->repeats,
               timing->seconds);
    }
    for (size_t index = 0; index < count; index++) {
        print_row(&markdown, &rows[index], entrant->device, shape, timing);
        if (field->csv.out != NULL)
            print_row(&field->csv, &rows[index], entrant->device, shape, timing);
        add_row(field, &rows[index]);
    }
    fflush(stdout);
    free(rows);
}

/* Times the devices one after the other, because work on the host lowers a GPU's clock rate. */
static void time_shape(struct field *field, struct shape shape) {
    const struct timing *timing = &field->options->timing;
    if (timing->op == MM_TRANSPOSE)
        printf("\n## A %zu×%zu transposed, %s\n\n", shape.n, shape.m, mm_dtype_name(timing->dtype));
    else
        printf("\n## A %zu×%zu · B %zu×%zu%s%s\n\n", shape.m, shape.k, shape.k, shape.n,
               timing->transpose_a ? ", A stored transposed" : "",
               timing->transpose_b ? ", B stored transposed" : "");
    for (size_t index = 0; index < field->count; index++)
        time_device(field, &field->entrants[index], shape);
}

int bench_run(const struct options *options, struct mm_device *const *devices, size_t count, FILE *csv) {
    struct field field = {.options = options, .csv = {.out = csv, .is_csv = true, .is_head = true}};
    size_t chosen = 0;
    while (count-- > 0) { /* in reverse order, so the host comes first */
        struct entrant *entrant = &field.entrants[field.count++];
        *entrant = entrant_make(options, devices[count], !devices[0]->backend->is_host);
        chosen += entrant->count;
    }
    if (chosen == 0)
        printf("FAIL: no variant was run\n");
    for (size_t index = 0; index < options->times.count && chosen > 0; index++)
        time_shape(&field, options->times.shapes[index]);
    for (size_t index = 0; index < field.count; index++)
        free(field.entrants[index].subjects);
    printf("\n%zu rows timed, %zu failures\n", field.timed, field.failures);
    return chosen > 0 && field.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
