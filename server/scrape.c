/* GET /metrics: the table of metrics. A metric is a row: name, type, what it means, and the function that
 * writes its samples from the counts (metrics.h) or from who knows the moment's value. Every label has
 * its samples from the start, at 0, but for those of devices, which come with them. */
#include "server/keys.h"
#include "server/log_writer.h"
#include "server/metrics.h"
#include "server/metrics_text.h"
#include "server/process.h"
#include "server/reply.h"

#include <stdlib.h>
#include <string.h>

struct scrape {
    FILE *out;
    struct mm_server *server;
    struct mm_device *const *devices; /* none while the engine is not open */
    size_t device_count;
    struct mm_counts counts;
    struct mm_process process;
};

static void put_histogram(const struct scrape *scrape, const char *name, const struct mm_label *labels,
                          const struct mm_histogram *histogram) {
    mm_text_histogram(scrape->out, name, labels, mm_bucket_bounds_ns, histogram->buckets, MM_BUCKET_COUNT,
                      histogram->sum_ns);
}

static void put_count(const struct scrape *scrape, const char *name, const char *label, const char *value,
                      uint64_t count) {
    const struct mm_label labels[MM_LABELS_MAX] = {{label, value}};
    mm_text_count(scrape->out, name, labels, count);
}

static void write_requests(const struct scrape *scrape, const char *name) {
    for (size_t route = 0; route < MM_ROUTE_LABELS; route++) {
        for (size_t index = 0; mm_route_label(route) != NULL && index < MM_CODE_COUNT; index++) {
            char code[8];
            snprintf(code, sizeof code, "%u", mm_codes[index]);
            const struct mm_label labels[MM_LABELS_MAX] = {{"route", mm_route_label(route)}, {"code", code}};
            mm_text_count(scrape->out, name, labels, scrape->counts.requests[route][index]);
        }
    }
}

static void write_durations(const struct scrape *scrape, const char *name) {
    for (size_t route = 0; route < MM_ROUTE_LABELS; route++) {
        const struct mm_label labels[MM_LABELS_MAX] = {{"route", mm_route_label(route)}};
        if (labels[0].value != NULL)
            put_histogram(scrape, name, labels, &scrape->counts.durations[route]);
    }
}

static void write_stages(const struct scrape *scrape, const char *name) {
    for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++) {
        const struct mm_label labels[MM_LABELS_MAX] = {{"stage", mm_stage_name(stage)}};
        put_histogram(scrape, name, labels, &scrape->counts.stages[stage]);
    }
}

/* Calls `write` for each variant of these operations (bit o for operation o) of the backends with an open
 * device, but for those that only choose. */
static void each_variant(const struct scrape *scrape, const char *name, unsigned ops,
                         void (*write)(const struct scrape *scrape, const char *name,
                                       const struct mm_label *labels, size_t slot)) {
    const struct mm_backend *before = NULL;
    for (size_t device = 0; device < scrape->device_count; device++) {
        const struct mm_backend *backend = scrape->devices[device]->backend;
        for (size_t row = 0; backend != before && row < backend->variant_count; row++) {
            const struct mm_variant *variant = &backend->variants[row];
            const struct mm_label labels[MM_LABELS_MAX] = {
                {"variant", variant->name}, {"backend", backend->name}, {"op", mm_op_name(variant->op)}};
            if (variant->choose == NULL && (ops & 1u << variant->op) != 0)
                write(scrape, name, labels, mm_variant_slot(backend, row));
        }
        before = backend; /* one backend's devices stand together */
    }
}

static void write_kernel(const struct scrape *scrape, const char *name, const struct mm_label *labels,
                         size_t slot) {
    put_histogram(scrape, name, labels, &scrape->counts.kernels[slot]);
}

static void write_kernels(const struct scrape *scrape, const char *name) {
    each_variant(scrape, name, 1u << MM_MATMUL | 1u << MM_TRANSPOSE, write_kernel);
}

