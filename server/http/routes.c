/* The table of routes, and the handlers that are a few lines long. */
#include "server/http/routes.h"

#include "api/call.h"
#include "api/describe/describe.h"
#include "api/lab/benchmark.h"
#include "api/problem.h"
#include "api/slice.h"
#include "server/http/reply.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* page.html (api/embed.cmake). */
extern const unsigned char mm_page_text[];
extern const size_t mm_page_text_bytes;

static const char json_type[] = "application/json";

static enum mm_status healthz(struct mm_request *request) {
    static const char text[] = "{\"status\":\"ok\"}";
    return mm_reply_kept(request, text, sizeof text - 1, json_type);
}

static enum mm_status page(struct mm_request *request) {
    return mm_reply_kept(request, mm_page_text, mm_page_text_bytes, "text/html; charset=utf-8");
}

static enum mm_status readyz(struct mm_request *request) {
    enum mm_status status = mm_server_takes_jobs(request->server, &request->error);
    return status == MM_OK ? healthz(request) : status;
}

typedef char *describe_function(struct mm_device *const *devices, size_t count, size_t *length);

static enum mm_status fail_opening(struct mm_request *request) {
    return mm_fail(&request->error, MM_NOT_READY,
                   "the service is still opening its devices; try again in a second");
}

static enum mm_status describe(struct mm_request *request, describe_function *function) {
    const struct mm_engine *engine = mm_server_engine(request->server);
    if (engine == NULL)
        return fail_opening(request);
    size_t count;
    size_t length = 0;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    char *text = function(devices, count, &length);
    return mm_reply_text(request, text, length, json_type);
}

static enum mm_status variants(struct mm_request *request) {
    return describe(request, mm_describe_variants);
}

static enum mm_status devices(struct mm_request *request) {
    return describe(request, mm_describe_devices);
}

static enum mm_status openapi(struct mm_request *request) {
    const struct mm_server *server = request->server;
    if (mm_server_engine(server) == NULL)
        return fail_opening(request);
    return mm_reply_kept(request, server->openapi, server->openapi_bytes, json_type);
}

static const struct mm_route routes[] = {
    {"POST", "/v1/matmul", MM_ENTRY_KEY, 0, mm_matmul_admit, mm_operation_complete, mm_operation_answer,
     &mm_operation_state, MM_MATMUL_EXAMPLE},
    {"POST", "/v1/transpose", MM_ENTRY_KEY, 0, mm_transpose_admit, mm_operation_complete, mm_operation_answer,
     &mm_operation_state, MM_TRANSPOSE_EXAMPLE},
    {"POST", "/v1/benchmark", MM_ENTRY_KEY, MM_BENCHMARK_BODY_BYTES_MAX, mm_benchmark_admit,
     mm_benchmark_complete, mm_benchmark_answer, &mm_benchmark_state, MM_BENCHMARK_EXAMPLE},
    {"GET", "/v1/variants", MM_ENTRY_KEY, 0, NULL, variants, NULL, NULL, NULL},
    {"GET", "/v1/devices", MM_ENTRY_KEY, 0, NULL, devices, NULL, NULL, NULL},
    {"GET", "/healthz", MM_ENTRY_HEALTH, 0, NULL, healthz, NULL, NULL, NULL},
    {"GET", "/readyz", MM_ENTRY_HEALTH, 0, NULL, readyz, NULL, NULL, NULL},
    {"GET", "/openapi.json", MM_ENTRY_OPEN, 0, NULL, openapi, NULL, NULL, NULL},
    {"GET", "/metrics", MM_ENTRY_METRICS, 0, NULL, mm_scrape, NULL, NULL, NULL},
    {"GET", "/", MM_ENTRY_OPEN, 0, NULL, page, NULL, NULL, NULL},
};

enum { ROUTE_COUNT = sizeof routes / sizeof routes[0] };

_Static_assert((int)ROUTE_COUNT <= (int)MM_ROUTE_OTHER, "every path has its label");

size_t mm_route_state_bytes_max(void) {
    size_t most = 0;
    for (size_t index = 0; index < ROUTE_COUNT; index++)
        if (routes[index].state != NULL && routes[index].state->bytes > most)
            most = routes[index].state->bytes;
    return most;
}

const char *mm_route_path(const char *target) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t index = 0; index < sizeof schemes / sizeof schemes[0]; index++) {
        const size_t length = strlen(schemes[index]);
        if (strncasecmp(target, schemes[index], length) != 0)
            continue;
        const char *path = strchr(target + length, '/');
        return path == NULL ? "/" : path;
    }
    return target;
}

/* A path with several rows has the label of its first. */
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

/* The route of OPTIONS on every path. Needs no key: browsers send none with a preflight, and it tells no more
 * than a 405. */
static const struct mm_route options_route = {"OPTIONS",        "",   MM_ENTRY_OPEN, 0,   NULL,
                                              mm_reply_options, NULL, NULL,          NULL};

static bool is_off(const struct mm_route *route, const struct mm_options *options) {
    return options->no_benchmark && route->admit == mm_benchmark_admit;
}

/* Names the path that ends like this one, if there is one: /matmul stands for /v1/matmul. */
static enum mm_status fail_path(const char *path, struct mm_error *error) {
    size_t end = strlen(path), index = 0;
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    const struct mm_slice last = {path + start, end - start};
    while (index < ROUTE_COUNT &&
           (last.length == 0 || !mm_slice_is_any_case(last, strrchr(routes[index].path, '/') + 1)))
        index++;
    const bool is_near = index < ROUTE_COUNT;
    return mm_fail(error, MM_NOT_FOUND, "there is nothing at '%.200s'; %s%s%sGET / lists the paths", path,
                   is_near ? "did you mean '" : "", is_near ? routes[index].path : "", is_near ? "'? " : "");
}

/* Shows a request that the path takes. */
static enum mm_status fail_method(const struct mm_route *route, const char *method, const char *allow,
                                  struct mm_error *error) {
    const char *body = route->example;
    return mm_fail(error, MM_METHOD_NOT_ALLOWED,
                   "the method is %.32s, but '%s' takes %s; send: " MM_CURL "%s%s%s%s", method, route->path,
                   allow, route->path, body == NULL ? "" : " -d '", body == NULL ? "" : body,
                   body == NULL ? "" : "'");
}

enum mm_status mm_route_find(const struct mm_options *options, const char *method, const char *path,
                             const struct mm_route **route, char *allow, size_t allow_size,
                             struct mm_error *error) {
    size_t length = 0;
    allow[0] = '\0';
    if (strcmp(method, "OPTIONS") == 0 && strcmp(path, "*") == 0) {
        snprintf(allow, allow_size, "GET, HEAD, POST, OPTIONS"); /* of the server, not of a path */
        *route = &options_route;
        return MM_OK;
    }
    for (size_t index = 0; index < ROUTE_COUNT; index++) {
        if (strcmp(routes[index].path, path) != 0)
            continue;
        if (is_off(&routes[index], options))
            return mm_fail(error, MM_NOT_FOUND,
                           "'%s' is switched off on this server (--no-benchmark); GET / lists the paths",
                           path);
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
        return fail_path(path, error);
    snprintf(allow + length, allow_size - length, "OPTIONS");
    if (strcmp(method, "OPTIONS") == 0) {
        *route = &options_route;
        return MM_OK;
    }
    return fail_method(&routes[mm_route_label_index(path)], method, allow, error);
}
