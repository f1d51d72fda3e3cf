/* Backends for tests that fail or are slow on purpose: `cuda`, which multiplies on the CPU, and `cpu`. They
 * replace the list in gpu/device/backends.c. Variants fail only for products of one row. Environment
 * variables control the backends. MATMULD_FAULTY_HOLD names a file. While it exists, products whose A begins
 * with 7777 do not finish. The files with suffix .open, .fill and .benchmark delay other work.
 * MATMULD_FAULTY_TILE is a tile for which `tiled` returns a wrong C. MATMULD_FAULTY_DEVICES and
 * MATMULD_FAULTY_MIB are the number of devices (default 1) and the memory of each (default 1024). Devices 0
 * to 2 are peers. Of a product on several devices, `loses_device` loses device 1. If MATMULD_FAULTY_FILL is
 * set, filling matrices fails. */
#include "gpu/device/backend.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/check/verify.h"
#include "gpu/queue/self_test.h"
#include "gpu/store/store.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES_MAX = 4, PEERS = 3, HELD_MS = 5, BENCHMARK_PIECE_MS = 100 };

static const float held_first = 7777;

static struct mm_device devices[DEVICES_MAX];
static int lying[DEVICES_MAX];               /* 1 if results are wrong; atomic access */
static _Thread_local struct mm_device *busy; /* device of the job that this thread runs */
static _Thread_local uint64_t kernel_ns;

