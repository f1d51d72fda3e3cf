/* The CPU as a backend: one device, which uses host memory and runs at most one job for each core. `begin`
 * computes a part of a product on the calling thread. gpu/cpu/variants has the kernels. */
#include "gpu/device/backend.h"

#include "gpu/clock.h"
#include "gpu/cpu/cores.h"
#include "gpu/cpu/variants.h"
#include "gpu/check/verify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_ALIGNMENT = 256 };

static size_t pages_bytes(int which) {
    long pages = sysconf(which);
    long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : 0;
}

/* If /proc/cpuinfo does not name the processor, as on some architectures, the name is "CPU". */
static void read_name(char *name, size_t bytes) {
    snprintf(name, bytes, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        char *text = colon + 1 + strspn(colon + 1, " \t");
        text[strcspn(text, "\t\r\n")] = '\0'; /* HTTP headers allow no control characters */
        if (*text != '\0')
            snprintf(name, bytes, "%s", text);
        break;
    }
    fclose(file);
}

static enum mm_status count(unsigned *count_out, struct mm_error *error) {
    *count_out = 1;
    return MM_OK;
}

static enum mm_status open_device(unsigned index, struct mm_device **device, struct mm_error *error) {
    if (index != 0)
        return mm_fail(error, MM_NOT_READY, "the cpu backend has one device, 0, but %u was asked for", index);
    struct mm_device *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return mm_fail(error, MM_INTERNAL, "out of memory while opening the CPU");
    cpu->backend = &mm_cpu_backend;
    const unsigned cores = mm_cores();
    cpu->lane_count = cores < MM_HOST_JOBS_MAX ? cores : MM_HOST_JOBS_MAX;
    mm_cpu_blas_limit_threads(cores);
    cpu->memory_bytes = pages_bytes(_SC_PHYS_PAGES);
    read_name(cpu->name, sizeof cpu->name);
    *device = cpu;
    return MM_OK;
}

static void close_device(struct mm_device *device) {
    free(device);
}

static enum mm_status measure(struct mm_device *device, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error) {
    uint64_t start_ns = mm_clock_ns();
    const enum mm_status status = mm_plan_launch(plan, product, NULL, error);
    if (kernel_ns != NULL)
        *kernel_ns = mm_clock_ns() - start_ns;
    return status;
}

/* Generates or copies operands that are not in host memory. Stops after about MM_PART_NS. Returns whether all
 * operands are complete. */
static bool make_operands(struct mm_job *job) {
    enum { STEP = 64 << 10 };
    struct mm_progress *progress = &job->progress;
    const uint64_t start_ns = mm_clock_ns(), until_ns = start_ns + MM_PART_NS;
    size_t before = 0; /* elements of all operands before this operand */
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_source *source = &job->sources[index];
        const struct mm_matrix *operand = mm_product_operand(&job->product, index);
        const size_t count = mm_source_is_off_host(source) ? operand->rows * operand->cols : 0;
        while (progress->generated < before + count) {
            const size_t first = progress->generated - before;
            const size_t step = mm_size_min(count - first, STEP);
            if (mm_clock_ns() >= until_ns ||
                mm_source_generate(source, operand, first, step, &job->work.error) != MM_OK) {
                progress->generated_ns += mm_clock_ns() - start_ns;
                return false;
            }
            progress->generated += step;
        }
        before += count;
    }
    progress->generated_ns += mm_clock_ns() - start_ns;
    return true;
}

/* Computes a part of a large product, or small products of a stack for about MM_PART_NS. */
static enum mm_status compute(struct mm_device *device, struct mm_job *job) {
    struct mm_progress *progress = &job->progress;
    const uint64_t start_ns = mm_clock_ns(), spent_ns = progress->spent_ns;
    uint64_t now_ns;
    do {
        uint64_t took_ns = 0;
        const struct mm_product part = mm_progress_next(progress, device, job->plan.variant, &job->product);
        if (measure(device, &job->plan, &part, &took_ns, &job->work.error) != MM_OK)
            return job->work.error.status;
        job->more = mm_progress_end(progress, &job->product, took_ns);
        now_ns = mm_clock_ns();
    } while (job->more && progress->row == 0 && progress->col == 0 && now_ns < start_ns + MM_PART_NS);
    progress->spent_ns = spent_ns + (now_ns - start_ns); /* the time between tiny products counts too */
    return MM_OK;
}

/* Checks products of a stack for about MM_PART_NS, but at least one. */
static void check(struct mm_job *job) {
    const uint64_t start_ns = mm_clock_ns();
    struct mm_verification *verification = &job->outcome.verification;
    uint64_t now_ns;
    if (job->progress.checked == 0)
        *verification = (struct mm_verification){.is_done = true, .seed = mm_verify_seed()};
    do {
        mm_verify_range(&job->product, MM_ROUNDED, job->progress.checked++, 1, job->verify_memory,
                        verification);
        now_ns = mm_clock_ns();
    } while (mm_job_checks(job) && now_ns < start_ns + MM_PART_NS);
    verification->took_ns += now_ns - start_ns;
    job->more = mm_job_checks(job);
}

