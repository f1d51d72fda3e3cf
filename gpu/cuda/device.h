/* A CUDA device as the files of this backend share it. Kernel files see lane.h only. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>
#include <sys/queue.h>

__BEGIN_DECLS

/* Lanes of jobs under way at one time: one uploads, one computes, one downloads. */
enum { MM_CUDA_LANES = 3 };

struct mm_cuda_device {
    struct mm_device head;   /* first, so that the one pointer is the other */
    cudaMemPool_t pool;      /* where all device memory comes from */
    size_t pitch_bytes_max;  /* the longest row stride of a two-dimensional copy */
    bool reads_locked_pages; /* its kernels find the host's locked pages at the host's addresses */
    struct mm_lane lanes[MM_CUDA_LANES];
    struct mm_lane direct;     /* for what is not a job: acquire, copies by hand, measure */
    struct mm_cuda_gate *gate; /* of the direct lane, for measure; owned */
    LIST_HEAD(mm_cuda_replicas, mm_cuda_replica) replicas; /* these two are replica.c's */
    size_t replica_bytes;                                  /* copies and homes */
    struct mm_cuda_device *next_opened;                    /* failure.c's */
};

/* Makes the device the calling thread's current one, as every entry point must. */
enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error);

/* The devices that a failure of one is to be asked of. */
void mm_cuda_note_opened(struct mm_cuda_device *device);
void mm_cuda_note_closed(const struct mm_cuda_device *device);

/* Turns what a CUDA call returned into a status: MM_OK for cudaSuccess, else one with a sentence, in which
 * `doing` completes "failed while". Asks the device whether it can go on: if it repeats the error, only a new
 * process can, and the device is marked failed (MM_DEVICE_FAILED), as are all others that cannot go on. Else
 * MM_INTERNAL, or what mm_cuda_fail_memory says of 0 bytes, because CUDA does not say how much it needed. */
enum mm_status mm_cuda_status(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                              struct mm_error *error);

/* The one message that device memory is short: fills in MM_NO_DEVICE_MEMORY with needed and free bytes, and
 * returns it. If so much seems to be free, one byte more is said to be needed. error may be NULL. */
enum mm_status mm_cuda_fail_memory(const struct mm_cuda_device *device, uint64_t needed_bytes,
                                   struct mm_error *error);

/* Memory from the device's pool, in the order of the lane's stream, aligned to 256 bytes; bytes may be 0.
 * *memory is untouched on failure. After MM_NO_DEVICE_MEMORY callers ask mm_cuda_tries_again (job_memory.h).
 */
enum mm_status mm_cuda_take(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);
void mm_cuda_give(struct mm_lane *lane, void *memory);

/* Where a stored operand lies in the device's memory, once the lane's stream gets there: it makes a copy if
 * there is none, and adds the bytes that come from the host to *copied_bytes. *data is NULL if the operand is
 * not stored, is empty, or finds no memory: then it is to be copied for this job alone. MM_DEVICE_FAILED if a
 * failed device alone has it. On the thread of the device's lanes. */
enum mm_status mm_cuda_hold_replica(const struct mm_source *source, struct mm_lane *lane,
                                    size_t *copied_bytes, void **data, struct mm_error *error);

/* Enqueues the copy of a stored matrix to device memory, from the host or from the device that has it. */
cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, void *to, const struct mm_lane *lane);

/* As the backend's take_home, in the order of the lane's stream. */
enum mm_status mm_cuda_take_home(size_t bytes, struct mm_lane *lane, struct mm_replica **home,
                                 struct mm_error *error);

/* Memory for what a variant derives from an operand of the lane's job (slot 0: A, 1: B), kept with the
 * operand if that is stored, and is whole at `from`. `key` tells how it is derived. *is_filled: an earlier
 * job has filled it, and the lane's stream waits for that; else the caller enqueues what does, and then calls
 * mm_cuda_note_derived. NULL: derive it for this job alone; also of the first job that asks, since many
 * operands are used once. On the thread of the device's lanes. */
void *mm_cuda_take_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key, size_t bytes,
                           bool *is_filled);
cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot);

/* Drops the device's copies and what was derived, of which no job under way uses one; for_good: before the
 * device is closed, also what it alone has. On the thread of the lanes. */
void mm_cuda_drop_replicas(struct mm_cuda_device *device, bool for_good);

/* The lane's workspace of at least so many bytes, aligned to 256; MM_NO_DEVICE_MEMORY as mm_cuda_take. */
enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);

/* Once the lane's jobs are over, or could not begin: gives a large workspace back. */
void mm_cuda_leave_workspace(struct mm_lane *lane);

/* A job that takes more of the device's memory is large: it runs alone, and leaves nothing taken. */
static inline size_t mm_cuda_large_bytes(const struct mm_device *device) {
    return device->memory_bytes / 8;
}

/* Up to where another piece of memory may begin. */
static inline size_t mm_cuda_aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return mm_size_round_up(bytes, ALIGNMENT);
}

/* Enqueues a mark on the lane's stream. */
cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point);

