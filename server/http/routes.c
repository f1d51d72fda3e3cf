#include "server/http/routes.h"

#include "api/describe/describe.h"
#include "api/lab/benchmark.h"
#include "api/oip/oip.h"
#include "api/problem.h"
#include "api/slice.h"
#include "api/text.h"
#include "server/http/reply.h"

#include <string.h>
#include <strings.h>

static const char json_type[] = "application/json";

static enum mm_status healthz(struct mm_request *request) {
    static const char text[] = "{\"status\":\"ok\"}";
    return mm_reply_kept(request, text, sizeof text - 1, json_type);
}

static enum mm_status readyz(struct mm_request *request) {
    enum mm_status status = mm_server_is_ready(request->server, &request->error);
    return status == MM_OK ? healthz(request) : status;
}

static enum mm_status fail_opening(struct mm_request *request) {
    return mm_fail(&request->error, MM_NOT_READY,
                   "the service is still opening its devices; try again in a second");
}

static enum mm_status variants(struct mm_request *request) {
    const struct mm_engine *engine = mm_server_engine(request->server);
    if (engine == NULL)
        return fail_opening(request);
    size_t count, length = 0;
    const struct mm_offer *offers = mm_engine_offers(engine, &count);
    char *text = mm_describe_variants(offers, count, &length);
    return mm_reply_text(request, text, length, json_type);
}

static enum mm_status devices(struct mm_request *request) {
    const struct mm_engine *engine = mm_server_engine(request->server);
    if (engine == NULL)
        return fail_opening(request);
    size_t count, length = 0;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    char *text = mm_describe_devices(devices, count, &length);
    return mm_reply_text(request, text, length, json_type);
}

static enum mm_status openapi(struct mm_request *request) {
    const struct mm_server *server = request->server;
    if (mm_server_engine(server) == NULL)
        return fail_opening(request);
    return mm_reply_kept(request, server->openapi, server->openapi_bytes, json_type);
}

static const char *benchmark_off(const struct mm_options *options) {
    return options->no_benchmark ? "--no-benchmark" : NULL;
}

static const char *page_off(const struct mm_options *options) {
    return options->no_page ? "--no-page" : NULL;
}

static const char *store_off(const struct mm_options *options) {
    return options->store_bytes_max == 0 ? "--store-memory 0" : NULL;
}

#define OPERATION                                                                                            \
    .complete = mm_operation_complete, .answer = mm_operation_answer, .state = &mm_operation_state
#define PAGE(path_)                                                                                          \
    {                                                                                                        \
        .method = "GET", .path = path_, .entry = MM_ENTRY_OPEN, .complete = mm_page_get,                     \
        .switched_off = page_off                                                                             \
    }

