/* Enqueues the tiles of a product on three streams. Uploads run ahead as far as there are free slots. */
#include "gpu/cuda/tiles.h"

#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/stream.h"
#include "gpu/store/store.h"

#include <assert.h>

static struct mm_cuda_copier *copier_of(const struct mm_lane *lane) {
    return &lane->device->copier;
}

/* Returns the bytes that the check of a tile needs. Tiles at the edges of C can need more than the others. */
static size_t check_bytes(const struct mm_job *job, const struct mm_tiling *tiling) {
    size_t most = 0;
    for (unsigned corner = 0; corner < 4 && job->verify; corner++) {
        const struct mm_tiling_step tile = mm_tiling_corner(tiling, corner);
        const struct mm_product part = mm_tiling_part(tiling, &job->product, &tile);
        most = mm_size_max(most, mm_cuda_aligned(mm_cuda_verify_bytes(&part)));
    }
    return most;
}

static size_t figures_bytes(const struct mm_job *job) {
    return job->reduces ? mm_cuda_aligned(mm_cuda_reduce_bytes()) : 0;
}

static size_t workspace_bytes(const struct mm_job *job, const struct mm_tiling *tiling) {
    return mm_tiling_bytes(tiling) + check_bytes(job, tiling) + figures_bytes(job);
}

size_t mm_cuda_tiles_bytes(const struct mm_job *job, const struct mm_tiling *tiling) {
    return workspace_bytes(job, tiling) + (job->stores_c ? mm_matrix_dense_bytes(&job->product.c) : 0);
}

static bool is_stored_on(const struct mm_source *source, const struct mm_device *device) {
    return source->kind == MM_SOURCE_STORED &&
           mm_stored_find_part(source->stored, (struct mm_stored_range){0, source->stored->bytes}, device) !=
               NULL;
}

/* Returns a tiling that says where the matrices are. Kernels of tiles need panels without gaps between rows,
 * as slots have them. */
static struct mm_tiling tiling_of(const struct mm_job *job, const struct mm_device *device) {
    const struct mm_product *product = &job->product;
    struct mm_tiling tiling = {.downloads = product->c.data != NULL};
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        tiling.uploads |= (unsigned)!mm_source_is_off_host(&job->sources[index]) << index;
    if (!product->transpose_a && is_stored_on(&job->sources[MM_OPERAND_A], device))
        tiling.in_place |= 1U << MM_OPERAND_A;
    if (product->transpose_b && is_stored_on(&job->sources[MM_OPERAND_B], device))
        tiling.in_place |= 1U << MM_OPERAND_B;
    return tiling;
}

/* First tries tiles that need all bytes. As long as other memory does not fit beside them, tries smaller
 * tiles. These can need more other memory, but `beside` grows each time, so the loop ends. */
bool mm_cuda_find_tiles(const struct mm_job *job, const struct mm_plan *plan, size_t bytes,
                        struct mm_tiling *tiling) {
    const struct mm_product product = mm_product_dense(&job->product);
    size_t beside = 0, needed;
    if (plan->variant->op != MM_MATMUL || product.stack != NULL || job->work.batch_key != 0 ||
        !mm_job_part_is_of_c(job))
        return false;
    do {
        *tiling = tiling_of(job, plan->device);
        if (beside >= bytes || !mm_tiling_make(plan, &product, bytes - beside, tiling))
            return false;
        needed = mm_cuda_tiles_bytes(job, tiling);
        beside = needed - mm_tiling_bytes(tiling);
    } while (needed > bytes);
    return true;
}

/* --- one tile ------------------------------------------------------------------------------------ */

/* A tile while it is enqueued. */
struct work {
    struct mm_lane *lane;
    struct mm_lane upload; /* its stream is the copier's; mm_cuda_copy_matrix takes a lane */
    struct mm_lane download;
    struct mm_tiling_step tile;
    struct mm_cuda_slot *a;
    struct mm_cuda_slot *b;
    struct mm_cuda_slot *c;
    struct mm_product from; /* the matrices outside of the slots; generated operands have no data */
    struct mm_product on_device;
};

