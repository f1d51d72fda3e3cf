/* The memory that an operation needs besides its body: how much, and where each matrix is. */
#include "server/handlers/operation.h"

#include "gpu/check/verify.h"
#include "gpu/queue/share.h"

/* Bytes of host memory for the job's check. 0 if there is no check, or if a GPU checks in its own memory. */
static size_t check_bytes(const struct mm_operation *operation) {
    const struct mm_product *product = &operation->job.product;
    const bool has_check =
        operation->call.verify && operation->job.work.backend->is_host && product->m > 0 && product->n > 0;
    return has_check ? mm_verify_bytes(product) : 0;
}

/* Bytes of host memory for the shares of several devices. A host backend has only one device, so a request
 * never needs both these bytes and check_bytes. */
static size_t shares_bytes(const struct mm_operation *operation) {
    const unsigned devices = operation->job.devices;
    return devices > 1 ? mm_shares_bytes(devices) : 0;
}

enum mm_status mm_operation_check_verify(const struct mm_request *request, struct mm_error *error) {
    const struct mm_operation *operation = request->own;
    const size_t limit = request->server->budget.part_bytes[MM_BUDGET_MAIN];
    const size_t bytes = check_bytes(operation), others = mm_product_bytes(&operation->job.product);
    if (bytes == 0 || (others <= limit && bytes <= limit - others))
        return MM_OK;
    mm_fail_limit(error, "verify", limit,
                  "verify needs %zu bytes of memory beside the %zu of the matrices, but the limit is %zu "
                  "(fifteen sixteenths of --memory-budget); leave verify out, or send a smaller product",
                  bytes, others, limit);
    mm_fail_got(error, "%zu", bytes + others);
    return MM_TOO_LARGE;
}

/* Sets reply_bytes to the maximal length of the reply's text, or leaves it 0 if the reply has no text. */
static enum mm_status check_reply(struct mm_operation *operation, struct mm_error *error) {
    const struct mm_codec *encoder = operation->encoder;
    char shape[MM_SHAPE_TEXT_MAX];
    if (encoder == NULL)
        return MM_OK;
    if (encoder->reply_bytes_max == NULL || !mm_selection_has_matrix(&operation->call.selection)) {
        operation->reply_bytes = encoder->facts_bytes_max;
        return MM_OK;
    }
    if (encoder->reply_bytes_max(&operation->shape, operation->job.product.c.dtype, &operation->reply_bytes))
        return MM_OK;
    mm_shape_text(&operation->shape, shape);
    return mm_fail(error, MM_TOO_LARGE,
                   "the result of %s is too large as %s; ask for application/octet-stream by Accept", shape,
                   encoder->reply_type);
}

bool mm_operation_copies_part(const struct mm_operation *operation) {
    return operation->job.keeps_c && mm_selection_has_matrix(&operation->call.selection) &&
           !mm_window_is_dense(&operation->part);
}

/* Memory that the request needs besides its body. A size is rounded up if other data follows in its block. */
struct need {
    size_t operand_bytes[MM_OPERANDS_MAX]; /* operands that the host generates or copies from a device */
    size_t scratch_bytes; /* all operands above, followed by the check's data or the shares */
    size_t result_bytes;  /* the result, if the store will own it */
    size_t text_bytes;
    size_t output_bytes; /* the reply's text, followed by the result or a part of it */
};

enum { ALIGNMENT = 64 };

static size_t add(size_t a, size_t b) {
    size_t sum;
    return mm_size_add(a, b, &sum) ? sum : SIZE_MAX;
}

static size_t aligned(size_t bytes) {
    return add(bytes, ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static struct need find_need(const struct mm_operation *operation) {
    const struct mm_job *job = &operation->job;
    const bool is_host = job->work.backend->is_host;
    struct need need = {0};
    need.scratch_bytes = check_bytes(operation) + shares_bytes(operation);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        if (is_host && mm_source_is_off_host(&job->sources[index]))
            need.operand_bytes[index] = aligned(mm_matrix_bytes(mm_product_operand(&job->product, index)));
        need.scratch_bytes += need.operand_bytes[index];
    }
    need.result_bytes = job->keeps_c ? operation->result_bytes : 0;
    const size_t behind_text = !job->keeps_c                         ? operation->result_bytes
                               : mm_operation_copies_part(operation) ? mm_operation_part_bytes(operation)
                                                                     : 0;
    need.text_bytes = behind_text > 0 ? aligned(operation->reply_bytes) : operation->reply_bytes;
    need.output_bytes = add(need.text_bytes, behind_text);
    return need;
}

static size_t sum(const struct need *need) {
    return add(need->scratch_bytes + need->result_bytes, need->output_bytes);
}

static enum mm_status acquire(struct mm_request *request, size_t bytes, struct mm_buffer *buffer,
                              struct mm_error *error) {
    return bytes == 0 ? MM_OK : mm_reservation_acquire(&request->memory, bytes, buffer, error);
}

static void place_matrices(struct mm_operation *operation, const struct need *need) {
    struct mm_job *job = &operation->job;
    struct mm_product *product = &job->product;
    char *scratch = operation->scratch.data;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        if (need->operand_bytes[index] == 0)
            continue; /* without such operands, `scratch` can be NULL */
        mm_product_place_operand(product, index, scratch);
        scratch += need->operand_bytes[index];
    }
    if (check_bytes(operation) > 0)
        job->verify_memory = scratch;
    job->shares = shares_bytes(operation) > 0 ? (struct mm_shares *)(void *)scratch : NULL;
    product->c.data = job->keeps_c ? operation->result.data
                      : need->output_bytes > need->text_bytes
                          ? (char *)operation->output.data + need->text_bytes
                          : NULL;
}

enum mm_status mm_operation_acquire_need(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    if (check_reply(operation, error) != MM_OK)
        return error->status;
    const struct need need = find_need(operation);
    request->memory.is_for_store = need.result_bytes > 0;
    if (mm_reservation_ensure(&request->memory, sum(&need), error) != MM_OK ||
        acquire(request, need.scratch_bytes, &operation->scratch, error) != MM_OK ||
        acquire(request, need.result_bytes, &operation->result, error) != MM_OK ||
        acquire(request, need.output_bytes, &operation->output, error) != MM_OK)
        return error->status;
    place_matrices(operation, &need);
    return MM_OK;
}

enum mm_status mm_operation_check_need(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    const enum mm_status status = check_reply(operation, &request->error);
    const bool is_chunked = request->upload.content_length == MM_LENGTH_UNKNOWN;
    const size_t body_bytes = is_chunked ? 0 : (size_t)request->upload.content_length;
    if (status != MM_OK)
        return status;
    const struct need need = find_need(operation);
    request->upload.need_bytes = sum(&need);
    request->memory.is_for_store = need.result_bytes > 0;
    if (request->upload.need_bytes > request->server->budget.part_bytes[MM_BUDGET_MAIN] - body_bytes)
        return mm_request_fail_memory(request, add(body_bytes, request->upload.need_bytes), &request->error);
    return MM_OK;
}

void mm_operation_release_need(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    mm_reservation_free(&request->memory, &operation->scratch);
    mm_reservation_free(&request->memory, &operation->result);
    mm_reservation_free(&request->memory, &operation->output);
    mm_reservation_free(&request->memory, &operation->reply.buffer);
}

void *mm_operation_copy(const struct mm_operation *operation) {
    return (char *)operation->output.data + find_need(operation).text_bytes;
}
