/* GET /metrics: one row per metric, with the function that writes its samples in Prometheus' text format
 * 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). Every label has its samples from the
 * start, at 0; those of devices come with the devices. */
#include "api/text.h"
#include "gpu/store/store.h"
#include "server/http/acceptor.h"
#include "server/auth/keys.h"
#include "server/auth/tls.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/machine.h"
#include "server/http/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scrape {
    FILE *out;
    const char *name; /* of the family at hand */
    struct mm_server *server;
    struct mm_device *const *devices; /* none until the engine is open */
    size_t device_count;
    struct mm_counts counts;
    struct mm_process process;
    uint64_t queue_jobs;
    uint64_t queue_jobs_max;
    uint64_t queue_bytes;
    uint64_t in_flight; /* requests, without this one */
    uint64_t log_dropped;
};

/* No value needs an escape: they are words of ours, and the names of keys, which are letters and digits. */
struct label {
    const char *name;
    const char *value; /* NULL ends a list */
};

#define LABELS(...) ((const struct label[4]){__VA_ARGS__})
#define NO_LABELS LABELS({NULL, NULL})

/* name{label="value",…,le="bound"} and the space after it. bound: NULL: no bucket. */
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

/* With as many digits as it takes to read it back. */
static void put_number(const struct scrape *scrape, const struct label *labels, double number) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", number);
    put_name(scrape, "", labels, NULL);
    fprintf(scrape->out, strtod(text, NULL) == number ? "%.15g\n" : "%.17g\n", number);
}

/* In seconds, with buckets that are cumulative. */
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

/* The samples of each variant of the backends with an open device, without those that only choose: kernel
 * times, or the operations of products. */
static void write_variants(const struct scrape *scrape, bool flops) {
    const struct mm_backend *before = NULL;
    for (size_t device = 0; device < scrape->device_count; device++) {
        const struct mm_backend *backend = scrape->devices[device]->backend;
        for (size_t row = 0; backend != before && row < backend->variant_count; row++) {
            const struct mm_variant *variant = &backend->variants[row];
            const size_t slot = mm_variant_slot(backend, row);
            const struct label *labels = LABELS({"variant", variant->name}, {"backend", backend->name},
                                                {"op", mm_op_name(variant->op)});
            if (mm_variant_chooses(variant))
                continue;
            if (!flops)
                put_histogram(scrape, labels, &scrape->counts.kernels[slot]);
            else if (variant->op == MM_MATMUL)
                put_number(scrape, labels, scrape->counts.flops[slot]);
        }
        before = backend; /* one backend's devices stand together */
    }
}

static void write_kernels(const struct scrape *scrape) {
    write_variants(scrape, false);
}

static void write_flops(const struct scrape *scrape) {
    write_variants(scrape, true);
}

static void write_paths(const struct scrape *scrape) {
    for (unsigned kind = MM_PATH_NONE + 1; kind < MM_PATH_COUNT; kind++)
        put_count(scrape, LABELS({"path", mm_path_name((enum mm_path_kind)kind)}),
                  scrape->counts.paths[kind]);
}

static void write_products(const struct scrape *scrape) {
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        put_count(scrape, LABELS({"dtype", mm_dtype_name((enum mm_dtype)dtype)}),
                  scrape->counts.products[dtype]);
}

static void write_verdicts(const struct scrape *scrape) {
    for (unsigned verdict = 0; verdict < MM_VERDICT_COUNT; verdict++)
        put_count(scrape, LABELS({"result", mm_verdict_name((enum mm_verdict)verdict)}),
                  scrape->counts.verdicts[verdict]);
}

static void write_self_tests(const struct scrape *scrape) {
    const struct mm_engine *engine = mm_server_engine(scrape->server);
    struct mm_watch_counts counts = {0};
    if (engine != NULL)
        counts = mm_engine_watch_counts(engine);
    put_count(scrape, LABELS({"result", "passed"}), counts.passed);
    put_count(scrape, LABELS({"result", "failed"}), counts.failed);
    put_count(scrape, LABELS({"result", "undone"}), counts.undone);
}

