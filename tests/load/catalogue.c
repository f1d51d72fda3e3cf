/* Reads the list of variants, with no knowledge of any name in it. */
#include "tests/load/catalogue.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool takes_float32(const json_t *dtypes) {
    size_t index;
    const json_t *name;
    json_array_foreach(dtypes, index, name) {
        if (json_is_string(name) && strcmp(json_string_value(name), "float32") == 0)
            return true;
    }
    return false;
}

static bool read_row(struct mm_load_catalogue *catalogue, json_t *row, const char *wanted) {
    const char *op, *name, *backend;
    json_int_t multiple_of = 0;
    int available;
    json_t *dtypes;
    if (json_unpack(row, "{s:s, s:s, s:s, s?I, s:b, s:o}", "op", &op, "name", &name, "backend", &backend,
                    "multiple_of", &multiple_of, "available", &available, "dtypes", &dtypes) != 0)
        return false;
    if (strcmp(op, "matmul") != 0)
        return true;
    if (catalogue->default_backend[0] == '\0')
        snprintf(catalogue->default_backend, sizeof catalogue->default_backend, "%s", backend);
    if (available == 0 || !takes_float32(dtypes) || (wanted != NULL && strcmp(backend, wanted) != 0) ||
        catalogue->count == MM_LOAD_VARIANTS_MAX)
        return true;
    struct mm_load_variant *variant = &catalogue->variants[catalogue->count++];
    snprintf(variant->name, sizeof variant->name, "%s", name);
    snprintf(variant->backend, sizeof variant->backend, "%s", backend);
    variant->multiple_of = (size_t)multiple_of;
    return true;
}

static bool parse(struct mm_load_catalogue *catalogue, const struct mm_load_bytes *body,
                  const char *backend) {
    json_t *root = json_loadb(body->data, body->length, JSON_REJECT_DUPLICATES, NULL);
    json_t *rows = json_object_get(root, "variants"), *row;
    size_t index;
    bool good = json_is_array(rows);
    memset(catalogue, 0, sizeof *catalogue);
    json_array_foreach(rows, index, row) {
        good = good && read_row(catalogue, row, backend);
    }
    json_decref(root);
    return good;
}

bool mm_load_catalogue_fetch(struct mm_load_catalogue *catalogue, const struct addrinfo *address,
                             const char *host, const char *backend, char *problem) {
    struct mm_load_connection connection;
    struct mm_load_reply reply = {0};
    char request[512];
    int length = snprintf(request, sizeof request, "GET /v1/variants HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    bool good = mm_load_connect(&connection, address, problem) &&
                mm_load_send(&connection, request, (size_t)length, problem) &&
                mm_load_receive(&connection, &reply, problem);
    if (good && (reply.status != 200 || !parse(catalogue, &reply.body, backend))) {
        snprintf(problem, MM_LOAD_PROBLEM_BYTES, "GET /v1/variants gave %u: %.300s", reply.status,
                 reply.body.data);
        good = false;
    } else if (good && catalogue->count == 0) {
        snprintf(problem, MM_LOAD_PROBLEM_BYTES, "no variant of matmul for float32 is available on %s",
                 backend == NULL ? "any backend" : backend);
        good = false;
    }
    mm_load_disconnect(&connection);
    mm_load_reply_free(&reply);
    return good;
}

const struct mm_load_variant *mm_load_catalogue_find(const struct mm_load_catalogue *catalogue,
                                                     const char *name, const char *backend) {
    for (size_t index = 0; index < catalogue->count; index++)
        if (strcmp(catalogue->variants[index].name, name) == 0 &&
            strcmp(catalogue->variants[index].backend, backend) == 0)
            return &catalogue->variants[index];
    return NULL;
}
