/* The measuring: what a benchmark does with one device, a step at a time. It knows no request's wording and
 * no limits. */
#include "gpu/lab/benchmark_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A device takes some runs to reach its clocks. A piece of the matrices is filled in well under a slice on
 * a CPU. A first run of a second is no warm-up: there may be no second. */
enum { SETS_MAX = 1 << 19, DEVICE_WARM_UPS = 5, HOST_WARM_UPS = 1, HOST_SETS = 2, PIECE = 1 << 22 };

#define SLOW_NS UINT64_C(1000000000)

size_t mm_benchmark_host_sets(const struct mm_benchmark *benchmark) {
    const size_t room = benchmark->memory_bytes_max > benchmark->judging_bytes
                            ? benchmark->memory_bytes_max - benchmark->judging_bytes
                            : 0;
    return room / HOST_SETS >= benchmark->set_bytes ? HOST_SETS : 1;
}

/* As many as pass three times the L2 together, within half of the free memory; 0 if one does not fit. A
 * host's memory was reserved in the budget. */
static size_t count_sets(const struct mm_benchmark *benchmark, const struct mm_device *device) {
    const size_t room = device->backend->memory_free(device) / 2 / benchmark->set_bytes;
    size_t wanted = 3 * device->l2_bytes / benchmark->set_bytes + 1;
    if (device->backend->is_host)
        return mm_benchmark_host_sets(benchmark);
    if (wanted > room)
        wanted = room;
    if (wanted > SETS_MAX)
        wanted = SETS_MAX;
    return wanted;
}

/* A benchmark holds its memory while others want to multiply, and so must leave them some. */
static enum mm_status fail_room(const struct mm_benchmark *benchmark, const struct mm_device *device,
                                struct mm_error *error) {
    const size_t free_bytes = device->backend->memory_free(device);
    mm_fail(error, MM_NO_DEVICE_MEMORY,
            "%zu bytes are needed of %s, of which a benchmark may take half of those that are free: %zu",
            benchmark->set_bytes, device->name, free_bytes / 2);
    error->needed_bytes = benchmark->set_bytes;
    error->free_bytes = free_bytes;
    return MM_NO_DEVICE_MEMORY;
}

static bool is_copy(const struct mm_benchmark *benchmark, size_t row) {
    return row == benchmark->request.subject_count;
}

/* Begins the rows of the backend at hand, and takes memory for them. */
static enum mm_status take(struct mm_benchmark *benchmark, struct mm_device *device, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    void *memory = NULL;
    benchmark->set_count = count_sets(benchmark, device);
    for (size_t row = 0; row < benchmark->row_count; row++) {
        struct mm_benchmark_course *course = &benchmark->courses[row];
        course->is_over = !is_copy(benchmark, row) && benchmark->request.subjects[row].backend != backend;
        if (course->is_over)
            continue;
        course->spent_ns = 0;
        course->pieces = (struct mm_pieces){0};
        course->phase = MM_BENCHMARK_CHOOSE;
        course->warm_ups_left = backend->is_host ? HOST_WARM_UPS : DEVICE_WARM_UPS;
        benchmark->rows[row] = (struct mm_benchmark_row){.device = device, .set_count = benchmark->set_count};
    }
    benchmark->filled = benchmark->at = benchmark->turn = 0;
    if (benchmark->set_count == 0)
        return fail_room(benchmark, device, error);
    enum mm_status status = mm_benchmark_judge_open(benchmark, error);
    if (status == MM_OK)
        status = backend->acquire(device, benchmark->set_count * benchmark->set_bytes, &memory, error);
    if (status == MM_OK)
        benchmark->memory = memory;
    return status;
}

static enum mm_status fill(struct mm_benchmark *benchmark, struct mm_device *device, struct mm_error *error) {
    const size_t count = benchmark->set_count * benchmark->set_bytes / sizeof(float);
    const size_t left = count - benchmark->filled;
    const size_t piece = left < PIECE ? left : PIECE;
    enum mm_status status =
        device->backend->fill(device, benchmark->memory + benchmark->filled * sizeof(float), piece,
                              mm_random_skip(MM_BENCHMARK_SEED, benchmark->filled), error);
    benchmark->filled += piece;
    return status;
}

/* The product of a row on one of the sets. The plain copy is the transposition that has nothing to do. */
static struct mm_product place(const struct mm_benchmark *benchmark, size_t set, size_t row) {
    struct mm_product product = benchmark->product;
    char *memory = benchmark->memory + set * benchmark->set_bytes;
    if (is_copy(benchmark, row)) {
        product.transpose_a = false;
        mm_product_conform_transposition(&product);
        product.c = mm_matrix_dense(product.c.dtype, product.m, product.n, NULL);
    } else {
        product.tile = benchmark->request.subjects[row].tile;
    }
    product.a.data = memory;
    product.b.data = memory + benchmark->b_offset;
    product.c.data = memory + benchmark->c_offset;
    return product;
}

/* The first variant that can run the benchmark's operation here, all of which copy in the same way; or NULL.
 */
