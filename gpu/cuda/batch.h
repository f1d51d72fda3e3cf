/* Several products, or transpositions, in one launch: as the kernel sees them, and how they are launched.
 * Only the thread that uses the lane calls mm_cuda_gather and mm_cuda_generate. */
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

/* The products of a stack differ from the first, an item, in where their matrices begin. Steps are in bytes,
 * else as mm_stack's. */
struct mm_cuda_stack {
    unsigned rank; /* 0: it is no stack */
    size_t first;  /* the product of the grid's first layer */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
    size_t c_step;
};

/* A batch kernel's one parameter, by value (at most 4 KiB). Layer z of the grid computes item z, or product z
 * of a stack whose first is item 0, by blocks of block_rows × block_cols; as many as the largest item needs,
 * so others have idle blocks. */
struct mm_cuda_items {
    struct mm_cuda_item items[MM_BATCH_MAX];
    struct mm_cuda_stack stack;
    unsigned block_rows;
    unsigned block_cols;
    unsigned tile; /* of all, as mm_product's */
};

/* Copies of `words` words of 4 bytes each, from locked pages of the host to the device, all at once. */
struct mm_cuda_copies {
    struct {
        const unsigned *from;
        unsigned *to;
        unsigned words;
    } copies[2 * MM_BATCH_MAX];
    unsigned count;
    unsigned words_max; /* of one */
};

/* Operands of one element type that are made where they are read, all at once. */
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

/* Enqueues them as one kernel: cheaper than a copy each by the copy engines, which take microseconds for it.
 */
cudaError_t mm_cuda_gather(const struct mm_cuda_copies *copies, cudaStream_t stream);

/* Enqueues the making of at least one operand as one kernel. */
struct mm_cuda_device;
cudaError_t mm_cuda_generate(const struct mm_cuda_generated *generated, enum mm_dtype dtype,
                             const struct mm_cuda_device *device, cudaStream_t stream);

/* Adds an operand that is made at `to`. */
static inline void mm_cuda_add_generated(struct mm_cuda_generated *generated, const struct mm_source *source,
                                         const struct mm_matrix *operand, void *to) {
    assert(generated->count < MM_BATCH_MAX && operand->ld == operand->cols);
    generated->operands[generated->count].source = *source;
    generated->operands[generated->count].to = to;
    generated->operands[generated->count].elements = operand->rows * operand->cols;
    generated->operands[generated->count++].cols = operand->cols;
}

/* The key of jobs that may share a launch with this planned one; 0: none may. Any thread. */
uint64_t mm_cuda_batch_key(const struct mm_job *job);

/* Whether a shared launch reads the operand that the job has from this source (one of its own two) where it
 * lies in host memory. Any thread. */
bool mm_cuda_reads_in_place(const struct mm_job *job, const struct mm_source *source);

/* Acquires the memory of jobs of one batch key, and enqueues them as one launch. If that fails, all fail. */
struct mm_lane;
enum mm_status mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                   struct mm_error *error);

__END_DECLS
