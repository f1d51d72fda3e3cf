/* Measures one run of a product whose matrices are in device memory. */
#include "gpu/cuda/memory.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/job_memory.h"

static enum mm_status run_once(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error) {
    const enum mm_status status = mm_plan_launch(plan, product, lane, error);
    const cudaError_t waited = cudaStreamSynchronize(lane->stream);
    if (status == MM_OK && waited != cudaSuccess)
        return mm_cuda_status(lane->device, waited, "running a kernel", error);
    return status;
}

static enum mm_status measure_once(const struct mm_plan *plan, const struct mm_product *product,
                                   struct mm_lane *lane, uint64_t *kernel_ns, struct mm_error *error) {
    struct mm_cuda_device *device = lane->device;
    enum mm_status status = MM_OK;
    cudaError_t code = mm_cuda_gate_close(device->gate, lane->stream);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    if (code == cudaSuccess)
        status = mm_plan_launch(plan, product, lane, error);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_COMPUTED);
    mm_cuda_gate_open(device->gate);
    /* Wait even after a failure, because the stream may still use the caller's memory. */
    const cudaError_t waited = cudaStreamSynchronize(lane->stream);
    if (status != MM_OK)
        return status;
    if (code == cudaSuccess)
        code = waited;
    if (code == cudaSuccess)
        code = mm_cuda_span(lane, MM_CUDA_UPLOADED, kernel_ns);
    if (code != cudaSuccess)
        status = mm_cuda_status(device, code, "measuring a kernel", error);
    return status;
}

/* Measures again if the gate timed out, because then the time may include loading a kernel. */
static enum mm_status measure_with_retry(const struct mm_plan *plan, const struct mm_product *product,
                                         struct mm_lane *lane, uint64_t *kernel_ns, struct mm_error *error) {
    const enum mm_status status = measure_once(plan, product, lane, kernel_ns, error);
    if (status != MM_OK || !mm_cuda_gate_timed_out(lane->device->gate))
        return status;
    return measure_once(plan, product, lane, kernel_ns, error);
}

/* Loads the kernels and acquires the workspace. Never changes the plan, even if memory is short. */
static enum mm_status make_ready(const struct mm_plan *plan, const struct mm_product *product,
                                 struct mm_lane *lane, struct mm_error *error) {
    const enum mm_status status = mm_cuda_prepare(plan, product, lane, error);
    if (status != MM_OK || plan->workspace_bytes == 0)
        return status;
    return mm_cuda_workspace(lane, plan->workspace_bytes, &lane->scratch, error);
}

enum mm_status mm_cuda_measure(struct mm_device *head, const struct mm_plan *plan,
                               const struct mm_product *product, uint64_t *kernel_ns,
                               struct mm_error *error) {
    struct mm_lane *lane = &((struct mm_cuda_device *)head)->direct;
    struct mm_cuda_retry retry = {.lane = lane};
    enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK)
        return status;
    do
        status = make_ready(plan, product, lane, error);
    while (status == MM_NO_DEVICE_MEMORY && mm_cuda_prepare_retry(&retry));
    if (status == MM_OK)
        status = kernel_ns == NULL ? run_once(plan, product, lane, error)
                                   : measure_with_retry(plan, product, lane, kernel_ns, error);
    mm_cuda_free_large_workspace(lane);
    return status;
}
