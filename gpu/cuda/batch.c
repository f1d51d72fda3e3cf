/* Small products that go together, and small transpositions: which may, and how they are enqueued as one
 * launch. Their matrices lie in the host's locked pages, where the kernel writes C itself, and reads what is
 * little or is read but once; other operands are gathered first. It chooses no variant. */
#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"

#include <assert.h>

/* The most bytes of a job that may go with others: larger ones keep the bus busy by themselves. On an H200
 * with 32 connections (2026-11-22, tests/load/steady) so many products a second were answered:
 *
 *     together       64×64    96×96  128×128  160×160  181×181  256×256
 *     none          41,000   32,000   38,000   32,000   31,000   22,000
 *     to 256 KiB   161,000  121,000   85,000   32,000   30,000   20,000
 *     to 1 MiB     166,000  121,000   83,000   56,000   43,000   23,000
 *
 * and one connection alone was answered at the same rate with all three. */
enum { BYTES_MAX = 1 << 20 };

static bool is_dense(const struct mm_matrix *matrix) {
    return matrix->ld == matrix->cols || matrix->rows == 1;
}

/* A key has four bits for each edge, and a batch's grid is not cut into bands. */
enum { BLOCKS_MAX = 1 << 15 };

static size_t blocks_along(size_t length, unsigned block) {
    return (length + block - 1) / block;
}

/* How often the blocks along an edge can be halved before one is left: at most 15 times. */
static uint64_t halvings(size_t blocks) {
    uint64_t count = 0;
    while (blocks >> count > 1)
        count++;
    return count;
}

/* Kernels of products take elements of float32, those of transpositions any of their size. */
static bool are_elements_taken(const struct mm_variant *ran, const struct mm_product *product) {
    return ran->op == MM_TRANSPOSE || product->a.dtype == MM_FLOAT32;
}

/* Of one kernel (an address has 48 bits) with one tile, and of about as many blocks along either edge: a
 * launch has for each job as many as for the largest, of which then at most three of four are idle. A variant
 * without a kernel for batches has no key, nor have transpositions that are plain copies, nor who wants a
 * check, which reads matrices in the device's own memory. */
uint64_t mm_cuda_batch_key(struct mm_device *head, const struct mm_variant *ran, const struct mm_job *job) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    const struct mm_product *product = &job->product;
    struct mm_cuda_layout layout;
    struct mm_error ignored;
    if (job->verify || !job->is_locked || !device->reads_locked_pages || job->queued_bytes > BYTES_MAX ||
        !are_elements_taken(ran, product) || product->m == 0 || product->n == 0 || !is_dense(&product->a) ||
        !is_dense(&product->b) || !is_dense(&product->c) || !mm_variant_takes(ran, product))
        return 0;
    if (mm_cuda_describe(ran, product, device, &layout, &ignored) != MM_OK || layout.batch_kernel == NULL)
        return 0;
    const size_t rows = blocks_along(product->m, layout.block_rows);
    const size_t cols = blocks_along(product->n, layout.block_cols);
    if (rows > BLOCKS_MAX || cols > BLOCKS_MAX)
        return 0;
    return ((uint64_t)(uintptr_t)layout.batch_kernel & UINT64_C(0xffffffffffff)) |
           (uint64_t)product->tile << 48 | halvings(cols) << 56 | halvings(rows) << 60;
}

/* Whether the operands are read where they lie: each element once, or by one block in a few steps. Others
 * would be read again and again, or be waited for in step after step. On an H200 with 32 connections 1×1 came
 * to 207,000 a second so, and to 176,000 where all were gathered; of limits from 4 to 64 KiB none was better
 * than another. Transpositions (float32, 32 connections, 2026-11-22, tests/load/wrk/transpose.lua), so
 * many a second:
 *
 *                32×32    64×64  128×128  256×256  360×360
 *     alone     39,000   42,000   36,000   26,000   16,000
 *     gathered 201,000  156,000  100,000   30,000   14,000
 *     in place 206,000  189,000  100,000   26,000   15,000 */
static bool is_read_in_place(const struct mm_cuda_layout *layout, const struct mm_product *product) {
    enum { IN_PLACE_BYTES_MAX = 4 << 10 };
    return layout->reads_once ||
           (product->m <= layout->block_rows && product->n <= layout->block_cols &&
            mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b) <= IN_PLACE_BYTES_MAX);
}

/* Products of one batch may have parts of different depths. What the batch has a key for can be described. */
static unsigned part_depth_of(const struct mm_job *job, struct mm_lane *lane) {
    struct mm_cuda_layout layout;
    struct mm_error ignored;
    const bool is_described =
        mm_cuda_describe(job->ran, &job->product, lane->device, &layout, &ignored) == MM_OK;
    return is_described && layout.part_depth > 0 ? layout.part_depth : (unsigned)job->product.k;
}

