/* Stores the result of an operation under the name `out`. */
#include "server/handlers/matrix.h"
#include "server/handlers/operation.h"
#include "server/http/condition.h"

#include <string.h>

enum mm_status mm_operation_check_out(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    operation->is_conditional = mm_condition_is_given(request);
    operation->is_out_in_query = operation->call.out[0] != '\0';
    if (!operation->is_conditional || !operation->is_out_in_query || request->server->store == NULL)
        return MM_OK;
    return mm_matrix_check_condition(request, operation->call.out, operation->expected_etag);
}

/* Refuses conditions if `out` is only in the body, because conditions are checked before the body arrives. */
static enum mm_status check_place(const struct mm_operation *operation, struct mm_error *error) {
    if (!operation->is_conditional || operation->is_out_in_query)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_REQUEST, "out",
                         "the request has conditions (If-Match, If-None-Match) on the matrix that out names, "
                         "but out is in the body; give it in the query");
}

enum mm_status mm_operation_reserve_out(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_call *call = &operation->call;
    if (call->out[0] == '\0') {
        if (call->ttl_s == 0)
            return MM_OK;
        return mm_fail_field(error, MM_BAD_REQUEST, "ttl_s",
                             "ttl_s is given, but nothing is stored; give out as well, or leave ttl_s out");
    }
    if (request->server->store == NULL)
        return mm_fail_field(
            error, MM_UNSUPPORTED, "out",
            "out is '%s', but this server stores no matrices (--store-memory 0); leave it out", call->out);
    if (check_place(operation, error) != MM_OK)
        return error->status;
    operation->slot =
        (struct mm_store_slot){.space = request->space, .bytes = mm_matrix_bytes(&operation->job.product.c)};
    return mm_store_reserve(request->server->store, &operation->slot, call->out, mm_clock_ns(), error);
}

enum mm_status mm_operation_store_out(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_call *call = &operation->call;
    struct mm_job *job = &operation->job;
    struct mm_buffer none = {0};
    const struct mm_store_content content = {.shape = mm_operands_result(&call->operands),
                                             .dtype = job->product.c.dtype,
                                             .data = job->stores_c ? NULL : operation->result.data,
                                             .memory = job->stores_c ? &none : &operation->result,
                                             .reservation = &request->memory,
                                             .only_copy = job->stored_c,
                                             .ttl_ns = call->ttl_s * UINT64_C(1000000000),
                                             .expected =
                                                 operation->is_conditional ? operation->expected_etag : NULL};
    struct mm_stored *value = NULL;
    bool is_new;
    if (call->out[0] == '\0')
        return MM_OK;
    enum mm_status status = mm_device_copy_check(job->stored_c, error);
    if (status == MM_OK)
        status = mm_store_put(request->server->store, &operation->slot, call->out, &content, mm_clock_ns(),
                              &value, &is_new, error);
    if (status == MM_OK)
        job->stored_c = NULL;
    __atomic_store_n(&request->value, value, __ATOMIC_RELEASE);
    return status;
}
