/* GET /metrics, in Prometheus' text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Each metric is a row of a table. The row
 * lists the metric's counts, or has a function that writes its samples. Every label has samples from the
 * start, even if they are 0. Only labels of devices, names of keys and their problems appear later. */
#include "api/text.h"
#include "commit.h"
#include "gpu/store/store.h"
#include "server/http/acceptor.h"
#include "server/auth/keys.h"
#include "server/auth/tls.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/nvml.h"
#include "server/machine.h"
#include "server/http/reply.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scrape {
    FILE *out;
    const char *name; /* name of the metric that is being written */
    size_t first;     /* `first` of the metric's row */
    struct mm_server *server;
    struct mm_device *const *devices; /* NULL until the engine is open */
    size_t device_count;
    struct mm_counts counts;
    struct mm_process process;
    struct mm_watch_counts self_tests;
    struct mm_store_totals store;
    uint64_t peer_bytes;
    uint64_t is_ready;
    uint64_t is_draining;
    uint64_t queue_jobs;
    uint64_t queue_jobs_max;
    uint64_t queue_bytes;
    double queue_wait_s; /* expected for the busiest device */
    double queue_wait_s_max;
    double started_s;
    uint64_t in_flight; /* requests in progress, without GET /metrics itself */
    uint64_t connections_active;
    uint64_t connections_idle;
    uint64_t staging_used;
    uint64_t staging_kept;
    uint64_t staging_free;
    uint64_t log_dropped;
    struct mm_gpu gpus[MM_DEVICES_MAX];
    size_t gpu_count;
};

/* Label values need no escapes, because words of the server and names of keys contain no quotes. */
struct label {
    const char *name;
    const char *value; /* NULL ends a list of labels */
};

#define LABELS(...) ((const struct label[4]){__VA_ARGS__})
#define NO_LABELS LABELS({NULL, NULL})

/* Writes name{label="value",…,le="bound"} and a space. `bound` is NULL for samples without a bucket. */
static void put_name(const struct scrape *scrape, const char *suffix, const struct label *labels,
                     const char *bound) {
    char before = '{';
    fprintf(scrape->out, "%s%s", scrape->name, suffix);
    for (; labels->value != NULL; labels++) {
        fprintf(scrape->out, "%c%s=\"%s\"", before, labels->name, labels->value);
        before = ',';
    }
    if (bound != NULL)
        fprintf(scrape->out, "%cle=\"%s\"", before, bound);
    fputs(before == ',' || bound != NULL ? "} " : " ", scrape->out);
}

static void put_count(const struct scrape *scrape, const struct label *labels, uint64_t count) {
    put_name(scrape, "", labels, NULL);
    fprintf(scrape->out, "%" PRIu64 "\n", count);
}

/* Writes a number with 15 digits, or with 17 if 15 digits would change it. */
static void put_number(const struct scrape *scrape, const struct label *labels, double number) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", number);
    put_name(scrape, "", labels, NULL);
    fprintf(scrape->out, strtod(text, NULL) == number ? "%.15g\n" : "%.17g\n", number);
}

static void put_histogram(const struct scrape *scrape, const struct label *labels,
                          const struct mm_histogram *histogram) {
    uint64_t count = 0;
    for (size_t bucket = 0; bucket <= MM_BUCKET_COUNT; bucket++) {
        char bound[32] = "+Inf";
        if (bucket < MM_BUCKET_COUNT)
            snprintf(bound, sizeof bound, "%g", (double)mm_bucket_bounds_ns[bucket] / 1e9);
        count += histogram->buckets[bucket];
        put_name(scrape, "_bucket", labels, bound);
        fprintf(scrape->out, "%" PRIu64 "\n", count);
    }
    put_name(scrape, "_sum", labels, NULL);
    fprintf(scrape->out, "%" PRIu64 ".%09" PRIu64 "\n", histogram->sum_ns / 1000000000,
            histogram->sum_ns % 1000000000);
    put_name(scrape, "_count", labels, NULL);
    fprintf(scrape->out, "%" PRIu64 "\n", count);
}

