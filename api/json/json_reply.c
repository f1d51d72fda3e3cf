/* The JSON reply: the array by json_array.c, and around it an envelope by Jansson. */
#include "api/json/json_array.h"
#include "api/json/json_scan.h"
#include "api/json/json_value.h"
#include "api/number/float_text.h"
#include "api/result.h"
#include "gpu/backend.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* What stands around the array: a device's name of 127 bytes, each escaped to six, the names of our own
 * tables, and a dozen numbers, and up to eight more for the shape; and the figures. */
enum { ENVELOPE_BYTES_MAX = 2048 + MM_FIGURES_TEXT_MAX };

/* A stored matrix is written as it can be stored: as the operand a. */
static const char reply_head[] = "{\"c\": ", stored_head[] = "{\"a\": ";
_Static_assert(sizeof reply_head == sizeof stored_head, "either has the room of the other");

static bool is_stored(const struct mm_answer *answer) {
    return answer->job->variant == NULL;
}

static bool reply_bytes_max(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes) {
    return mm_json_array_text_bytes(shape, dtype, bytes) &&
           mm_size_add(*bytes, sizeof reply_head + ENVELOPE_BYTES_MAX, bytes);
}

static void encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    const struct mm_matrix *c = &answer->job->product.c;
    char *end = body->buffer.data;
    if (!answer->has_matrix) {
        *end = '{';
        body->bytes = 1;
        return;
    }
    memcpy(end, is_stored(answer) ? stored_head : reply_head, sizeof reply_head - 1);
    end += sizeof reply_head - 1;
    end += mm_json_array_write(answer->shape, c->dtype, c->data, answer->helpers, end);
    body->bytes = (size_t)(end - (char *)body->buffer.data);
}

static json_t *make_timing(const uint64_t *span_ns) {
    json_t *timing = json_object();
    int failed = 0;
    for (unsigned span = 0; span < MM_SPAN_COUNT; span++) {
        char key[32];
        snprintf(key, sizeof key, "%s_ms", mm_span_name((enum mm_span)span));
        failed |= mm_json_put(timing, key, json_real((double)span_ns[span] / 1e6));
    }
    return mm_json_made(timing, failed);
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
    return mm_json_put(envelope, "path", mm_json_text(text));
}

/* Beyond the largest number stands the word that matrices have for it. */
static json_t *make_real(double number) {
    return isfinite(number) ? json_real(number) : mm_json_text(mm_float_word(number));
}

/* Of a product that was checked. Where no row could be judged it neither passed nor failed. */
static int put_verification(json_t *envelope, const struct mm_verification *verification) {
    const enum mm_verdict verdict = mm_verification_verdict(verification);
    const bool is_judged = verdict != MM_VERDICT_UNJUDGED;
    if (!verification->is_done)
        return 0;
    return mm_json_put(
        envelope, "verify",
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "residual", make_real(verification->residual), "bound",
                  make_real(verification->bound), "passed",
                  is_judged ? json_boolean(verdict == MM_VERDICT_PASSED) : json_null(), "rows_unjudged",
                  mm_json_count(verification->rows_unjudged), "relative_error",
                  is_judged ? make_real(mm_verification_relative_error(verification)) : json_null()));
}

/* Of a stored matrix: the elements tell the shape, if they are there. */
static json_t *make_stored(const struct mm_answer *answer) {
    json_t *envelope = json_object();
    int failed = 0;
    if (!answer->has_matrix)
        failed = mm_json_put(envelope, "shape", mm_json_shape(answer->shape));
    failed |= mm_json_put(envelope, "dtype", json_string(mm_dtype_name(answer->job->product.c.dtype)));
    return mm_json_made(envelope, failed);
}

/* What follows the array, in the contract's order. Where nothing had to run (an empty product), the
 * variant is the one that was asked for. */
static json_t *make_envelope(const struct mm_answer *answer) {
    const struct mm_job *job = answer->job;
    if (is_stored(answer))
        return make_stored(answer);
    const struct mm_matrix *c = &job->product.c;
    const struct mm_variant *variant = job->ran != NULL ? job->ran : job->variant;
    const enum mm_dtype operand = job->product.a.dtype;
    json_t *envelope = json_pack(
        "{s:o, s:s, s:s*, s:s, s:s, s:o, s:f, s:o}", "shape", mm_json_shape(answer->shape), "dtype",
        mm_dtype_name(c->dtype), "operand_dtype", operand != c->dtype ? mm_dtype_name(operand) : NULL,
        "variant", variant->name, "backend", job->backend->name, "device",
        mm_json_text(job->device != NULL ? job->device->name : ""), rate_names[job->variant->op],
        round(mm_job_rate(job) * 1e6) / 1e6, "batched", mm_json_count(job->batched));
    int failed = put_path(envelope, &job->path);
    failed |= put_verification(envelope, &job->verification);
    failed |= mm_json_put(envelope, "timing", make_timing(answer->span_ns));
    return mm_json_made(envelope, failed);
}

/* Fifteen significant digits print a time of whole nanoseconds, or six decimals, without a tail of noise. */
static enum mm_status finish(const struct mm_answer *answer, struct mm_reply_body *body,
                             struct mm_error *error) {
    char *end = (char *)body->buffer.data + body->bytes;
    size_t room = body->buffer.bytes - body->bytes;
    assert(room >= ENVELOPE_BYTES_MAX);
    if (answer->has_matrix) {
        *end++ = ',';
        *end++ = ' ';
    }
    if (answer->figures != 0) {
        end = mempcpy(end, "\"reduce\": ", 10);
        end += mm_result_figures(answer->figures, answer->job->product.c.dtype, &answer->job->reduction, end);
        end = mempcpy(end, ", ", 2);
    }
    room -= (size_t)(end - (char *)body->buffer.data) - body->bytes;
    json_t *envelope = make_envelope(answer);
    size_t bytes =
        envelope == NULL ? 0 : json_dumpb(envelope, end, room - 1, JSON_EMBED | JSON_REAL_PRECISION(15));
    json_decref(envelope);
    assert(bytes <= room - 1);
    if (bytes == 0 || bytes > room - 1)
        return mm_fail(error, MM_INTERNAL, "memory ran out while the reply was written");
    end[bytes] = '}';
    body->bytes = (size_t)(end + bytes + 1 - (char *)body->buffer.data);
    return MM_OK;
}

const struct mm_codec mm_json_codec = {
    .media_type = "application/json",
    .reply_type = "application/json",
    .example = {[MM_MATMUL] = MM_MATMUL_EXAMPLE, [MM_TRANSPOSE] = MM_TRANSPOSE_EXAMPLE},
    .first = '{',
    .reader = &mm_json_reader,
    .reply_rank_max = MM_RANK_MAX,
    .reply_bytes_max = reply_bytes_max,
    .facts_bytes_max = ENVELOPE_BYTES_MAX + 3,
    .encode = encode,
    .finish = finish,
};
