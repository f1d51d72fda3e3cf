/* Writes JSON replies. Does not use Jansson, because building its values took a quarter of a small product's
 * time. */
#include "api/json/json_reply.h"

#include "api/call.h"
#include "api/json/json_array.h"
#include "api/json/json_scan.h"
#include "api/json/utf8.h"
#include "api/number/digits.h"
#include "api/number/float_text.h"
#include "api/result.h"
#include "gpu/device/backend.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The greatest length of a reply without its array. The device's name has up to 127 bytes, and an escape
 * takes six, so the name takes up to 762. The other bytes are for fixed names, numbers and figures. */
enum { ENVELOPE_BYTES_MAX = 2048 + MM_FIGURES_TEXT_MAX };

/* The array of a stored matrix is named "a", so a client can send the reply as a request. */
static const char reply_head[] = "{\"c\": ", stored_head[] = "{\"a\": ";
_Static_assert(sizeof reply_head == sizeof stored_head, "reply_bytes_max counts either head");

static bool reply_bytes_max(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes) {
    return mm_json_array_text_bytes(shape, dtype, bytes) &&
           mm_size_add(*bytes, sizeof reply_head + ENVELOPE_BYTES_MAX, bytes);
}

static void encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    const struct mm_matrix *c = &answer->matrix;
    char *end = body->buffer.data;
    if (!answer->has_matrix) {
        *end = '{';
        body->bytes = 1;
        return;
    }
    memcpy(end, answer->outcome == NULL ? stored_head : reply_head, sizeof reply_head - 1);
    end += sizeof reply_head - 1;
    end += mm_json_array_write(answer->shape, c->dtype, c->data, answer->helpers, end);
    body->bytes = (size_t)(end - (char *)body->buffer.data);
}

/* The JSON member for the rate that the operation reached. */
static const char *const rate_keys[MM_OP_COUNT] = {
    [MM_MATMUL] = "\"gflops\": ",
    [MM_TRANSPOSE] = "\"gigabytes_per_second\": ",
};

char *mm_json_put_name(char *end, const char *key, const char *name) {
    return mm_put_text(mm_put_text(mm_put_text(end, key), name), "\"");
}

char *mm_json_put_shape(char *end, const struct mm_shape *shape) {
    end = mm_put_text(end, "\"shape\": [");
    for (unsigned dim = 0; dim < shape->rank; dim++)
        end = mm_put_digits(mm_put_text(end, dim > 0 ? ", " : ""), shape->dims[dim]);
    return mm_put_text(end, "], ");
}

char *mm_json_put_real(char *end, const char *key, double number) {
    end = mm_put_text(end, key);
    return isfinite(number) ? end + sprintf(end, "%.15g", number)
                            : mm_put_text(mm_put_text(mm_put_text(end, "\""), mm_float_word(number)), "\"");
}

/* Writes how the variant computed the result. Writes nothing if the variant has only one way. */
static char *put_path(char *end, const struct mm_path *path) {
    if (path->kind == MM_PATH_NONE)
        return end;
    end = mm_put_text(end, ", \"path\": \"");
    mm_path_text(path, end);
    return mm_put_text(end + strlen(end), "\"");
}

/* Writes the result of the check, if there was one. `passed` is null if no row could be checked. */
static char *put_verification(char *end, const struct mm_verification *verification) {
    static const char *const passed[MM_VERDICT_COUNT] = {
        [MM_VERDICT_PASSED] = "true", [MM_VERDICT_FAILED] = "false", [MM_VERDICT_UNJUDGED] = "null"};
    const enum mm_verdict verdict = mm_verification_verdict(verification);
    const bool is_checked = verdict != MM_VERDICT_UNJUDGED;
    if (!verification->is_done)
        return end;
    end = mm_json_put_real(end, ", \"verify\": {\"residual\": ", verification->residual);
    end = mm_json_put_real(end, ", \"bound\": ", verification->bound);
    end = mm_put_text(mm_put_text(end, ", \"passed\": "), passed[verdict]);
    end = mm_put_digits(mm_put_text(end, ", \"rows_unjudged\": "), verification->rows_unjudged);
    end = is_checked
              ? mm_json_put_real(end, ", \"relative_error\": ", mm_verification_relative_error(verification))
              : mm_put_text(end, ", \"relative_error\": null");
    return mm_put_text(end, "}");
}