static void write_requests(const struct scrape *scrape) {
    for (size_t route = 0; route < MM_ROUTE_LABELS; route++) {
        for (size_t index = 0; mm_route_label(route) != NULL && index < MM_HTTP_COUNT; index++) {
            char code[8];
            snprintf(code, sizeof code, "%u", mm_http_table[index].code);
            const struct label *labels = LABELS({"route", mm_route_label(route)}, {"code", code});
            put_count(scrape, labels, scrape->counts.requests[route][index]);
        }
    }
}

static void write_durations(const struct scrape *scrape) {
    for (size_t route = 0; route < MM_ROUTE_LABELS; route++) {
        const struct label *labels = LABELS({"route", mm_route_label(route)});
        if (labels[0].value != NULL)
            put_histogram(scrape, labels, &scrape->counts.durations[route]);
    }
}

static void write_stages(const struct scrape *scrape) {
    for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++) {
        const struct label *labels = LABELS({"stage", mm_stage_name(stage)});
        put_histogram(scrape, labels, &scrape->counts.stages[stage]);
    }
}

/* Writes each variant's kernel times, or operations if `flops`. Skips backends without open devices. */
static void write_variants(const struct scrape *scrape, bool flops) {
    const struct mm_backend *before = NULL;
    for (size_t device = 0; device < scrape->device_count; device++) {
        const struct mm_backend *backend = scrape->devices[device]->backend;
        for (size_t row = 0; backend != before && row < backend->variant_count; row++) {
            const struct mm_variant *variant = &backend->variants[row];
            const size_t slot = mm_variant_slot(backend, row);
            const struct label *labels = LABELS({"variant", variant->name}, {"backend", backend->name},
                                                {"op", mm_op_name(variant->op)});
            if (mm_variant_is_auto(variant))
                continue;
            if (!flops)
                put_histogram(scrape, labels, &scrape->counts.kernels[slot]);
            else if (variant->op == MM_MATMUL)
                put_number(scrape, labels, scrape->counts.flops[slot]);
        }
        before = backend; /* devices of one backend are next to each other */
    }
}

static void write_kernels(const struct scrape *scrape) {
    write_variants(scrape, false);
}

static void write_flops(const struct scrape *scrape) {
    write_variants(scrape, true);
}

/* Returns the account `index`, or NULL after the last account. If requests need no keys, or if everybody may
 * read the page, there are no accounts. */
static const struct mm_account *account_at(const struct scrape *scrape, size_t index) {
    const struct mm_keys *keys = scrape->server->keys;
    const bool is_shown = keys != NULL && !scrape->server->options->open_metrics;
    return is_shown && index < mm_keys_account_count(keys) ? mm_keys_account(keys, index) : NULL;
}

