/* api/openapi.json, which the build made an array of, with what this process alone knows filled in: the
 * document names the places, and nothing else of it is known here. */
#include "api/openapi.h"

#include "api/json_value.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Made by embed.cmake. */
extern const unsigned char mm_openapi_text[];
extern const size_t mm_openapi_text_bytes;

/* Appends a name to the list, unless it stands there. 0, or −1 when memory is out. */
static int append_once(json_t *names, const char *name) {
    size_t index;
    json_t *held;
    json_array_foreach(names, index, held) {
        if (strcmp(json_string_value(held), name) == 0)
            return 0;
    }
    return json_array_append_new(names, mm_json_text(name));
}

static int append_variants(json_t *names, enum mm_op op, const struct mm_backend *backend) {
    int failed = 0;
    for (size_t index = 0; index < backend->variant_count; index++)
        if (backend->variants[index].op == op)
            failed |= append_once(names, backend->variants[index].name);
    return failed;
}

static int append_dtypes(json_t *names, enum mm_op op) {
    int failed = 0;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        if (mm_op_dtypes(op) & MM_DTYPE_BIT(dtype))
            failed |= append_once(names, mm_dtype_name((enum mm_dtype)dtype));
    return failed;
}

/* The names that the schema of this name has in the document, to be added to. Borrowed. */
static json_t *find_names(json_t *document, const char *schema) {
    json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    json_t *names = json_object_get(json_object_get(schemas, schema), "enum");
    assert(json_is_array(names));
    return names;
}

/* The schemas whose names each operation fills in. */
static const struct {
    const char *variants;
    const char *dtypes;
} schemas_of[MM_OP_COUNT] = {
    [MM_MATMUL] = {"VariantName", "DtypeName"},
    [MM_TRANSPOSE] = {"TransposeVariantName", "TransposeDtypeName"},
};

static int fill_in(json_t *document, struct mm_device *const *devices, size_t count, const char *version) {
    json_t *backends = find_names(document, "BackendName");
    int failed = json_object_set_new(json_object_get(document, "info"), "version", mm_json_text(version));
    for (size_t index = 0; index < count; index++)
        failed |= append_once(backends, devices[index]->backend->name);
    for (unsigned op = 0; op < MM_OP_COUNT; op++) {
        json_t *variants = find_names(document, schemas_of[op].variants);
        for (size_t index = 0; index < count; index++)
            failed |= append_variants(variants, (enum mm_op)op, devices[index]->backend);
        failed |= append_dtypes(find_names(document, schemas_of[op].dtypes), (enum mm_op)op);
    }
    return failed;
}

char *mm_openapi_json(struct mm_device *const *devices, size_t count, const char *version, size_t *length) {
    json_error_t fault;
    json_t *document =
        mm_json_load((const char *)mm_openapi_text, mm_openapi_text_bytes, JSON_REJECT_DUPLICATES, &fault);
    assert(document != NULL || errno == ENOMEM);
    if (document == NULL)
        return NULL;
    char *text = fill_in(document, devices, count, version) == 0 ? mm_json_print(document, 0, length) : NULL;
    json_decref(document);
    return text;
}
