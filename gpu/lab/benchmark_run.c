/* Measures the rows of a benchmark on one device, step by step. */
#include "gpu/lab/benchmark_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A GPU needs some runs to reach its full clock rate. A CPU generates FILL_NUMBERS elements in much less time
 * than MM_TASK_SLICE_NS. */
enum { SETS_MAX = 1 << 19, DEVICE_WARM_UPS = 5, HOST_WARM_UPS = 1, FILL_NUMBERS = 1 << 22 };

/* A warm-up that takes longer than this counts as a run, because there may be time for only one run. */
#define SLOW_NS UINT64_C(1000000000)

/* Returns the number of sets; 0 if one set does not fit. All sets together exceed three times the L2 cache,
 * but use at most half of the free memory, because products run between the steps of a benchmark. On the
 * host, the number is fixed, because the budget has already reserved the memory. */
static size_t count_sets(const struct mm_benchmark *benchmark, const struct mm_device *device) {
    if (device->backend->is_host)
        return benchmark->host_set_count;
    const size_t wanted = 3 * device->l2_bytes / benchmark->set_bytes + 1;
    const size_t fitting = device->backend->memory_free(device) / 2 / benchmark->set_bytes;
    return mm_size_min(mm_size_min(wanted, fitting), SETS_MAX);
}

/* The message reports half of the free memory as available, because count_sets uses at most half. */
static enum mm_status fail_memory(const struct mm_benchmark *benchmark, const struct mm_device *device,
                                  struct mm_error *error) {
    const size_t free_bytes = device->backend->memory_free(device);
    char who[sizeof device->name + 32];
    snprintf(who, sizeof who, "a benchmark on %s", device->name);
    (void)mm_fail_device_memory(error, who, benchmark->set_bytes, free_bytes / 2);
    error->free_bytes = free_bytes;
    return MM_NO_DEVICE_MEMORY;
}

static bool is_copy(const struct mm_benchmark *benchmark, size_t row) {
    return row == benchmark->request.subject_count;
}

/* Begins the rows of the current backend, and acquires device memory. */
static enum mm_status acquire(struct mm_benchmark *benchmark, struct mm_device *device,
                              struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    void *memory = NULL;
    benchmark->set_count = count_sets(benchmark, device);
    for (size_t row = 0; row < benchmark->row_count; row++) {
        struct mm_benchmark_row_state *row_state = &benchmark->row_states[row];
        row_state->is_over = !is_copy(benchmark, row) && benchmark->request.subjects[row].backend != backend;
        if (row_state->is_over)
            continue;
        *row_state = (struct mm_benchmark_row_state){
            .times_ns = row_state->times_ns,
            .warm_ups_left = backend->is_host ? HOST_WARM_UPS : DEVICE_WARM_UPS,
        };
        benchmark->rows[row] = (struct mm_benchmark_row){.device = device, .set_count = benchmark->set_count};
    }
    benchmark->filled = benchmark->current_row = benchmark->run_count = 0;
    if (benchmark->set_count == 0)
        return fail_memory(benchmark, device, error);
    enum mm_status status =
        backend->acquire(device, benchmark->set_count * benchmark->set_bytes, &memory, error);
    benchmark->memory = status == MM_OK ? memory : NULL;
    return status;
}

static size_t count_elements(const struct mm_benchmark *benchmark, unsigned index) {
    const struct mm_matrix *operand = mm_product_operand(&benchmark->product, index);
    return operand->rows * operand->cols;
}

/* Copies or generates more elements of the operands in host memory. */
static enum mm_status copy_given(struct mm_benchmark *benchmark, struct mm_error *error) {
    size_t first = benchmark->given_count;
    unsigned index = 0;
    while (first >= count_elements(benchmark, index))
        first -= count_elements(benchmark, index++);
    const struct mm_matrix *operand = mm_product_operand(&benchmark->product, index);
    const size_t count = mm_size_min(count_elements(benchmark, index) - first, FILL_NUMBERS);
    const enum mm_status status =
        mm_source_generate(&benchmark->request.sources[index], operand, first, count, error);
    if (status == MM_OK)
        benchmark->given_count += count;
    return status;
}

static bool lacks_given(const struct mm_benchmark *benchmark) {
    size_t count = 0;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        count += count_elements(benchmark, index);
    return benchmark->given != NULL && benchmark->given_count < count;
}

/* Returns how much must still be filled: bytes if the operands have sources, else elements. */
static size_t left_to_fill(const struct mm_benchmark *benchmark) {
    if (benchmark->given != NULL)
        return benchmark->set_count * benchmark->offsets[MM_OPERANDS_MAX] - benchmark->filled;
    return benchmark->set_count * benchmark->set_bytes / mm_dtype_bytes(mm_benchmark_fill_dtype(benchmark)) -
           benchmark->filled;
}

