/* The Open Inference Protocol: describes the server and its models, and admits infer requests. A model is a
 * variant of products with or without an element type (api/oip/oip.h). It exists if an open device can run
 * it. */
#include "api/oip/oip.h"
#include "api/text.h"
#include "commit.h"
#include "server/handlers/operation.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/observe/metrics.h"

#include <stdlib.h>
#include <string.h>

static const char json_type[] = "application/json";

struct found {
    struct mm_oip_model model;
    const struct mm_backend *backend; /* the most preferred backend that can run the model */
    struct mm_oip_stats *stats;
};

/* Counts of all models, by variant and type. Row 0 is `auto`, and the last column is for names without type.
 */
static struct mm_oip_stats all_stats[1 + MM_VARIANTS_MAX][MM_DTYPE_COUNT + 1];

/* Finds an open backend that can run the model with its type. Sets found->backend and found->stats. */
static bool find_backend(const struct mm_engine *engine, struct found *found) {
    const struct mm_oip_model *model = &found->model;
    size_t count;
    const struct mm_offer *offers = mm_engine_offers(engine, &count);
    for (size_t index = 0; index < count; index++) {
        const struct mm_backend *backend = found->backend = offers[index].backend;
        struct mm_job job = {.product.a.dtype = model->dtype};
        if (offers[index].device_count == 0 ||
            mm_engine_choose(engine, MM_MATMUL, backend->name, model->variant, &job, NULL) != MM_OK)
            continue;
        const size_t row = mm_variant_is_auto(job.variant)
                               ? 0
                               : 1 + mm_variant_slot(backend, (size_t)(job.variant - backend->variants));
        found->stats = &all_stats[row][model->is_typed ? model->dtype : MM_DTYPE_COUNT];
        return true;
    }
    return false;
}

/* Finds the backend of a model. If its name has no type, sets the type of its metadata: float32, or else the
 * first type that it can run. */
static bool find_model(const struct mm_engine *engine, struct found *found) {
    enum mm_dtype *dtype = &found->model.dtype;
    if (found->model.is_typed)
        return find_backend(engine, found);
    for (*dtype = 0; *dtype < MM_DTYPE_COUNT; ++*dtype)
        if (mm_oip_datatype(*dtype) != NULL && find_backend(engine, found))
            return true;
    return false;
}

/* Finds the model of a path /v2/models/NAME[/versions/1]END. The engine must be open. */
static enum mm_status find_by_path(struct mm_request *request, const char *end, struct found *found) {
    static const char versions[] = "/versions/" MM_OIP_VERSION;
    const size_t version_bytes = sizeof versions - 1;
    const char *const start = request->path + strlen("/v2/models/");
    const struct mm_engine *engine = mm_server_engine(request->server);
    struct mm_slice name = {start, strlen(start) - strlen(end)};
    if (name.length > version_bytes &&
        memcmp(start + name.length - version_bytes, versions, version_bytes) == 0)
        name.length -= version_bytes;
    if (mm_oip_model_read(name, &found->model) && find_model(engine, found))
        return MM_OK;
    return mm_fail(&request->error, MM_NOT_FOUND, "there is no model '%.*s'; GET /v2/models lists the models",
                   name.length > 100 ? 100 : (int)name.length, name.start);
}

/* Writes the models of a variant: without a type, and with each type. */
static void put_variant(FILE *out, const struct mm_engine *engine, const char *variant, mm_oip_writer *put) {
    struct found found = {0};
    strcpy(found.model.variant, variant);
    for (int dtype = -1; dtype < (int)MM_DTYPE_COUNT; dtype++) {
        found.model.is_typed = dtype >= 0;
        found.model.dtype = (enum mm_dtype)dtype;
        if ((dtype >= 0 && mm_oip_datatype(found.model.dtype) == NULL) || !find_model(engine, &found))
            continue;
        if (dtype >= 0 || strcmp(variant, "auto") != 0)
            fputc(',', out);
        put(out, &found.model, found.stats);
    }
}

/* Writes all models. If several backends have a variant, writes its models once. */
static void put_all(FILE *out, const struct mm_engine *engine, mm_oip_writer *put) {
    size_t count;
    const struct mm_offer *offers = mm_engine_offers(engine, &count);
    put_variant(out, engine, "auto", put);
    for (size_t index = 0; index < count; index++)
        for (size_t row = 0; row < offers[index].backend->variant_count; row++) {
            const struct mm_variant *variant = &offers[index].backend->variants[row];
            bool is_new = variant->op == MM_MATMUL && !mm_variant_is_auto(variant);
            for (size_t earlier = 0; earlier < index; earlier++)
                is_new =
                    is_new && mm_backend_variant(offers[earlier].backend, MM_MATMUL, variant->name) == NULL;
            if (is_new)
                put_variant(out, engine, variant->name, put);
        }
}