/* Sets the addresses of the tile's matrices in the slots. The slots lie one after another: A, B, C. */
static void place(struct work *work, size_t index) {
    const struct mm_tiling *tiling = &work->lane->bands.tiling;
    struct mm_product *product = &work->on_device;
    char *a = work->lane->workspace;
    char *b = a + tiling->a_slots * tiling->a_bytes;
    char *c = b + tiling->b_slots * tiling->b_bytes + index % MM_TILING_C_SLOTS * tiling->c_bytes;
    a += work->tile.a_slot * tiling->a_bytes;
    b += work->tile.b_slot * tiling->b_bytes;
    product->a.data = tiling->in_place >> MM_OPERAND_A & 1 ? work->from.a.data : a;
    product->b.data = tiling->in_place >> MM_OPERAND_B & 1 ? work->from.b.data : b;
    work->a->kept = a + tiling->a_bytes - tiling->a_kept_bytes;
    work->a->kept_bytes = tiling->a_kept_bytes;
    work->b->kept = b + tiling->b_bytes - tiling->b_kept_bytes;
    work->b->kept_bytes = tiling->b_kept_bytes;
    product->c.data = c;
    product->addend.data = c += mm_cuda_aligned(mm_matrix_bytes(&product->c));
    product->bias.data = c + mm_cuda_aligned(mm_matrix_bytes(&product->addend));
}

static struct work work_of(struct mm_lane *lane, size_t index) {
    struct mm_cuda_copier *copier = copier_of(lane);
    const struct mm_tiling *tiling = &lane->bands.tiling;
    struct work work = {.lane = lane,
                        .upload = {.device = lane->device, .stream = copier->upload},
                        .download = {.device = lane->device, .stream = copier->download},
                        .tile = mm_tiling_tile(tiling, index)};
    work.a = &copier->a[work.tile.a_slot];
    work.b = &copier->b[work.tile.b_slot];
    work.c = &copier->c[index % MM_TILING_C_SLOTS];
    work.from = mm_tiling_part(tiling, &lane->bands.product, &work.tile);
    work.on_device = mm_product_dense(&work.from);
    place(&work, index);
    return work;
}

/* Enqueues the copying or the generation of the tile's part of an operand. */
static cudaError_t fill(struct work *work, enum mm_operand_index index) {
    const struct mm_tiling *tiling = &work->lane->bands.tiling;
    struct mm_job *job = work->lane->bands.job;
    const struct mm_source *source = &job->sources[index];
    const struct mm_matrix *to = mm_product_operand(&work->on_device, index);
    const struct mm_matrix *from = mm_product_operand(&work->from, index);
    if (mm_source_is_generated(source)) {
        struct mm_source block = *source;
        block.first += mm_product_part_first(&job->product, index, work->tile.a * tiling->rows,
                                             work->tile.b * tiling->cols);
        block.gap = from->ld - from->cols;
        return mm_cuda_generate_operand(&block, to, &work->upload);
    }
    if (source->kind == MM_SOURCE_STORED && source->stored->only_copy != NULL)
        return mm_cuda_copy_stored_part(source->stored, to, from, &work->upload);
    job->outcome.uploaded_bytes += mm_matrix_bytes(to);
    return mm_cuda_copy_matrix(to, from, cudaMemcpyHostToDevice, &work->upload);
}

/* Fills a slot after the slot's last use. */
static cudaError_t upload(struct work *work, struct mm_cuda_slot *slot, enum mm_operand_index index) {
    cudaError_t code = cudaStreamWaitEvent(work->upload.stream, slot->used, 0);
    if (code == cudaSuccess)
        code = fill(work, index);
    return code == cudaSuccess ? cudaEventRecord(slot->ready, work->upload.stream) : code;
}

