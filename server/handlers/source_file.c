/* GET /v1/variants/NAME/source: the source code of a variant at build time. It needs no device, because the
 * program contains the code of all known backends. */
#include "api/embedded.h"
#include "gpu/device/backend.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum parameter { BACKEND, OP, PATH, PARAMETER_COUNT };

static const char *const parameter_names[PARAMETER_COUNT] = {"backend", "op", "file"};

struct query {
    struct mm_error *error;
    const char *values[PARAMETER_COUNT];
};

static enum MHD_Result read_argument(void *argument, enum MHD_ValueKind kind, const char *name,
                                     const char *value) {
    struct query *query = argument;
    const char *text = value == NULL ? "" : value;
    size_t row = 0;
    while (row < PARAMETER_COUNT && strcmp(name, parameter_names[row]) != 0)
        row++;
    if (row == PARAMETER_COUNT)
        mm_fail_field(query->error, MM_BAD_REQUEST, name,
                      "'%.63s' is unknown in the query, which takes: backend, op, file", name);
    else if (query->values[row] != NULL && strcmp(query->values[row], text) != 0)
        mm_fail_field(query->error, MM_BAD_REQUEST, name,
                      "%s is given twice with different values; give it once", name);
    else
        query->values[row] = text;
    return query->error->status == MM_OK ? MHD_YES : MHD_NO;
}

static bool is_wanted(const struct query *query, enum parameter parameter, const char *value) {
    return query->values[parameter] == NULL || strcmp(query->values[parameter], value) == 0;
}

/* If several variants match, prefers a product, then the first backend. NULL if no variant matches. */
static const struct mm_variant *find_variant(const struct query *query, const char *name) {
    for (enum mm_op op = 0; op < MM_OP_COUNT; op++)
        for (const struct mm_backend *const *known = mm_backends_known(); *known != NULL; known++) {
            const bool may_be =
                is_wanted(query, OP, mm_op_name(op)) && is_wanted(query, BACKEND, (*known)->name);
            const struct mm_variant *variant = may_be ? mm_backend_variant(*known, op, name) : NULL;
            if (variant != NULL && variant->sources != NULL)
                return variant;
        }
    return NULL;
}

static enum mm_status fail_variant(const struct query *query, const char *name) {
    const char *backend = query->values[BACKEND], *op = query->values[OP];
    return mm_fail(
        query->error, MM_NOT_FOUND,
        "no variant has the name '%.64s', the backend '%.16s' and the op '%.16s'; GET /v1/variants "
        "lists all",
        name, backend == NULL ? "any" : backend, op == NULL ? "any" : op);
}

/* Returns the file that the query names, or else the variant's first file. NULL if there is no such file. */
static const char *find_path(const struct query *query, const struct mm_variant *variant) {
    const char *const *path = variant->sources;
    while (*path != NULL && !is_wanted(query, PATH, *path))
        path++;
    return *path;
}

enum mm_status mm_source_file_get(struct mm_request *request) {
    struct mm_error *error = &request->error;
    struct query query = {.error = error};
    const char *start = request->path + strlen("/v1/variants/");
    char name[64]; /* a longer name is cut off, and matches nothing */
    snprintf(name, sizeof name, "%.*s", (int)(strlen(start) - strlen("/source")), start);
    MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, read_argument, &query);
    if (error->status != MM_OK)
        return error->status;
    const struct mm_variant *variant = find_variant(&query, name);
    if (variant == NULL)
        return fail_variant(&query, name);
    const char *path = find_path(&query, variant);
    if (path == NULL)
        return mm_fail_field(error, MM_BAD_REQUEST, "file",
                             "file is '%.200s', but must be one of the variant's sources, as GET "
                             "/v1/variants lists them; or leave it out for %s",
                             query.values[PATH], variant->sources[0]);
    const struct mm_embedded_file *source = mm_embedded_find(&mm_source_files, path);
    assert(source != NULL);
    return mm_reply_kept(request, source->text, source->bytes, "text/plain; charset=utf-8");
}
