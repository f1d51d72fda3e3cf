/* GET /v1/variants/NAME/source: the source code of a variant at build time. It needs no device, because the
 * program contains the code of all known backends. */
#include "api/embedded.h"
#include "api/parameter.h"
#include "gpu/device/backend.h"
#include "server/handlers/input.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct query {
    struct mm_parameters parameters; /* must be first: the offsets in query_rows begin here */
    char backend[MM_PARAMETER_NAME_MAX + 1];
    char op[MM_PARAMETER_NAME_MAX + 1];
    char path[MM_PARAMETER_NAME_MAX + 1];
};

static const struct mm_parameter query_rows[] = {
    MM_PARAMETER("backend", NAME, MM_IN_QUERY, struct query, backend),
    MM_PARAMETER("op", NAME, MM_IN_QUERY, struct query, op),
    MM_PARAMETER("file", NAME, MM_IN_QUERY, struct query, path),
};

static const struct mm_parameter_table query_table = MM_PARAMETER_TABLE(query_rows);

static bool is_wanted(const struct query *query, const char *wanted, const char *value) {
    return !mm_parameter_is_set(&query->parameters, wanted) || strcmp(wanted, value) == 0;
}

/* If several variants match, prefers a product, then the first backend. NULL if no variant matches. */
static const struct mm_variant *find_variant(const struct query *query, const char *name) {
    for (enum mm_op op = 0; op < MM_OP_COUNT; op++)
        for (const struct mm_backend *const *known = mm_backends_known(); *known != NULL; known++) {
            const bool may_be = is_wanted(query, query->op, mm_op_name(op)) &&
                                is_wanted(query, query->backend, (*known)->name);
            const struct mm_variant *variant = may_be ? mm_backend_variant(*known, op, name) : NULL;
            if (variant != NULL && variant->sources != NULL)
                return variant;
        }
    return NULL;
}

/* Returns the file that the query names, or else the variant's first file. NULL if there is no such file. */
static const char *find_path(const struct query *query, const struct mm_variant *variant) {
    const char *const *path = variant->sources;
    while (*path != NULL && !is_wanted(query, query->path, *path))
        path++;
    return *path;
}

enum mm_status mm_source_file_get(struct mm_request *request) {
    struct mm_error *error = &request->error;
    struct query query = {.parameters.table = &query_table, .backend = "any", .op = "any"};
    const char *start = request->path + strlen("/v1/variants/");
    char name[64]; /* a longer name is cut off, and matches nothing */
    snprintf(name, sizeof name, "%.*s", (int)(strlen(start) - strlen("/source")), start);
    if (mm_input_read_query(request, &query.parameters) != MM_OK)
        return error->status;
    const struct mm_variant *variant = find_variant(&query, name);
    if (variant == NULL)
        return mm_fail(error, MM_NOT_FOUND,
                       "no variant has the name '%.64s', the backend '%.16s' and the op '%.16s'; GET "
                       "/v1/variants lists all",
                       name, query.backend, query.op);
    const char *path = find_path(&query, variant);
    if (path == NULL)
        return mm_fail_field(error, MM_BAD_REQUEST, "file",
                             "file is '%.200s', but must be one of the variant's sources, as GET "
                             "/v1/variants lists them; or leave it out for %s",
                             query.path, variant->sources[0]);
    const struct mm_embedded_file *source = mm_embedded_find(&mm_source_files, path);
    assert(source != NULL);
    return mm_reply_kept(request, source->text, source->bytes, "text/plain; charset=utf-8");
}
