/* A CUDA device, and the functions of the CUDA backend. Pointers must not be NULL, except `error`. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>
#include <sys/queue.h>

__BEGIN_DECLS

/* With three lanes, one job can upload while a second job computes and a third job downloads. */
enum { MM_CUDA_LANES = 3 };

/* Memory for a panel of an operand or a tile of C (gpu/plan/tiling.h). */
struct mm_cuda_slot {
    cudaEvent_t ready; /* the slot has been filled */
    cudaEvent_t used;  /* the last kernel or copy that read the slot has ended */
    size_t panel;      /* index of the operand's panel plus 1; 0 if there is none */
    void *kept;        /* memory for data that launches derive from the panel (mm_cuda_acquire_derived) */
    size_t kept_bytes;
    uint64_t key; /* of the data that is kept; used if is_kept */
    bool is_kept; /* a launch has filled that memory */
};

/* How many tiles are enqueued before the first of them has ended. */
enum { MM_CUDA_TILES_AHEAD = 8 };

/* Streams and events for products in tiles (tiles.h) or panels (panels.h). Kernels run on the stream of the
 * job's lane. */
struct mm_cuda_copier {
    cudaStream_t upload;
    cudaStream_t download;
    struct mm_cuda_slot a[MM_TILING_SLOTS_MAX];
    struct mm_cuda_slot b[MM_TILING_SLOTS_MAX];
    struct mm_cuda_slot c[MM_TILING_C_SLOTS];
    /* Of tile `index` modulo this number: the kernel has ended; the check has ended. The check begins when
     * the kernel has ended. */
    cudaEvent_t computed[MM_CUDA_TILES_AHEAD];
    cudaEvent_t checked[MM_CUDA_TILES_AHEAD];
};

struct mm_cuda_device {
    struct mm_device head;   /* first member, so a pointer to `head` can be cast to this struct */
    cudaMemPool_t pool;      /* the backend acquires all device memory from this pool */
    size_t pitch_bytes_max;  /* longest row stride of a two-dimensional copy */
    bool reads_locked_pages; /* kernels can read locked host pages at their host addresses */
    struct mm_lane lanes[MM_CUDA_LANES];
    struct mm_cuda_copier copier;
    struct mm_lane direct;     /* runs no jobs; acquire, upload, download and measure use it */
    struct mm_cuda_gate *gate; /* makes `direct` wait until all its kernels are enqueued; owned */
    LIST_HEAD(mm_cuda_device_copies, mm_cuda_device_copy) copies; /* guarded by device_copy.c's mutex */
    size_t copy_bytes; /* bytes of all copies and derived data; guarded by device_copy.c's mutex */
    struct mm_cuda_device *next_opened; /* next entry of the list of open devices (failure.c) */
};

/* Makes the device current for the CUDA calls of this thread. Any thread. */
enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error);

/* Adds a device to the list of open devices. If one of them fails, the others are checked. Any thread. */
void mm_cuda_add_open_device(struct mm_cuda_device *device);

/* Returns the first entry of the list of open devices. Only while no other thread opens or closes devices. */
struct mm_cuda_device *mm_cuda_open_devices(void);

/* Removes a device from the list of open devices, if the device is in this list. Any thread. */
void mm_cuda_remove_open_device(const struct mm_cuda_device *device);

/* Turns the result of a CUDA call into a status, and fills in *error on failure. `doing` completes a sentence
 * that begins with "the device failed while".
 * - MM_NO_DEVICE_MEMORY: memory ran out. error->needed_bytes is 0, because CUDA does not tell the size.
 * - MM_DEVICE_FAILED: this process cannot use the device again. Sets `failed` of all devices that no longer
 *   work.
 * - MM_INTERNAL: any other error. */
enum mm_status mm_cuda_status(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                              struct mm_error *error);

/* The backend's functions, which gpu/device/backend.h describes. */
extern const struct mm_page_locking mm_cuda_page_locking;
enum mm_status mm_cuda_count(unsigned *count, struct mm_error *error);
enum mm_status mm_cuda_open(unsigned index, struct mm_device **device, struct mm_error *error);
void mm_cuda_close(struct mm_device *device);
void mm_cuda_begin(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
void mm_cuda_end(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
bool mm_cuda_is_over(struct mm_device *device, unsigned lane);
enum mm_status mm_cuda_plan(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);
void mm_cuda_schedule(struct mm_job *job);
bool mm_cuda_find_tiles(const struct mm_job *job, const struct mm_plan *plan, size_t bytes,
                        struct mm_tiling *tiling);
size_t mm_cuda_memory_free(const struct mm_device *device);
enum mm_status mm_cuda_acquire_copy(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
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
