/* Reads the list of variants, with no knowledge of any name in it. */
#include "tests/load/catalogue.h"

#include "tests/load/scan.h"

#include <stdio.h>
#include <string.h>

struct row {
    char op[MM_LOAD_NAME_BYTES];
    struct mm_load_variant variant;
    bool available;
    bool float32;
};

static void read_dtypes(struct mm_load_scan *scan, bool *float32) {
    char name[MM_LOAD_NAME_BYTES];
    if (!mm_load_scan_expect(scan, '['))
        return;
    for (bool first = true; mm_load_scan_more(scan, ']', &first);)
        if (mm_load_scan_string(scan, name, sizeof name) && strcmp(name, "float32") == 0)
            *float32 = true;
}

static void read_row(struct mm_load_scan *scan, struct row *row) {
    char name[MM_LOAD_NAME_BYTES];
    if (!mm_load_scan_expect(scan, '{'))
        return;
    for (bool first = true; mm_load_scan_more(scan, '}', &first);) {
        if (!mm_load_scan_name(scan, name, sizeof name))
            return;
        if (strcmp(name, "op") == 0)
            mm_load_scan_string(scan, row->op, sizeof row->op);
        else if (strcmp(name, "name") == 0)
            mm_load_scan_string(scan, row->variant.name, sizeof row->variant.name);
        else if (strcmp(name, "backend") == 0)
            mm_load_scan_string(scan, row->variant.backend, sizeof row->variant.backend);
        else if (strcmp(name, "multiple_of") == 0)
            mm_load_scan_count(scan, &row->variant.multiple_of);
        else if (strcmp(name, "available") == 0)
            mm_load_scan_boolean(scan, &row->available);
        else if (strcmp(name, "dtypes") == 0)
            read_dtypes(scan, &row->float32);
        else
            mm_load_scan_skip(scan);
    }
}

static void read_rows(struct mm_load_scan *scan, struct mm_load_catalogue *catalogue, const char *backend) {
    if (!mm_load_scan_expect(scan, '['))
        return;
    for (bool first = true; mm_load_scan_more(scan, ']', &first);) {
        struct row row = {0};
        read_row(scan, &row);
        if (strcmp(row.op, "matmul") != 0)
            continue;
        if (catalogue->default_backend[0] == '\0')
            memcpy(catalogue->default_backend, row.variant.backend, sizeof row.variant.backend);
        bool wanted = backend == NULL || strcmp(row.variant.backend, backend) == 0;
        if (wanted && row.available && row.float32 && catalogue->count < MM_LOAD_VARIANTS_MAX)
            catalogue->variants[catalogue->count++] = row.variant;
    }
}

static bool parse(struct mm_load_catalogue *catalogue, const struct mm_load_bytes *body,
                  const char *backend) {
    struct mm_load_scan scan = mm_load_scan_start(body->data, body->length);
    char name[MM_LOAD_NAME_BYTES];
    memset(catalogue, 0, sizeof *catalogue);
    mm_load_scan_expect(&scan, '{');
    for (bool first = true; mm_load_scan_more(&scan, '}', &first);) {
        if (!mm_load_scan_name(&scan, name, sizeof name))
            break;
        if (strcmp(name, "variants") == 0)
            read_rows(&scan, catalogue, backend);
        else
            mm_load_scan_skip(&scan);
    }
    return mm_load_scan_done(&scan);
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
