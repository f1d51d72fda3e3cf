/* Decides which small products and transpositions may share a launch, and enqueues the launch. The kernel
 * writes C directly to locked host pages, and reads small operands from locked host pages. Larger operands in
 * host memory are first copied to the device. */
#include "gpu/cuda/batch.h"
#include "gpu/cuda/job_memory.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/finish.h"

#include <assert.h>

static bool is_dense(const struct mm_matrix *matrix) {
    return matrix->ld == matrix->cols || matrix->rows == 1;
}

/* Whether a shared launch can use this addend or bias. The kernel needs an aligned address, but the operand
 * can begin at any address in a request's body. A generated operand must have A's type, because one kernel
 * generates all operands. */
static bool is_readable(const struct mm_job *job, enum mm_operand_index index) {
    const struct mm_matrix *matrix = mm_product_operand(&job->product, index);
    return is_dense(matrix) && (uintptr_t)matrix->data % mm_dtype_bytes(matrix->dtype) == 0 &&
           (!mm_source_is_generated(&job->sources[index]) || matrix->dtype == job->product.a.dtype);
}

/* The most blocks along an edge of C, because a batch key has only four bits for its logarithm. */
enum { BLOCKS_MAX = 1 << 15 };

/* Returns the binary logarithm of `blocks`, rounded down. */
static uint64_t halvings(size_t blocks) {
    uint64_t count = 0;
    while (blocks >> count > 1)
        count++;
    return count;
}

/* Jobs with equal keys use one kernel and one tile. Along each edge of C, their numbers of blocks differ by
 * less than a factor of two. So, if a small job gets the grid of a large job, at most three quarters of the
 * small job's blocks are idle. Bits 0 to 47 of the key are from the kernel's address. Returns 0 if the job
 * cannot share a launch. A job that must copy a stored operand runs alone. */
uint64_t mm_cuda_batch_key(const struct mm_job *job) {
    const struct mm_cuda_device *device = (const struct mm_cuda_device *)job->plan.device;
    const struct mm_layout *layout = &job->plan.layout;
    const struct mm_product *product = &job->product;
    if (layout->batch_kernel == NULL || product->stack != NULL || product->whole.m > 0 || job->verify ||
        job->part != NULL || (job->stores_c && product->c.data != NULL) || !job->is_locked ||
        !device->reads_locked_pages || job->work.bytes > MM_CUDA_BATCH_BYTES_MAX || !is_dense(&product->a) ||
        !is_dense(&product->b) || !is_dense(&product->c) || !is_readable(job, MM_OPERAND_ADDEND) ||
        !is_readable(job, MM_OPERAND_BIAS) || mm_job_absent_bytes(job, &device->head) > 0)
        return 0;
    const size_t rows = mm_size_divide_up(product->m, layout->block_rows);
    const size_t cols = mm_size_divide_up(product->n, layout->block_cols);
    if (rows > BLOCKS_MAX || cols > BLOCKS_MAX)
        return 0;
    return ((uint64_t)(uintptr_t)layout->batch_kernel & UINT64_C(0xffffffffffff)) |
           (uint64_t)product->tile << 48 | halvings(cols) << 56 | halvings(rows) << 60;
}

/* Whether the kernel `gather` can copy the operand. `gather` copies whole words, so the operand's address
 * must be aligned to a word. The last word can reach past the end of the operand, but never past the
 * operand's last page. */
static bool begins_with_word(const struct mm_matrix *operand) {
    return (uintptr_t)operand->data % sizeof(unsigned) == 0;
}

/* The kernel reads A and B directly from host memory in these cases:
 * - The kernel reads each element only once.
 * - One block computes all of C, and A and B are small. Limits from 4 to 64 KiB were equally fast on an H200.
 * - `gather` cannot copy A or B.
 * The kernel always reads the addend and the bias from host memory. It reads each element of the addend once,
 * and the bias is small. */