/* Uploads operands that have sources, or a part of them, to a set. */
static enum mm_status fill_given(struct mm_benchmark *benchmark, struct mm_device *device,
                                 struct mm_error *error) {
    const size_t given_bytes = benchmark->offsets[MM_OPERANDS_MAX];
    const size_t set = benchmark->filled / given_bytes;
    const size_t first = benchmark->filled % given_bytes;
    const size_t bytes = mm_size_min(given_bytes - first, FILL_NUMBERS);
    benchmark->filled += bytes;
    return device->backend->upload(device, benchmark->memory + set * benchmark->set_bytes + first,
                                   benchmark->given + first, bytes, error);
}

static enum mm_status fill(struct mm_benchmark *benchmark, struct mm_device *device, size_t left,
                           struct mm_error *error) {
    if (benchmark->given != NULL)
        return fill_given(benchmark, device, error);
    const enum mm_dtype dtype = mm_benchmark_fill_dtype(benchmark);
    const size_t first = benchmark->filled;
    const size_t count = mm_size_min(left, FILL_NUMBERS);
    benchmark->filled += count;
    return device->backend->fill(device, benchmark->memory + first * mm_dtype_bytes(dtype), dtype, count,
                                 mm_random_skip(MM_BENCHMARK_SEED, first), error);
}

/* Returns the product of a row on one of the sets. The plain copy is the transposition of a matrix that is
 * stored transposed. */
static struct mm_product place(const struct mm_benchmark *benchmark, size_t set, size_t row) {
    struct mm_product product = benchmark->product;
    char *memory = benchmark->memory + set * benchmark->set_bytes;
    if (is_copy(benchmark, row)) {
        product.transpose_a = false;
        (void)mm_product_conform(MM_TRANSPOSE, &product, NULL);
        product.c = mm_product_result(MM_TRANSPOSE, &product);
    } else {
        product.tile = benchmark->request.subjects[row].tile;
    }
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        mm_product_place_operand(&product, index, memory + benchmark->offsets[index]);
    product.c.data = memory + benchmark->offsets[MM_OPERANDS_MAX];
    return product;
}

/* Plans the runs of a row. The plain copy uses the variant `naive`, which all backends have. */
static enum mm_status choose(struct mm_benchmark *benchmark, const struct mm_device *device, size_t row,
                             const struct mm_product *product) {
    const struct mm_benchmark_request *request = &benchmark->request;
    struct mm_benchmark_row *result = &benchmark->rows[row];
    struct mm_plan *plan = &benchmark->row_states[row].plan;
    const struct mm_variant *variant = is_copy(benchmark, row)
                                           ? mm_backend_variant(device->backend, request->op, "naive")
                                           : request->subjects[row].variant;
    const char *reason = mm_variant_missing(variant, device, request->dtype);
    if (reason != NULL)
        return mm_fail(&result->error, MM_UNSUPPORTED, "variant %s cannot run on %s (%s)", variant->name,
                       device->name, reason);
    const enum mm_status status = mm_plan_make(device, variant, product, plan, &result->error);
    if (status != MM_OK)
        return status;
    result->ran = plan->variant;
    return mm_forecast_check(device, result->ran, product, request->kernel_ms_max, &result->error);
}

static void count_run(const struct mm_benchmark *benchmark, struct mm_benchmark_row *row,
                      struct mm_benchmark_row_state *row_state, uint64_t kernel_ns) {
    if (row_state->warm_ups_left > 0 && kernel_ns < SLOW_NS &&
        row_state->spent_ns < benchmark->request.row_ns) {
        row_state->warm_ups_left--;
    } else {
        row_state->warm_ups_left = 0;
        row_state->times_ns[row->repeats++] = (double)kernel_ns;
    }
}

/* Runs the next part of the product. A GPU computes the whole product in one part. */
static enum mm_status run_part(struct mm_benchmark *benchmark, struct mm_device *device, size_t index,
                               const struct mm_product *product) {
    struct mm_benchmark_row *row = &benchmark->rows[index];
    struct mm_benchmark_row_state *row_state = &benchmark->row_states[index];
    const uint64_t begun_ns = mm_clock_ns();
    const struct mm_product part = mm_progress_next(&row_state->progress, device, row->ran, product);
    uint64_t took_ns = 0;
    enum mm_status status = device->backend->measure(device, &row_state->plan, &part, &took_ns, &row->error);
    row_state->spent_ns += mm_clock_ns() - begun_ns;
    if (status != MM_OK || mm_progress_end(&row_state->progress, product, took_ns))
        return status;
    count_run(benchmark, row, row_state, row_state->progress.spent_ns);
    row_state->progress = (struct mm_progress){0};
    benchmark->run_count++;
    return MM_OK;
}

