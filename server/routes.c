/* The table of routes, and the handlers that are a few lines long. */
#include "server/routes.h"

#include "api/benchmark.h"
#include "api/describe.h"
#include "api/openapi.h"
#include "server/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* page.html (api/embed.cmake). */
extern const unsigned char mm_page_text[];
extern const size_t mm_page_text_bytes;

static const char json_type[] = "application/json";

static enum mm_status reply_ok(struct mm_exchange *exchange) {
    static const char text[] = "{\"status\":\"ok\"}";
    return mm_reply_text(exchange, strdup(text), sizeof text - 1, json_type);
}

static enum mm_status page(struct mm_exchange *exchange) {
    char *text = malloc(mm_page_text_bytes);
    if (text != NULL)
        memcpy(text, mm_page_text, mm_page_text_bytes);
    return mm_reply_text(exchange, text, mm_page_text_bytes, "text/html; charset=utf-8");
}

static enum mm_status healthz(struct mm_exchange *exchange) {
    return reply_ok(exchange);
}

static enum mm_status readyz(struct mm_exchange *exchange) {
    enum mm_status status = mm_server_takes_jobs(exchange->server, &exchange->error);
    return status == MM_OK ? reply_ok(exchange) : status;
}

typedef char *describe_function(struct mm_device *const *devices, size_t count, size_t *length);

static enum mm_status describe(struct mm_exchange *exchange, describe_function *function) {
    const struct mm_engine *engine = mm_server_engine(exchange->server);
    if (engine == NULL)
        return mm_fail(&exchange->error, MM_NOT_READY, "the devices are being opened");
    size_t count;
    size_t length = 0;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    char *text = function(devices, count, &length);
    return mm_reply_text(exchange, text, length, json_type);
}

static enum mm_status variants(struct mm_exchange *exchange) {
    return describe(exchange, mm_describe_variants);
}

static enum mm_status devices(struct mm_exchange *exchange) {
    return describe(exchange, mm_describe_devices);
}

static char *make_openapi(struct mm_device *const *list, size_t count, size_t *length) {
    return mm_openapi_json(list, count, MATMULD_VERSION, length);
}

static enum mm_status openapi(struct mm_exchange *exchange) {
    return describe(exchange, make_openapi);
}

static const struct mm_route routes[] = {
    {"POST", "/v1/matmul", MM_ENTRY_KEY, 0, mm_matmul_admit, mm_operation_complete, mm_operation_answer},
    {"POST", "/v1/transpose", MM_ENTRY_KEY, 0, mm_transpose_admit, mm_operation_complete,
     mm_operation_answer},
    {"POST", "/v1/benchmark", MM_ENTRY_KEY, MM_BENCHMARK_BODY_BYTES_MAX, mm_benchmark_admit,
     mm_benchmark_complete, mm_benchmark_answer},
    {"GET", "/v1/variants", MM_ENTRY_KEY, 0, NULL, variants, NULL},
    {"GET", "/v1/devices", MM_ENTRY_KEY, 0, NULL, devices, NULL},
    {"GET", "/healthz", MM_ENTRY_OPEN, 0, NULL, healthz, NULL},
    {"GET", "/readyz", MM_ENTRY_OPEN, 0, NULL, readyz, NULL},
    {"GET", "/openapi.json", MM_ENTRY_KEY, 0, NULL, openapi, NULL},
    {"GET", "/metrics", MM_ENTRY_METRICS, 0, NULL, mm_scrape, NULL},
    {"GET", "/", MM_ENTRY_OPEN, 0, NULL, page, NULL},
};

enum { ROUTE_COUNT = sizeof routes / sizeof routes[0] };

_Static_assert((int)ROUTE_COUNT <= (int)MM_ROUTE_OTHER, "every path has its label");

/* A path with several rows is labelled by its first. */
size_t mm_route_label_index(const char *path) {
    for (size_t index = 0; index < ROUTE_COUNT; index++)
        if (strcmp(routes[index].path, path) == 0)
            return index;
    return MM_ROUTE_OTHER;
}

const char *mm_route_label(size_t index) {
    if (index == MM_ROUTE_OTHER)
        return "other";
    return index < ROUTE_COUNT && mm_route_label_index(routes[index].path) == index ? routes[index].path
                                                                                    : NULL;
}

/* HEAD is GET without the body, which MHD leaves out by itself. */
static bool takes(const struct mm_route *route, const char *method) {
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* An OPTIONS request finds this row on every path that has another. It takes no key: browsers send none with
 * a preflight, and it tells no more than a 405 does. */
static const struct mm_route options_route = {"OPTIONS", "", MM_ENTRY_OPEN, 0, NULL, mm_reply_options, NULL};

static bool is_off(const struct mm_route *route, const struct mm_options *options) {
    return options->no_benchmark && route->admit == mm_benchmark_admit;
}

enum mm_status mm_route_find(const struct mm_options *options, const char *method, const char *path,
                             const struct mm_route **route, char *allow, size_t allow_size,
                             struct mm_error *error) {
    size_t length = 0;
    allow[0] = '\0';
    if (strcmp(method, "OPTIONS") == 0 && strcmp(path, "*") == 0) {
        snprintf(allow, allow_size, "GET, HEAD, POST, OPTIONS"); /* asked of the server, not of a path */
        *route = &options_route;
        return MM_OK;
    }
    for (size_t index = 0; index < ROUTE_COUNT; index++) {
        if (strcmp(routes[index].path, path) != 0)
            continue;
        if (is_off(&routes[index], options))
            return mm_fail(error, MM_NOT_FOUND, "'%s' is switched off here (--no-benchmark)", path);
        if (takes(&routes[index], method)) {
            allow[0] = '\0';
            *route = &routes[index];
            return MM_OK;
        }
        length +=
            (size_t)snprintf(allow + length, allow_size - length, "%s, ",
                             strcmp(routes[index].method, "GET") == 0 ? "GET, HEAD" : routes[index].method);
    }
    if (length == 0)
        return mm_fail(error, MM_NOT_FOUND, "there is nothing at '%.200s'", path);
    snprintf(allow + length, allow_size - length, "OPTIONS");
    if (strcmp(method, "OPTIONS") == 0) {
        *route = &options_route;
        return MM_OK;
    }
    return mm_fail(error, MM_METHOD_NOT_ALLOWED, "'%.200s' takes %s, but the method is %.32s", path, allow,
                   method);
}
