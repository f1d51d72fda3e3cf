/* Enqueues the panels of a share: for each panel a copy on the stream for uploads, and kernels on the lane's
 * stream. Jobs of several lanes can do this at one time. They use one event, which is recorded again for each
 * panel, because a wait is for the latest record before the wait. */
#include "gpu/cuda/panels.h"

#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/stream.h"
#include "gpu/queue/job.h"
#include "gpu/store/stored.h"

#include <assert.h>

/* The panels end at these eighths of the columns. The first kernel waits only for a narrow panel. If kernels
 * take at least three times as long as the copying, none of the other kernels waits. */
static const unsigned ends[] = {8 / MM_FIRST_PANEL, 4, 8};
enum { PANELS = sizeof ends / sizeof ends[0] };

/* The last panel has the tail. A panel may be empty. */
static size_t end_of(const struct mm_job *job, unsigned panel) {
    const struct mm_cuts *cuts = &job->plan.cuts;
    const size_t units = mm_size_divide_up(job->product.n, cuts->cols);
    const size_t most = units - mm_size_min(units, cuts->tail_cols > 0 ? cuts->tail_cols : 1);
    return panel + 1 == PANELS ? job->product.n : mm_size_min(units * ends[panel] / 8, most) * cuts->cols;
}

/* Enqueues the copying of a panel of B, and makes the lane's stream wait. */
static cudaError_t copy_panel(const struct mm_matrix *to, const struct mm_lane *lane,
                              const struct mm_lane *upload) {
    const struct mm_stored *value = lane->bands.job->sources[MM_OPERAND_B].stored;
    const struct mm_device_copy *copy = mm_stored_find_copy(value, &lane->device->head);
    const cudaEvent_t copied = lane->device->copier.b[0].ready; /* no job runs in tiles now */
    struct mm_matrix from = *to;
    from.data = (char *)value->only_copy->data + ((char *)to->data - (char *)copy->data);
    cudaError_t code = mm_cuda_copy_stored_part(value, to, &from, upload);
    if (code == cudaSuccess)
        code = cudaEventRecord(copied, upload->stream);
    return code == cudaSuccess ? cudaStreamWaitEvent(lane->stream, copied, 0) : code;
}

/* Places the data that launches derive from A and from the panel of B at the end of the workspace, if the
 * launch then has enough workspace. A's data stays for the next panel. */
static void place_derived(const struct mm_plan *plan, const struct mm_lane *lane) {
    struct mm_cuda_slot *a = lane->bands.panels[0], *b = lane->bands.panels[1];
    const size_t end = lane->bands.job->plan.workspace_bytes / 256 * 256; /* so all addresses are aligned */
    const size_t a_bytes = mm_cuda_aligned(plan->kept.bytes[0]),
                 b_bytes = mm_cuda_aligned(plan->kept.bytes[1]);
    *b = (struct mm_cuda_slot){.panel = 0};
    if (mm_tiling_workspace(plan) + a_bytes + b_bytes > end) {
        *a = *b;
        return;
    }
    a->kept = (char *)lane->scratch + end - a_bytes;
    a->kept_bytes = plan->kept.bytes[0];
    b->kept = (char *)a->kept - b_bytes;
    b->kept_bytes = plan->kept.bytes[1];
}

/* Enqueues the panel of C with the columns from `col` to before `end`. */
static enum mm_status launch_panel(struct mm_lane *lane, const struct mm_lane *upload, size_t col, size_t end,
                                   struct mm_error *error) {
    const struct mm_product *product = &lane->bands.product;
    const struct mm_plan *whole = &lane->bands.job->plan;
    struct mm_product panel = mm_product_part(product, MM_MATMUL, 0, product->m, col, end - col);
    struct mm_plan plan;
    const uint64_t peer_bytes = lane->device->head.peer_bytes; /* only this thread changes it */
    panel.whole.col += col;
    enum mm_status status = mm_plan_make(whole->device, whole->variant, &panel, &plan, error);
    if (status == MM_OK)
        status = mm_cuda_prepare(&plan, &panel, lane, error);
    if (status != MM_OK)
        return status;
    cudaError_t code = copy_panel(&panel.b, lane, upload);
    if (code == cudaSuccess && col == 0) {
        lane->bands.job->outcome.peer_bytes += lane->device->head.peer_bytes - peer_bytes;
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    }
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "copying a panel to the device", error);
    assert(plan.workspace_bytes <= whole->workspace_bytes);
    place_derived(&plan, lane);
    return mm_plan_launch(&plan, &panel, lane, error);
}

enum mm_status mm_cuda_launch_panels(struct mm_lane *lane, struct mm_error *error) {
    const struct mm_lane upload = {.device = lane->device, .stream = lane->device->copier.upload};
    struct mm_job *job = lane->bands.job;
    struct mm_cuda_slot a = {.panel = 0}, b = a;
    size_t col = 0;
    enum mm_status status =
        mm_cuda_status(lane->device, cudaStreamWaitEvent(upload.stream, lane->marks[MM_CUDA_UPLOADED], 0),
                       "copying a panel to the device", error);
    lane->bands.panels[0] = &a;
    lane->bands.panels[1] = &b;
    for (unsigned panel = 0; panel < PANELS && status == MM_OK; panel++) {
        const size_t end = end_of(job, panel);
        if (end > col)
            status = launch_panel(lane, &upload, col, end, error);
        col = end;
    }
    lane->bands.panels[0] = lane->bands.panels[1] = NULL;
    return status == MM_OK ? mm_cuda_status(lane->device, mm_cuda_note_copied(lane),
                                            "copying a panel to the device", error)
                           : status;
}