static uint64_t load(const uint64_t *count) {
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* Writes the count at the offset `first` of each account. */
static void write_key_counts(const struct scrape *scrape) {
    const struct mm_account *account;
    for (size_t index = 0; (account = account_at(scrape, index)) != NULL; index++)
        put_count(scrape, LABELS({"key", account->name}),
                  load((const uint64_t *)((const char *)account + scrape->first)));
}

static void write_key_bytes(const struct scrape *scrape) {
    const struct mm_account *account;
    for (size_t index = 0; (account = account_at(scrape, index)) != NULL; index++) {
        put_count(scrape, LABELS({"key", account->name}, {"direction", "in"}), load(&account->in_bytes));
        put_count(scrape, LABELS({"key", account->name}, {"direction", "out"}), load(&account->out_bytes));
    }
}

/* Writes the number at the offset `first` of each account. */
static void write_key_numbers(const struct scrape *scrape) {
    const struct mm_account *account;
    for (size_t index = 0; (account = account_at(scrape, index)) != NULL; index++) {
        const void *at = (const char *)account + scrape->first;
        double number;
        __atomic_load((const double *)at, &number, __ATOMIC_RELAXED);
        put_number(scrape, LABELS({"key", account->name}), number);
    }
}

/* Leaves out reasons that a name has not had, because 256 names with each reason would be a long page. */
static void write_key_rejections(const struct scrape *scrape) {
    const struct mm_account *account;
    for (size_t index = 0; (account = account_at(scrape, index)) != NULL; index++)
        for (unsigned status = MM_OK + 1; status < MM_STATUS_COUNT; status++)
            if (load(&account->rejected[status]) > 0)
                put_count(scrape, LABELS({"key", account->name}, {"reason", mm_status_name(status)}),
                          load(&account->rejected[status]));
}

/* Without TLS there is no sample, because 0 would look like a certificate that expired long ago. */
static void write_certificate_expiry(const struct scrape *scrape) {
    const time_t expiry = mm_tls_expiry();
    if (expiry != 0)
        put_count(scrape, NO_LABELS, (uint64_t)expiry);
}

enum { DEVICE_LABEL_MAX = 32 };

static const char *device_label(const struct mm_device *device, char text[DEVICE_LABEL_MAX]) {
    snprintf(text, DEVICE_LABEL_MAX, "%s:%u", device->backend->name, device->index);
    return text;
}

static void write_device_failed(const struct scrape *scrape) {
    for (size_t index = 0; index < scrape->device_count; index++) {
        const struct mm_device *device = scrape->devices[index];
        char who[DEVICE_LABEL_MAX];
        put_count(scrape, LABELS({"device", device_label(device, who)}), mm_device_has_failed(device));
    }
}

/* Writes the memory of each device that has not failed. Asking a device takes some microseconds. */
static void write_device_memory(const struct scrape *scrape) {
    for (size_t index = 0; index < scrape->device_count; index++) {
        const struct mm_device *device = scrape->devices[index];
        char who[DEVICE_LABEL_MAX];
        if (mm_device_has_failed(device) || device->backend->memory_free == NULL)
            continue;
        size_t free_bytes = device->backend->memory_free(device);
        size_t used_bytes = device->memory_bytes > free_bytes ? device->memory_bytes - free_bytes : 0;
        (void)device_label(device, who);
        put_count(scrape, LABELS({"device", who}, {"state", "used"}), used_bytes);
        put_count(scrape, LABELS({"device", who}, {"state", "free"}), free_bytes);
    }
}

/* Writes the number at the offset `first` of the scrape. */
static void write_number(const struct scrape *scrape) {
    const void *at = (const char *)scrape + scrape->first;
    put_number(scrape, NO_LABELS, *(const double *)at);
}

static void write_gpus(const struct scrape *scrape) {
    for (size_t index = 0; index < scrape->gpu_count; index++) {
        const struct mm_gpu *gpu = &scrape->gpus[index];
        if (!isnan(gpu->figures[scrape->first]))
            put_number(scrape, LABELS({"gpu_uuid", gpu->uuid}), gpu->figures[scrape->first]);
    }
}

static void write_device_errors(const struct scrape *scrape) {
    static const enum mm_status kinds[] = {MM_DEVICE_FAILED, MM_NO_DEVICE_MEMORY, MM_INTERNAL};
    for (size_t index = 0; index < scrape->device_count; index++) {
        const struct mm_device *device = scrape->devices[index];
        char who[DEVICE_LABEL_MAX];
        for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
            const struct label *labels =
                LABELS({"device", device_label(device, who)}, {"kind", mm_status_name(kinds[kind])});
            put_count(scrape, labels, scrape->counts.device_errors[device->number][kinds[kind]]);
        }
    }
}

static void write_store_requests(const struct scrape *scrape) {
    static const char *const ops[MM_STORE_OPS] = {[MM_STORE_PUT] = "put",
                                                  [MM_STORE_GET] = "get",
                                                  [MM_STORE_DELETE] = "delete",
                                                  [MM_STORE_LIST] = "list"};
    static const enum mm_status named[] = {MM_OK, MM_NO_SUCH_MATRIX, MM_PRECONDITION_FAILED, MM_STORE_FULL};
    for (unsigned op = MM_STORE_NONE + 1; op < MM_STORE_OPS; op++) {
        const uint64_t *counts = scrape->counts.store[op];
        uint64_t failed = 0;
        for (unsigned status = 0; status < MM_STATUS_COUNT; status++)
            failed += counts[status];
        for (size_t index = 0; index < sizeof named / sizeof named[0]; index++) {
            put_count(scrape, LABELS({"op", ops[op]}, {"result", mm_status_name(named[index])}),
                      counts[named[index]]);
            failed -= counts[named[index]];
        }
        put_count(scrape, LABELS({"op", ops[op]}, {"result", "failed"}), failed);
    }
}

