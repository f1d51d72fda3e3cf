/* Draws requests in all the forms that the contract allows. */
#include "tests/load/request.h"

#include <string.h>

/* A refused body is now and then followed by spaces, so that the service has something to read and to
 * drop; what is past WAIT_BYTES is sent only once asked for, as curl does, since the service refuses
 * such bodies unread. */
enum {
    EDGE_MAX = 96,
    SMALL_EDGE_MAX = 12,
    LARGE_MAX = 512,
    SPACES_MAX = 200000,
    WAIT_BYTES = 1 << 20,
    REFUSED_PERCENT = 15
};

/* Where options are written: to the query, or as members of the JSON object. */
struct options {
    struct mm_load_random *random;
    struct mm_load_bytes *query;
    struct mm_load_bytes members;
    bool query_only;
};

static void query_option(struct options *options, const char *name, const char *value) {
    bool first = memchr(options->query->data, '?', options->query->length) == NULL;
    mm_load_bytes_print(options->query, "%c%s=%s", first ? '?' : '&', name, value);
}

/* `member` is the value as JSON, `text` as it stands in a query. */
static void add_option(struct options *options, const char *name, const char *text, const char *member) {
    if (options->query_only || mm_load_random_chance(options->random, 30))
        query_option(options, name, text);
    else
        mm_load_bytes_print(&options->members, "\"%s\": %s, ", name, member);
}

static void add_name(struct options *options, const char *name, const char *value) {
    char member[MM_LOAD_NAME_BYTES + 2];
    snprintf(member, sizeof member, "\"%s\"", value);
    add_option(options, name, value, member);
}

/* False is the default, and mostly not said. */
static void add_flag(struct options *options, const char *name, bool value) {
    const char *word = value ? "true" : "false";
    if (value || mm_load_random_chance(options->random, 10))
        add_option(options, name, word, word);
}

static void add_options(struct options *options, const struct mm_load_request *request,
                        const struct mm_load_plan *plan) {
    const struct mm_load_variant *variant = request->variant;
    bool is_default = strcmp(variant->backend, plan->catalogue->default_backend) == 0;
    if (strcmp(variant->name, "auto") != 0 || mm_load_random_chance(options->random, 50))
        add_name(options, "variant", variant->name);
    if (plan->name_backend || !is_default || mm_load_random_chance(options->random, 30))
        add_name(options, "backend", variant->backend);
    if (mm_load_random_chance(options->random, 20))
        add_name(options, "dtype", "float32");
    if (mm_load_random_chance(options->random, 10))
        add_option(options, "timeout_ms", "3600000", "3600000");
    add_flag(options, "transpose_a", request->product.transpose_a);
    add_flag(options, "transpose_b", request->product.transpose_b);
}

static void write_matrix(struct mm_load_bytes *out, const char *name, const struct mm_load_matrix *matrix) {
    mm_load_bytes_print(out, "\"%s\": [", name);
    for (size_t row = 0; row < matrix->rows; row++) {
        mm_load_bytes_add(out, row > 0 ? ", [" : "[", row > 0 ? 3 : 1);
        for (size_t col = 0; col < matrix->cols; col++) {
            char number[64];
            double value = matrix->data[row * matrix->ld + col];
            int length = snprintf(number, sizeof number, "%s%.9g", col > 0 ? ", " : "", value);
            mm_load_bytes_add(out, number, (size_t)length);
        }
        mm_load_bytes_add(out, "]", 1);
    }
    mm_load_bytes_add(out, "]", 1);
}

static void write_json(struct mm_load_request *request, const struct mm_load_bytes *members,
                       struct mm_load_random *random) {
    const struct mm_load_product *product = &request->product;
    bool a_first = mm_load_random_chance(random, 70);
    mm_load_bytes_print(&request->body, "{%s", members->length > 0 ? members->data : "");
    write_matrix(&request->body, a_first ? "a" : "b", a_first ? &product->a : &product->b);
    mm_load_bytes_add(&request->body, ", ", 2);
    write_matrix(&request->body, a_first ? "b" : "a", a_first ? &product->b : &product->a);
    mm_load_bytes_add(&request->body, "}", 1);
}

