/* Batches: several products or transpositions in one launch. Only the thread that uses the lane calls these
 * functions, unless a comment says otherwise. */
#pragma once

#include "gpu/queue/job.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One job of a batch: a product C = op(A)·op(B), where op(A) is m×k and op(B) is k×n, or a transposition C =
 * Aᵀ, where A is n×m. The matrices are dense, in device memory or locked host pages. In all jobs of a batch,
 * A and B have one type, and the same operands are transposed. The product has no epilogue. */
struct mm_cuda_item {
    const void *a;
    const void *b;
    void *c;
    unsigned m;
    unsigned n;
    unsigned k;
    unsigned split_depth; /* k is split into parts of this length; 0 if k is not split */
    enum mm_dtype c_dtype;
};

/* How the kernel finds the matrices of each product of a stack. items[0] describes product 0. The members
 * mean what they mean in struct mm_stack, but the steps are in bytes. */
struct mm_cuda_stack {
    unsigned rank; /* 0 if there is no stack */
    size_t first;  /* index of the stack's product that layer 0 of the grid computes */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
    size_t c_step;
};

/* The parameter of a batch kernel. Layer z of the grid computes items[z]. For a stack, layer z computes the
 * product with the index stack.first + z. All layers have as many blocks as the largest item needs. */
struct mm_cuda_items {
    struct mm_cuda_item items[MM_BATCH_MAX];
    struct mm_cuda_stack stack;
    unsigned block_rows;
    unsigned block_cols;
    unsigned tile; /* edge of a tile in elements, equal for all items */
};

/* The parameter of the kernel that copies operands from locked host pages to device memory. */
struct mm_cuda_copies {
    struct {
        const unsigned *from;
        unsigned *to;
        unsigned words;
    } copies[2 * MM_BATCH_MAX];
    unsigned count;
    unsigned words_max;
};

/* The parameter of the kernel that generates operands of one element type, or blocks of operands. */
struct mm_cuda_generated {
    struct {
        enum mm_source_kind kind;
        uint64_t number; /* the seed, or for MM_SOURCE_IDENTITY the rows of each matrix */
        size_t first;    /* `first` and `gap` of the source */
        size_t gap;
        void *to;
        size_t elements;
        size_t cols;
    } operands[MM_BATCH_MAX];
    unsigned count;
};

static_assert(sizeof(struct mm_cuda_items) <= 4096 && sizeof(struct mm_cuda_copies) <= 4096 &&
                  sizeof(struct mm_cuda_generated) <= 4096,
              "a kernel's parameters may have 4 KiB");

/* Enqueues one kernel that makes all copies, because a copy engine takes microseconds for each copy. */
cudaError_t mm_cuda_gather(const struct mm_cuda_copies *copies, cudaStream_t stream);

/* Returns the item of one product of dense matrices. */
struct mm_cuda_item mm_cuda_item_for(const struct mm_product *product, unsigned split_depth);

struct mm_cuda_device;

/* Enqueues one kernel that generates all operands in *generated. generated->count must not be 0. */
cudaError_t mm_cuda_generate(const struct mm_cuda_generated *generated, enum mm_dtype dtype,
                             const struct mm_cuda_device *device, cudaStream_t stream);

/* Adds an operand to *generated. The device will generate the operand, without gaps between rows, at the
 * device address `to`. */
static inline void mm_cuda_add_generated(struct mm_cuda_generated *generated, const struct mm_source *source,
                                         const struct mm_matrix *operand, void *to) {
    assert(generated->count < MM_BATCH_MAX);
    generated->operands[generated->count].kind = source->kind;
    generated->operands[generated->count].number =
        source->kind == MM_SOURCE_UNIFORM ? source->seed : source->rows;
    generated->operands[generated->count].first = source->first;
    generated->operands[generated->count].gap = source->gap;
    generated->operands[generated->count].to = to;
    generated->operands[generated->count].elements = operand->rows * operand->cols;
    generated->operands[generated->count++].cols = operand->cols;
}

/* Returns a job's batch key, or 0 if the job must run alone. Equal keys allow a shared launch. Any thread. */
uint64_t mm_cuda_batch_key(const struct mm_job *job);

/* Whether a shared launch reads this source of the job directly from host memory. Any thread. */
bool mm_cuda_reads_in_place(const struct mm_job *job, const struct mm_source *source);

struct mm_lane;

/* Acquires memory for jobs with equal batch keys, and enqueues them as one launch. After a failure, the
 * caller waits for the stream and then calls mm_cuda_release_memory (job_memory.h). */
enum mm_status mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                   struct mm_error *error);

__END_DECLS
