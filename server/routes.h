/* The routes: one row each. Adding one takes a handler and a row. */
#ifndef MM_SERVER_ROUTES_H
#define MM_SERVER_ROUTES_H

#include "server/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who may in, where there are API keys. */
enum mm_entry {
    MM_ENTRY_KEY,     /* who has one */
    MM_ENTRY_METRICS, /* likewise, unless --open-metrics was given */
    MM_ENTRY_OPEN     /* anyone */
};

struct mm_route {
    const char *method; /* "GET" (which answers HEAD too) or "POST" */
    const char *path;
    enum mm_entry entry;
    size_t body_bytes_max; /* beside the process's own limit, which is every route's; 0: none */

    /* Judges a request by its head, before the body: MM_OK, or the refusal in exchange->error. NULL:
     * nothing to judge. */
    enum mm_status (*admit)(struct mm_exchange *exchange);

    /* The body is complete (GET: there is none). Queues a reply, or submits a job and returns; then
     * it is `answer` that is called once the job has ended. Errors go into exchange->error. */
    enum mm_status (*complete)(struct mm_exchange *exchange);
    enum mm_status (*answer)(struct mm_exchange *exchange);
};

/* Finds the route of a method and path: MM_NOT_FOUND, also where the options switch it off, or
 * MM_METHOD_NOT_ALLOWED with the path's methods in allow (as the Allow header writes them). */
enum mm_status mm_route_find(const struct mm_options *options, const char *method, const char *path,
                             const struct mm_route **route, char *allow, size_t allow_size,
                             struct mm_error *error);

/* What requests are counted and logged under: the paths of the table, each once, and "other" for all
 * else, so that callers cannot make labels. The label of an index without one is NULL. */
enum { MM_ROUTE_LABELS = 16, MM_ROUTE_OTHER = MM_ROUTE_LABELS - 1 };
size_t mm_route_label_index(const char *path);
const char *mm_route_label(size_t index);

/* GET /metrics (server/scrape.c). */
enum mm_status mm_scrape(struct mm_exchange *exchange);

/* POST /v1/matmul and POST /v1/transpose (server/operation.c): what tells them apart is said on admission. */
enum mm_status mm_matmul_admit(struct mm_exchange *exchange);
enum mm_status mm_transpose_admit(struct mm_exchange *exchange);
enum mm_status mm_operation_complete(struct mm_exchange *exchange);
enum mm_status mm_operation_answer(struct mm_exchange *exchange);

/* POST /v1/benchmark (server/benchmark.c). */
enum mm_status mm_benchmark_admit(struct mm_exchange *exchange);
enum mm_status mm_benchmark_complete(struct mm_exchange *exchange);
enum mm_status mm_benchmark_answer(struct mm_exchange *exchange);

/* Gives back what the exchange's benchmark holds, if there is one. No job of it is the queue's any more. */
void mm_benchmark_release(struct mm_exchange *exchange);

#ifdef __cplusplus
}
#endif
#endif