static void write_flops_of(const struct scrape *scrape, const char *name, const struct mm_label *labels,
                           size_t slot) {
    mm_text_number(scrape->out, name, labels, scrape->counts.flops[slot]);
}

static void write_flops(const struct scrape *scrape, const char *name) {
    each_variant(scrape, name, 1u << MM_MATMUL, write_flops_of);
}

static void write_paths(const struct scrape *scrape, const char *name) {
    for (unsigned kind = MM_PATH_NONE + 1; kind < MM_PATH_COUNT; kind++)
        put_count(scrape, name, "path", mm_path_name((enum mm_path_kind)kind), scrape->counts.paths[kind]);
}

static void write_verdicts(const struct scrape *scrape, const char *name) {
    for (unsigned verdict = 0; verdict < MM_VERDICT_COUNT; verdict++)
        put_count(scrape, name, "result", mm_verdict_name((enum mm_verdict)verdict),
                  scrape->counts.verdicts[verdict]);
}

static void write_self_tests(const struct scrape *scrape, const char *name) {
    const struct mm_engine *engine = mm_server_engine(scrape->server);
    struct mm_watch_counts counts = {0};
    if (engine != NULL)
        counts = mm_engine_watch_counts(engine);
    put_count(scrape, name, "result", "passed", counts.passed);
    put_count(scrape, name, "result", "failed", counts.failed);
    put_count(scrape, name, "result", "undone", counts.undone);
}

static void write_transfers(const struct scrape *scrape, const char *name) {
    put_count(scrape, name, "direction", "upload", scrape->counts.uploaded_bytes);
    put_count(scrape, name, "direction", "download", scrape->counts.downloaded_bytes);
}

static void write_queue_jobs(const struct scrape *scrape, const char *name) {
    struct mm_engine *engine = mm_server_engine(scrape->server);
    size_t jobs = 0;
    size_t bytes;
    if (engine != NULL)
        mm_queue_waiting(mm_engine_queue(engine), &jobs, &bytes);
    mm_text_count(scrape->out, name, NULL, jobs);
}

static void write_queue_bytes(const struct scrape *scrape, const char *name) {
    struct mm_engine *engine = mm_server_engine(scrape->server);
    size_t jobs;
    size_t bytes = 0;
    if (engine != NULL)
        mm_queue_waiting(mm_engine_queue(engine), &jobs, &bytes);
    mm_text_count(scrape->out, name, NULL, bytes);
}

static void write_in_flight(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, mm_counts_in_flight(&scrape->counts) - 1);
}

static void write_rejected(const struct scrape *scrape, const char *name) {
    for (unsigned status = MM_OK + 1; status < MM_STATUS_COUNT; status++)
        put_count(scrape, name, "reason", mm_status_name((enum mm_status)status),
                  scrape->counts.rejected[status]);
}

static void write_keys(const struct scrape *scrape, const char *name) {
    const struct mm_keys *keys = scrape->server->keys;
    const size_t count = keys == NULL ? 0 : mm_keys_label_count(keys);
    for (size_t index = 0; index < count; index++)
        put_count(scrape, name, "key", mm_keys_label(keys, index), mm_keys_requests(keys, index));
}

static void write_unauthorized(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, scrape->counts.rejected[MM_UNAUTHORIZED]);
}

static void write_cancelled(const struct scrape *scrape, const char *name) {
    static const unsigned stages[] = {MM_SPAN_RECEIVE, MM_SPAN_QUEUE, MM_SPAN_KERNEL, MM_STAGE_SEND};
    for (size_t index = 0; index < sizeof stages / sizeof stages[0]; index++)
        put_count(scrape, name, "stage", mm_stage_name(stages[index]),
                  scrape->counts.cancelled[stages[index]]);
}