/* Fills the slot of a panel unless the slot has the panel. Makes the kernels wait for the panel. */
static cudaError_t upload_panel(struct work *work, struct mm_cuda_slot *slot, size_t panel,
                                enum mm_operand_index index) {
    cudaError_t code = cudaSuccess;
    if (slot->panel != panel + 1) {
        slot->panel = panel + 1;
        slot->is_kept = false;
        if ((work->lane->bands.tiling.in_place >> index & 1) == 0)
            code = upload(work, slot, index);
    }
    return code == cudaSuccess ? cudaStreamWaitEvent(work->lane->stream, slot->ready, 0) : code;
}

static cudaError_t upload_operands(struct work *work) {
    const struct mm_product *to = &work->on_device;
    cudaError_t code = upload_panel(work, work->a, work->tile.a, MM_OPERAND_A);
    if (code == cudaSuccess)
        code = upload_panel(work, work->b, work->tile.b, MM_OPERAND_B);
    if (code == cudaSuccess && to->addend.rows > 0)
        code = upload(work, work->c, MM_OPERAND_ADDEND);
    if (code == cudaSuccess && to->bias.rows > 0)
        code = upload(work, work->c, MM_OPERAND_BIAS);
    if (code == cudaSuccess && to->addend.rows + to->bias.rows > 0)
        code = cudaStreamWaitEvent(work->lane->stream, work->c->ready, 0);
    return code == cudaSuccess ? cudaStreamWaitEvent(work->lane->stream, work->c->used, 0) : code;
}

static enum mm_status compute(struct work *work, struct mm_error *error) {
    const struct mm_plan *whole = &work->lane->bands.job->plan;
    struct mm_plan plan;
    enum mm_status status = mm_plan_make(whole->device, whole->variant, &work->on_device, &plan, error);
    if (status == MM_OK)
        status = mm_cuda_prepare(&plan, &work->on_device, work->lane, error);
    assert(status != MM_OK || mm_tiling_workspace(&plan) <= work->lane->bands.tiling.workspace_bytes);
    work->lane->bands.panels[0] = work->a;
    work->lane->bands.panels[1] = work->b;
    return status == MM_OK ? mm_plan_launch(&plan, &work->on_device, work->lane, error) : status;
}

/* Sets *here to what the wanted part has of the tile, and *first to the place of this in a copy of the part.
 * Returns false if that is nothing. */
static bool find_wanted(const struct work *work, struct mm_window *here, size_t *first) {
    const struct mm_tiling *tiling = &work->lane->bands.tiling;
    const struct mm_product *tile = &work->on_device;
    *here = mm_window_of_block(work->lane->bands.job->part, work->tile.a * tiling->rows, tile->m,
                               work->tile.b * tiling->cols, tile->n, first);
    return mm_window_elements(here) > 0;
}

/* Enqueues the copying of the tile of C to the matrix that stays on the device. */
static cudaError_t store(struct work *work) {
    const struct mm_job *job = work->lane->bands.job;
    struct mm_product product = job->product;
    product.c = mm_matrix_dense(product.c.dtype, product.m, product.n, job->stored_c->data);
    const struct mm_matrix to = mm_tiling_part(&work->lane->bands.tiling, &product, &work->tile).c;
    return mm_cuda_copy_matrix(&to, &work->on_device.c, cudaMemcpyDeviceToDevice, &work->download);
}

/* Enqueues the copying of the tile of C, or of what the wanted part has of the tile. */
static cudaError_t download(struct work *work) {
    const struct mm_job *job = work->lane->bands.job;
    struct mm_matrix to = work->from.c, from = work->on_device.c;
    struct mm_window here;
    size_t first;
    if (to.data == NULL)
        return cudaSuccess;
    if (job->part != NULL) {
        if (!find_wanted(work, &here, &first))
            return cudaSuccess;
        from = mm_window_item(&here, from.dtype, from.data, 0);
        to = mm_matrix_dense(to.dtype, here.rows, here.cols,
                             (char *)job->product.c.data + first * mm_dtype_bytes(to.dtype));
        to.ld = here.to_ld;
    }
    return mm_cuda_copy_matrix(&to, &from, cudaMemcpyDeviceToHost, &work->download);
}

