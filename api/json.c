/* The JSON format, through Jansson: the members of the request, and the envelope of the reply. The
 * matrices in both are json_matrix.c's. */
#include "api/formats.h"
#include "api/json_fault.h"
#include "api/json_matrix.h"
#include "api/json_value.h"
#include "gpu/backend.h"

#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <string.h>

enum { STORAGE_ALIGNMENT = 64 };

/* What stands around the matrix: a device's name of 127 bytes, each escaped to six, the names of our own
 * tables, and a dozen numbers. */
enum { ENVELOPE_BYTES_MAX = 2048 };

/* Trees of smaller bodies are not counted: there are never more of them than threads that parse. */
enum { UNCOUNTED_BODY_BYTES = 64 << 10 };

/* How numbers are read so that they become these bounds. */
static const struct {
    int rounding;
    size_t flags;
} readings[] = {
    [MM_JSON_LOWER] = {FE_DOWNWARD, JSON_DECODE_INT_AS_REAL},
    [MM_JSON_UPPER] = {FE_UPWARD, JSON_DECODE_INT_AS_REAL},
    [MM_JSON_NEAREST] = {FE_TONEAREST, JSON_DECODE_INT_AS_REAL},
    [MM_JSON_WHOLE] = {FE_UPWARD, 0},
};

/* The rounding mode is the thread's own, and the parser's for as long as it runs. */
static json_t *load(const struct mm_body *body, enum mm_json_bound bound, json_error_t *fault) {
    assert(fegetround() == FE_TONEAREST);
    errno = 0;
    fesetround(readings[bound].rounding);
    json_t *value =
        json_loadb(body->data, body->bytes, JSON_REJECT_DUPLICATES | readings[bound].flags, fault);
    fesetround(FE_TONEAREST);
    return value;
}

/* An integer past 64 bits is refused where integers are read as such. It is a parameter's then, since an
 * element would not have passed the reading before, which has also taken the parameter's value: so a 1 is put
 * in its place. False where the fault is another one. */
static bool replace_integer(const struct mm_body *body, const json_error_t *fault) {
    char *text = body->data;
    const size_t end = fault->position > 0 ? (size_t)fault->position : 0;
    if (json_error_code(fault) != json_error_numeric_overflow || end > body->bytes)
        return false;
    size_t start = end;
    while (start > 0 && text[start - 1] >= '0' && text[start - 1] <= '9')
        start--;
    if (start == end)
        return false;
    memset(text + start, ' ', end - start - 1);
    text[end - 1] = '1';
    return true;
}

/* Parses the body, whose numbers become these bounds of themselves (json_float.c and json_whole.c say why). A
 * number below all doubles has no lower bound, which Jansson refuses; but the nearest float64 can be the
 * least there is. So where the operation takes that type, the body is read to nearest instead, and *bound
 * says so. */
static enum mm_status parse(const struct mm_call *call, const struct mm_body *body, enum mm_json_bound *bound,
                            json_t **root, struct mm_error *error) {
    const char *expected = mm_call_operands(call) == 2 ? "a and b" : "a";
    if (body->bytes == 0)
        return mm_fail(error, MM_BAD_REQUEST, "the body is empty, expected a JSON object with %s", expected);
    enum mm_status status = mm_json_refuse_zero(body->data, body->bytes, error);
    if (status != MM_OK)
        return status;
    json_error_t fault;
    json_t *value = load(body, *bound, &fault);
    if (value == NULL && *bound == MM_JSON_LOWER && json_error_code(&fault) == json_error_numeric_overflow &&
        (mm_op_dtypes(call->op) & MM_DTYPE_BIT(MM_FLOAT64)) != 0) {
        *bound = MM_JSON_NEAREST;
        value = load(body, *bound, &fault);
    }
    if (value == NULL && *bound == MM_JSON_WHOLE && replace_integer(body, &fault))
        value = load(body, *bound, &fault);
    if (value == NULL)
        return mm_json_fail_syntax(&fault, error);
    if (!json_is_object(value)) {
        json_decref(value);
        return mm_fail(error, MM_BAD_REQUEST, "the body is a JSON array, expected an object with %s",
                       expected);
    }
    *root = value;
    return MM_OK;
}