static char *put_timing(char *end, const uint64_t *span_ns) {
    end = mm_put_text(end, ", \"timing\": {");
    for (unsigned span = 0; span < MM_SPAN_COUNT; span++) {
        end = mm_put_text(mm_put_text(end, span > 0 ? ", \"" : "\""), mm_span_name((enum mm_span)span));
        end = mm_put_millionths(mm_put_text(end, "_ms\": "), span_ns[span]);
    }
    return mm_put_text(end, "}");
}

char *mm_json_put_run(char *end, const struct mm_answer *answer) {
    const struct mm_outcome *outcome = answer->outcome;
    end = mm_json_put_name(end, "\"variant\": \"", outcome->ran->name);
    end = mm_json_put_name(end, ", \"backend\": \"", answer->device->backend->name);
    end = mm_put_json_string(mm_put_text(end, ", \"device\": "), answer->device->name);
    end = mm_put_text(mm_put_text(end, ", "), rate_keys[outcome->ran->op]);
    end = mm_put_millionths(end, (uint64_t)round(mm_outcome_rate(outcome) * 1e6));
    end = mm_put_digits(mm_put_text(end, ", \"batched\": "), outcome->batched);
    const char *reproducible = mm_call_reproducible(answer->call, outcome->ran);
    if (outcome->ran->op == MM_MATMUL)
        end = mm_put_digits(mm_put_text(end, ", \"devices\": "), outcome->devices);
    if (reproducible != NULL)
        end = mm_json_put_name(end, ", \"reproducible\": \"", reproducible);
    if (outcome->tiles > 0)
        end = mm_put_digits(mm_put_text(end, ", \"tiles\": "), outcome->tiles);
    return put_path(end, &outcome->path);
}

/* Writes the members after the array, in the order of docs/http-api.md. */
static char *put_facts(char *end, const struct mm_answer *answer) {
    const enum mm_dtype operand = answer->operand_dtype, result = answer->matrix.dtype;
    end = mm_json_put_name(mm_json_put_shape(end, answer->shape), "\"dtype\": \"", mm_dtype_name(result));
    if (operand != result)
        end = mm_json_put_name(end, ", \"operand_dtype\": \"", mm_dtype_name(operand));
    end = mm_json_put_run(mm_put_text(end, ", "), answer);
    end = put_verification(end, &answer->outcome->verification);
    return put_timing(end, answer->span_ns);
}

/* Writes the members after a stored matrix. An array without elements does not show its whole shape, so the
 * reply then has the shape as a member. */
static char *put_stored(char *end, const struct mm_answer *answer) {
    const struct mm_matrix *c = &answer->matrix;
    if (!answer->has_matrix || c->rows == 0 || c->cols == 0)
        end = mm_json_put_shape(end, answer->shape);
    return mm_json_put_name(end, "\"dtype\": \"", mm_dtype_name(c->dtype));
}

static void finish(const struct mm_answer *answer, struct mm_reply_body *body) {
    char *const start = (char *)body->buffer.data + body->bytes, *end = start;
    assert(body->buffer.bytes - body->bytes >= ENVELOPE_BYTES_MAX);
    if (answer->has_matrix)
        end = mm_put_text(end, ", ");
    if (answer->figures != 0) {
        end = mm_put_text(end, "\"reduce\": ");
        end += mm_result_figures(answer->figures, answer->matrix.dtype, answer->reduction, end);
        end = mm_put_text(end, ", ");
    }
    end = answer->outcome == NULL ? put_stored(end, answer) : put_facts(end, answer);
    *end++ = '}';
    body->bytes += (size_t)(end - start);
    assert((size_t)(end - start) <= ENVELOPE_BYTES_MAX);
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