static void add_size(struct options *options, const char *name, size_t size) {
    char text[24];
    snprintf(text, sizeof text, "%zu", size);
    query_option(options, name, text);
}

static void add_leading_dimension(struct options *options, const char *name,
                                  const struct mm_load_matrix *matrix) {
    if (matrix->ld != matrix->cols || mm_load_random_chance(options->random, 10))
        add_size(options, name, matrix->ld);
}

static void write_raw(struct mm_load_request *request, struct options *options) {
    const struct mm_load_product *product = &request->product;
    add_size(options, "m", product->m);
    add_size(options, "k", product->k);
    add_size(options, "n", product->n);
    add_leading_dimension(options, "lda", &product->a);
    add_leading_dimension(options, "ldb", &product->b);
    mm_load_bytes_add(&request->body, product->a.data, product->a.rows * product->a.ld * sizeof(float));
    mm_load_bytes_add(&request->body, product->b.data, product->b.rows * product->b.ld * sizeof(float));
}

static const char *draw_accept(struct mm_load_request *request, struct mm_load_random *random) {
    request->reply_form = request->form;
    switch (mm_load_random_below(random, 4)) {
    case 0:
        return NULL;
    case 1:
        return "*/*";
    case 2:
        request->reply_form = MM_LOAD_JSON;
        return "application/json";
    default:
        request->reply_form = MM_LOAD_RAW;
        return "application/json;q=0.5, application/octet-stream";
    }
}

static void write_chunks(struct mm_load_request *request, struct mm_load_random *random) {
    const struct mm_load_bytes *body = &request->body;
    for (size_t at = 0; at < body->length;) {
        size_t bytes = 1 + mm_load_random_below(random, body->length / 2 + 64);
        bytes = bytes < body->length - at ? bytes : body->length - at;
        mm_load_bytes_print(&request->wire, mm_load_random_chance(random, 50) ? "%zx\r\n" : "%zX\r\n", bytes);
        mm_load_bytes_add(&request->wire, body->data + at, bytes);
        mm_load_bytes_add(&request->wire, "\r\n", 2);
        at += bytes;
    }
    mm_load_bytes_print(&request->wire, "0\r\n\r\n");
}

static void write_head(struct mm_load_request *request, const char *method, const char *authority,
                       const char *content_type, const char *accept) {
    struct mm_load_bytes *head = &request->head;
    mm_load_bytes_print(head, "%s %s HTTP/1.1\r\nHost: %s\r\nX-Request-Id: %s\r\n", method,
                        request->target.data, authority, request->id);
    if (content_type != NULL)
        mm_load_bytes_print(head, "Content-Type: %s\r\n", content_type);
    if (accept != NULL)
        mm_load_bytes_print(head, "Accept: %s\r\n", accept);
    if (request->chunked)
        mm_load_bytes_print(head, "Transfer-Encoding: chunked\r\n");
    else
        mm_load_bytes_print(head, "Content-Length: %zu\r\n", request->body.length);
    mm_load_bytes_print(head, "%s\r\n", request->waits ? "Expect: 100-continue\r\n" : "");
}

static void write_request(struct mm_load_request *request, struct mm_load_random *random, const char *method,
                          const char *authority, const char *content_type, const char *accept) {
    request->chunked = mm_load_random_chance(random, 10);
    request->waits = request->body.length > WAIT_BYTES;
    if (request->chunked)
        write_chunks(request, random);
    else
        mm_load_bytes_add(&request->wire, request->body.data, request->body.length);
    write_head(request, method, authority, content_type, accept);
}

