/* The JSON reply: the matrix by json_matrix.c, and around it an envelope by Jansson. */
#include "api/formats.h"
#include "api/json_matrix.h"
#include "api/json_value.h"
#include "gpu/backend.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* What stands around the matrix: a device's name of 127 bytes, each escaped to six, the names of our own
 * tables, and a dozen numbers. */
enum { ENVELOPE_BYTES_MAX = 2048 };

static const char reply_head[] = "{\"c\": ";

bool mm_json_reply_bytes_max(const struct mm_matrix *c, size_t *bytes) {
    return mm_json_matrix_text_bytes(c, bytes) &&
           mm_size_add(*bytes, sizeof reply_head + ENVELOPE_BYTES_MAX, bytes);
}

void mm_json_encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    char *end = body->buffer.data;
    memcpy(end, reply_head, sizeof reply_head - 1);
    end += sizeof reply_head - 1;
    end += mm_json_matrix_write(&answer->job->product.c, answer->helpers, end);
    body->bytes = (size_t)(end - (char *)body->buffer.data);
}

static json_t *make_timing(const uint64_t *span_ns) {
    json_t *timing = json_object();
    int failed = 0;
    for (unsigned span = 0; span < MM_SPAN_COUNT; span++) {
        char key[32];
        snprintf(key, sizeof key, "%s_ms", mm_span_name((enum mm_span)span));
        failed |= json_object_set_new(timing, key, json_real((double)span_ns[span] / 1e6));
    }
    if (failed == 0)
        return timing;
    json_decref(timing);
    return NULL;
}

/* What mm_job_rate is called, of each operation. */
static const char *const rate_names[MM_OP_COUNT] = {
    [MM_MATMUL] = "gflops",
    [MM_TRANSPOSE] = "gigabytes_per_second",
};

/* Of a result that came about in one of several ways. */
static int put_path(json_t *envelope, const struct mm_path *path) {
    char text[MM_PATH_TEXT_MAX];
    if (path->kind == MM_PATH_NONE)
        return 0;
    mm_path_text(path, text);
    return json_object_set_new(envelope, "path", mm_json_text(text));
}

/* Beyond the largest number stands the word that matrices have for it. */
static json_t *make_real(double number) {
    return isfinite(number) ? json_real(number) : mm_json_text("Infinity");
}

/* Of a product that was checked. Where no row could be judged it neither passed nor failed. */
static int put_verification(json_t *envelope, const struct mm_verification *verification) {
    const enum mm_verdict verdict = mm_verification_verdict(verification);
    if (!verification->is_done)
        return 0;
    json_t *object = json_object();
    int failed = json_object_set_new(object, "residual", make_real(verification->residual));
    failed |= json_object_set_new(object, "bound", make_real(verification->bound));
    failed |= json_object_set_new(
        object, "passed",
        verdict == MM_VERDICT_UNJUDGED ? json_null() : json_boolean(verdict == MM_VERDICT_PASSED));
    failed |= json_object_set_new(object, "rows_unjudged", mm_json_count(verification->rows_unjudged));
    return failed | json_object_set_new(envelope, "verify", object);
}

/* What follows the matrix, in the contract's order. Where nothing had to run (an empty product), the
 * variant is the one that was asked for. */
static json_t *make_envelope(const struct mm_answer *answer) {
    const struct mm_job *job = answer->job;
    const struct mm_variant *variant = job->ran != NULL ? job->ran : job->variant;
    json_t *envelope = json_object();
    json_t *shape = json_array();
    int failed = json_array_append_new(shape, mm_json_count(job->product.c.rows));
    failed |= json_array_append_new(shape, mm_json_count(job->product.c.cols));
    failed |= json_object_set_new(envelope, "shape", shape);
    failed |= json_object_set_new(envelope, "dtype", mm_json_text(mm_dtype_name(job->product.c.dtype)));
    failed |= json_object_set_new(envelope, "variant", mm_json_text(variant->name));
    failed |= json_object_set_new(envelope, "backend", mm_json_text(job->backend->name));
    failed |=
        json_object_set_new(envelope, "device", mm_json_text(job->device != NULL ? job->device->name : ""));
    failed |= json_object_set_new(envelope, rate_names[job->variant->op],
                                  json_real(round(mm_job_rate(job) * 1e6) / 1e6));
    failed |= json_object_set_new(envelope, "batched", mm_json_count(job->batched));
    failed |= put_path(envelope, &job->path);
    failed |= put_verification(envelope, &job->verification);
    failed |= json_object_set_new(envelope, "timing", make_timing(answer->span_ns));
    if (failed == 0)
        return envelope;
    json_decref(envelope);
    return NULL;
}

/* Fifteen significant digits print a time of whole nanoseconds, or six decimals, without a tail of noise. */
enum mm_status mm_json_finish(const struct mm_answer *answer, struct mm_reply_body *body,
                              struct mm_error *error) {
    char *end = (char *)body->buffer.data + body->bytes;
    size_t room = body->buffer.bytes - body->bytes;
    assert(room >= ENVELOPE_BYTES_MAX);
    *end++ = ',';
    *end++ = ' ';
    json_t *envelope = make_envelope(answer);
    size_t bytes =
        envelope == NULL ? 0 : json_dumpb(envelope, end, room - 3, JSON_EMBED | JSON_REAL_PRECISION(15));
    json_decref(envelope);
    assert(bytes <= room - 3);
    if (bytes == 0 || bytes > room - 3)
        return mm_fail(error, MM_INTERNAL, "memory ran out while the reply was written");
    end[bytes] = '}';
    body->bytes += 2 + bytes + 1;
    return MM_OK;
}
