/* Batches: several products or transpositions in one launch. The thread that uses the lane calls
 * mm_cuda_gather, mm_cuda_generate and mm_cuda_begin_batch. */
#pragma once

#include "gpu/queue/job.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One product C = op(A)·op(B) of dense matrices, where op(A) is m×k and op(B) is k×n; or one transposition
 * C = Aᵀ, where A is n×m. The kernel fixes the operands' type and which operands are transposed. C's type may
 * differ between the products of a batch. The matrices lie in device memory or in locked host pages. */
struct mm_cuda_item {
    const void *a;
    const void *b;
    void *c;
    const void *addend; /* of C's type; used if has_addend */
    const void *bias;   /* of C's type; used if has_bias */
    union mm_scale alpha;
    union mm_scale beta;
    unsigned m;
    unsigned n;
    unsigned k;
    unsigned split_depth; /* k is cut into parts of this length; 0: k is not cut */
    uint8_t c_dtype;      /* enum mm_dtype */
    uint8_t activation;   /* enum mm_activation */
    bool has_epilogue;
    bool has_addend;
    bool has_bias;
    bool transpose_addend;
};

/* Where the matrices of a stack's products begin, relative to the matrices of product 0, which are in
 * items[0]. Dimensions and steps are those of struct mm_stack, with steps in bytes. */
struct mm_cuda_stack {
    unsigned rank; /* 0: no stack */
    size_t first;  /* the product that layer 0 of the grid computes */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
    size_t addend_steps[MM_STACK_RANK_MAX];
    size_t c_step;
};

/* The parameter of a batch kernel, passed by value (at most 4 KiB). Layer z of the grid computes item z; for
 * a stack, layer z computes product number `first + z`. A block computes block_rows × block_cols elements of
 * C. Every layer has as many blocks as the largest item needs, so smaller items have idle blocks. */
struct mm_cuda_items {
    struct mm_cuda_item items[MM_BATCH_MAX];
    struct mm_cuda_stack stack;
    unsigned block_rows;
    unsigned block_cols;
    unsigned tile; /* edge of a tile, in elements; the items share it */
};

/* The parameter of the kernel that copies operands from locked host pages to device memory. A word has 4
 * bytes. */
struct mm_cuda_copies {
    struct {
        const unsigned *from;
        unsigned *to;
        unsigned words;
    } copies[2 * MM_BATCH_MAX];
    unsigned count;
    unsigned words_max; /* the most words of any copy */
};

/* The parameter of the kernel that generates operands of one element type. */
struct mm_cuda_generated {
    struct {
        struct mm_source source;
        void *to;
        size_t elements;
        size_t cols;
    } operands[MM_BATCH_MAX];
    unsigned count;
};

static_assert(sizeof(struct mm_cuda_items) <= 4096 && sizeof(struct mm_cuda_copies) <= 4096 &&
                  sizeof(struct mm_cuda_generated) <= 4096,
              "a kernel's parameters may have 4 KiB");

/* Enqueues one kernel that makes all copies. A copy engine takes microseconds for each copy. */
cudaError_t mm_cuda_gather(const struct mm_cuda_copies *copies, cudaStream_t stream);

/* Returns the item of one product of dense matrices. */
struct mm_cuda_item mm_cuda_item_for(const struct mm_product *product, unsigned split_depth);

struct mm_cuda_device;

/* Enqueues one kernel that generates all operands; there is at least one. */
cudaError_t mm_cuda_generate(const struct mm_cuda_generated *generated, enum mm_dtype dtype,
                             const struct mm_cuda_device *device, cudaStream_t stream);

/* Adds an operand that the device generates at `to`. */
static inline void mm_cuda_add_generated(struct mm_cuda_generated *generated, const struct mm_source *source,
                                         const struct mm_matrix *operand, void *to) {
    assert(generated->count < MM_BATCH_MAX && operand->ld == operand->cols);
    generated->operands[generated->count].source = *source;
    generated->operands[generated->count].to = to;
    generated->operands[generated->count].elements = operand->rows * operand->cols;
    generated->operands[generated->count++].cols = operand->cols;
}

/* Returns the batch_key of a planned job. Jobs with equal keys may share a launch; 0: the job runs alone. Any
 * thread. */
uint64_t mm_cuda_batch_key(const struct mm_job *job);

/* Whether a shared launch reads an operand of the job in host memory. `source` is an element of job->sources.
 * Any thread. */
bool mm_cuda_reads_in_place(const struct mm_job *job, const struct mm_source *source);

struct mm_lane;

/* Acquires memory for jobs with one batch_key, and enqueues them as one launch. After a failure the caller
 * waits for the stream, and then calls mm_cuda_release_memory (job_memory.h). */
enum mm_status mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                   struct mm_error *error);

__END_DECLS
