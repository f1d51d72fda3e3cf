/* A request as it goes over the wire, and what its reply must be. */
#ifndef MM_LOAD_REQUEST_H
#define MM_LOAD_REQUEST_H

#include "tests/load/catalogue.h"
#include "tests/load/product.h"
#include "tests/load/refusals.h"

enum mm_load_form { MM_LOAD_JSON, MM_LOAD_RAW };

/* Starts as {0}, and is made again and again; the owner frees it. */
struct mm_load_request {
    char id[MM_LOAD_NAME_BYTES];
    const struct mm_load_refusal *refusal; /* NULL: a product, of which the rest tells */
    struct mm_load_product product;
    const struct mm_load_variant *variant; /* asked for, on its backend */
    enum mm_load_form form;                /* of the body */
    enum mm_load_form reply_form;
    bool chunked;
    bool waits; /* sends Expect: 100-continue, and the body once it was told to go on */

    struct mm_load_bytes target; /* path and query */
    struct mm_load_bytes head;
    struct mm_load_bytes body;
    struct mm_load_bytes wire; /* the body as sent: in chunks, or as it is */
};

/* What requests are made from; shared by all clients, and constant. */
struct mm_load_plan {
    const char *authority; /* HOST:PORT */
    const struct mm_load_catalogue *catalogue;
    bool name_backend;      /* always say which */
    unsigned fault_percent; /* of the requests: made to fail on the device, which tests/http/faulty can */
};

/* Draws a request with this id. `small` ones are small enough for several to be under way at once. */
void mm_load_request_make(struct mm_load_request *request, struct mm_load_random *random,
                          const struct mm_load_plan *plan, const char *id, bool small);

void mm_load_request_free(struct mm_load_request *request);

/* One line for people. */
void mm_load_request_describe(const struct mm_load_request *request, char *text, size_t text_bytes);

#endif
