#include "lab.h"
#include "gpu/device/backend.h"
#include "gpu/lab/traffic/kernels.h"

#include <math.h>
#include <time.h>

struct lab lab;
struct mm_device lab_device, lab_host;
struct mm_benchmark *benchmark;

#define LAUNCH(name)                                                                                         \
    static enum mm_status name(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error)

LAUNCH(multiply) {
    return mm_cpu_backend.variants[0].launch[product->a.dtype](product, lane, error);
}

/* Leaves the last element of C unwritten. */
LAUNCH(drop_corner) {
    const size_t bytes = mm_dtype_bytes(product->c.dtype);
    char *last = (char *)product->c.data + (product->m * product->n - 1) * bytes;
    uint64_t kept;
    memcpy(&kept, last, bytes);
    enum mm_status status = multiply(product, lane, error);
    memcpy(last, &kept, bytes);
    return status;
}

/* Ignores the last element of each sum. */
LAUNCH(drop_slab) {
    struct mm_product less = *product;
    less.k--;
    return multiply(&less, lane, error);
}

/* Ignores the bias. */
LAUNCH(drop_bias) {
    struct mm_product less = *product;
    less.bias.rows = 0;
    return multiply(&less, lane, error);
}

/* Leaves a tile of 16×16 in the middle of C unwritten. */
LAUNCH(drop_tile) {
    const size_t first = product->m / 2 * product->c.ld + product->n / 2;
    float *tile = (float *)product->c.data + first;
    float kept[16][16];
    for (size_t row = 0; row < 16; row++)
        memcpy(kept[row], tile + row * product->c.ld, sizeof kept[row]);
    enum mm_status status = multiply(product, lane, error);
    for (size_t row = 0; row < 16; row++)
        memcpy(tile + row * product->c.ld, kept[row], sizeof kept[row]);
    return status;
}

LAUNCH(do_nothing) {
    return MM_OK;
}

LAUNCH(refuse) {
    return mm_fail(error, MM_UNSUPPORTED, "not \"this\" shape");
}

LAUNCH(lose_device) {
    __atomic_store_n(&lab_device.failed, 1, __ATOMIC_RELAXED);
    return mm_fail(error, MM_DEVICE_FAILED, "simulated device failure");
}

LAUNCH(transpose) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    for (size_t row = 0; row < product->m; row++)
        for (size_t col = 0; col < product->n; col++) {
            const size_t source =
                product->transpose_a ? col * product->a.ld + row : row * product->a.ld + col;
            memcpy((char *)product->c.data + (row * product->c.ld + col) * bytes,
                   (const char *)product->a.data + source * bytes, bytes);
        }
    return MM_OK;
}

/* Gives two elements some bytes of a neighbour: one has wrong first bytes, the other wrong last bytes. */
LAUNCH(misplace_two) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    const size_t part = bytes < sizeof(float) ? bytes : sizeof(float);
    enum mm_status status = transpose(product, lane, error);
    char *one = (char *)product->c.data + (product->m / 2 * product->c.ld + product->n / 2) * bytes;
    char *other = one + (product->c.ld + 1) * bytes - part;
    memcpy(one, one + bytes, part);
    memcpy(other, other + bytes, part);
    return status;
}

static const char *nowhere(const struct mm_device *device) {
    return "no device has it";
}

static const unsigned tiles[] = {4, 8, 0};
static const struct mm_variant variants[];

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    return &variants[1];
}

#define MATMUL(variant, function) .name = variant, .launch = {[0 ... MM_DTYPE_COUNT - 1] = function}
#define TRANSPOSE(variant, function)                                                                         \
    .op = MM_TRANSPOSE, .name = variant, .launch = {[0 ... MM_DTYPE_COUNT - 1] = function}
static const struct mm_variant variants[] = {
    {MATMUL("naive", multiply), .traffic = mm_traffic_naive},
    {MATMUL("tiled_8", multiply), .traffic = mm_traffic_tiled, .tile = 8},
    {MATMUL("dynamic", multiply), .traffic = mm_traffic_tiled, .tile = 4, .tiles = tiles},
    {MATMUL("blas", multiply)},
    {MATMUL("no_corner", drop_corner)},
    {MATMUL("no_slab", drop_slab)},
    {MATMUL("no_tile", drop_tile)},
    {MATMUL("no_bias", drop_bias)},
    {MATMUL("nothing", do_nothing)},
    {MATMUL("refuses", refuse)},
    {MATMUL("loses_device", lose_device)},
    {MATMUL("missing", multiply), .missing = nowhere},
    {MATMUL("slow", multiply)},
    {MATMUL("cuts", multiply), .cut = 8},
    {.name = "auto", .choose[MM_FLOAT32] = choose},
    {TRANSPOSE("naive", transpose)},
    {TRANSPOSE("nothing", do_nothing)},
    {TRANSPOSE("misplaces", misplace_two)},
};

static size_t memory_free(const struct mm_device *device) {
    return device->memory_bytes;
}

static enum mm_status acquire(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error) {
    if (lab.no_memory)
        return mm_fail(error, MM_NO_DEVICE_MEMORY, "simulated lack of memory");
    lab.held++;
    lab.held_bytes = bytes;
    *memory = lab.memory = calloc(1, bytes);
    assert_non_null(*memory);
    return MM_OK;
}

static void release(struct mm_device *device, void *memory) {
    lab.held--;
    free(memory);
}