/* Enqueues the copying of the tile from its slot, after the kernel. */
static cudaError_t enqueue_download(struct work *work, size_t index) {
    const cudaEvent_t computed = copier_of(work->lane)->computed[index % MM_CUDA_TILES_AHEAD];
    cudaError_t code = cudaEventRecord(computed, work->lane->stream);
    if (code == cudaSuccess)
        code = cudaStreamWaitEvent(work->download.stream, computed, 0);
    if (code == cudaSuccess && work->lane->bands.job->stores_c)
        code = store(work);
    return code == cudaSuccess ? download(work) : code;
}

/* Enqueues the reduction of what the wanted part has of the tile. */
static enum mm_status reduce(struct work *work, struct mm_error *error) {
    struct mm_window here;
    size_t first;
    if (!find_wanted(work, &here, &first))
        return MM_OK;
    return mm_cuda_reduce(&work->on_device.c, &here, work->lane->bands.figures, work->lane, error);
}

/* Enqueues the check of the tile. The first tile of each row of tiles counts the rows. */
static enum mm_status check(struct work *work, size_t index, struct mm_error *error) {
    struct mm_lane *lane = work->lane;
    const struct mm_cuda_bands *bands = &lane->bands;
    const struct mm_cuda_check_part part = {.row = work->tile.a * bands->tiling.rows,
                                            .is_first = index == 0,
                                            .is_counted_before = work->tile.b > 0};
    const enum mm_status status =
        mm_cuda_verify_tile(&work->on_device, mm_variant_arithmetic(bands->job->plan.variant, false), part,
                            bands->seed, bands->check, lane, error);
    if (status != MM_OK)
        return status;
    const cudaEvent_t checked = copier_of(lane)->checked[index % MM_CUDA_TILES_AHEAD];
    return mm_cuda_status(lane->device, cudaEventRecord(checked, lane->stream), "checking a tile", error);
}

/* Allows other tiles to use the slots after all that was enqueued so far. The check reads the addend, so the
 * slot of C is free after the check and the download. */
static cudaError_t release_slots(struct work *work) {
    cudaError_t code = cudaEventRecord(work->a->used, work->lane->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(work->b->used, work->lane->stream);
    if (code == cudaSuccess)
        code = cudaStreamWaitEvent(work->download.stream, work->b->used, 0);
    return code == cudaSuccess ? cudaEventRecord(work->c->used, work->download.stream) : code;
}

/* Adds the time of a tile's check. The check has ended. */
static cudaError_t add_check_time(struct mm_lane *lane, size_t index) {
    const struct mm_cuda_copier *copier = copier_of(lane);
    float ms = 0.0f;
    const unsigned at = index % MM_CUDA_TILES_AHEAD;
    const cudaError_t code = cudaEventElapsedTime(&ms, copier->computed[at], copier->checked[at]);
    lane->bands.check_ns += (uint64_t)((double)ms * 1e6);
    return code;
}

/* Marks the end of the job's kernels, and of its downloads. */
static cudaError_t finish(struct mm_lane *lane) {
    const struct mm_cuda_copier *copier = copier_of(lane);
    cudaError_t code = mm_cuda_mark(lane, MM_CUDA_COMPUTED);
    for (unsigned index = 0; index < MM_TILING_C_SLOTS && code == cudaSuccess; index++)
        code = cudaStreamWaitEvent(lane->stream, copier->c[index].used, 0);
    lane->bands.job->progress.item = lane->bands.job->progress.checked = 1;
    return code == cudaSuccess ? mm_cuda_mark(lane, MM_CUDA_DOWNLOADED) : code;
}

enum mm_status mm_cuda_enqueue_tile(struct mm_lane *lane, struct mm_error *error) {
    struct mm_cuda_bands *bands = &lane->bands;
    const size_t index = bands->tile;
    const bool verifies = bands->job->verify;
    struct work work = work_of(lane, index);
    cudaError_t code = cudaSuccess;
    if (verifies && index >= MM_CUDA_TILES_AHEAD)
        code = add_check_time(lane, index - MM_CUDA_TILES_AHEAD);
    if (code == cudaSuccess)
        code = upload_operands(&work);
    if (code == cudaSuccess && index == 0)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "copying panels to the device", error);
    enum mm_status status = compute(&work, error);
    if (status == MM_OK && bands->job->reduces)
        status = reduce(&work, error);
    if (status != MM_OK)
        return status;
    code = enqueue_download(&work, index);
    if (code == cudaSuccess && verifies)
        status = check(&work, index, error);
    if (status != MM_OK)
        return status;
    if (code == cudaSuccess)
        code = release_slots(&work);
    if (code == cudaSuccess && ++bands->tile == mm_tiling_count(&bands->tiling))
        code = finish(lane);
    return mm_cuda_status(lane->device, code, "copying a tile from the device", error);
}