/* Nanoseconds from one mark to the next, once both are over. */
cudaError_t mm_cuda_span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns);

/* The rows of the bands in which a product, or one of a stack, is launched: all if it takes less than 100 ms
 * by the device's rates, or if blocks are not laid over C (plan->layout.block_rows is 0: a library's,
 * fp32_tensor's, tensor's). A band has the same kernel and splits of k as all of C, so the result has the
 * same bits. `product` is in device memory. */
size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product);

/* The key of jobs that may share a launch with this planned one; 0: none may. Any thread. */
uint64_t mm_cuda_batch_key(const struct mm_job *job);

/* Whether a shared launch reads the operand that the job has from this source (one of its own two) where it
 * lies in host memory. */
bool mm_cuda_reads_in_place(const struct mm_job *job, const struct mm_source *source);

/* Acquires the memory of jobs of one batch key, and enqueues them as one launch. If that fails, all fail. */
enum mm_status mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                   struct mm_error *error);

/* Enqueues the check of `count` products that the lane's stream has computed, from `first` on, with all
 * matrices in device memory and `memory` of mm_cuda_verify_bytes there, aligned to 256 bytes. Its result, of
 * these and of those before them, is in lane->verification once the stream is through. m and n are not 0. */
size_t mm_cuda_verify_bytes(const struct mm_product *product);
enum mm_status mm_cuda_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                              size_t count, uint64_t seed, void *memory, struct mm_lane *lane,
                              struct mm_error *error);

/* Enqueues the reduction of a part of C, which is in device memory, as `memory` of mm_cuda_reduce_bytes is,
 * aligned to 256 bytes. Its result is in lane->reduction once the stream is through. */
size_t mm_cuda_reduce_bytes(void);
enum mm_status mm_cuda_reduce(const struct mm_matrix *c, const struct mm_window *part, void *memory,
                              struct mm_lane *lane, struct mm_error *error);

/* Enqueues a copy of the part of a stack that begins at `from` in device memory, to `to` on the host, where
 * it lies dense. */
cudaError_t mm_cuda_copy_part(void *to, void *from, enum mm_dtype dtype, const struct mm_window *part,
                              const struct mm_lane *lane);

/* Enqueues a copy of all elements; both matrices have one shape and type, and either may have longer rows. */
cudaError_t mm_cuda_copy_matrix(const struct mm_matrix *to, const struct mm_matrix *from,
                                enum cudaMemcpyKind kind, const struct mm_lane *lane);

/* A gate in a stream. close enqueues it shut; open lets pass what was enqueued behind it. It opens by
 * itself after some milliseconds, and gave_up says so once the stream was waited for. The current device
 * is the stream's. free takes NULL. */
cudaError_t mm_cuda_gate_make(struct mm_cuda_gate **gate);
void mm_cuda_gate_free(struct mm_cuda_gate *gate);
cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream);
void mm_cuda_gate_open(struct mm_cuda_gate *gate);
bool mm_cuda_gate_gave_up(const struct mm_cuda_gate *gate);

/* Returns the pool's unused memory and idle lanes' workspaces to the device, after waiting for its work. If
 * no lane is busy, drops all copies of stored values as well. On the thread of the device's lanes. */
void mm_cuda_trim(struct mm_cuda_device *device);

/* The backend's functions; gpu/device/backend.h has their contracts. */
extern const struct mm_page_locking mm_cuda_page_locking;
enum mm_status mm_cuda_count(unsigned *count, struct mm_error *error);
enum mm_status mm_cuda_open(unsigned index, struct mm_device **device, struct mm_error *error);
void mm_cuda_close(struct mm_device *device);
void mm_cuda_begin(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
void mm_cuda_end(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
bool mm_cuda_is_over(struct mm_device *device, unsigned lane);
enum mm_status mm_cuda_plan(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);
void mm_cuda_schedule(struct mm_job *job);
size_t mm_cuda_memory_free(const struct mm_device *device);
enum mm_status mm_cuda_make_home(struct mm_device *device, size_t bytes, struct mm_replica **home,
                                 struct mm_error *error);
enum mm_status mm_cuda_attributes(struct mm_device *device, const struct mm_plan *plan,
                                  struct mm_attributes *attributes, struct mm_error *error);
enum mm_status mm_cuda_acquire(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
void mm_cuda_release(struct mm_device *device, void *memory);
enum mm_status mm_cuda_upload(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                              struct mm_error *error);
enum mm_status mm_cuda_download(struct mm_device *device, void *to_host, const void *from_device,
                                size_t bytes, struct mm_error *error);
enum mm_status mm_cuda_fill(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                            uint64_t seed, struct mm_error *error);
enum mm_status mm_cuda_measure(struct mm_device *device, const struct mm_plan *plan,
                               const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);
enum mm_status mm_cuda_probe(struct mm_device *device, const struct mm_access *accesses, size_t count,
                             struct mm_access_time *times, struct mm_memory_speed *speed,
                             struct mm_error *error);

__END_DECLS