/* A device that has failed is not asked. Asking takes the system, or the driver, some microseconds. */
static void write_device_memory(const struct scrape *scrape, const char *name) {
    for (size_t index = 0; index < scrape->device_count; index++) {
        const struct mm_device *device = scrape->devices[index];
        char who[32];
        if (mm_device_has_failed(device) || device->backend->memory_free == NULL)
            continue;
        size_t free_bytes = device->backend->memory_free(device);
        size_t used_bytes = device->memory_bytes > free_bytes ? device->memory_bytes - free_bytes : 0;
        snprintf(who, sizeof who, "%s:%u", device->backend->name, device->index);
        const struct mm_label used[MM_LABELS_MAX] = {{"device", who}, {"state", "used"}};
        const struct mm_label unused[MM_LABELS_MAX] = {{"device", who}, {"state", "free"}};
        mm_text_count(scrape->out, name, used, used_bytes);
        mm_text_count(scrape->out, name, unused, free_bytes);
    }
}

static void write_device_errors(const struct scrape *scrape, const char *name) {
    static const enum mm_status kinds[MM_ERROR_COUNT] = {
        [MM_ERROR_DEVICE_FAILED] = MM_DEVICE_FAILED,
        [MM_ERROR_NO_DEVICE_MEMORY] = MM_NO_DEVICE_MEMORY,
        [MM_ERROR_INTERNAL] = MM_INTERNAL,
    };
    for (size_t kind = 0; kind < MM_ERROR_COUNT; kind++)
        put_count(scrape, name, "kind", mm_status_name(kinds[kind]), scrape->counts.device_errors[kind]);
}

static void write_staging(const struct scrape *scrape, const char *name) {
    const struct mm_buffers *buffers = scrape->server->buffers;
    size_t used = mm_buffers_used(buffers);
    size_t kept = mm_buffers_kept(buffers);
    size_t budget = mm_buffers_budget(buffers);
    put_count(scrape, name, "state", "used", used);
    put_count(scrape, name, "state", "kept", kept);
    put_count(scrape, name, "state", "free", used + kept < budget ? budget - used - kept : 0);
}

static void write_build(const struct scrape *scrape, const char *name) {
    char backends[64] = "";
    size_t length = 0;
    for (const struct mm_backend *const *backend = mm_backends(); *backend != NULL; backend++)
        length += (size_t)snprintf(backends + length, sizeof backends - length, "%s%s", length > 0 ? "," : "",
                                   (*backend)->name);
    const struct mm_label labels[MM_LABELS_MAX] = {{"version", MATMULD_VERSION}, {"backends", backends}};
    mm_text_count(scrape->out, name, labels, 1);
}

static void write_log_dropped(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, mm_log_writer_dropped());
}

static void write_cpu_seconds(const struct scrape *scrape, const char *name) {
    mm_text_number(scrape->out, name, NULL, scrape->process.cpu_seconds);
}

static void write_resident(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, scrape->process.resident_bytes);
}

static void write_virtual(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, scrape->process.virtual_bytes);
}

static void write_descriptors(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, scrape->process.descriptors);
}

static void write_descriptors_max(const struct scrape *scrape, const char *name) {
    mm_text_count(scrape->out, name, NULL, scrape->process.descriptors_max);
}

static void write_started(const struct scrape *scrape, const char *name) {
    mm_text_number(scrape->out, name, NULL, scrape->server->started_seconds);
}