static bool reduces(const struct mm_job *job) {
    return job->reduces && job->progress.reduced.elements < mm_window_elements(job->part);
}

static void reduce(struct mm_job *job) {
    const struct mm_matrix *c = &job->product.c;
    const uint64_t until_ns = mm_clock_ns() + MM_PART_NS;
    while (mm_reduce_part(&job->outcome.reduction, &job->progress.reduced, job->part, c->dtype, c->data,
                          MM_REDUCE_SLICE) &&
           mm_clock_ns() < until_ns)
        continue;
}

/* Does the next part of a job. The order is: operands that are not in host memory, C, the check of C, and
 * the reduction of C to figures. */
static void begin(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count) {
    assert(lane < device->lane_count && count == 1);
    struct mm_job *job = jobs[0];
    const bool is_generated = mm_job_generated_bytes(job) == 0 || make_operands(job);
    if (job->work.error.status != MM_OK)
        return;
    if (is_generated && mm_job_computes(job) && compute(device, job) != MM_OK)
        return;
    if (is_generated && !job->more && mm_job_checks(job))
        check(job);
    else if (is_generated && !job->more && reduces(job))
        reduce(job);
    job->more = !is_generated || mm_job_computes(job) || mm_job_checks(job) || reduces(job);
}

static void end(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count) {
    assert(lane < device->lane_count && count == 1);
    struct mm_job *job = jobs[0];
    if (!job->more && job->part != NULL && !job->keeps_c)
        mm_window_pack(job->part, job->product.c.dtype, job->product.c.data, job->product.c.data);
    job->outcome.span_ns[MM_SPAN_UPLOAD] = job->progress.generated_ns;
    job->outcome.span_ns[MM_SPAN_KERNEL] = job->progress.spent_ns;
    job->outcome.span_ns[MM_SPAN_DOWNLOAD] = 0;
    job->work.error = (struct mm_error){.status = MM_OK};
}

/* If OpenBLAS computes a product on all cores, the job is exclusive, because two such products would wait for
 * each other's cores. */
static void schedule(struct mm_job *job) {
    const struct mm_product one = mm_product_item(&job->product, 0);
    job->work.is_exclusive = job->plan.device->lane_count > 1 &&
                             job->plan.variant == &mm_cpu_variants[MM_CPU_ROW_blas] &&
                             mm_product_flops(&one) / 2.0 > MM_CPU_BLAS_ALONE_MAX;
}

/* Returns MemAvailable, the kernel's estimate of memory that needs no swapping. If the kernel has no
 * estimate, returns the free pages. */
static size_t memory_free(const struct mm_device *device) {
    uint64_t available_kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file != NULL) {
        char line[128];
        while (fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "MemAvailable: %" SCNu64, &available_kib) == 1)
                break;
        fclose(file);
    }
    return available_kib > 0 ? (size_t)available_kib * 1024 : pages_bytes(_SC_AVPHYS_PAGES);
}

/* Rejects more bytes than the installed memory, because Linux would promise memory that does not exist. */
static enum mm_status acquire(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error) {
    void *data = NULL;
    if (bytes <= device->memory_bytes) {
        size_t rounded = (bytes + MEMORY_ALIGNMENT) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
        data = aligned_alloc(MEMORY_ALIGNMENT, rounded);
    }
    if (data == NULL)
        return mm_fail_device_memory(error, device->name, bytes, memory_free(device));
    *memory = data;
    return MM_OK;
}

static void release(struct mm_device *device, void *memory) {
    free(memory);
}

static enum mm_status copy(struct mm_device *device, void *to, const void *from, size_t bytes,
                           struct mm_error *error) {
    if (bytes > 0)
        memcpy(to, from, bytes);
    return MM_OK;
}

static enum mm_status fill(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                           uint64_t seed, struct mm_error *error) {
    const struct mm_source source = {.kind = MM_SOURCE_UNIFORM, .seed = seed};
    const struct mm_matrix whole = mm_matrix_dense(dtype, 1, count, memory);
    (void)mm_source_generate(&source, &whole, 0, count, NULL);
    return MM_OK;
}

const struct mm_backend mm_cpu_backend = {
    .name = "cpu",
    .is_host = true,
    .variants = mm_cpu_variants,
    .variant_count = MM_CPU_VARIANT_COUNT,
    .count = count,
    .open = open_device,
    .close = close_device,
    .begin = begin,
    .end = end,
    .schedule = schedule,
    .memory_free = memory_free,
    .acquire = acquire,
    .release = release,
    .upload = copy,
    .download = copy,
    .fill = fill,
    .measure = measure,
};