static void sleep_ms(unsigned long ms) {
    const struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

/* Returns whether the control file of this kind exists. Appends `bytes` bytes to the file, which tells the
 * test how much was done. */
static int hold(const char *kind, size_t bytes) {
    const char *name = getenv("MATMULD_FAULTY_HOLD");
    char path[4096];
    if (name == NULL || snprintf(path, sizeof path, "%s%s", name, kind) >= (int)sizeof path)
        return 0;
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t written = write(file, "+", bytes);
    (void)written;
    close(file);
    return 1;
}

static void wait_for(const char *kind) {
    while (hold(kind, 0))
        sleep_ms(HELD_MS);
}

static int is_to_hold(const struct mm_product *product) {
    const float *first = product->a.data;
    return product->a.dtype == MM_FLOAT32 && product->k > 0 && first != NULL && *first == held_first;
}

static void wait_until_told(const struct mm_product *product) {
    for (size_t bytes = 1; is_to_hold(product) && hold("", bytes); bytes = 0)
        sleep_ms(HELD_MS);
}

static enum mm_status multiply(const struct mm_product *product, struct mm_lane *lane,
                               struct mm_error *error) {
    return mm_cpu_backend.variants[0].launch[MM_FLOAT32](product, lane, error);
}

static enum mm_status fail_job(const struct mm_product *product, struct mm_lane *lane,
                               struct mm_error *error) {
    return product->m == 1 ? mm_fail(error, MM_INTERNAL, "simulated launch failure")
                           : multiply(product, lane, error);
}

static enum mm_status run_out_of_memory(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    if (product->m != 1)
        return multiply(product, lane, error);
    mm_fail(error, MM_NO_DEVICE_MEMORY, "12345 bytes of device memory are needed, but 678 are free");
    error->needed_bytes = 12345;
    error->free_bytes = 678;
    return MM_NO_DEVICE_MEMORY;
}

/* Marks the device as failed. A job that the test delays still runs until the test releases it. */
static enum mm_status lose_device(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    if (product->m != 1 && (product->whole.m == 0 || busy->index != 1))
        return multiply(product, lane, error);
    __atomic_store_n(&busy->failed, 1, __ATOMIC_RELAXED);
    wait_until_told(product);
    return mm_fail(error, MM_DEVICE_FAILED, "simulated device failure");
}

/* Does not write the last element of C. */
static enum mm_status forget_corner(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    float *last = (float *)product->c.data + product->m * product->n - 1;
    const float before = *last;
    enum mm_status status = multiply(product, lane, error);
    if (product->m == 1)
        *last = before;
    return status;
}

static enum mm_status always_add_one(const struct mm_product *product, struct mm_lane *lane,
                                     struct mm_error *error) {
    enum mm_status status = multiply(product, lane, error);
    ((float *)product->c.data)[product->c.ld * (product->m - 1) + product->n - 1] += 1.0F;
    return status;
}

static enum mm_status add_one(const struct mm_product *product, struct mm_lane *lane,
                              struct mm_error *error) {
    return product->m == 1 ? always_add_one(product, lane, error) : multiply(product, lane, error);
}

static enum mm_status begin_to_lie(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error) {
    if (product->m == 1)
        __atomic_store_n(&lying[busy->index], 1, __ATOMIC_RELAXED);
    return multiply(product, lane, error);
}

static const unsigned tiles[] = {8, 16, 64, 0};

/* Writes the tile size to the first element of C, so a test can see it. The largest tile needs more memory
 * than the device has. */
static enum mm_status tell_tile(const struct mm_product *product, struct mm_lane *lane,
                                struct mm_error *error) {
    const char *wrong = getenv("MATMULD_FAULTY_TILE");
    if (product->tile == 64)
        return mm_fail(error, MM_UNSUPPORTED, "simulated: a tile of 64 needs too much shared memory");
    if (wrong != NULL && strtoul(wrong, NULL, 10) == product->tile)
        return MM_OK;
    enum mm_status status = multiply(product, lane, error);
    if (product->m == 1)
        *(float *)product->c.data = (float)product->tile;
    return status;
}

#define ROW(variant, function)                                                                               \
    { .name = variant, .summary = "simulates a failure", .launch[MM_FLOAT32] = function }
static const struct mm_variant variants[];

/* `choose` returns ROW_VENDOR if the request allows a vendor's library, which this variant simulates. */
enum { ROW_NAIVE, ROW_VENDOR };

static const struct mm_variant *choose(const struct mm_device *chosen_on, const struct mm_product *product) {
    (void)chosen_on;
    return &variants[product->allow_vendor ? ROW_VENDOR : ROW_NAIVE];
}

static bool predict(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic) {
    *traffic = mm_traffic_unknown();
    traffic->figures[MM_GLOBAL_LOADS] = 5;
    traffic->figures[MM_GLOBAL_LOAD_SECTORS] = product->m * product->k;
    traffic->figures[MM_GLOBAL_STORE_SECTORS] = product->n;
    return true;
}

static const struct mm_variant variants[] = {
    [ROW_NAIVE] = {.name = "naive",
                   .summary = "predicts its traffic",
                   .is_row_by_row = true,
                   .launch[MM_FLOAT32] = multiply,
                   .traffic = predict},
    [ROW_VENDOR] = ROW("vendors", multiply),
    ROW("fails", fail_job),
    ROW("needs_memory", run_out_of_memory),
    {.name = "loses_device",
     .summary = "simulates a failure",
     .is_row_by_row = true,
     .launch[MM_FLOAT32] = lose_device},
    ROW("lies", begin_to_lie),
    {.name = "tiled",
     .summary = "tells its tile",
     .tile = 16,
     .tiles = tiles,
     .launch[MM_FLOAT32] = tell_tile},
    ROW("forgets_corner", forget_corner),
    ROW("off_by_one", add_one),
    {.name = "racy",
     .summary = "gives a wrong result",
     .wrong_on_purpose = true,
     .launch[MM_FLOAT32] = always_add_one},
    ROW("certified", multiply),
    ROW("repaired", multiply),
    ROW("simt", multiply),
    {.name = "auto", .summary = "naive or vendors", .choose[MM_FLOAT32] = choose},
};

static enum mm_status count(unsigned *count, struct mm_error *error) {
    const char *told = getenv("MATMULD_FAULTY_DEVICES");
    (void)error;
    *count = told != NULL ? (unsigned)strtoul(told, NULL, 10) : 1;
    *count = *count < DEVICES_MAX ? *count : DEVICES_MAX;
    return MM_OK;
}

static struct mm_backend faulty_backend;

static size_t memory_bytes(void) {
    const char *told = getenv("MATMULD_FAULTY_MIB");
    return (told != NULL ? strtoul(told, NULL, 10) : 1024) << 20;
}

static enum mm_status open_device(unsigned index, struct mm_device **opened, struct mm_error *error) {
    (void)error;
    wait_for(".open");
    devices[index] = (struct mm_device){.backend = &faulty_backend,
                                        .index = index,
                                        .lane_count = 1,
                                        .name = "Faulty",
                                        .memory_bytes = memory_bytes(),
                                        .pci_bus_id = "FFFF:FF:0X.0",
                                        .shared_bank_bytes = 4};
    for (unsigned peer = 0; peer < PEERS; peer++)
        if (index < PEERS && peer != index)
            devices[index].peers |= UINT64_C(1) << peer;
    devices[index].pci_bus_id[9] = (char)('0' + index);
    *opened = &devices[index];
    return MM_OK;
}

static void close_device(struct mm_device *closed) {
    (void)closed;
}

/* Returns the path with the variant's name. To test large numbers, the repairs exceed 32 bits. */
static struct mm_path path_of(const struct mm_variant *ran) {
    struct mm_path path = {.kind = MM_PATH_NONE};
    for (unsigned kind = MM_PATH_NONE + 1; kind < MM_PATH_COUNT; kind++)
        if (strcmp(ran->name, mm_path_name((enum mm_path_kind)kind)) == 0)
            path.kind = (enum mm_path_kind)kind;
    path.repaired = path.kind == MM_PATH_REPAIRED ? UINT64_C(5000000000) : 0;
    return path;
}

static void check(struct mm_job *job, const struct mm_product *product) {
    void *memory = malloc(mm_verify_bytes(product));
    if (memory == NULL)
        abort();
    mm_verify(product, MM_ROUNDED, mm_verify_seed(), memory, &job->outcome.verification);
    free(memory);
}

/* A stored matrix in the simulated GPU's memory. The elements follow the struct. */
struct stored_copy {
    struct mm_device_copy head;
    size_t bytes;
    float elements[];
};

static _Thread_local struct stored_copy *c_copy; /* NULL if C of the current job is not stored */

static void release_copy(struct mm_device_copy *head) {
    const struct stored_copy *copy = (const struct stored_copy *)head;
    __atomic_sub_fetch(&devices[head->device->index].stored_bytes, copy->bytes, __ATOMIC_RELAXED);
    free(head);
}

static enum mm_status read_copy(struct mm_device_copy *copy, const struct mm_window *part,
                                enum mm_dtype dtype, void *to, struct mm_error *error) {
    (void)error;
    mm_window_pack(part, dtype, copy->data, to);
    return MM_OK;
}

static enum mm_status write_copy(struct mm_device_copy *copy, size_t offset, const void *from, size_t bytes,
                                 struct mm_error *error) {
    if (mm_device_has_failed(copy->device))
        return mm_fail(error, MM_DEVICE_FAILED, "simulated device failure");
    memcpy((char *)copy->data + offset, from, bytes);
    return MM_OK;
}

static struct stored_copy *make_copy(struct mm_device *device, size_t bytes) {
    struct stored_copy *copy = malloc(sizeof *copy + bytes);
    if (copy == NULL)
        abort();
    copy->head = (struct mm_device_copy){.device = device,
                                         .data = copy->elements,
                                         .release = release_copy,
                                         .filled = {0, bytes},
                                         .read = read_copy,
                                         .write = write_copy};
    copy->bytes = bytes;
    __atomic_add_fetch(&device->stored_bytes, bytes, __ATOMIC_RELAXED);
    return copy;
}

static enum mm_status acquire_copy(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
                                   struct mm_error *error) {
    if (bytes > mm_device_stored_bytes_max(device) - mm_device_stored_bytes(device))
        return mm_fail(error, MM_STORE_FULL, "simulated full device");
    *copy = &make_copy(device, bytes)->head;
    return MM_OK;
}

/* Sets the address of an operand of the job. A value on other devices is copied first. */
static enum mm_status find(struct mm_job *job, struct mm_product *product, enum mm_operand_index index) {
    const struct mm_source *source = &job->sources[index];
    struct mm_stored *value = source->stored;
    if (source->kind != MM_SOURCE_STORED || value->only_copy == NULL)
        return MM_OK;
    struct mm_device_copy *found = mm_stored_find_copy(value, busy);
    void *data = found == NULL ? NULL : found->data;
    if (data == NULL) {
        const size_t cols = value->bytes / sizeof(float);
        const struct mm_window all = {.count = 1, .all_rows = 1, .all_cols = cols, .rows = 1, .cols = cols};
        struct stored_copy *copy = make_copy(busy, value->bytes);
        copy->head.read = NULL;
        data = copy->elements;
        __atomic_add_fetch(&busy->peer_bytes,
                           mm_stored_absent_bytes(value, (struct mm_stored_range){0, value->bytes}, busy),
                           __ATOMIC_RELAXED);
        mm_stored_add_copy(value, &copy->head);
        if (mm_stored_read(value, &all, data, &job->work.error) != MM_OK)
            return job->work.error.status;
    }
    mm_job_place_operand(job, product, index, data);
    return MM_OK;
}

static void return_c(const struct mm_job *job) {
    const struct mm_matrix *c = &job->product.c;
    const struct mm_window all = {
        .count = 1, .all_rows = c->rows, .all_cols = c->cols, .rows = c->rows, .cols = c->cols};
    if (c->data != NULL)
        mm_window_pack(job->part != NULL ? job->part : &all, c->dtype, c_copy->elements, c->data);
}

static void begin(struct mm_device *begun_on, unsigned lane, struct mm_job *const *jobs,
                  unsigned jobs_count) {
    struct mm_job *job = jobs[0];
    struct mm_product product = job->product;
    (void)lane;
    (void)jobs_count; /* is always 1, because all jobs have different keys */
    busy = begun_on;
    c_copy = NULL;
    if (find(job, &product, MM_OPERAND_A) != MM_OK || find(job, &product, MM_OPERAND_B) != MM_OK)
        return;
    const size_t c_bytes = product.m * product.n * sizeof(float);
    if (job->stores_c && c_bytes > mm_device_stored_bytes_max(begun_on) - mm_device_stored_bytes(begun_on)) {
        mm_fail(&job->work.error, MM_STORE_FULL, "simulated full device");
        return;
    }
    c_copy =
        job->stores_c || job->part != NULL || product.c.data == NULL ? make_copy(begun_on, c_bytes) : NULL;
    if (c_copy != NULL)
        product.c = mm_matrix_dense(MM_FLOAT32, product.m, product.n, c_copy->elements);
    if (strcmp(job->outcome.ran->name, "loses_device") != 0)
        wait_until_told(&product);
    uint64_t begun_ns = mm_clock_ns();
    const bool lies = __atomic_load_n(&lying[begun_on->index], __ATOMIC_RELAXED) != 0;
    (void)job->outcome.ran->launch[MM_FLOAT32](&product, NULL, &job->work.error);
    if (lies)
        ((float *)product.c.data)[product.c.ld * (product.m - 1) + product.n - 1] += 1.0F;
    kernel_ns = mm_clock_ns() - begun_ns;
    if (job->verify && job->work.error.status == MM_OK)
        check(job, &product);
    if (c_copy != NULL && job->work.error.status == MM_OK)
        return_c(job);
    if (!job->stores_c || job->work.error.status != MM_OK) {
        if (c_copy != NULL)
            release_copy(&c_copy->head);
        c_copy = NULL;
    }
}

static void end(struct mm_device *begun_on, unsigned lane, struct mm_job *const *jobs, unsigned jobs_count) {
    struct mm_job *job = jobs[0];
    (void)begun_on;
    (void)lane;
    (void)jobs_count;
    job->outcome.span_ns[MM_SPAN_KERNEL] = kernel_ns;
    job->outcome.batched = 1;
    job->outcome.path = path_of(job->outcome.ran);
    job->stored_c = c_copy == NULL ? NULL : &c_copy->head;
    job->work.error = (struct mm_error){.status = MM_OK};
}

static enum mm_status attributes(struct mm_device *asked, const struct mm_plan *plan,
                                 struct mm_attributes *read, struct mm_error *error) {
    (void)asked;
    (void)read;
    return mm_fail(error, MM_UNSUPPORTED, "%s has none", plan->variant->name);
}

static size_t memory_free(const struct mm_device *asked) {
    return asked->memory_bytes;
}

static enum mm_status fill(struct mm_device *asked, void *memory, enum mm_dtype dtype, size_t count,
                           uint64_t seed, struct mm_error *error) {
    wait_for(".fill");
    if (getenv("MATMULD_FAULTY_FILL") != NULL)
        return mm_fail(error, MM_INTERNAL, "simulated failure to fill");
    return mm_cpu_backend.fill(asked, memory, dtype, count, seed, error);
}

static enum mm_status measure(struct mm_device *asked, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *measured_ns,
                              struct mm_error *error) {
    busy = asked;
    /* At the start the service measures the rate of each variant, which takes seconds with a sanitizer. Only
     * the first variant is measured. */
    if (product->m > 1 && plan->variant != &variants[ROW_NAIVE]) {
        if (measured_ns != NULL)
            *measured_ns = 2000000;
        return MM_OK;
    }
    return mm_cpu_backend.measure(asked, plan, product, measured_ns, error);
}

/* Bank conflicts are as predicted. Accesses of 8-byte words fail with MM_NO_DEVICE_MEMORY. */
static enum mm_status probe(struct mm_device *asked, const struct mm_access *accesses, size_t accesses_count,
                            struct mm_access_time *times, struct mm_memory_speed *speed,
                            struct mm_error *error) {
    (void)asked;
    if (speed != NULL)
        *speed = (struct mm_memory_speed){29, 250, 600, 3e13, 4e12};
    for (size_t index = 0; index < accesses_count; index++) {
        uint32_t offsets[MM_WARP_LANES];
        mm_access_offsets(&accesses[index], offsets);
        if (accesses[index].word_bytes == 8)
            return mm_fail(error, MM_NO_DEVICE_MEMORY, "simulated lack of memory");
        times[index].cycles = mm_banks_predict(offsets, 4, 4).passes;
        times[index].latency_cycles = 28.0 + times[index].cycles;
    }
    return MM_OK;
}

static struct mm_backend faulty_backend = {
    .name = "cuda",
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .count = count,
    .open = open_device,
    .close = close_device,
    .begin = begin,
    .end = end,
    .attributes = attributes,
    .memory_free = memory_free,
    .acquire_copy = acquire_copy,
    .fill = fill,
    .measure = measure,
    .probe = probe,
};

static struct mm_backend cpu_backend;

static enum mm_status open_cpu(unsigned index, struct mm_device **opened, struct mm_error *error) {
    const enum mm_status status = mm_cpu_backend.open(index, opened, error);
    if (status == MM_OK)
        (*opened)->backend = &cpu_backend;
    return status;
}

/* A product that the test delays computes nothing. */
static void begin_on_cpu(struct mm_device *begun_on, unsigned lane, struct mm_job *const *jobs,
                         unsigned jobs_count) {
    struct mm_job *job = jobs[0];
    if (!is_to_hold(&job->product) || !hold("", job->progress.spent_ns > 0 ? 0 : 1)) {
        mm_cpu_backend.begin(begun_on, lane, jobs, jobs_count);
        return;
    }
    sleep_ms(HELD_MS);
    job->progress.spent_ns += HELD_MS * UINT64_C(1000000);
    job->more = true;
}

static enum mm_status fill_on_cpu(struct mm_device *asked, void *memory, enum mm_dtype dtype, size_t elements,
                                  uint64_t seed, struct mm_error *error) {
    wait_for(".fill");
    return mm_cpu_backend.fill(asked, memory, dtype, elements, seed, error);
}

static enum mm_status measure_on_cpu(struct mm_device *asked, const struct mm_plan *plan,
                                     const struct mm_product *product, uint64_t *measured_ns,
                                     struct mm_error *error) {
    const uint64_t begun_ns = mm_clock_ns();
    const enum mm_status status = mm_cpu_backend.measure(asked, plan, product, measured_ns, error);
    if (!hold(".benchmark", 0))
        return status;
    sleep_ms(BENCHMARK_PIECE_MS);
    if (measured_ns != NULL)
        *measured_ns = mm_clock_ns() - begun_ns;
    return status;
}

/* Skips the self-test of the CPU, which takes a second under ThreadSanitizer. */
enum mm_status __real_mm_self_test(struct mm_device *device, struct mm_error *error);
enum mm_status __wrap_mm_self_test(struct mm_device *device, struct mm_error *error);

enum mm_status __wrap_mm_self_test(struct mm_device *device, struct mm_error *error) {
    return device->backend == &cpu_backend ? MM_OK : __real_mm_self_test(device, error);
}

/* The simulated GPU's memory is host memory. */
static void fill_in(void) {
    faulty_backend.acquire = mm_cpu_backend.acquire;
    faulty_backend.release = mm_cpu_backend.release;
    faulty_backend.upload = mm_cpu_backend.upload;
    faulty_backend.download = mm_cpu_backend.download;
    cpu_backend = mm_cpu_backend;
    cpu_backend.open = open_cpu;
    cpu_backend.begin = begin_on_cpu;
    cpu_backend.fill = fill_on_cpu;
    cpu_backend.measure = measure_on_cpu;
}

const struct mm_backend *const *mm_backends(void) {
    static const struct mm_backend *const backends[] = {&faulty_backend, &cpu_backend, NULL};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_in);
    return backends;
}

const struct mm_backend *const *mm_backends_known(void) {
    return mm_backends();
}