static void write_transfers(const struct scrape *scrape) {
    put_count(scrape, LABELS({"direction", "upload"}), scrape->counts.uploaded_bytes);
    put_count(scrape, LABELS({"direction", "download"}), scrape->counts.downloaded_bytes);
    uint64_t peer_bytes = 0;
    for (size_t index = 0; index < scrape->device_count; index++)
        peer_bytes += __atomic_load_n(&scrape->devices[index]->peer_bytes, __ATOMIC_RELAXED);
    put_count(scrape, LABELS({"direction", "peer"}), peer_bytes);
}

/* A connection has one request at a time. */
static void write_connections(const struct scrape *scrape) {
    const uint64_t open = mm_acceptor_open(scrape->server->acceptor);
    const uint64_t in_flight = mm_counts_in_flight(&scrape->counts);
    const uint64_t active = in_flight < open ? in_flight : open;
    put_count(scrape, LABELS({"state", "active"}), active);
    put_count(scrape, LABELS({"state", "idle"}), open - active);
}

static void write_closed(const struct scrape *scrape) {
    static const char *const reasons[MM_CLOSED_COUNT] = {[MM_CLOSED_EVICTED] = "evicted",
                                                         [MM_CLOSED_ADDRESS] = "address",
                                                         [MM_CLOSED_SLOW_READER] = "slow_reader"};
    for (size_t reason = 0; reason < MM_CLOSED_COUNT; reason++)
        put_count(scrape, LABELS({"reason", reasons[reason]}), scrape->counts.closed[reason]);
}

static void write_rejected(const struct scrape *scrape) {
    for (unsigned status = MM_OK + 1; status < MM_STATUS_COUNT; status++)
        put_count(scrape, LABELS({"reason", mm_status_name((enum mm_status)status)}),
                  scrape->counts.rejected[status]);
}

static void write_keys(const struct scrape *scrape) {
    const struct mm_keys *keys = scrape->server->keys;
    const size_t count = keys == NULL ? 0 : mm_keys_label_count(keys);
    for (size_t index = 0; index < count; index++)
        put_count(scrape, LABELS({"key", mm_keys_label(keys, index)}), mm_keys_requests(keys, index));
}

static void write_reload_failures(const struct scrape *scrape) {
    put_count(scrape, LABELS({"what", "keys"}), scrape->counts.reload_failures[MM_RELOAD_KEYS]);
    put_count(scrape, LABELS({"what", "tls"}), scrape->counts.reload_failures[MM_RELOAD_TLS]);
}

/* Without TLS there is no sample: 0 would look like a certificate that expired long ago. */
static void write_certificate_expiry(const struct scrape *scrape) {
    const time_t expiry = mm_tls_expiry();
    if (expiry != 0)
        put_count(scrape, NO_LABELS, (uint64_t)expiry);
}

static void write_cancelled(const struct scrape *scrape) {
    static const unsigned stages[] = {MM_SPAN_RECEIVE, MM_SPAN_DECODE, MM_SPAN_QUEUE,
                                      MM_SPAN_KERNEL,  MM_SPAN_ENCODE, MM_STAGE_SEND};
    for (size_t index = 0; index < sizeof stages / sizeof stages[0]; index++)
        put_count(scrape, LABELS({"stage", mm_stage_name(stages[index])}),
                  scrape->counts.cancelled[stages[index]]);
}

enum { DEVICE_LABEL_MAX = 32 };

/* As in cuda:0. */
static const char *device_label(const struct mm_device *device, char text[DEVICE_LABEL_MAX]) {
    snprintf(text, DEVICE_LABEL_MAX, "%s:%u", device->backend->name, device->index);
    return text;
}

/* A failed device is not asked. Asking takes some microseconds. */
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

static void write_staging(const struct scrape *scrape) {
    const struct mm_budget *budget = &scrape->server->budget;
    const size_t used = mm_budget_used(budget), kept = mm_buffers_kept(budget->buffers);
    put_count(scrape, LABELS({"state", "used"}), used);
    put_count(scrape, LABELS({"state", "kept"}), kept);
    put_count(scrape, LABELS({"state", "free"}), budget->bytes - mm_size_min(budget->bytes, used + kept));
}

static struct mm_store_totals store_totals(const struct scrape *scrape) {
    struct mm_store_totals totals = {0};
    if (scrape->server->store != NULL)
        totals = mm_store_totals(scrape->server->store);
    return totals;
}

static void write_store_matrices(const struct scrape *scrape) {
    put_count(scrape, NO_LABELS, store_totals(scrape).count);
}

