/* Completes api/describe/openapi.json, which the build embeds. In that document, a string that begins with @
 * is a marker. The server replaces each marker by what only this process knows, by text from the table of
 * statuses, or by members that many places of the document have. */
#include "api/describe/describe.h"

#include "api/embedded.h"
#include "api/problem.h"
#include "api/slice.h"
#include "api/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct filling {
    struct mm_device *const *devices;
    size_t count;
    const char *version;
    FILE *out;
    struct mm_slice argument; /* text that follows the current marker's name, up to a quote */
    struct mm_slice value;    /* `: {…}` behind that quote, without braces within; else empty */
};

/* A list of different names. The names come from the server's own tables, so none needs an escape in JSON. */
enum { NAMES_MAX = 64 };
struct names {
    size_t count;
    const char *names[NAMES_MAX];
};

static void add_once(struct names *names, const char *name) {
    for (size_t index = 0; index < names->count; index++)
        if (strcmp(names->names[index], name) == 0)
            return;
    assert(names->count < NAMES_MAX);
    names->names[names->count++] = name;
}

static void write_names(FILE *out, const struct names *names) {
    for (size_t index = 0; index < names->count; index++)
        fprintf(out, "%s\"%s\"", index > 0 ? ", " : "", names->names[index]);
}

static void write_version(const struct filling *filling) {
    fprintf(filling->out, "\"%s\"", filling->version);
}

static void write_backends(const struct filling *filling) {
    struct names names = {1, {"auto"}};
    for (size_t index = 0; index < filling->count; index++)
        add_once(&names, filling->devices[index]->backend->name);
    write_names(filling->out, &names);
}

static void write_variants(const struct filling *filling) {
    struct names names = {1, {"auto"}};
    for (size_t index = 0; index < filling->count; index++) {
        const struct mm_backend *backend = filling->devices[index]->backend;
        for (size_t row = 0; row < backend->variant_count; row++)
            if (mm_slice_is(filling->argument, mm_op_name(backend->variants[row].op)))
                add_once(&names, backend->variants[row].name);
    }
    write_names(filling->out, &names);
}

static void write_dtypes(const struct filling *filling) {
    struct names names = {0};
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        add_once(&names, mm_dtype_name((enum mm_dtype)dtype));
    write_names(filling->out, &names);
}

static void write_reference(FILE *out, const char *kind, struct mm_slice name) {
    fprintf(out, "{\"$ref\": \"#/components/%s/", kind);
    fwrite(name.start, 1, name.length, out);
    fputs("\"}", out);
}

/* The marker's argument is a list of HTTP statuses. Writes a reference to the response for each status. */
static void write_errors(const struct filling *filling) {
    struct mm_slice rest = filling->argument, item;
    while (mm_slice_next(&rest, ' ', &item)) {
        const unsigned long http = strtoul(item.start, NULL, 10);
        size_t row = 0;
        while (row < MM_HTTP_COUNT && mm_http_table[row].code != http)
            row++;
        assert(row < MM_HTTP_COUNT);
        fprintf(filling->out, "\"%lu\": ", http);
        write_reference(filling->out, "responses", mm_slice_of(mm_http_table[row].response));
        fputs(rest.start == NULL ? "" : ",\n          ", filling->out);
    }
}

/* The marker's argument is a list of parameters. Writes references to them. */
static void write_parameters(const struct filling *filling) {
    struct mm_slice rest = filling->argument, name;
    fputs("\"parameters\": [", filling->out);
    while (mm_slice_next(&rest, ' ', &name)) {
        write_reference(filling->out, "parameters", name);
        fputs(rest.start == NULL ? "]" : ", ", filling->out);
    }
}

/* Writes a response's headers: those of every response, and those of a list such as "Allow=Allow". An item is
 * a header's name and its component's name. */