/* The first run uses the first set, because the check knows the product of that set. */
static enum mm_status advance(struct mm_benchmark *benchmark, struct mm_device *device, size_t index) {
    struct mm_benchmark_row *row = &benchmark->rows[index];
    struct mm_benchmark_row_state *row_state = &benchmark->row_states[index];
    const bool repeats = row_state->phase == MM_BENCHMARK_REPEAT;
    const struct mm_product product =
        place(benchmark, repeats ? benchmark->run_count % benchmark->set_count : 0, index);
    enum mm_status status = MM_OK;
    switch (row_state->phase) {
    case MM_BENCHMARK_CHOOSE:
        benchmark->c_bytes_done = 0;
        row_state->phase = is_copy(benchmark, index) ? MM_BENCHMARK_FIRST_RUN : MM_BENCHMARK_POISON;
        return choose(benchmark, device, index, &product);
    case MM_BENCHMARK_POISON:
        status = mm_benchmark_poison(benchmark, device, &product, &row->error);
        break;
    case MM_BENCHMARK_READ:
        status = mm_benchmark_read(benchmark, device, &product, row);
        break;
    case MM_BENCHMARK_FIRST_RUN:
    case MM_BENCHMARK_REPEAT:
        status = run_part(benchmark, device, index, &product);
        break;
    }
    if (benchmark->c_bytes_done == 0 && row_state->progress.rows == 0 && !repeats)
        row_state->phase = is_copy(benchmark, index) ? MM_BENCHMARK_REPEAT : row_state->phase + 1;
    return status;
}

static void fail_rows(struct mm_benchmark *benchmark, const struct mm_error *error) {
    for (size_t row = 0; row < benchmark->row_count; row++) {
        if (!benchmark->row_states[row].is_over)
            benchmark->rows[row].error = *error;
        benchmark->row_states[row].is_over = true;
    }
}

/* Does a step of the current row, or of the next incomplete row. Returns false if all rows are complete. */
static bool measure(struct mm_benchmark *benchmark, struct mm_device *device) {
    size_t left = benchmark->row_count;
    while (left > 0 && benchmark->row_states[benchmark->current_row].is_over) {
        benchmark->current_row = (benchmark->current_row + 1) % benchmark->row_count;
        left--;
    }
    if (left == 0)
        return false;
    struct mm_benchmark_row *row = &benchmark->rows[benchmark->current_row];
    struct mm_benchmark_row_state *row_state = &benchmark->row_states[benchmark->current_row];
    if (advance(benchmark, device, benchmark->current_row) != MM_OK) {
        row_state->is_over = true;
        if (mm_device_has_failed(device))
            fail_rows(benchmark, &row->error);
    } else if (row_state->phase == MM_BENCHMARK_REPEAT && row_state->progress.rows == 0) {
        row_state->is_over =
            row->repeats == benchmark->request.repeats || row_state->spent_ns >= benchmark->request.row_ns;
        benchmark->current_row = (benchmark->current_row + 1) % benchmark->row_count;
    }
    return true;
}

static bool step(struct mm_benchmark *benchmark, struct mm_device *device) {
    const size_t left = left_to_fill(benchmark);
    struct mm_error error;
    enum mm_status status = MM_OK;
    if (benchmark->memory == NULL)
        status = acquire(benchmark, device, &error);
    else if (lacks_given(benchmark))
        status = copy_given(benchmark, &error);
    else if (left > 0)
        status = fill(benchmark, device, left, &error);
    else if (!mm_benchmark_compute_expected(benchmark))
        return measure(benchmark, device);
    if (status != MM_OK)
        fail_rows(benchmark, &error);
    return status == MM_OK;
}

static int ascending(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Computes the results of a backend's rows, all of which are complete. */
static void conclude(struct mm_benchmark *benchmark, const struct mm_device *device) {
    const struct mm_benchmark_row *yardstick = NULL;
    for (size_t index = 0; index < benchmark->row_count; index++) {
        struct mm_benchmark_row *row = &benchmark->rows[index];
        double *times_ns = benchmark->row_states[index].times_ns;
        if (row->device != device || row->error.status != MM_OK)
            continue;
        qsort(times_ns, row->repeats, sizeof *times_ns, ascending);
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

enum mm_task_state mm_benchmark_run(struct mm_task *task, struct mm_device *device, bool cancelled) {
    struct mm_benchmark *benchmark = task->subject; /* each row has its own error, so the task needs none */
    const uint64_t until_ns = mm_clock_ns() + MM_TASK_SLICE_NS;
    while (!cancelled && step(benchmark, device))
        if (mm_clock_ns() >= until_ns)
            return MM_TASK_AGAIN;
    if (benchmark->memory != NULL && device != NULL)
        device->backend->release(device, benchmark->memory);
    benchmark->memory = NULL;
    if (!cancelled)
        conclude(benchmark, device);
    return MM_TASK_OVER;
}