static const struct family {
    const char *name;
    const char *type;
    const char *help;
    void (*write)(const struct scrape *scrape, const char *name);
} families[] = {
    {"matmuld_http_requests_total", "counter",
     "Requests by path and HTTP status; 499: the caller left before the reply. What libmicrohttpd answers by "
     "itself (malformed requests) is not counted.",
     write_requests},
    {"matmuld_request_duration_seconds", "histogram", "From a request's head to the last byte of its reply.",
     write_durations},
    {"matmuld_stage_duration_seconds", "histogram",
     "Where the time of the answered products went; a stage that a product did not have counts as 0.",
     write_stages},
    {"matmuld_kernel_duration_seconds", "histogram",
     "Time of each product's kernel by the device's clock, also where nobody waited for the result; of a "
     "launch that several shared, for each of them.",
     write_kernels},
    {"matmuld_path_total", "counter",
     "Products of variants that have several ways to a result, by the way that each took.", write_paths},
    {"matmuld_verify_total", "counter",
     "Products that were checked since their callers asked for that, by what came of it; unjudged: "
     "infinities "
     "and NaN left nothing to compare.",
     write_verdicts},
    {"matmuld_transfer_bytes_total", "counter",
     "Bytes of matrices copied between host and device; products on the CPU copy none.", write_transfers},
    {"matmuld_queue_jobs", "gauge", "Products that wait for a device.", write_queue_jobs},
    {"matmuld_queue_bytes", "gauge", "Bytes of the operands and results of the products that wait.",
     write_queue_bytes},
    {"matmuld_requests_in_flight", "gauge",
     "Requests whose head has come and whose reply is not all sent, but for the one that asks for this.",
     write_in_flight},
    {"matmuld_rejected_total", "counter", "Requests answered with a problem, by its code.", write_rejected},
    {"matmuld_key_requests_total", "counter",
     "Requests that had an API key in force, by the key's name, or by its line where it has none.",
     write_keys},
    {"matmuld_unauthorized_total", "counter", "Requests that had no API key in force where one is asked for.",
     write_unauthorized},
    {"matmuld_cancelled_total", "counter",
     "Requests given up because their caller left, their deadline passed or the service stopped, by the "
     "stage they were in; kernel is anything on the device.",
     write_cancelled},
    {"matmuld_flops_total", "counter", "Floating-point operations of the kernels that ran: 2mnk a product.",
     write_flops},
    {"matmuld_device_memory_bytes", "gauge", "Memory of each device that works; the CPU's is the host's.",
     write_device_memory},
    {"matmuld_device_errors_total", "counter",
     "Products, rows of benchmarks and timings of memory that failed on a device, by the problem's code.",
     write_device_errors},
    {"matmuld_self_tests_total", "counter",
     "Proofs of a device that had nothing else to do, by what came of them; undone: for want of memory, or "
     "at "
     "the end.",
     write_self_tests},
    {"matmuld_staging_bytes", "gauge", "The memory budget for bodies and results in flight.", write_staging},
    {"matmuld_log_dropped_total", "counter", "Log lines that were lost because stderr did not take them.",
     write_log_dropped},
    {"matmuld_build_info", "gauge", "Always 1; the labels tell the build.", write_build},
    {"process_cpu_seconds_total", "counter", "User and system time of the process.", write_cpu_seconds},
    {"process_resident_memory_bytes", "gauge", "Resident memory of the process.", write_resident},
    {"process_virtual_memory_bytes", "gauge", "Virtual memory of the process.", write_virtual},
    {"process_open_fds", "gauge", "Open file descriptors.", write_descriptors},
    {"process_max_fds", "gauge", "The limit on open file descriptors.", write_descriptors_max},
    {"process_start_time_seconds", "gauge", "When the process started, since the epoch.", write_started},
};

/* The whole page, malloc'ed; NULL when memory was out. */
static char *make_page(struct scrape *scrape, size_t *length) {
    char *text = NULL;
    scrape->out = open_memstream(&text, length);
    if (scrape->out == NULL)
        return NULL;
    for (size_t index = 0; index < sizeof families / sizeof families[0]; index++) {
        const struct family *family = &families[index];
        mm_text_family(scrape->out, family->name, family->type, family->help);
        family->write(scrape, family->name);
    }
    int failed = ferror(scrape->out);
    if (fclose(scrape->out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

enum mm_status mm_scrape(struct mm_exchange *exchange) {
    const struct mm_engine *engine = mm_server_engine(exchange->server);
    struct scrape *scrape = calloc(1, sizeof *scrape);
    char *text = NULL;
    size_t length = 0;
    if (scrape != NULL) {
        scrape->server = exchange->server;
        if (engine != NULL)
            scrape->devices = mm_engine_devices(engine, &scrape->device_count);
        mm_metrics_sum(exchange->server->metrics, &scrape->counts);
        mm_process_look(&scrape->process);
        text = make_page(scrape, &length);
    }
    free(scrape);
    return mm_reply_text(exchange, text, length, MM_METRICS_TYPE);
}