cudaEvent_t mm_cuda_tile_awaited(const struct mm_lane *lane) {
    const struct mm_cuda_copier *copier = copier_of(lane);
    const cudaEvent_t *events = lane->bands.job->verify ? copier->checked : copier->computed;
    return events[lane->bands.tile % MM_CUDA_TILES_AHEAD];
}

cudaError_t mm_cuda_read_check_time(struct mm_lane *lane, uint64_t *took_ns) {
    const size_t count = lane->bands.tile;
    cudaError_t code = cudaSuccess;
    for (size_t index = count - mm_size_min(count, MM_CUDA_TILES_AHEAD); index < count && code == cudaSuccess;
         index++)
        code = add_check_time(lane, index);
    *took_ns = lane->bands.check_ns;
    return code;
}

/* --- the job ------------------------------------------------------------------------------------- */

/* Sets lane->bands.product to the job's product, with stored operands at their addresses. MM_DEVICE_FAILED if
 * an operand was only on a device that has failed. */
static enum mm_status find_operands(struct mm_lane *lane, struct mm_error *error) {
    const struct mm_job *job = lane->bands.job;
    struct mm_product *product = &lane->bands.product;
    *product = job->product;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_source *source = &job->sources[index];
        if (source->kind != MM_SOURCE_STORED)
            continue;
        const struct mm_device_copy *copy = source->stored->only_copy;
        if (mm_device_copy_check(copy, error) != MM_OK)
            return error->status;
        mm_job_place_operand(job, product, index, copy != NULL ? copy->data : source->stored->data);
    }
    return MM_OK;
}

enum mm_status mm_cuda_begin_tiles(struct mm_lane *lane, struct mm_error *error) {
    struct mm_cuda_copier *copier = copier_of(lane);
    const struct mm_tiling *tiling = &lane->bands.tiling;
    struct mm_job *job = lane->bands.job;
    void *workspace;
    enum mm_status status = find_operands(lane, error);
    if (status == MM_OK)
        status = mm_cuda_workspace(lane, workspace_bytes(job, tiling), &workspace, error);
    if (status == MM_OK && job->stores_c)
        status = mm_cuda_acquire_copy_on(mm_matrix_dense_bytes(&job->product.c), lane, &job->stored_c, error);
    if (status != MM_OK)
        return status;
    lane->bands.check = (char *)workspace + mm_tiling_bytes(tiling) - tiling->workspace_bytes;
    lane->bands.figures = (char *)lane->bands.check + check_bytes(job, tiling);
    lane->scratch = (char *)lane->bands.figures + figures_bytes(job);
    *lane->reduction = mm_reduction_none();
    for (unsigned slot = 0; slot < MM_TILING_SLOTS_MAX; slot++)
        copier->a[slot].panel = copier->b[slot].panel = 0;
    cudaError_t code = mm_cuda_mark(lane, MM_CUDA_BEGUN);
    if (code == cudaSuccess) /* the lane's stream has the allocation */
        code = cudaStreamWaitEvent(copier->upload, lane->marks[MM_CUDA_BEGUN], 0);
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "beginning a job", error);
    job->outcome.downloaded_bytes = mm_job_returned_bytes(job);
    job->outcome.tiles = mm_tiling_count(tiling);
    while (status == MM_OK && mm_job_computes(job) && lane->bands.tile < MM_CUDA_TILES_AHEAD)
        status = mm_cuda_enqueue_tile(lane, error);
    return status;
}