static void write_store_bytes(const struct scrape *scrape) {
    const struct mm_store_totals totals = store_totals(scrape);
    put_count(scrape, LABELS({"state", "stored"}), totals.stored_bytes);
    put_count(scrape, LABELS({"state", "reserved"}), totals.reserved_bytes);
    put_count(scrape, LABELS({"state", "released"}), totals.released_bytes);
    put_count(scrape, LABELS({"state", "free"}), totals.free_bytes);
}

static void write_store_requests(const struct scrape *scrape) {
    static const char *const ops[MM_STORE_OPS] = {[MM_STORE_PUT] = "put",
                                                  [MM_STORE_GET] = "get",
                                                  [MM_STORE_DELETE] = "delete",
                                                  [MM_STORE_LIST] = "list"};
    static const char *const results[MM_STORE_RESULTS] = {[MM_STORE_OK] = "ok",
                                                          [MM_STORE_MISSED] = "no_such_matrix",
                                                          [MM_STORE_CONDITION] = "precondition_failed",
                                                          [MM_STORE_NO_ROOM] = "store_full",
                                                          [MM_STORE_FAILED] = "failed"};
    for (unsigned op = MM_STORE_NONE + 1; op < MM_STORE_OPS; op++)
        for (unsigned result = 0; result < MM_STORE_RESULTS; result++)
            put_count(scrape, LABELS({"op", ops[op]}, {"result", results[result]}),
                      scrape->counts.store[op][result]);
}

static void write_build(const struct scrape *scrape) {
    char backends[64] = "";
    size_t length = 0;
    for (const struct mm_backend *const *backend = mm_backends(); *backend != NULL; backend++)
        length += (size_t)snprintf(backends + length, sizeof backends - length, "%s%s", length > 0 ? "," : "",
                                   (*backend)->name);
    const struct label *labels = LABELS({"version", MATMULD_VERSION}, {"backends", backends});
    put_count(scrape, labels, 1);
}

static void write_cpu_seconds(const struct scrape *scrape) {
    put_number(scrape, NO_LABELS, scrape->process.cpu_seconds);
}

static void write_started(const struct scrape *scrape) {
    put_number(scrape, NO_LABELS, scrape->server->started_seconds);
}

#define COUNT(member) .count_at = offsetof(struct scrape, member)

