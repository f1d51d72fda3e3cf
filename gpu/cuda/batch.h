/* Several products, or transpositions, in one launch: the kernel's parameter, and how they are launched. The
 * thread that uses the lane calls mm_cuda_gather, mm_cuda_generate and mm_cuda_begin_batch. */
#pragma once

#include "gpu/queue/job.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One product C = op(A)·op(B) on dense matrices, op(A) m×k and op(B) k×n, by the kernel's transposes; or
 * one transposition C = Aᵀ, A n×m. The operands' type is the kernel's; products of one batch may differ in
 * the type of C. The matrices lie in device memory or in locked host pages. */
struct mm_cuda_item {
    const void *a;
    const void *b;
    void *c;
    unsigned m;
    unsigned n;
    unsigned k;
    unsigned split_depth; /* of struct mm_layout: k is cut into parts of this length, or 0 */
    enum mm_dtype c_dtype;
};

/* Where the matrices of each product of a stack begin, seen from those of product 0, which is an item. Like
 * struct mm_stack, but with steps in bytes. */
struct mm_cuda_stack {
    unsigned rank; /* 0: no stack */
    size_t first;  /* the product that layer 0 of the grid computes */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
    size_t c_step;
};

/* The one parameter of a batch kernel, passed by value (at most 4 KiB). Layer z of the grid computes item z,
 * or product first + z of a stack whose product 0 is item 0, by blocks of block_rows × block_cols. Every
 * layer has as many blocks as the largest item needs, so smaller items have idle blocks. */
struct mm_cuda_items {
    struct mm_cuda_item items[MM_BATCH_MAX];
    struct mm_cuda_stack stack;
    unsigned block_rows;
    unsigned block_cols;
    unsigned tile; /* edge of a tile, of all items */
};

/* Copies from locked host pages to the device, all at once. A word has 4 bytes. */
struct mm_cuda_copies {
    struct {
        const unsigned *from;
        unsigned *to;
        unsigned words;
    } copies[2 * MM_BATCH_MAX];
    unsigned count;
    unsigned words_max; /* of one copy */
};

/* Operands of one element type that the device generates, all at once. */
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

/* Enqueues all copies as one kernel. A copy by a copy engine would take microseconds each. */
cudaError_t mm_cuda_gather(const struct mm_cuda_copies *copies, cudaStream_t stream);

struct mm_cuda_device;

/* Enqueues the generation of at least one operand as one kernel. */
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

/* The batch_key of a planned job: jobs with one key may share a launch. 0: the job shares none. Any thread.
 */
uint64_t mm_cuda_batch_key(const struct mm_job *job);

/* Whether a shared launch reads an operand of the job in host memory. `source` is the job's a_source or
 * b_source. Any thread.
 */
bool mm_cuda_reads_in_place(const struct mm_job *job, const struct mm_source *source);

struct mm_lane;

/* Acquires the memory of jobs of one batch_key, and enqueues them as one launch. If that fails, none is
 * enqueued. */
enum mm_status mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                   struct mm_error *error);

__END_DECLS