static struct mm_cuda_item item_of(const struct mm_product *product) {
    return (struct mm_cuda_item){.a = product->a.data,
                                 .b = product->b.data,
                                 .c = product->c.data,
                                 .m = (unsigned)product->m,
                                 .n = (unsigned)product->n,
                                 .k = (unsigned)product->k};
}

/* What the jobs' operands take of the device's memory. */
static size_t gathered_bytes(const struct mm_cuda_layout *layout, struct mm_job *const *jobs,
                             unsigned count) {
    size_t bytes = 0;
    for (unsigned index = 0; index < count; index++)
        if (!is_read_in_place(layout, &jobs[index]->product))
            bytes += mm_cuda_room(&jobs[index]->product.a) + mm_cuda_room(&jobs[index]->product.b);
    return bytes;
}

/* Has the operand copied to `*at`, and steps past it. Without depth there is nothing to copy, or to read. */
static const void *gather(struct mm_cuda_copies *copies, const struct mm_matrix *operand, char **at) {
    const unsigned words = (unsigned)(mm_matrix_bytes(operand) / sizeof(unsigned));
    void *to = *at;
    if (words == 0)
        return NULL;
    *at += mm_cuda_room(operand);
    copies->copies[copies->count].from = operand->data;
    copies->copies[copies->count].to = to;
    copies->copies[copies->count].words = words;
    copies->count++;
    copies->words_max = words > copies->words_max ? words : copies->words_max;
    return to;
}

static double work_of(struct mm_job *const *jobs, unsigned count) {
    double work = 0.0;
    for (unsigned index = 0; index < count; index++)
        work += mm_job_work(jobs[index]);
    return work;
}

/* The jobs' items, and the copies that must come before them. */
static void describe_jobs(const struct mm_cuda_layout *layout, struct mm_lane *lane,
                          struct mm_job *const *jobs, unsigned count, char *workspace,
                          struct mm_cuda_items *items, struct mm_cuda_copies *copies) {
    const double work = work_of(jobs, count);
    copies->count = 0;
    copies->words_max = 0;
    for (unsigned index = 0; index < count; index++) {
        struct mm_job *job = jobs[index];
        struct mm_cuda_item *item = &items->items[index];
        *item = item_of(&job->product);
        item->part_depth = part_depth_of(job, lane);
        job->batched = count;
        job->launch_work = work;
        if (is_read_in_place(layout, &job->product))
            continue;
        item->a = gather(copies, &job->product.a, &workspace);
        item->b = gather(copies, &job->product.b, &workspace);
        job->uploaded_bytes = mm_matrix_bytes(&job->product.a) + mm_matrix_bytes(&job->product.b);
    }
}

static enum mm_status enqueue(struct mm_lane *lane, const struct mm_cuda_layout *layout,
                              struct mm_job *const *jobs, unsigned count, struct mm_error *error) {
    struct mm_cuda_items items;
    struct mm_cuda_copies copies;
    const unsigned tile = jobs[0]->product.tile != 0 ? jobs[0]->product.tile : jobs[0]->ran->tile;
    const size_t bytes = gathered_bytes(layout, jobs, count);
    void *workspace = NULL;
    enum mm_status status = bytes == 0 ? MM_OK : mm_cuda_workspace(lane, bytes, &workspace, error);
    if (status != MM_OK)
        return status;
    describe_jobs(layout, lane, jobs, count, workspace, &items, &copies);
    cudaError_t code = cudaSuccess;
    lane->first = copies.count > 0 ? MM_CUDA_BEGUN : MM_CUDA_UPLOADED;
    if (copies.count > 0)
        code = mm_cuda_mark(lane, MM_CUDA_BEGUN);
    if (copies.count > 0 && code == cudaSuccess)
        code = mm_cuda_gather(&copies, lane->stream);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "gathering a batch's operands", error);
    status = mm_cuda_launch_batch(layout, &items, count, tile, lane, error);
    if (status != MM_OK)
        return status;
    code = mm_cuda_mark(lane, MM_CUDA_COMPUTED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "beginning a batch", error);
    lane->last = MM_CUDA_COMPUTED;
    return MM_OK;
}

void mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count) {
    struct mm_cuda_layout layout;
    struct mm_error error;
    assert(count <= MM_BATCH_MAX);
    enum mm_status status = mm_cuda_describe(jobs[0]->ran, &jobs[0]->product, lane->device, &layout, &error);
    if (status == MM_OK)
        status = mm_cuda_rehearse_batch(&layout, lane, &error);
    if (status == MM_OK)
        status = enqueue(lane, &layout, jobs, count, &error);
    if (status == MM_OK)
        return;
    cudaStreamSynchronize(lane->stream); /* nothing touches the callers' matrices any more */
    for (unsigned index = 0; index < count; index++) {
        jobs[index]->error = error;
        jobs[index]->uploaded_bytes = 0;
    }
}