bool mm_cuda_reads_in_place(const struct mm_job *job, const struct mm_source *source) {
    enum { IN_PLACE_BYTES_MAX = 4 << 10 };
    const struct mm_layout *layout = &job->plan.layout;
    const struct mm_product *product = &job->product;
    return source->kind == MM_SOURCE_HOST &&
           (layout->reads_once || source >= &job->sources[MM_OPERAND_ADDEND] ||
            !begins_with_word(&product->a) || !begins_with_word(&product->b) ||
            (product->m <= layout->block_rows && product->n <= layout->block_cols &&
             mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b) <= IN_PLACE_BYTES_MAX));
}

struct mm_cuda_item mm_cuda_item_for(const struct mm_product *product, unsigned split_depth) {
    return (struct mm_cuda_item){.a = product->a.data,
                                 .b = product->b.data,
                                 .c = product->c.data,
                                 .m = (unsigned)product->m,
                                 .n = (unsigned)product->n,
                                 .k = (unsigned)product->k,
                                 .split_depth = split_depth,
                                 .c_dtype = product->c.dtype};
}

static void gather(struct mm_cuda_copies *copies, const struct mm_matrix *operand, void *to) {
    const size_t bytes = mm_matrix_dense_bytes(operand);
    const unsigned words = (unsigned)mm_size_divide_up(bytes, sizeof(unsigned));
    if (words == 0)
        return;
    copies->copies[copies->count].from = operand->data;
    copies->copies[copies->count].to = to;
    copies->copies[copies->count].words = words;
    copies->count++;
    copies->words_max = words > copies->words_max ? words : copies->words_max;
}

/* Copies and generated operands that the stream makes before the kernel runs. */
struct preparation {
    struct mm_cuda_copies copies;
    struct mm_cuda_generated generated[MM_OPERANDS_MAX];
};

/* Sums that a pass after the kernel finishes. Only products with an epilogue have an element. */
struct completion {
    struct mm_cuda_sums sums[MM_BATCH_MAX];
    unsigned count;
};

/* The kernel stores the product's sums at `at`, and the pass stores C. */
static void finish_later(struct completion *after, const struct mm_product *product,
                         struct mm_cuda_item *item, const void *addend, const void *bias, void *at) {
    const enum mm_dtype dtype = mm_dtype_sum(product->a.dtype);
    const struct mm_matrix at_device = mm_matrix_dense(dtype, product->c.rows, product->c.cols, at);
    struct mm_cuda_sums *sums = &after->sums[after->count++];
    *sums = mm_cuda_sums_of(product, &at_device);
    sums->c = item->c;
    sums->terms.addend = product->addend.rows > 0 ? addend : NULL;
    sums->terms.bias = product->bias.rows > 0 ? bias : NULL;
    item->c = at;
    item->c_dtype = dtype;
}

/* Returns the address from which the kernel will read the operand. If the kernel cannot read the operand in
 * host memory, adds the copying or the generation to *before, and returns the device address `at`. */
static const void *prepare(struct preparation *before, struct mm_job *job, unsigned index, void *at) {
    const struct mm_source *source = &job->sources[index];
    const struct mm_matrix *operand = mm_product_operand(&job->product, index);
    if (mm_cuda_reads_in_place(job, source))
        return operand->data;
    if (mm_source_is_generated(source) && mm_matrix_bytes(operand) > 0)
        mm_cuda_add_generated(&before->generated[index], source, operand, at);
    if (source->kind == MM_SOURCE_HOST) {
        job->outcome.uploaded_bytes += mm_matrix_bytes(operand);
        gather(&before->copies, operand, at);
    }
    return at;
}