static void write_build(const struct scrape *scrape) {
    char backends[64] = "";
    size_t length = 0;
    for (const struct mm_backend *const *backend = mm_backends(); *backend != NULL; backend++)
        length += (size_t)snprintf(backends + length, sizeof backends - length, "%s%s", length > 0 ? "," : "",
                                   (*backend)->name);
    const struct label *labels =
        LABELS({"version", MATMULD_VERSION}, {"commit", MATMULD_COMMIT}, {"backends", backends});
    put_count(scrape, labels, 1);
}

/* One value of a label, and the offset of its count in struct scrape. */
struct sample {
    const char *value; /* NULL ends a list of samples */
    size_t at;
};

#define AT(member) offsetof(struct scrape, member)
#define SAMPLES(...) ((const struct sample[]){__VA_ARGS__, {NULL, 0}})

/* Kinds of rows of the metrics table. NUMBER is one double. COUNT is one count. COUNTS has one count for each
 * value of a label. ARRAY has the counts first_ to end_ - 1 of an array, and `name` returns the label's value
 * for an index. */
#define NUMBER(member) .write = write_number, .first = AT(member)
#define COUNT(member) .samples = SAMPLES({"", AT(member)})
#define COUNTS(label_, ...) .label = (label_), .samples = SAMPLES(__VA_ARGS__)
#define ARRAY(label_, name, member, first_, end_)                                                            \
    .label = (label_), .name_of = (name), .array_at = AT(member), .first = (first_), .end = (end_)