/* The replies that describe the server, all models or one model, between two texts. */
static const struct {
    const char *path; /* of the route */
    const char *before, *after;
    mm_oip_writer *put; /* NULL: the reply is `before` */
} replies[] = {
    {"/v2",
     "{\"name\":\"matmuld\",\"version\":\"" MATMULD_VERSION "+" MATMULD_COMMIT
     "\",\"extensions\":[\"binary_tensor_data\",\"parameters\",\"statistics\",\"model_configuration\"]}",
     "", NULL},
    {"/v2/health/live", "{\"live\":true}", "", NULL},
    {"/v2/health/ready", "{\"ready\":true}", "", NULL},
    {"/v2/models", "{\"models\":[", "]}", mm_oip_put_name},
    {"/v2/models/stats", "{\"model_stats\":[", "]}", mm_oip_put_stats},
    {"/v2/repository/index", "[", "]", mm_oip_put_index},
    {"/v2/models/{name}", "", "", mm_oip_put_metadata},
    {"/v2/models/{name}/config", "", "", mm_oip_put_config},
    {"/v2/models/{name}/stats", "{\"model_stats\":[", "]}", mm_oip_put_stats},
    {"/v2/models/{name}/ready", "{\"ready\":true,\"name\":", "}", mm_oip_put_name},
};

enum mm_status mm_models_describe(struct mm_request *request) {
    const char *path = request->route->path, *name = strchr(path, '}');
    struct found found;
    struct mm_text text;
    size_t row = 0, length;
    while (strcmp(replies[row].path, path) != 0)
        row++;
    const bool asks_ready = strstr(path, "/ready") != NULL;
    if (asks_ready && mm_server_is_ready(request->server, &request->error) != MM_OK)
        return request->error.status;
    if (replies[row].put == NULL)
        return mm_reply_kept(request, replies[row].before, strlen(replies[row].before), json_type);
    const struct mm_engine *engine = mm_server_engine(request->server);
    if (engine == NULL)
        return mm_fail(&request->error, MM_NOT_READY,
                       "the service is still opening its devices; try again in a second");
    if (name != NULL && find_by_path(request, name + 1, &found) != MM_OK)
        return request->error.status;
    FILE *out = mm_text_open(&text);
    if (out == NULL)
        return mm_fail(&request->error, MM_INTERNAL, "the system has no memory for the reply");
    fputs(replies[row].before, out);
    if (name == NULL)
        put_all(out, engine, replies[row].put);
    else
        replies[row].put(out, &found.model, found.stats);
    fputs(replies[row].after, out);
    char *const written = mm_text_close(out, &text, &length);
    return mm_reply_long_text(request, written, length, json_type);
}

/* Reads Inference-Header-Content-Length. SIZE_MAX means that the whole body is JSON. */
static enum mm_status read_json_bytes(struct mm_request *request, uint64_t *bytes) {
    const char *text = request->headers[MM_HEADER_INFERENCE_LENGTH];
    *bytes = SIZE_MAX;
    if (text == NULL || (mm_slice_whole(mm_slice_of(text), bytes, NULL) && *bytes < SIZE_MAX))
        return MM_OK;
    return mm_fail_field(&request->error, MM_BAD_REQUEST, mm_header_name(MM_HEADER_INFERENCE_LENGTH),
                         "Inference-Header-Content-Length is '%.40s', but must be the length of the JSON",
                         text);
}

enum mm_status mm_infer_admit(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    struct mm_oip_call *call = &operation->infer;
    struct found found;
    uint64_t json_bytes;
    if (mm_server_takes_jobs(request->server, &request->error) != MM_OK ||
        find_by_path(request, "/infer", &found) != MM_OK)
        return request->error.status;
    request->record.model = found.stats;
    if (read_json_bytes(request, &json_bytes) != MM_OK)
        return request->error.status;
    mm_oip_call_init(call, &found.model);
    if (strcmp(found.model.variant, "auto") != 0)
        strcpy(call->call.backend, found.backend->name);
    mm_operation_begin(request);
    operation->input.decoder = &mm_oip_codec;
    call->json_bytes = json_bytes;
    if (json_bytes != SIZE_MAX)
        call->lead_bytes = request->upload.lead_bytes = -json_bytes % MM_OIP_ALIGNMENT;
    return mm_operation_admit(request);
}