static const struct mm_route routes[] = {
    {.method = "POST",
     .path = "/v1/matmul",
     .body = MM_BODY_OPTIONAL,
     .example = MM_MATMUL_EXAMPLE,
     .admit = mm_matmul_admit,
     OPERATION},
    {.method = "POST",
     .path = "/v1/transpose",
     .body = MM_BODY_OPTIONAL,
     .example = MM_TRANSPOSE_EXAMPLE,
     .admit = mm_transpose_admit,
     OPERATION},
    {.method = "POST",
     .path = "/v1/benchmark",
     .body = MM_BODY_REQUIRED,
     .example = MM_BENCHMARK_EXAMPLE,
     .body_bytes_max = MM_BENCHMARK_BODY_BYTES_MAX,
     .admit = mm_benchmark_admit,
     .complete = mm_benchmark_complete,
     .answer = mm_benchmark_answer,
     .state = &mm_benchmark_state,
     .switched_off = benchmark_off},
    {.method = "POST",
     .path = "/v2/models/{name}/infer",
     .body = MM_BODY_REQUIRED,
     .inflates = true,
     .example = MM_OIP_EXAMPLE,
     .admit = mm_infer_admit,
     OPERATION},
    {.method = "GET", .path = "/v2/models/{name}/ready", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/models/{name}/config", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/models/{name}/stats", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/models/stats", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/models/{name}", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/models", .complete = mm_models_describe},
    {.method = "POST", .path = "/v2/repository/index", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2", .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/health/live", .entry = MM_ENTRY_HEALTH, .complete = mm_models_describe},
    {.method = "GET", .path = "/v2/health/ready", .entry = MM_ENTRY_HEALTH, .complete = mm_models_describe},
    {.method = "GET", .path = "/v1/matrices", .complete = mm_matrix_list, .switched_off = store_off},
    {.method = "GET",
     .path = "/v1/matrices/{name}",
     .complete = mm_matrix_get,
     .answer = mm_matrix_get_answer,
     .state = &mm_matrix_get_state,
     .switched_off = store_off},
    {.method = "PUT",
     .path = "/v1/matrices/{name}",
     .body = MM_BODY_SIZED,
     .admit = mm_matrix_put_admit,
     .complete = mm_matrix_put_complete,
     .answer = mm_matrix_put_answer,
     .state = &mm_matrix_put_state,
     .switched_off = store_off},
    {.method = "DELETE",
     .path = "/v1/matrices/{name}",
     .complete = mm_matrix_delete,
     .switched_off = store_off},
    {.method = "GET", .path = "/v1/variants", .complete = variants},
    {.method = "GET", .path = "/v1/variants/{name}/source", .complete = mm_source_file_get},
    {.method = "GET", .path = "/v1/devices", .complete = devices},
    {.method = "GET", .path = "/healthz", .entry = MM_ENTRY_HEALTH, .complete = healthz},
    {.method = "GET", .path = "/readyz", .entry = MM_ENTRY_HEALTH, .complete = readyz},
    {.method = "GET", .path = "/openapi.json", .entry = MM_ENTRY_OPEN, .complete = openapi},
    {.method = "GET", .path = "/metrics", .entry = MM_ENTRY_METRICS, .complete = mm_scrape},
    PAGE("/"),
    PAGE("/docs"),
    PAGE("/page/{name}"),
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
    for (size_t index = 0; target[0] != '/' && index < sizeof schemes / sizeof schemes[0]; index++) {
        const size_t length = strlen(schemes[index]);
        if (strncasecmp(target, schemes[index], length) != 0)
            continue;
        const char *path = strchr(target + length, '/');
        return path == NULL ? "/" : path;
    }
    return target;
}

static const struct mm_problem_form inference_errors = {json_type, mm_oip_error_json};

/* Formats of error replies. The first row whose `path` begins the request's path decides. So a protocol with
 * its own error format needs a row before the row "". */
static const struct {
    const char *path;
    const struct mm_problem_form *problems;
} protocols[] = {
    {"/v2", &inference_errors},
    {"", &mm_problem_details},
};

const struct mm_problem_form *mm_route_problems(const char *path) {
    size_t index = 0;
    while (strncmp(path, protocols[index].path, strlen(protocols[index].path)) != 0)
        index++;
    return protocols[index].problems;
}

static bool is_at(const struct mm_route *route, const char *path) {
    const char *pattern = strchr(route->path, '{');
    if (pattern == NULL)
        return strcmp(route->path, path) == 0;
    const char *end = strchr(pattern, '}') + 1;
    const size_t before = (size_t)(pattern - route->path), after = strlen(end), length = strlen(path);
    return strncmp(route->path, path, before) == 0 && length >= before + after &&
           strcmp(path + length - after, end) == 0;
}

/* Returns the index of the first row with this path. All methods of a path are in rows one after another, and
 * have one label. */
size_t mm_route_label_index(const char *path) {
    for (size_t index = 0; index < ROUTE_COUNT; index++)
        if (is_at(&routes[index], path))
            return index;
    return MM_ROUTE_OTHER;
}

const char *mm_route_label(size_t index) {
    if (index == MM_ROUTE_OTHER)
        return "other";
    const bool is_first =
        index < ROUTE_COUNT && (index == 0 || strcmp(routes[index].path, routes[index - 1].path) != 0);
    return is_first ? routes[index].path : NULL;
}

/* Whether a row has the path of the row `first`. */
static bool is_same_path(size_t index, size_t first) {
    return index < ROUTE_COUNT && strcmp(routes[index].path, routes[first].path) == 0;
}

/* Whether the route has this method. A GET route also serves HEAD, and MHD then leaves out the body. */
static bool takes(const struct mm_route *route, const char *method) {
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* Answers OPTIONS on every path. It needs no API key, because browsers send none with a preflight. */
static const struct mm_route options_route = {
    .method = "OPTIONS", .path = "", .entry = MM_ENTRY_OPEN, .complete = mm_reply_options};

static const char *off_option(const struct mm_route *route, const struct mm_options *options) {
    return route->switched_off == NULL ? NULL : route->switched_off(options);
}

/* Suggests a path that ends like the wrong path, such as /v1/matmul for /matmul. */
static enum mm_status fail_path(struct mm_request *request) {
    const char *path = request->path;
    size_t end = strlen(path), index = 0;
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    const struct mm_slice last = {path + start, end - start};
    while (index < ROUTE_COUNT &&
           (last.length == 0 || off_option(&routes[index], request->server->options) != NULL ||
            !mm_slice_is_any_case(last, strrchr(routes[index].path, '/') + 1)))
        index++;
    const bool is_near = index < ROUTE_COUNT;
    return mm_fail(&request->error, MM_NOT_FOUND,
                   "there is nothing at '%.200s'; %s%s%sGET /openapi.json lists the paths", path,
                   is_near ? "did you mean '" : "", is_near ? routes[index].path : "", is_near ? "'? " : "");
}

static enum mm_status fail_method(const struct mm_route *route, const char *method, const char *methods,
                                  struct mm_error *error) {
    const char *body = route->example;
    return mm_fail(error, MM_METHOD_NOT_ALLOWED,
                   "the method is %.32s, but '%s' takes %s; send: " MM_CURL "%s%s%s%s", method, route->path,
                   methods, route->path, body == NULL ? "" : " -d '", body == NULL ? "" : body,
                   body == NULL ? "" : "'");
}

void mm_route_methods(const char *path, char methods[MM_ALLOW_MAX]) {
    const size_t first = mm_route_label_index(path);
    methods[0] = '\0';
    if (strcmp(path, "*") == 0) /* "*" is the whole server */
        mm_list_add(methods, MM_ALLOW_MAX, "GET, HEAD, POST, PUT, DELETE");
    for (size_t index = first; is_same_path(index, first); index++)
        mm_list_add(methods, MM_ALLOW_MAX,
                    strcmp(routes[index].method, "GET") == 0 ? "GET, HEAD" : routes[index].method);
    mm_list_add(methods, MM_ALLOW_MAX, "OPTIONS");
}

enum mm_status mm_route_find(struct mm_request *request, const char *method) {
    const char *path = request->path;
    const bool is_options = strcmp(method, "OPTIONS") == 0;
    const size_t first = mm_route_label_index(path);
    char methods[MM_ALLOW_MAX];
    struct mm_error *error = &request->error;
    for (size_t index = first; is_same_path(index, first); index++) {
        const struct mm_route *route = &routes[index];
        const char *off = off_option(route, request->server->options);
        if (off != NULL)
            return mm_fail(error, MM_NOT_FOUND,
                           "'%s' is switched off on this server (%s); GET /openapi.json lists the paths",
                           route->path, off);
        if (takes(route, method)) {
            request->route = route;
            return MM_OK;
        }
    }
    if (first == MM_ROUTE_OTHER && !(is_options && strcmp(path, "*") == 0))
        return fail_path(request);
    if (is_options) {
        request->route = &options_route;
        return MM_OK;
    }
    mm_route_methods(path, methods);
    return fail_method(&routes[first], method, methods, error);
}
