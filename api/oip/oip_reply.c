/* Writes the replies to infer requests: JSON, and after it C as binary data if the client wants that. */
#include "api/json/json_reply.h"
#include "api/json/json_value.h"
#include "api/json/utf8.h"
#include "api/number/digits.h"
#include "api/number/rows_text.h"
#include "api/oip/oip.h"

#include <assert.h>
#include <string.h>

/* The greatest length of a reply's JSON without elements. The device's name takes up to 762 bytes, and the id
 * up to 1536. */
enum { TEXT_MAX = 4096 };

/* The C++ client reads only flat arrays, so the rows have no brackets. NaN and Infinity have no quotes. */
static const struct mm_row_marks marks = {.between = ",", .begin = "", .end = "", .has_quotes = false};

static bool reply_bytes_max(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes) {
    const struct mm_matrix c = mm_shape_view(shape, false, dtype);
    return mm_rows_text_bytes(&c, &marks, bytes) && mm_size_add(*bytes, TEXT_MAX, bytes);
}

static char *put_begin(char *end, const struct mm_answer *answer) {
    const struct mm_oip_call *call = (const struct mm_oip_call *)answer->call;
    end = mm_oip_put_model(mm_put_text(end, "{\"model_name\":\""), &call->model);
    end = mm_put_text(end, "\",\"model_version\":\"" MM_OIP_VERSION "\"");
    if (call->id[0] != '\0')
        end = mm_put_json_string(mm_put_text(end, ",\"id\":"), call->id);
    end = mm_json_put_name(end, ",\"outputs\":[{\"name\":\"C\",\"datatype\":\"",
                           mm_oip_datatype(answer->matrix.dtype));
    return mm_json_put_shape(mm_put_text(end, ","), answer->shape);
}

static char *put_verification(char *end, const struct mm_verification *verification) {
    const enum mm_verdict verdict = mm_verification_verdict(verification);
    if (!verification->is_done)
        return end;
    end = mm_json_put_real(end, ",\"verify_residual\":", verification->residual);
    end = mm_json_put_real(end, ",\"verify_bound\":", verification->bound);
    if (verdict == MM_VERDICT_UNJUDGED)
        return end;
    return mm_put_text(end,
                       verdict == MM_VERDICT_PASSED ? ",\"verify_passed\":true" : ",\"verify_passed\":false");
}

/* Ends the output, and writes the reply's parameters: scalars only, because the clients take no others. */
static char *put_end(char *end, const struct mm_answer *answer) {
    end = mm_json_put_run(mm_put_text(end, "}],\"parameters\":{"), answer);
    end = put_verification(end, &answer->outcome->verification);
    for (unsigned span = 0; span < MM_SPAN_COUNT; span++) {
        end = mm_put_text(mm_put_text(end, ",\""), mm_span_name((enum mm_span)span));
        end = mm_put_millionths(mm_put_text(end, "_ms\":"), answer->span_ns[span]);
    }
    return mm_put_text(end, "}}");
}

static void encode_json(const struct mm_answer *answer, struct mm_reply_body *body) {
    char *end = mm_put_text(put_begin(body->buffer.data, answer), "\"data\":[");
    if (mm_matrix_bytes(&answer->matrix) > 0)
        end = mm_rows_text_write(&answer->matrix, &marks, answer->helpers, end);
    body->bytes = (size_t)(mm_put_text(end, "]") - (char *)body->buffer.data);
}

static void finish_json(const struct mm_answer *answer, struct mm_reply_body *body) {
    char *const start = (char *)body->buffer.data + body->bytes;
    body->bytes += (size_t)(put_end(start, answer) - start);
    assert(body->bytes <= body->buffer.bytes);
}

static void encode_binary(const struct mm_answer *answer, struct mm_reply_body *body) {
}

/* C lies in the body's buffer. Writes the JSON so that it ends where C begins, so both are sent at once. */
static void finish_binary(const struct mm_answer *answer, struct mm_reply_body *body) {
    const size_t c_bytes = mm_matrix_bytes(&answer->matrix);
    char text[TEXT_MAX], *end = put_begin(text, answer);
    end = mm_put_digits(mm_put_text(end, "\"parameters\":{\"binary_data_size\":"), c_bytes);
    end = put_end(mm_put_text(end, "}"), answer);
    body->json_bytes = (size_t)(end - text);
    assert(body->json_bytes <= sizeof text);
    body->offset = c_bytes == 0
                       ? 0
                       : (size_t)((char *)answer->matrix.data - (char *)body->buffer.data) - body->json_bytes;
    memcpy((char *)body->buffer.data + body->offset, text, body->json_bytes);
    body->bytes = body->json_bytes + c_bytes;
}

static const struct mm_codec json_reply = {
    .reply_type = "application/json",
    .reply_rank_max = MM_RANK_MAX,
    .reply_bytes_max = reply_bytes_max,
    .facts_bytes_max = TEXT_MAX,
    .encode = encode_json,
    .finish = finish_json,
};

static const struct mm_codec binary_reply = {
    .reply_type = "application/octet-stream",
    .reply_rank_max = MM_RANK_MAX,
    .facts_bytes_max = TEXT_MAX,
    .encode = encode_binary,
    .finish = finish_binary,
};

const struct mm_codec *mm_oip_reply(const struct mm_oip_call *call) {
    return call->is_binary ? &binary_reply : &json_reply;
}

char *mm_oip_error_json(const struct mm_error *error, const char *request_id, size_t *length) {
    return mm_json_print(json_pack("{s:o}", "error", mm_json_text(error->detail)), 0, length);
}