static enum mm_status copy(unsigned *copies, void *to, const void *from, size_t bytes,
                           struct mm_error *error) {
    const struct timespec pause = {.tv_nsec = lab.copy_ns};
    (*copies)++;
    if (*copies == lab.failing_copy)
        return mm_fail(error, MM_INTERNAL, "simulated copy failure");
    nanosleep(&pause, NULL);
    memcpy(to, from, bytes);
    return MM_OK;
}

static enum mm_status upload(struct mm_device *device, void *to, const void *from, size_t bytes,
                             struct mm_error *error) {
    return copy(&lab.uploads, to, from, bytes, error);
}

static enum mm_status download(struct mm_device *device, void *to, const void *from, size_t bytes,
                               struct mm_error *error) {
    return copy(&lab.downloads, to, from, bytes, error);
}

static enum mm_status fill(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                           uint64_t seed, struct mm_error *error) {
    if (lab.no_fill)
        return mm_fail(error, MM_INTERNAL, "simulated failure to fill");
    return mm_cpu_backend.fill(NULL, memory, dtype, count, seed, error);
}

/* The fake time: blas 100 ns, a plain copy 200 ns, others 1000 ns, plus the number of the run. */
static enum mm_status measure(struct mm_device *device, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error) {
    const struct mm_variant *variant = plan->variant;
    assert_true(lab.runs < LAB_RUNS_MAX);
    assert_true(product->m > 0 && product->n > 0);
    if (lab.a != NULL)
        assert_memory_equal(product->a.data, lab.a, mm_matrix_bytes(&product->a));
    if (variant->op == MM_TRANSPOSE)
        assert_int_equal(product->b.rows * product->b.cols, 0);
    *kernel_ns = strcmp(variant->name, "blas") == 0                      ? 100
                 : variant->op == MM_TRANSPOSE && !product->transpose_a  ? 200
                 : strcmp(variant->name, "slow") == 0 && lab.slow_ns > 0 ? lab.slow_ns
                                                                         : 1000;
    *kernel_ns += lab.runs;
    lab.variants[lab.runs] = variant;
    lab.sets[lab.runs++] = product->a.data;
    return variant->launch[product->a.dtype](product, NULL, error);
}

#define FUNCTIONS                                                                                            \
    .variants = variants, .variant_count = COUNT(variants), .memory_free = memory_free, .acquire = acquire,  \
    .release = release, .upload = upload, .download = download, .fill = fill, .measure = measure
const struct mm_backend lab_backend = {.name = "lab", FUNCTIONS};
const struct mm_backend lab_host_backend = {.name = "host", .is_host = true, FUNCTIONS};

int lab_reset(void **state) {
    memset(&lab, 0, sizeof lab);
    lab_device = (struct mm_device){
        .backend = &lab_backend, .lane_count = 1, .name = "Lab", .memory_bytes = (size_t)1 << 30};
    lab_host = lab_device;
    lab_host.backend = &lab_host_backend;
    return 0;
}

int lab_close(void **state) {
    mm_benchmark_close(benchmark);
    benchmark = NULL;
    return 0;
}

void lab_ask(struct mm_benchmark_request *request, const char *names) {
    for (; *names != '\0'; names += strspn(names, " ")) {
        char name[32];
        const int length = (int)strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", length, names);
        const struct mm_variant *found = mm_backend_variant(&lab_backend, request->op, name);
        assert_non_null(found);
        request->subjects[request->subject_count++] =
            (struct mm_benchmark_subject){.backend = &lab_backend, .variant = found};
        names += length;
    }
}

/* An hour, so a slow machine does not reduce the number of repeats. */
#define HOUR_NS UINT64_C(3600000000000)

struct mm_benchmark_request lab_product(size_t m, size_t k, size_t n, unsigned repeats, const char *names) {
    struct mm_benchmark_request request = {.op = MM_MATMUL,
                                           .m = m,
                                           .k = k,
                                           .n = n,
                                           .dtype = MM_FLOAT32,
                                           .c_dtype = MM_FLOAT32,
                                           .repeats = repeats,
                                           .row_ns = HOUR_NS};
    lab_ask(&request, names);
    return request;
}

struct mm_benchmark_request lab_transposition(size_t m, size_t n, enum mm_dtype dtype, const char *names) {
    struct mm_benchmark_request request = {
        .op = MM_TRANSPOSE, .m = m, .n = n, .dtype = dtype, .repeats = 1, .row_ns = HOUR_NS};
    lab_ask(&request, names);
    return request;
}

bool lab_run_next(struct mm_device *device) {
    struct mm_task task = {.shares = false};
    if (!mm_benchmark_next_task(benchmark, &task))
        return false;
    assert_ptr_equal(task.work.backend, device->backend);
    while (task.run(&task, device, false) == MM_TASK_AGAIN)
        continue;
    assert_int_equal(task.work.error.status, MM_OK);
    assert_int_equal(lab.held, 0);
    return true;
}

void lab_open(const struct mm_benchmark_request *request) {
    mm_benchmark_close(benchmark);
    benchmark = mm_benchmark_open(request, LAB_MEMORY_MAX);
    assert_non_null(benchmark);
}

const struct mm_benchmark_row *lab_run(const struct mm_benchmark_request *request) {
    lab_open(request);
    lab.runs = 0;
    assert_true(lab_run_next(&lab_device));
    assert_false(lab_run_next(&lab_device));
    return mm_benchmark_rows(benchmark);
}