static void put_headers(FILE *out, struct mm_slice list) {
    struct mm_slice item, name;
    fputs("\"X-Request-Id\": {\"$ref\": \"#/components/headers/RequestId\"}, "
          "\"traceparent\": {\"$ref\": \"#/components/headers/Traceparent\"}",
          out);
    while (list.length > 0 && mm_slice_next(&list, ' ', &item)) {
        (void)mm_slice_next(&item, '=', &name);
        fprintf(out, ", \"%.*s\": ", (int)name.length, name.start);
        write_reference(out, "headers", item);
    }
}

static void write_common_headers(const struct filling *filling) {
    put_headers(filling->out, filling->argument);
}

static void write_headers(const struct filling *filling) {
    fputs("\"headers\": {", filling->out);
    put_headers(filling->out, filling->argument);
    fputs("}", filling->out);
}

/* The marker's argument is the name of a schema. Writes a response's headers, and its JSON by the schema. */
static void write_json(const struct filling *filling) {
    fputs("\"headers\": {", filling->out);
    put_headers(filling->out, mm_slice_of(""));
    fputs("}, \"content\": {\"application/json\": {\"schema\": ", filling->out);
    write_reference(filling->out, "schemas", filling->argument);
    fputs("}}", filling->out);
}

static void put_operation(FILE *out, struct mm_slice id, struct mm_slice tag, struct mm_slice summary) {
    fprintf(out, "\"operationId\": \"%.*s\", \"tags\": [\"%.*s\"], \"summary\": \"%.*s\"", (int)id.length,
            id.start, (int)tag.length, tag.start, (int)summary.length, summary.start);
}

/* The marker's argument has an operation's id, tag and summary. */
static void write_operation(const struct filling *filling) {
    struct mm_slice summary = filling->argument, id = {0}, tag = {0};
    (void)mm_slice_next(&summary, ' ', &id);
    (void)mm_slice_next(&summary, ' ', &tag);
    put_operation(filling->out, id, tag, summary);
}

/* The marker's argument has an operation's id, schema and summary. Writes an operation of the Open Inference
 * Protocol that replies with this schema. */
static void write_infer(const struct filling *filling) {
    struct mm_slice summary = filling->argument, id = {0};
    struct filling json = *filling;
    (void)mm_slice_next(&summary, ' ', &id);
    (void)mm_slice_next(&summary, ' ', &json.argument);
    put_operation(filling->out, id, mm_slice_of("inference"), summary);
    fprintf(filling->out, ", \"responses\": {\"200\": {\"description\": \"%.*s\", ", (int)summary.length,
            summary.start);
    write_json(&json);
    fputs("}, \"default\": {\"$ref\": \"#/components/responses/InferError\"}}", filling->out);
}

/* The marker's argument lists required members. Writes the type of an object that has no other members than
 * its properties. */
static void write_object(const struct filling *filling) {
    struct mm_slice rest = filling->argument, name;
    fputs("\"type\": \"object\", \"additionalProperties\": false", filling->out);
    if (rest.length > 0)
        fputs(", \"required\": [", filling->out);
    while (rest.length > 0 && mm_slice_next(&rest, ' ', &name))
        fprintf(filling->out, "\"%.*s\"%s", (int)name.length, name.start, rest.start == NULL ? "]" : ", ");
}

/* The marker's argument lists members. Gives each of them the marker's value. */
static void write_each(const struct filling *filling) {
    struct mm_slice rest = filling->argument, name;
    while (mm_slice_next(&rest, ' ', &name))
        fprintf(filling->out, "\"%.*s\"%.*s%s", (int)name.length, name.start, (int)filling->value.length,
                filling->value.start, rest.start == NULL ? "" : ", ");
}

/* The marker's argument is an HTTP status. Writes the schema of the problems that have this HTTP status. */
static void write_schema(const struct filling *filling) {
    const unsigned long http = strtoul(filling->argument.start, NULL, 10);
    struct names codes = {0};
    for (unsigned status = 0; status < MM_STATUS_COUNT; status++)
        if (mm_problem_http((enum mm_status)status) == http)
            add_once(&codes, mm_status_name((enum mm_status)status));
    fprintf(filling->out,
            "\"$ref\": \"#/components/schemas/Problem\", "
            "\"properties\": {\"status\": {\"const\": %lu}, \"code\": {\"%s",
            http, codes.count > 1 ? "enum\": [" : "const\": ");
    write_names(filling->out, &codes);
    fprintf(filling->out, "%s}}", codes.count > 1 ? "]" : "");
}