static const struct mm_variant *find_copying(const struct mm_benchmark *benchmark,
                                             const struct mm_device *device) {
    const struct mm_backend *backend = device->backend;
    for (size_t index = 0; index < backend->variant_count; index++) {
        const struct mm_variant *variant = &backend->variants[index];
        if (variant->op == benchmark->request.op && !mm_variant_chooses(variant) &&
            (mm_variant_dtypes(variant) & MM_DTYPE_BIT(benchmark->request.dtype)) != 0 &&
            mm_variant_missing(variant, device) == NULL)
            return variant;
    }
    return NULL;
}

static enum mm_status choose(struct mm_benchmark *benchmark, const struct mm_device *device, size_t row,
                             const struct mm_product *product) {
    struct mm_benchmark_row *result = &benchmark->rows[row];
    const struct mm_variant *variant =
        is_copy(benchmark, row) ? find_copying(benchmark, device) : benchmark->request.subjects[row].variant;
    if (variant == NULL)
        return mm_fail(&result->error, MM_UNSUPPORTED, "nothing on %s copies", device->name);
    const char *reason = mm_variant_missing(variant, device);
    if (reason != NULL)
        return mm_fail(&result->error, MM_UNSUPPORTED, "variant %s cannot run on %s (%s)", variant->name,
                       device->name, reason);
    struct mm_plan *plan = &benchmark->courses[row].plan;
    const enum mm_status status = mm_plan_make(device, variant, product, false, plan, &result->error);
    if (status != MM_OK)
        return status;
    result->ran = plan->variant;
    return mm_forecast_judge(device, result->ran, product, benchmark->request.kernel_ms_max, &result->error);
}

/* Counts a run, unless it is a warm-up, and sees whether it was the row's last. */
static void count_run(const struct mm_benchmark *benchmark, struct mm_benchmark_row *row,
                      struct mm_benchmark_course *course, uint64_t kernel_ns) {
    if (course->warm_ups_left > 0 && kernel_ns < SLOW_NS && course->spent_ns < benchmark->request.row_ns) {
        course->warm_ups_left--;
        return;
    }
    course->warm_ups_left = 0;
    course->times_ns[row->repeats++] = (double)kernel_ns;
    course->is_over =
        row->repeats == benchmark->request.repeats || course->spent_ns >= benchmark->request.row_ns;
}

/* Does the next piece of a run, on the host, or else all of it; *is_over, and *kernel_ns tells the run's
 * time, once it was the last. */
static enum mm_status run_row(struct mm_benchmark *benchmark, struct mm_device *device, size_t index,
                              const struct mm_product *product, uint64_t *kernel_ns, bool *is_over) {
    struct mm_benchmark_row *row = &benchmark->rows[index];
    struct mm_benchmark_course *course = &benchmark->courses[index];
    const uint64_t begun_ns = mm_clock_ns();
    const struct mm_product piece = mm_pieces_next(&course->pieces, device, row->ran, product);
    uint64_t took_ns = 0;
    enum mm_status status = device->backend->measure(device, &course->plan, &piece, &took_ns, &row->error);
    course->spent_ns += mm_clock_ns() - begun_ns;
    *is_over = status != MM_OK || !mm_pieces_end(&course->pieces, product, took_ns);
    if (!*is_over)
        return MM_OK;
    *kernel_ns = course->pieces.spent_ns;
    course->pieces = (struct mm_pieces){0};
    benchmark->turn++;
    return status;
}

static enum mm_status repeat(struct mm_benchmark *benchmark, struct mm_device *device, size_t index) {
    const struct mm_product product = place(benchmark, benchmark->turn % benchmark->set_count, index);
    uint64_t kernel_ns = 0;
    bool is_over = false;
    enum mm_status status = run_row(benchmark, device, index, &product, &kernel_ns, &is_over);
    if (status == MM_OK && is_over)
        count_run(benchmark, &benchmark->rows[index], &benchmark->courses[index], kernel_ns);
    return status;
}

/* A step of the row's turn, which is over once the phase is MM_BENCHMARK_REPEAT. What is judged is on the
 * first set, whose result is known. */
static enum mm_status advance(struct mm_benchmark *benchmark, struct mm_device *device, size_t index) {
    struct mm_benchmark_row *row = &benchmark->rows[index];
    struct mm_benchmark_course *course = &benchmark->courses[index];
    const struct mm_product product = place(benchmark, 0, index);
    bool is_over = true;
    enum mm_status status = MM_OK;
    switch (course->phase) {
    case MM_BENCHMARK_CHOOSE:
        status = choose(benchmark, device, index, &product);
        mm_benchmark_judge_begin(benchmark);
        course->phase = is_copy(benchmark, index) ? MM_BENCHMARK_REPEAT : MM_BENCHMARK_POISON;
        return status == MM_OK && is_copy(benchmark, index) ? repeat(benchmark, device, index) : status;
    case MM_BENCHMARK_POISON:
        status = mm_benchmark_poison(benchmark, device, &product, &is_over, &row->error);
        break;
    case MM_BENCHMARK_PROVE:
        status = run_row(benchmark, device, index, &product, &course->proof_ns, &is_over);
        break;
    case MM_BENCHMARK_READ:
        status = mm_benchmark_read(benchmark, device, &product, &is_over, row);
        if (status == MM_OK && is_over)
            count_run(benchmark, row, course, course->proof_ns);
        break;
    case MM_BENCHMARK_REPEAT:
        return repeat(benchmark, device, index);
    }
    if (is_over)
        course->phase++; /* they stand in order */
    return status;
}