/* What Jansson's tree of a body takes at most, which is many times the body: a number behind its comma
 * 32 bytes and a place in a growing table, an array 128 and more, an object 240. Measured with Jansson
 * 2.14 and glibc over bodies of one kind each, these weights came to 1.0 to 2.0 times what it took. */
static size_t tree_bytes_max(const struct mm_body *body) {
    const unsigned char *text = body->data;
    size_t bytes = body->bytes;
    if (bytes <= UNCOUNTED_BODY_BYTES)
        return 0;
    for (size_t index = 0; index < body->bytes; index++)
        bytes += (text[index] == ',') * 64u + (text[index] == '[') * 192u + (text[index] == '{') * 384u +
                 (text[index] == ':') * 128u + (text[index] == '"') * 16u;
    return bytes;
}

static enum mm_status set_parameter(struct mm_call *call, const char *name, const json_t *value,
                                    struct mm_error *error) {
    if (json_is_string(value))
        return mm_call_set_value(call, name, MM_VALUE_TEXT, json_string_value(value),
                                 json_string_length(value), 0, error);
    if (json_is_boolean(value))
        return mm_call_set_value(call, name, MM_VALUE_BOOLEAN, NULL, 0, json_is_true(value), error);
    if (json_is_number(value))
        return mm_call_set_value(call, name, MM_VALUE_NUMBER, NULL, 0, json_number_value(value), error);
    return mm_call_set_value(call, name, MM_VALUE_OTHER, NULL, 0, 0, error);
}

/* The names of the operands, of which an operation takes the first one or both. */
static const char *const operands[] = {"a", "b"};

static bool is_operand(const struct mm_call *call, const char *name) {
    for (unsigned index = 0; index < mm_call_operands(call); index++)
        if (strcmp(name, operands[index]) == 0)
            return true;
    return false;
}

/* Everything but the elements: the parameters, and the shapes of the operands. A dtype that there is not is
 * refused at the end, after all that is malformed; until then it goes for float32. */
static enum mm_status read_members(struct mm_call *call, json_t *root, struct mm_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
        enum mm_status status = is_operand(call, name) ? MM_OK : set_parameter(call, name, value, error);
        if (status != MM_OK)
            return status;
    }
    struct mm_matrix *const views[] = {&call->a, &call->b};
    enum mm_status status = MM_OK;
    if (mm_call_resolve(call, NULL) != MM_OK)
        call->dtype = MM_FLOAT32;
    call->b = mm_matrix_dense(call->dtype, 0, 0, NULL);
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++)
        status = mm_json_matrix_shape(json_object_get(root, operands[index]), operands[index], call->dtype,
                                      views[index], error);
    return status;
}

/* Finds room for both matrices in one buffer, once their sizes are judged. Empty ones need none. */
static enum mm_status acquire_storage(struct mm_call *call, const struct mm_limits *limits,
                                      struct mm_buffers *buffers, struct mm_error *error) {
    size_t a_bytes, b_bytes;
    enum mm_status status = mm_call_sizes(call, limits, &a_bytes, &b_bytes, error);
    if (status != MM_OK || a_bytes + b_bytes == 0)
        return status;
    size_t b_offset = (a_bytes + STORAGE_ALIGNMENT - 1) / STORAGE_ALIGNMENT * STORAGE_ALIGNMENT;
    status = mm_buffers_acquire(buffers, b_offset + b_bytes, &call->storage, error);
    if (status != MM_OK)
        return status;
    call->a.data = call->storage.data;
    call->b.data = (char *)call->storage.data + b_offset;
    return MM_OK;
}