static const struct family {
    const char *name;
    const char *type;
    const char *help;
    void (*write)(const struct scrape *scrape); /* NULL: the row has counts instead */
    const char *label;                          /* NULL: no label */
    const struct sample *samples;               /* NULL: the counts are in an array */
    const char *(*name_of)(unsigned index);
    size_t array_at;
    size_t first;
    unsigned end;
} families[] = {
    {"matmuld_http_requests_total", "counter",
     "Requests by path and HTTP status; 499: the client disconnected before the reply. Malformed requests "
     "that libmicrohttpd answers itself are not counted.",
     .write = write_requests},
    {"matmuld_request_duration_seconds", "histogram",
     "Time from a request's head to the last byte of its reply.", .write = write_durations},
    {"matmuld_stage_duration_seconds", "histogram",
     "Time of answered products by stage; 0 for a stage that a product did not have.", .write = write_stages},
    {"matmuld_kernel_duration_seconds", "histogram",
     "Kernel time of each product by the device's clock, even if its client has left; a launch that several "
     "products share counts for each of them.",
     .write = write_kernels},
    {"matmuld_path_total", "counter",
     "Products of variants that have several ways to a result, by the way taken.",
     ARRAY("path", mm_path_name, counts.paths, MM_PATH_NONE + 1, MM_PATH_COUNT)},
    {"matmuld_products_total", "counter", "Products that were computed, by the type of their operands.",
     ARRAY("dtype", mm_dtype_name, counts.products, 0, MM_DTYPE_COUNT)},
    {"matmuld_verify_total", "counter",
     "Checked products by result; unjudged: infinities and NaN left nothing to compare.",
     ARRAY("result", mm_verdict_name, counts.verdicts, 0, MM_VERDICT_COUNT)},
    {"matmuld_transfer_bytes_total", "counter",
     "Bytes of matrices copied between host and device, and between devices (peer); none for products on the "
     "CPU.",
     COUNTS("direction", {"upload", AT(counts.uploaded_bytes)}, {"download", AT(counts.downloaded_bytes)},
            {"peer", AT(peer_bytes)})},
    {"matmuld_ready", "gauge", "1 if GET /readyz is 200, else 0.", COUNT(is_ready)},
    {"matmuld_draining", "gauge", "1 from the beginning of the stop, else 0.", COUNT(is_draining)},
    {"matmuld_queue_jobs", "gauge", "Products that wait for a device.", COUNT(queue_jobs)},
    {"matmuld_queue_jobs_max", "gauge", "How many products may wait (--queue-depth).", COUNT(queue_jobs_max)},
    {"matmuld_queue_bytes", "gauge", "Bytes of the operands and results of products that wait.",
     COUNT(queue_bytes)},
    {"matmuld_queue_wait_seconds", "gauge",
     "Expected time of the jobs of the busiest device, by measured rates.", NUMBER(queue_wait_s)},
    {"matmuld_queue_wait_seconds_max", "gauge",
     "The longest expected wait of an accepted job (--queue-wait-ms).", NUMBER(queue_wait_s_max)},
    {"matmuld_requests_in_flight", "gauge",
     "Requests whose head was received and whose reply is not complete, without this one.", COUNT(in_flight)},
    {"matmuld_connections", "gauge", "Open connections; active: with a request, this one included.",
     COUNTS("state", {"active", AT(connections_active)}, {"idle", AT(connections_idle)})},
    {"matmuld_connections_closed_total", "counter",
     "Connections that the service closed; evicted: idle, to make room for new ones; address: over "
     "--connections-per-address; slow_reader: slower than --send-rate, or too slow while memory was "
     "full.",
     COUNTS("reason", {"evicted", AT(counts.closed[MM_CLOSED_EVICTED])},
            {"address", AT(counts.closed[MM_CLOSED_ADDRESS])},
            {"slow_reader", AT(counts.closed[MM_CLOSED_SLOW_READER])})},
    {"matmuld_rejected_total", "counter", "Requests answered with a problem, by its code.",
     ARRAY("reason", mm_status_name, counts.rejected, MM_OK + 1, MM_STATUS_COUNT)},
    {"matmuld_busy_total", "counter", "Requests answered with 429, by cause.",
     ARRAY("cause", mm_busy_name, counts.busy, 0, MM_BUSY_COUNT)},
    {"matmuld_key_requests_total", "counter",
     "Requests with a valid API key, by the key's name; unnamed: keys without one; other: names after the "
     "first 256.",
     .write = write_key_counts, .first = offsetof(struct mm_account, requests)},
    {"matmuld_key_products_total", "counter", "Products that were computed for the keys of a name.",
     .write = write_key_counts, .first = offsetof(struct mm_account, products)},
    {"matmuld_key_flops_total", "counter",
     "Floating-point operations of the products for the keys of a name: 2mnk a product.",
     .write = write_key_numbers, .first = offsetof(struct mm_account, flops)},
    {"matmuld_key_kernel_seconds_total", "counter",
     "Kernel time for the keys of a name; of a launch that several products share, each has its part.",
     .write = write_key_numbers, .first = offsetof(struct mm_account, kernel_s)},
    {"matmuld_key_bytes_total", "counter", "Bytes of the bodies of requests (in) and of replies (out).",
     .write = write_key_bytes},
    {"matmuld_key_rejected_total", "counter",
     "Requests with a valid key that were answered with a problem, by its code; only codes that occurred.",
     .write = write_key_rejections},
    {"matmuld_unauthorized_total", "counter", "Requests without a valid API key where one is needed.",
     COUNT(counts.rejected[MM_UNAUTHORIZED])},
    {"matmuld_reload_failures_total", "counter",
     "Reloads (SIGHUP) that failed, so what was in force stayed: API keys, or the certificate and its key.",
     COUNTS("what", {"keys", AT(counts.reload_failures[MM_RELOAD_KEYS])},
            {"tls", AT(counts.reload_failures[MM_RELOAD_TLS])})},
    {"matmuld_tls_certificate_expiry_timestamp_seconds", "gauge",
     "When the certificate in force expires, since the epoch; no sample without TLS.",
     .write = write_certificate_expiry},
    {"matmuld_cancelled_total", "counter",
     "Requests cancelled because the client disconnected, the deadline passed or the service stopped, by "
     "stage; kernel: anything on the device.",
     COUNTS("stage", {"receive", AT(counts.cancelled[MM_SPAN_RECEIVE])},
            {"decode", AT(counts.cancelled[MM_SPAN_DECODE])}, {"queue", AT(counts.cancelled[MM_SPAN_QUEUE])},
            {"kernel", AT(counts.cancelled[MM_SPAN_KERNEL])},
            {"encode", AT(counts.cancelled[MM_SPAN_ENCODE])}, {"send", AT(counts.cancelled[MM_STAGE_SEND])})},
    {"matmuld_flops_total", "counter", "Floating-point operations of the kernels that ran: 2mnk a product.",
     .write = write_flops},
    {"matmuld_device_failed", "gauge", "1 if the device has failed and takes no more work, else 0.",
     .write = write_device_failed},
    {"matmuld_device_memory_bytes", "gauge", "Memory of each working device; the CPU's is the host's.",
     .write = write_device_memory},
    {"matmuld_device_errors_total", "counter",
     "Products, rows of benchmarks and timings of memory that failed on a device, by the problem's code.",
     .write = write_device_errors},
    {"matmuld_self_tests_total", "counter",
     "Tests of an idle device by known products, by result; undone: no memory, or the service stopped.",
     COUNTS("result", {"passed", AT(self_tests.passed)}, {"failed", AT(self_tests.failed)},
            {"undone", AT(self_tests.undone)})},
    {"matmuld_staging_bytes", "gauge", "Memory budget for bodies and results.",
     COUNTS("state", {"used", AT(staging_used)}, {"kept", AT(staging_kept)}, {"free", AT(staging_free)})},
    {"matmuld_store_matrices", "gauge", "Stored matrices.", COUNT(store.count)},
    {"matmuld_store_bytes", "gauge",
     "Memory for stored matrices (--store-memory); reserved: for uploads; released: of matrices that were "
     "replaced, deleted or have expired, but are still used.",
     COUNTS("state", {"stored", AT(store.stored_bytes)}, {"reserved", AT(store.reserved_bytes)},
            {"released", AT(store.released_bytes)}, {"free", AT(store.free_bytes)})},
    {"matmuld_store_requests_total", "counter", "Admitted requests to stored matrices, by their end.",
     .write = write_store_requests},
    {"matmuld_log_dropped_total", "counter", "Log lines dropped because stderr did not take them.",
     COUNT(log_dropped)},
    {"matmuld_build_info", "gauge", "Always 1; the labels describe the build.", .write = write_build},
    /* Triton's names, which load tools read. */
    {"nv_inference_pending_request_count", "gauge", "The value of matmuld_queue_jobs.", COUNT(queue_jobs)},
    {"nv_gpu_utilization", "gauge", "How much of the last moments the GPU ran kernels, 0 to 1.",
     .write = write_gpus, .first = MM_GPU_UTILIZATION},
    {"nv_gpu_memory_used_bytes", "gauge", "Memory of the GPU that is used, by any process.",
     .write = write_gpus, .first = MM_GPU_MEMORY_USED_BYTES},
    {"nv_gpu_memory_total_bytes", "gauge", "Memory of the GPU.", .write = write_gpus,
     .first = MM_GPU_MEMORY_TOTAL_BYTES},
    {"nv_gpu_power_usage", "gauge", "Power of the GPU in watts.", .write = write_gpus,
     .first = MM_GPU_POWER_W},
    {"process_cpu_seconds_total", "counter", "User and system time of the process.",
     NUMBER(process.cpu_seconds)},
    {"process_resident_memory_bytes", "gauge", "Resident memory of the process.",
     COUNT(process.resident_bytes)},
    {"process_virtual_memory_bytes", "gauge", "Virtual memory of the process.", COUNT(process.virtual_bytes)},
    {"process_open_fds", "gauge", "Open file descriptors.", COUNT(process.descriptors)},
    {"process_max_fds", "gauge", "The limit on open file descriptors.", COUNT(process.descriptors_max)},
    {"process_start_time_seconds", "gauge", "When the process started, since the epoch.", NUMBER(started_s)},
};