/* What befalls the device befalls all rows that are not over. */
static void fail_rows(struct mm_benchmark *benchmark, const struct mm_error *error) {
    for (size_t row = 0; row < benchmark->row_count; row++) {
        if (!benchmark->courses[row].is_over)
            benchmark->rows[row].error = *error;
        benchmark->courses[row].is_over = true;
    }
}

/* Does a step of the row whose turn it is, and moves on where its turn is over; false where all rows are. */
static bool measure(struct mm_benchmark *benchmark, struct mm_device *device) {
    for (size_t passed = 0; passed < benchmark->row_count; passed++) {
        const size_t row = benchmark->at;
        struct mm_benchmark_course *course = &benchmark->courses[row];
        const bool was_over = course->is_over;
        if (!was_over && advance(benchmark, device, row) != MM_OK) {
            course->is_over = true;
            if (mm_device_has_failed(device))
                fail_rows(benchmark, &benchmark->rows[row].error);
        }
        const bool is_in_run = course->pieces.rows > 0;
        if (course->is_over || (course->phase == MM_BENCHMARK_REPEAT && !is_in_run))
            benchmark->at = (row + 1) % benchmark->row_count;
        if (!was_over)
            return true;
    }
    return false;
}

/* One step of the stage at hand; false where there is nothing more to do. */
static bool step(struct mm_benchmark *benchmark, struct mm_device *device) {
    struct mm_error error;
    enum mm_status status = MM_OK;
    switch (benchmark->stage) {
    case MM_BENCHMARK_TAKE:
        status = take(benchmark, device, &error);
        benchmark->stage = MM_BENCHMARK_FILL;
        break;
    case MM_BENCHMARK_FILL:
        status = fill(benchmark, device, &error);
        if (benchmark->filled == benchmark->set_count * benchmark->set_bytes / sizeof(float))
            benchmark->stage = MM_BENCHMARK_EXPECT;
        break;
    case MM_BENCHMARK_EXPECT:
        if (!mm_benchmark_expect(benchmark))
            benchmark->stage = MM_BENCHMARK_MEASURE;
        break;
    case MM_BENCHMARK_MEASURE:
        return measure(benchmark, device);
    }
    if (status != MM_OK)
        fail_rows(benchmark, &error);
    return status == MM_OK;
}

static int ascending(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The figures of the backend's rows, now that all are over. */
static void conclude(struct mm_benchmark *benchmark, const struct mm_device *device) {
    const struct mm_benchmark_row *yardstick = NULL;
    for (size_t index = 0; index < benchmark->row_count; index++) {
        struct mm_benchmark_row *row = &benchmark->rows[index];
        const double *times_ns = benchmark->courses[index].times_ns;
        if (row->device != device || row->error.status != MM_OK)
            continue;
        qsort(benchmark->courses[index].times_ns, row->repeats, sizeof *times_ns, ascending);
        row->min_ns = times_ns[0];
        row->median_ns = 0.5 * (times_ns[(row->repeats - 1) / 2] + times_ns[row->repeats / 2]);
        row->max_ns = times_ns[row->repeats - 1];
        if (yardstick == NULL &&
            (is_copy(benchmark, index) ||
             strcmp(benchmark->request.subjects[index].variant->name, MM_BENCHMARK_YARDSTICK) == 0))
            yardstick = row;
    }
    for (size_t index = 0; index < benchmark->row_count && yardstick != NULL; index++) {
        struct mm_benchmark_row *row = &benchmark->rows[index];
        if (row->device == device && row->error.status == MM_OK && row->median_ns > 0.0)
            row->of_yardstick = yardstick->median_ns / row->median_ns;
    }
}

enum mm_task_state mm_benchmark_run(struct mm_task *task, struct mm_device *device, bool cancelled,
                                    struct mm_error *error) {
    struct mm_benchmark *benchmark = (struct mm_benchmark *)task; /* its first member */
    const uint64_t until_ns = mm_clock_ns() + MM_TASK_SLICE_NS;
    bool more = !cancelled;
    while (more) {
        more = step(benchmark, device);
        if (more && mm_clock_ns() >= until_ns)
            return MM_TASK_AGAIN;
    }
    if (benchmark->memory != NULL)
        device->backend->release(device, benchmark->memory);
    benchmark->memory = NULL;
    if (!cancelled)
        conclude(benchmark, device);
    return MM_TASK_OVER;
}