/* The marker's argument is an HTTP status. Writes this status's response, except the description. */
static void write_problem(const struct filling *filling) {
    static const struct {
        const char *http, *headers;
    } more[] = {{"405", "Allow=Allow"},
                {"415", "Accept-Encoding=AcceptEncoding"},
                {"429", "Retry-After=RetryAfter"},
                {"503", "Retry-After=RetryAfter"}};
    const char *headers = "";
    for (size_t row = 0; row < sizeof more / sizeof more[0]; row++)
        if (mm_slice_is(filling->argument, more[row].http))
            headers = more[row].headers;
    fputs("\"headers\": {", filling->out);
    put_headers(filling->out, mm_slice_of(headers));
    fputs("}, \"content\": {\"" MM_PROBLEM_TYPE "\": {\"schema\": {", filling->out);
    write_schema(filling);
    fputs("}}}", filling->out);
}

/* The marker's argument is the name of an mm_status. Writes the problem's members that depend on this
 * status. */
static void write_error(const struct filling *filling) {
    enum mm_status status = MM_OK;
    while (!mm_slice_is(filling->argument, mm_status_name(status)))
        status++;
    fprintf(filling->out,
            "\"type\": \"" MM_PROBLEM_URN "%s\", \"title\": \"%s\", \"status\": %u, \"code\": \"%s\"",
            mm_status_name(status), mm_status_title(status), mm_problem_http(status), mm_status_name(status));
}

/* Each marker's first characters, and the function that replaces the marker. */
static const struct {
    const char *text;
    void (*write)(const struct filling *filling);
} markers[] = {
    {"\"@version", write_version},
    {"\"@backends", write_backends},
    {"\"@variants ", write_variants},
    {"\"@dtypes", write_dtypes},
    {"\"@parameters\": \"", write_parameters},
    {"\"@headers\": \"", write_headers},
    {"\"@common headers\": \"", write_common_headers},
    {"\"@json\": \"", write_json},
    {"\"@operation\": \"", write_operation},
    {"\"@infer\": \"", write_infer},
    {"\"@object\": \"", write_object},
    {"\"@each ", write_each},
    {"\"@errors\": \"", write_errors},
    {"\"@schema\": \"", write_schema},
    {"\"@problem\": \"", write_problem},
    {"\"@error\": \"", write_error},
};

enum { MARKER_COUNT = sizeof markers / sizeof markers[0] };

/* Replaces the marker at `text`. Returns the end of the marker. */
static const char *fill_in(struct filling *filling, const char *text) {
    size_t row = 0;
    while (row < MARKER_COUNT && strncmp(text, markers[row].text, strlen(markers[row].text)) != 0)
        row++;
    assert(row < MARKER_COUNT);
    text += strlen(markers[row].text);
    filling->argument = (struct mm_slice){text, strcspn(text, "\"")};
    text += filling->argument.length + 1;
    filling->value = (struct mm_slice){text, *text == ':' ? strcspn(text, "}") + 1 : 0};
    markers[row].write(filling);
    return text + filling->value.length;
}

char *mm_openapi_json(struct mm_device *const *devices, size_t count, const char *version, size_t *length) {
    struct mm_text text;
    const char *from = (const char *)mm_openapi_files.rows[0].text;
    const char *const end = from + mm_openapi_files.rows[0].bytes;
    struct filling filling = {devices, count, version, mm_text_open(&text), {NULL, 0}, {NULL, 0}};
    if (filling.out == NULL)
        return NULL;
    while (from < end) {
        const char *marker = memmem(from, (size_t)(end - from), "\"@", 2);
        const char *const until = marker == NULL ? end : marker;
        fwrite(from, 1, (size_t)(until - from), filling.out);
        from = marker == NULL ? end : fill_in(&filling, marker);
    }
    return mm_text_close(filling.out, &text, length);
}