static void write_counts(const struct scrape *scrape, const struct family *family) {
    const uint64_t *array = (const uint64_t *)((const char *)scrape + family->array_at);
    const struct sample *sample = family->samples;
    for (; sample != NULL && sample->value != NULL; sample++)
        put_count(scrape, LABELS({family->label, family->label == NULL ? NULL : sample->value}),
                  *(const uint64_t *)((const char *)scrape + sample->at));
    for (unsigned index = (unsigned)family->first; index < family->end; index++)
        put_count(scrape, LABELS({family->label, family->name_of(index)}), array[index]);
}

/* Returns a malloc'ed text, or NULL if out of memory. */
static char *make_page(struct scrape *scrape, size_t *length) {
    struct mm_text text;
    scrape->out = mm_text_open(&text);
    if (scrape->out == NULL)
        return NULL;
    for (size_t index = 0; index < sizeof families / sizeof families[0]; index++) {
        const struct family *family = &families[index];
        scrape->name = family->name;
        scrape->first = family->first;
        fprintf(scrape->out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                family->type);
        if (family->write != NULL)
            family->write(scrape);
        else
            write_counts(scrape, family);
    }
    return mm_text_close(scrape->out, &text, length);
}

/* Reads all values except the memory of devices. */
static void look(struct scrape *scrape, struct mm_server *server) {
    struct mm_engine *engine = mm_server_engine(server);
    const struct mm_budget *budget = &server->budget;
    scrape->server = server;
    struct mm_error error;
    scrape->is_ready = mm_server_is_ready(server, &error) == MM_OK;
    scrape->is_draining = mm_server_is_leaving(server);
    scrape->queue_jobs_max = server->options->queue_depth;
    scrape->queue_wait_s_max = (double)server->options->queue_wait_ms / 1e3;
    scrape->started_s = server->started_seconds;
    if (engine != NULL) {
        const struct mm_queue_state queue = mm_queue_look(mm_engine_queue(engine));
        scrape->devices = mm_engine_devices(engine, &scrape->device_count);
        scrape->queue_jobs = queue.jobs_waiting;
        scrape->queue_bytes = queue.bytes_waiting;
        scrape->queue_wait_s = (double)queue.wait_ns / 1e9;
        scrape->self_tests = mm_engine_watch_counts(engine);
    }
    for (size_t index = 0; index < scrape->device_count; index++)
        scrape->peer_bytes += __atomic_load_n(&scrape->devices[index]->peer_bytes, __ATOMIC_RELAXED);
    if (server->store != NULL)
        scrape->store = mm_store_totals(server->store);
    scrape->staging_used = mm_budget_used(budget);
    scrape->staging_kept = mm_buffers_kept(budget->buffers);
    scrape->staging_free =
        budget->bytes - mm_size_min(budget->bytes, scrape->staging_used + scrape->staging_kept);
    mm_metrics_sum(&scrape->counts);
    mm_process_look(&scrape->process);
    const uint64_t open = mm_acceptor_open(server->acceptor), busy = mm_counts_in_flight(&scrape->counts);
    scrape->in_flight = busy - 1;
    scrape->connections_active = mm_size_min(busy, open); /* each connection has at most one request */
    scrape->connections_idle = open - scrape->connections_active;
    scrape->log_dropped = mm_log_dropped();
    scrape->gpu_count = mm_nvml_look(scrape->gpus);
}

enum mm_status mm_scrape(struct mm_request *request) {
    struct scrape *scrape = calloc(1, sizeof *scrape);
    char *text = NULL;
    size_t length = 0;
    if (scrape != NULL) {
        look(scrape, request->server);
        text = make_page(scrape, &length);
    }
    free(scrape);
    return mm_reply_text(request, text, length, "text/plain; version=0.0.4; charset=utf-8");
}
