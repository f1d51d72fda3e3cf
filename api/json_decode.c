/* The decoding of a JSON request: the scanner for the matrices, Jansson for the parameters, and for whatever
 * the scanner has left alone the tree of the whole. */
#include "api/formats.h"
#include "api/json_members.h"
#include "api/json_scan.h"
#include "api/json_tree.h"

#include <assert.h>
#include <stdlib.h>

/* What the scanner knows, or does not. */
enum outcome { DECIDED, LEFT_ALONE };

/* The scanned shapes, in the call's type and without data; an operand that was not seen is missing, since any
 * value that is no matrix was left alone. */
static enum mm_status set_shapes(const struct mm_json_scan *scan, struct mm_call *call,
                                 struct mm_error *error) {
    struct mm_matrix *const views[] = {&call->a, &call->b};
    for (unsigned index = 0; index < mm_call_operands(call); index++) {
        const struct mm_json_scanned *matrix = &scan->matrices[index];
        if (!matrix->seen)
            return mm_json_matrix_shape(NULL, mm_json_operands[index], call->dtype, views[index], error);
        *views[index] = mm_matrix_dense(call->dtype, matrix->rows, matrix->cols, NULL);
    }
    return MM_OK;
}

/* What both take, one behind the other as they come. */
static size_t storage_bytes(const struct mm_json_scan *scan, size_t a_bytes, size_t b_bytes) {
    const bool b_is_first = scan->matrix == &scan->matrices[0];
    const size_t first = b_is_first ? b_bytes : a_bytes, second = b_is_first ? a_bytes : b_bytes;
    if (second == 0)
        return first;
    return (first + MM_JSON_ALIGNMENT - 1) / MM_JSON_ALIGNMENT * MM_JSON_ALIGNMENT + second;
}

/* Scans the text again where its type became known behind its elements, or they found no room: for just their
 * size now, which may be had. Where it is not, or passes a limit, the elements may still be malformed, of
 * which nothing is known as long as they were taken for another type. */
static enum outcome read_again(struct mm_json_scan *scan, const struct mm_call *call, size_t a_bytes,
                               size_t b_bytes, const struct mm_body *body, enum mm_status *status,
                               struct mm_error *error) {
    struct mm_buffer storage = {0};
    mm_json_scan_cancel(scan);
    if (*status == MM_OK && a_bytes + b_bytes > 0)
        *status =
            mm_buffers_acquire(scan->store.buffers, storage_bytes(scan, a_bytes, b_bytes), &storage, error);
    if (*status == MM_BUSY || *status == MM_INTERNAL || (*status != MM_OK && scan->dtype == call->dtype))
        return DECIDED;
    mm_json_scan_again(scan, call->dtype, storage, body);
    return mm_json_scan_is_whole(scan) && scan->held ? DECIDED : LEFT_ALONE;
}

/* Judges the sizes, and finds the elements in memory. */
static enum outcome set_elements(struct mm_json_scan *scan, struct mm_call *call, const struct mm_body *body,
                                 enum mm_status *status, struct mm_error *error) {
    size_t a_bytes = 0, b_bytes = 0;
    if (scan->dtype == call->dtype && !scan->held)
        return LEFT_ALONE;
    *status = mm_call_sizes(call, scan->store.limits, &a_bytes, &b_bytes, error);
    if (scan->dtype != call->dtype || !scan->store.keeps) {
        if (read_again(scan, call, a_bytes, b_bytes, body, status, error) == LEFT_ALONE)
            return LEFT_ALONE;
    }
    if (*status != MM_OK)
        return DECIDED;
    assert(scan->store.keeps || a_bytes + b_bytes == 0);
    call->storage = scan->store.memory;
    scan->store.memory = (struct mm_buffer){0};
    if (call->storage.data != NULL) {
        call->a.data = (char *)call->storage.data + scan->matrices[0].offset;
        call->b.data = (char *)call->storage.data + scan->matrices[1].offset;
    }
    return DECIDED;
}

/* Completes the call from a document that the scanner has understood. */
static enum outcome complete(struct mm_json_scan *scan, struct mm_call *call, const struct mm_body *body,
                             enum mm_status *status, struct mm_error *error) {
    const struct mm_body rest = {.data = scan->rest, .bytes = scan->rest_bytes};
    enum mm_json_bound bound = MM_JSON_LOWER;
    json_t *root = NULL;
    *status = mm_json_parse(call, &rest, &bound, &root, error);
    if (*status != MM_OK) /* where in the whole body it is wrong the rest does not tell */
        return *status == MM_INTERNAL ? DECIDED : LEFT_ALONE;
    *status = mm_json_set_parameters(call, root, error);
    json_decref(root);
    if (*status == MM_OK)
        *status = set_shapes(scan, call, error);
    if (*status != MM_OK) /* though a number that no type holds is told before it */
        return scan->held ? DECIDED : LEFT_ALONE;
    if (set_elements(scan, call, body, status, error) == LEFT_ALONE)
        return LEFT_ALONE;
    if (*status == MM_OK)
        *status = mm_call_resolve(call, error);
    return DECIDED;
}

enum mm_status mm_json_scan_finish(struct mm_json_scan *scan, struct mm_call *call,
                                   const struct mm_body *body, struct mm_error *error) {
    enum mm_status status = MM_OK;
    enum outcome outcome =
        mm_json_scan_is_whole(scan) ? complete(scan, call, body, &status, error) : LEFT_ALONE;
    mm_json_scan_cancel(scan);
    if (outcome == LEFT_ALONE)
        return mm_json_tree_decode(call, body, scan->store.limits, scan->store.buffers, error);
    if (status != MM_OK)
        mm_call_release(call, scan->store.buffers);
    return status;
}

enum mm_status mm_json_decode(struct mm_call *call, const struct mm_body *body,
                              const struct mm_limits *limits, struct mm_buffers *buffers,
                              struct mm_error *error) {
    struct mm_json_scan scan;
    mm_json_scan_begin(&scan, call, body->bytes, limits, buffers);
    (void)mm_json_scan_feed(&scan, body->data, body->bytes);
    return mm_json_scan_finish(&scan, call, body, error);
}

static void *begin_reading(const struct mm_call *call, const char *content_type, uint64_t body_bytes,
                           const struct mm_limits *limits, struct mm_buffers *buffers) {
    struct mm_json_scan *scan = malloc(sizeof *scan);
    (void)content_type;
    if (scan != NULL)
        mm_json_scan_begin(scan, call, body_bytes, limits, buffers);
    return scan;
}

static size_t feed_reading(void *reading, void *body, size_t body_bytes, size_t piece_bytes) {
    (void)mm_json_scan_feed(reading, (const char *)body + body_bytes - piece_bytes, piece_bytes);
    return body_bytes;
}

/* Elements that lie where they were read. A type that is told behind them takes a second scan. */
static bool is_quick(const void *reading) {
    const struct mm_json_scan *scan = reading;
    return mm_json_scan_is_whole(scan) && scan->held && scan->store.keeps;
}

static enum mm_status finish_reading(void *reading, struct mm_call *call, const struct mm_body *body,
                                     struct mm_error *error) {
    const enum mm_status status = mm_json_scan_finish(reading, call, body, error);
    free(reading);
    return status;
}

static void cancel_reading(void *reading) {
    mm_json_scan_cancel(reading);
    free(reading);
}

const struct mm_body_reader mm_json_reader = {begin_reading, feed_reading, is_quick, finish_reading,
                                              cancel_reading};
