/* A CUDA device as the files of this backend share it. Kernel files see lane.h only. */
#ifndef MM_GPU_CUDA_DEVICE_H
#define MM_GPU_CUDA_DEVICE_H

#include "gpu/backend.h"
#include "gpu/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lanes of jobs under way at one time: one uploads, one computes, one downloads. */
enum { MM_CUDA_LANES = 3 };

struct mm_cuda_device {
    struct mm_device head;   /* first, so that the one pointer is the other */
    cudaMemPool_t pool;      /* where all device memory comes from */
    size_t pitch_bytes_max;  /* the longest row stride of a two-dimensional copy */
    bool reads_locked_pages; /* its kernels find the host's locked pages at the host's addresses */
    struct mm_lane lanes[MM_CUDA_LANES];
    struct mm_lane direct;              /* for what is not a job: acquire, copies by hand, measure */
    struct mm_cuda_gate *gate;          /* of the direct lane, for measure; owned */
    struct mm_cuda_device *next_opened; /* failure.c's */
};

/* The index of a device that was opened; -1 before. __atomic access only. */
extern int mm_cuda_opened_index;

/* Makes the device the calling thread's current one, which the runtime keeps a thread, and every
 * entry point must therefore do. */
enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error);

/* The devices that a failure of one is to be asked of. */
void mm_cuda_note_opened(struct mm_cuda_device *device);
void mm_cuda_note_closed(const struct mm_cuda_device *device);

/* Turns a CUDA error into a status with a sentence; `doing` completes "failed while". Asks the device
 * whether it can go on: an error that it repeats leaves no way but a new process, so the device is
 * marked failed (MM_DEVICE_FAILED), and so are all others that cannot either. Else MM_NO_DEVICE_MEMORY with
 * the free bytes, or MM_INTERNAL. */
enum mm_status mm_cuda_fail(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                            struct mm_error *error);

/* Memory from the device's pool, in the order of the lane's stream, aligned to 256 bytes; bytes may
 * be 0. MM_NO_DEVICE_MEMORY tells needed and free bytes; *memory is untouched on failure. */
enum mm_status mm_cuda_take(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);
void mm_cuda_give(struct mm_lane *lane, void *memory);

/* The lane's workspace, of so many bytes at least, aligned to 256 bytes; MM_NO_DEVICE_MEMORY as mm_cuda_take.
 */
enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);

/* Once the lane's jobs are over: gives a large workspace back. */
void mm_cuda_leave_workspace(struct mm_lane *lane);

/* A job that takes more of the device's memory is large: it runs alone, and leaves nothing taken. */
static inline size_t mm_cuda_large_bytes(const struct mm_device *device) {
    return device->memory_bytes / 8;
}

/* Up to where another piece of memory may begin. */
static inline size_t mm_cuda_aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes of a matrix, likewise. */
static inline size_t mm_cuda_room(const struct mm_matrix *matrix) {
    return mm_cuda_aligned(mm_matrix_bytes(matrix));
}

/* Enqueues a mark on the lane's stream. */
cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point);

/* Enqueues products of one batch key as one launch. Where that fails, all do: nothing of them is known that
 * would let one fail before. */
void mm_cuda_begin_batch(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count);

/* Enqueues the check of a product that the lane's stream has computed by then, all of whose matrices lie in
 * the device's memory, with `memory` of mm_cuda_verify_bytes there, aligned to 256 bytes. Once that is over,
 * lane->verification tells what came of it. m and n are not 0. */
size_t mm_cuda_verify_bytes(const struct mm_product *product);
enum mm_status mm_cuda_verify(const struct mm_product *product, void *memory, struct mm_lane *lane,
                              struct mm_error *error);

/* Enqueues a copy of all elements on the lane's stream, byte for byte; both are of one shape and type, and
 * either may have longer rows, whose ends are left as they are. */
cudaError_t mm_cuda_copy_matrix(const struct mm_matrix *to, const struct mm_matrix *from,
                                enum cudaMemcpyKind kind, const struct mm_lane *lane);

/* A gate. close enqueues it shut, once all that was enqueued behind it before is over; open lets pass what
 * was enqueued behind it since. It gives up and opens by itself after some milliseconds, which it tells once
 * the stream was waited for. The current device is that of the stream. free takes NULL. */
cudaError_t mm_cuda_gate_make(struct mm_cuda_gate **gate);
void mm_cuda_gate_free(struct mm_cuda_gate *gate);
cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream);
void mm_cuda_gate_open(struct mm_cuda_gate *gate);
bool mm_cuda_gate_gave_up(const struct mm_cuda_gate *gate);

/* Gives what the pool holds unused back to the device, the workspaces of lanes without jobs among it, after
 * waiting for work that still uses some. On the thread of the device's lanes. */
void mm_cuda_trim(struct mm_cuda_device *device);

/* The backend's functions; gpu/backend.h has their contracts. */
extern const struct mm_page_locking mm_cuda_page_locking;
enum mm_status mm_cuda_count(unsigned *count, struct mm_error *error);
enum mm_status mm_cuda_open(unsigned index, struct mm_device **device, struct mm_error *error);
void mm_cuda_close(struct mm_device *device);
void mm_cuda_begin(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
void mm_cuda_end(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
bool mm_cuda_is_over(struct mm_device *device, unsigned lane);
uint64_t mm_cuda_batch_key(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job);
bool mm_cuda_wants_all(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job);
size_t mm_cuda_memory_free(const struct mm_device *device);
enum mm_status mm_cuda_attributes(struct mm_device *device, const struct mm_variant *variant, unsigned tile,
                                  struct mm_attributes *attributes, struct mm_error *error);
enum mm_status mm_cuda_acquire(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
void mm_cuda_release(struct mm_device *device, void *memory);
enum mm_status mm_cuda_upload(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                              struct mm_error *error);
enum mm_status mm_cuda_download(struct mm_device *device, void *to_host, const void *from_device,
                                size_t bytes, struct mm_error *error);
enum mm_status mm_cuda_fill(struct mm_device *device, void *memory, size_t count, uint64_t seed,
                            struct mm_error *error);
enum mm_status mm_cuda_measure(struct mm_device *device, const struct mm_variant *variant,
                               const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);
enum mm_status mm_cuda_probe(struct mm_device *device, const struct mm_access *accesses, size_t count,
                             struct mm_access_time *times, struct mm_memory_speed *speed,
                             struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