static enum mm_status read_elements(struct mm_call *call, const json_t *root, enum mm_json_bound bound,
                                    bool *undecided, struct mm_error *error) {
    const struct mm_matrix *const views[] = {&call->a, &call->b};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++)
        status = mm_json_matrix_read(json_object_get(root, operands[index]), operands[index], bound,
                                     views[index], undecided, error);
    return status;
}

/* The sizes pass a limit; but a body that is malformed besides, as far as its first reading tells, is told
 * that first. */
static enum mm_status judge_elements(struct mm_call *call, const json_t *root, enum mm_json_bound bound,
                                     struct mm_error *error) {
    struct mm_error malformed;
    bool undecided = false;
    if (read_elements(call, root, bound, &undecided, &malformed) == MM_OK)
        return MM_TOO_LARGE;
    if (error != NULL)
        *error = malformed;
    return malformed.status;
}

/* Of float32 the second parse is rare (an element within a double's precision of a midpoint), and there
 * is a third only where parse replaces an integer: hostile numbers cost three times the time, no more. */
static enum mm_status decode_body(struct mm_call *call, const struct mm_body *body,
                                  const struct mm_limits *limits, struct mm_buffers *buffers,
                                  struct mm_error *error) {
    json_t *root = NULL;
    enum mm_json_bound bound = MM_JSON_LOWER;
    bool undecided = false;
    enum mm_status status = parse(call, body, &bound, &root, error);
    if (status == MM_OK)
        status = read_members(call, root, error);
    if (status == MM_OK)
        status = acquire_storage(call, limits, buffers, error);
    if (status == MM_TOO_LARGE)
        status = judge_elements(call, root, bound, error);
    if (status == MM_OK)
        status = read_elements(call, root, bound, &undecided, error);
    json_decref(root);
    root = NULL;
    if (status == MM_OK && undecided) {
        bound = mm_json_second_bound(call->dtype);
        status = parse(call, body, &bound, &root, error);
        if (status == MM_OK)
            status = read_elements(call, root, bound, &undecided, error);
        json_decref(root);
    }
    if (status == MM_OK)
        status = mm_call_resolve(call, error);
    if (status != MM_OK)
        mm_call_release(call, buffers);
    return status;
}

enum mm_status mm_json_decode(struct mm_call *call, const struct mm_body *body,
                              const struct mm_limits *limits, struct mm_buffers *buffers,
                              struct mm_error *error) {
    size_t tree_bytes = tree_bytes_max(body);
    enum mm_status status = tree_bytes == 0 ? MM_OK : mm_buffers_reserve(buffers, tree_bytes, error);
    if (status != MM_OK)
        return status;
    status = decode_body(call, body, limits, buffers, error);
    if (tree_bytes > 0)
        mm_buffers_unreserve(buffers, tree_bytes);
    if (status == MM_BUSY && error != NULL)
        error->needed_bytes += tree_bytes; /* which was held when the matrices found no room */
    return status;
}

static const char reply_head[] = "{\"c\": ";

bool mm_json_reply_bytes_max(const struct mm_matrix *c, size_t *bytes) {
    return mm_json_matrix_text_bytes(c, bytes) &&
           mm_size_add(*bytes, sizeof reply_head + ENVELOPE_BYTES_MAX, bytes);
}

void mm_json_encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    char *end = body->buffer.data;
    memcpy(end, reply_head, sizeof reply_head - 1);
    end += sizeof reply_head - 1;
    end += mm_json_matrix_write(&answer->job->product.c, end);
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

/* The work of each operation over its kernel's time. */
static const struct {
    const char *name;
    double (*of)(const struct mm_job *job);
} rates[MM_OP_COUNT] = {
    [MM_MATMUL] = {"gflops", mm_job_gflops},
    [MM_TRANSPOSE] = {"gigabytes_per_second", mm_job_gigabytes_per_second},
};

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
    failed |= json_object_set_new(envelope, rates[job->variant->op].name,
                                  json_real(round(rates[job->variant->op].of(job) * 1e6) / 1e6));
    failed |= json_object_set_new(envelope, "batched", mm_json_count(job->batched));
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