static const struct family {
    const char *name;
    const char *type;
    const char *help;
    void (*write)(const struct scrape *scrape); /* NULL: the family is one count */
    size_t count_at;                            /* in struct scrape, then */
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
     "Products of variants that have several ways to a result, by the way taken.", .write = write_paths},
    {"matmuld_products_total", "counter", "Products that were computed, by the type of their operands.",
     .write = write_products},
    {"matmuld_verify_total", "counter",
     "Checked products by result; unjudged: infinities and NaN left nothing to compare.",
     .write = write_verdicts},
    {"matmuld_transfer_bytes_total", "counter",
     "Bytes of matrices copied between host and device, and between devices (peer); none for products on the "
     "CPU.",
     .write = write_transfers},
    {"matmuld_queue_jobs", "gauge", "Products that wait for a device.", COUNT(queue_jobs)},
    {"matmuld_queue_jobs_max", "gauge", "How many products may wait (--queue-depth).", COUNT(queue_jobs_max)},
    {"matmuld_queue_bytes", "gauge", "Bytes of the operands and results of products that wait.",
     COUNT(queue_bytes)},
    {"matmuld_requests_in_flight", "gauge",
     "Requests whose head was received and whose reply is not complete, without this one.", COUNT(in_flight)},
    {"matmuld_connections", "gauge", "Open connections; active: with a request, this one included.",
     .write = write_connections},
    {"matmuld_connections_closed_total", "counter",
     "Connections that the service closed; evicted: idle, to make room for new ones; address: over "
     "--connections-per-address; slow_reader: slower than --send-rate, or too slow while memory was "
     "full.",
     .write = write_closed},
    {"matmuld_rejected_total", "counter", "Requests answered with a problem, by its code.",
     .write = write_rejected},
    {"matmuld_key_requests_total", "counter",
     "Requests with a valid API key, by the key's name, or by its line if it has none.", .write = write_keys},
    {"matmuld_unauthorized_total", "counter", "Requests without a valid API key where one is needed.",
     COUNT(counts.rejected[MM_UNAUTHORIZED])},
    {"matmuld_reload_failures_total", "counter",
     "Reloads (SIGHUP) that failed, so what was in force stayed: API keys, or the certificate and its key.",
     .write = write_reload_failures},
    {"matmuld_tls_certificate_expiry_timestamp_seconds", "gauge",
     "When the certificate in force expires, since the epoch; no sample without TLS.",
     .write = write_certificate_expiry},
    {"matmuld_cancelled_total", "counter",
     "Requests cancelled because the client disconnected, the deadline passed or the service stopped, by "
     "stage; kernel: anything on the device.",
     .write = write_cancelled},
    {"matmuld_flops_total", "counter", "Floating-point operations of the kernels that ran: 2mnk a product.",
     .write = write_flops},
    {"matmuld_device_memory_bytes", "gauge", "Memory of each working device; the CPU's is the host's.",
     .write = write_device_memory},
    {"matmuld_device_errors_total", "counter",
     "Products, rows of benchmarks and timings of memory that failed on a device, by the problem's code.",
     .write = write_device_errors},
    {"matmuld_self_tests_total", "counter",
     "Tests of an idle device by known products, by result; undone: no memory, or the service stopped.",
     .write = write_self_tests},
    {"matmuld_staging_bytes", "gauge", "Memory budget for bodies and results.", .write = write_staging},
    {"matmuld_store_matrices", "gauge", "Stored matrices.", .write = write_store_matrices},
    {"matmuld_store_bytes", "gauge",
     "Memory for stored matrices (--store-memory); reserved: for uploads; released: of matrices that were "
     "replaced, deleted or have expired, but are still used.",
     .write = write_store_bytes},
    {"matmuld_store_requests_total", "counter", "Admitted requests to stored matrices, by their end.",
     .write = write_store_requests},
    {"matmuld_log_dropped_total", "counter", "Log lines dropped because stderr did not take them.",
     COUNT(log_dropped)},
    {"matmuld_build_info", "gauge", "Always 1; the labels describe the build.", .write = write_build},
    {"process_cpu_seconds_total", "counter", "User and system time of the process.",
     .write = write_cpu_seconds},
    {"process_resident_memory_bytes", "gauge", "Resident memory of the process.",
     COUNT(process.resident_bytes)},
    {"process_virtual_memory_bytes", "gauge", "Virtual memory of the process.", COUNT(process.virtual_bytes)},
    {"process_open_fds", "gauge", "Open file descriptors.", COUNT(process.descriptors)},
    {"process_max_fds", "gauge", "The limit on open file descriptors.", COUNT(process.descriptors_max)},
    {"process_start_time_seconds", "gauge", "When the process started, since the epoch.",
     .write = write_started},
};

/* malloc'ed; NULL if memory runs out. */
static char *make_page(struct scrape *scrape, size_t *length) {
    struct mm_text text;
    scrape->out = mm_text_open(&text);
    if (scrape->out == NULL)
        return NULL;
    for (size_t index = 0; index < sizeof families / sizeof families[0]; index++) {
        const struct family *family = &families[index];
        const void *count = (const char *)scrape + family->count_at;
        scrape->name = family->name;
        fprintf(scrape->out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                family->type);
        if (family->write != NULL)
            family->write(scrape);
        else
            put_count(scrape, NO_LABELS, *(const uint64_t *)count);
    }
    return mm_text_close(scrape->out, &text, length);
}

/* All but the memory of the devices. */
static void look(struct scrape *scrape, struct mm_server *server) {
    struct mm_engine *engine = mm_server_engine(server);
    scrape->server = server;
    scrape->queue_jobs_max = server->options->queue_depth;
    if (engine != NULL) {
        const struct mm_queue_state queue = mm_queue_look(mm_engine_queue(engine));
        scrape->devices = mm_engine_devices(engine, &scrape->device_count);
        scrape->queue_jobs = queue.jobs_waiting;
        scrape->queue_bytes = queue.bytes_waiting;
    }
    mm_metrics_sum(&scrape->counts);
    mm_process_look(&scrape->process);
    scrape->in_flight = mm_counts_in_flight(&scrape->counts) - 1;
    scrape->log_dropped = mm_log_dropped();
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