static void make_refused(struct mm_load_request *request, struct mm_load_random *random,
                         const struct mm_load_plan *plan, bool small, const struct mm_load_refusals *table) {
    const struct mm_load_refusal *refusal = &table->rows[mm_load_random_below(random, table->count)];
    request->refusal = refusal;
    mm_load_bytes_print(&request->target, "%s", refusal->target);
    mm_load_bytes_print(&request->body, "%s", refusal->body);
    if (table == &mm_load_refusals && !small && mm_load_random_chance(random, 10))
        mm_load_bytes_print(&request->body, "%*s", (int)mm_load_random_below(random, SPACES_MAX), "");
    write_request(request, random, refusal->method, plan->authority, refusal->content_type, refusal->accept);
}

static void make_product(struct mm_load_request *request, struct mm_load_random *random,
                         const struct mm_load_plan *plan, bool small) {
    request->refusal = NULL;
    request->form = mm_load_random_chance(random, 50) ? MM_LOAD_JSON : MM_LOAD_RAW;
    request->variant = &plan->catalogue->variants[mm_load_random_below(random, plan->catalogue->count)];
    const struct mm_load_shapes shapes = {.edge_max = small ? SMALL_EDGE_MAX : EDGE_MAX,
                                          .large_max = small ? 0 : LARGE_MAX,
                                          .multiple_of = request->variant->multiple_of,
                                          .dense = request->form == MM_LOAD_JSON};
    mm_load_product_make(&request->product, random, &shapes);
    struct options options = {
        .random = random, .query = &request->target, .query_only = request->form == MM_LOAD_RAW};
    mm_load_bytes_print(&request->target, "/v1/matmul");
    add_options(&options, request, plan);
    if (request->form == MM_LOAD_JSON)
        write_json(request, &options.members, random);
    else
        write_raw(request, &options);
    mm_load_bytes_free(&options.members);
    const char *content_type = request->form == MM_LOAD_RAW ? "application/octet-stream" : "application/json";
    write_request(request, random, "POST", plan->authority,
                  mm_load_random_chance(random, 90) ? content_type : NULL, draw_accept(request, random));
}

void mm_load_request_make(struct mm_load_request *request, struct mm_load_random *random,
                          const struct mm_load_plan *plan, const char *id, bool small) {
    snprintf(request->id, sizeof request->id, "%s", id);
    mm_load_bytes_clear_large(&request->target);
    mm_load_bytes_clear_large(&request->head);
    mm_load_bytes_clear_large(&request->body);
    mm_load_bytes_clear_large(&request->wire);
    if (mm_load_random_chance(random, plan->fault_percent))
        make_refused(request, random, plan, small, &mm_load_faults);
    else if (mm_load_random_chance(random, REFUSED_PERCENT))
        make_refused(request, random, plan, small, &mm_load_refusals);
    else
        make_product(request, random, plan, small);
}

void mm_load_request_free(struct mm_load_request *request) {
    mm_load_product_free(&request->product);
    mm_load_bytes_free(&request->target);
    mm_load_bytes_free(&request->head);
    mm_load_bytes_free(&request->body);
    mm_load_bytes_free(&request->wire);
}

void mm_load_request_describe(const struct mm_load_request *request, char *text, size_t text_bytes) {
    const struct mm_load_product *product = &request->product;
    const char *chunked = request->chunked ? ", chunked" : "";
    if (request->refusal != NULL)
        snprintf(text, text_bytes, "%s (%s; %s, %zu bytes%s)", request->id, request->refusal->name,
                 request->target.data, request->body.length, chunked);
    else
        snprintf(text, text_bytes, "%s (%zu×%zu·%zu×%zu by %s:%s, %s%s; %s, %zu bytes%s)", request->id,
                 product->m, product->k, product->k, product->n, request->variant->backend,
                 request->variant->name, request->form == MM_LOAD_JSON ? "JSON to " : "raw to ",
                 request->reply_form == MM_LOAD_JSON ? "JSON" : "raw", request->target.data,
                 request->body.length, chunked);
}