static void describe_jobs(struct mm_job *const *jobs, unsigned count, const struct mm_cuda_memory *memory,
                          struct mm_cuda_items *items, struct preparation *before, struct completion *after) {
    double flops_or_bytes = 0.0;
    for (unsigned index = 0; index < count; index++)
        flops_or_bytes += mm_job_flops_or_bytes(jobs[index]);
    before->copies.count = before->copies.words_max = after->count = 0;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        before->generated[index].count = 0;
    for (unsigned index = 0; index < count; index++) {
        struct mm_job *job = jobs[index];
        struct mm_cuda_item *item = &items->items[index];
        const struct mm_cuda_placed *placed = &memory->placed[index];
        *item = mm_cuda_item_for(&job->product, job->plan.layout.split_depth);
        if (item->split_depth == 0)
            item->split_depth = item->k;
        job->outcome.batched = count;
        job->outcome.flops_or_bytes = flops_or_bytes;
        item->a = prepare(before, job, MM_OPERAND_A, placed->operands[MM_OPERAND_A]);
        item->b = prepare(before, job, MM_OPERAND_B, placed->operands[MM_OPERAND_B]);
        const void *addend = prepare(before, job, MM_OPERAND_ADDEND, placed->operands[MM_OPERAND_ADDEND]);
        const void *bias = prepare(before, job, MM_OPERAND_BIAS, placed->operands[MM_OPERAND_BIAS]);
        if (job->product.c.data == NULL)
            item->c = placed->c;
        if (job->product.epilogue.is_set)
            finish_later(after, &job->product, item, addend, bias, placed->sums);
    }
}

static bool is_nothing(const struct preparation *before) {
    size_t count = before->copies.count;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        count += before->generated[index].count;
    return count == 0;
}

static cudaError_t enqueue_preparation(const struct preparation *before, enum mm_dtype dtype,
                                       struct mm_lane *lane) {
    cudaError_t code = mm_cuda_mark(lane, MM_CUDA_BEGUN);
    if (before->copies.count > 0 && code == cudaSuccess)
        code = mm_cuda_gather(&before->copies, lane->stream);
    for (unsigned index = 0; index < MM_OPERANDS_MAX && code == cudaSuccess; index++)
        if (before->generated[index].count > 0)
            code = mm_cuda_generate(&before->generated[index], dtype, lane->device, lane->stream);
    return code;
}

/* If the device copy of a stored operand was dropped after the batch key was set, mm_cuda_acquire_memory
 * copies the operand again. The measured upload time does not include this copy. */
static enum mm_status enqueue(struct mm_lane *lane, const struct mm_layout *layout,
                              struct mm_job *const *jobs, unsigned count, struct mm_error *error) {
    struct mm_cuda_items items;
    struct preparation before;
    struct completion after;
    const unsigned tile = jobs[0]->product.tile != 0 ? jobs[0]->product.tile : jobs[0]->outcome.ran->tile;
    struct mm_cuda_memory memory;
    enum mm_status status = mm_cuda_acquire_memory(lane, jobs, count, &memory, error);
    if (status != MM_OK)
        return status;
    describe_jobs(jobs, count, &memory, &items, &before, &after);
    const enum mm_dtype sum = mm_dtype_sum(jobs[0]->product.a.dtype);
    const struct mm_layout pass = mm_cuda_finish_layout(sum);
    status = after.count > 0 ? mm_cuda_load(&pass, lane, error) : MM_OK;
    if (status != MM_OK)
        return status;
    cudaError_t code = cudaSuccess;
    if (is_nothing(&before))
        lane->first = MM_CUDA_UPLOADED;
    else
        code = enqueue_preparation(&before, jobs[0]->product.a.dtype, lane);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "preparing a batch's operands", error);
    status = mm_cuda_launch_batch(layout, &items, count, tile, lane, error);
    if (status == MM_OK)
        status = mm_cuda_finish(after.sums, after.count, sum, lane, error);
    if (status == MM_OK)
        status =
            mm_cuda_status(lane->device, mm_cuda_mark(lane, MM_CUDA_COMPUTED), "beginning a batch", error);
    return status;
}

enum mm_status mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                   struct mm_error *error) {
    const struct mm_layout *layout = &jobs[0]->plan.layout;
    struct mm_layout batch = *layout;
    assert(count <= MM_BATCH_MAX);
    batch.kernel = layout->batch_kernel;
    const enum mm_status status = mm_cuda_load(&batch, lane, error);
    return status == MM_OK ? enqueue(lane, layout, jobs, count, error) : status;
}
