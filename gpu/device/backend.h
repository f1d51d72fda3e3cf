/* A backend is a kind of device, with a table of variants and a table of functions. `cpu` is always built in,
 * `cuda` is optional. Backends know jobs (gpu/queue/job.h), but not the queue, HTTP or JSON. */
#pragma once

#include "gpu/lab/access.h"
#include "gpu/plan/forecast.h"
#include "gpu/queue/job.h"
#include "gpu/memory/pages.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

enum { MM_DEVICES_MAX = 64 }; /* open devices of all backends together */

struct mm_tiling;

/* An open device. The backend embeds this as the first member of its own struct. While the device is open,
 * only `failed`, `stored_bytes`, `peer_bytes` and `forecast` change, and `peers` until all devices are open.
 * A member that does not apply is 0 or "". */
struct mm_device {
    const struct mm_backend *backend;
    unsigned index;
    unsigned number;     /* index among all open devices; set by the engine */
    unsigned lane_count; /* at least 1; a lane runs one job at a time, or jobs that share a launch */
    char name[128];
    char driver[32];             /* newest CUDA version that the driver supports, as "13.0" */
    char pci_bus_id[16];         /* as "0000:65:00.0" */
    unsigned compute_capability; /* 10·major + minor: 90 for 9.0 */
    unsigned multiprocessors;
    size_t memory_bytes;
    size_t l2_bytes;
    size_t shared_bytes_per_block_max;

    /* The width of one of the 32 banks of shared memory. Byte b is in bank (b / width) mod 32. */
    unsigned shared_bank_bytes;

    size_t stored_bytes; /* bytes of stored matrices that are only on this device; __atomic access only */
    int failed;          /* not 0 if the device no longer works; __atomic access only */

    /* Bit i is set if this device can read the memory of the backend's device i. Copies from other devices go
     * through the host. */
    uint64_t peers;

    /* Bytes of stored matrices that this device copied from other devices; __atomic access only. */
    uint64_t peer_bytes;

    struct mm_forecast forecast;
};

struct mm_backend {
    const char *name; /* "cpu" or "cuda", as in the API */

    /* Variant 0 is the reference. Tests compare all other variants with variant 0 of the cpu backend. */
    const struct mm_variant *variants;
    size_t variant_count;

    /* A table of the compiler's report about the kernels, or NULL. The last row has compute capability 0. */
    const struct mm_compiled *compiled;

    /* Whether the devices use the host's cores and memory. */
    bool is_host;

    /* Counts the devices. MM_NOT_READY with the reason ("no NVIDIA driver") if there is no device. */
    enum mm_status (*count)(unsigned *count, struct mm_error *error);

    /* Opens one device, which the caller owns until close. *device is untouched on failure. Only one thread
     * at a time uses an open device, unless a function's comment says otherwise. But if the backend has no
     * is_over, each lane has its own thread, which calls begin and end. */
    enum mm_status (*open)(unsigned index, struct mm_device **device, struct mm_error *error);
    void (*close)(struct mm_device *device);

    /* Runs jobs in a free lane, or only enqueues the jobs. `count` is at most MM_BATCH_MAX. If there are
     * several jobs, they have equal batch keys. Each job has a plan, m and n that are not 0, and a work.error
     * of MM_OK. If a job cannot start, sets the job's error and releases what was acquired for the job. Other
     * jobs can still start. After MM_NO_DEVICE_MEMORY, the worker tries the job again, alone, when all lanes
     * are free. */
    void (*begin)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);

    /* Waits for the jobs in the lane, and sets each job's error and outcome. Jobs that share a launch get the
     * spans of the whole launch. Spans do not include checks (job->verify). Memory between the rows of C
     * stays unchanged.
     *
     * A host device may compute just a part of the product (job->progress). Then `end` sets job->more, and
     * the worker calls begin and end again, in any lane, unless the job was cancelled. The spans are sums
     * over all parts. The CUDA backend runs all parts of a long product itself. If the job is cancelled, the
     * job gets MM_STOPPING. */
    void (*end)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);

    /* Whether the jobs in the lane are complete, so `end` returns at once. One thread uses all lanes of such
     * a device. NULL if the backend cannot tell. Then each lane has its own thread. */
    bool (*is_over)(struct mm_device *device, unsigned lane);

    /* Completes a plan. The caller has set the plan's members `device` and `variant`.
     * MM_UNSUPPORTED if the variant does not support the shape. Any thread. The pointer is NULL if the
     * backend needs no other members. */
    enum mm_status (*plan)(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

    /* Sets work.is_exclusive and work.batch_key of a job that has a plan. The job's C is not empty. Any
     * thread. The pointer is NULL if the backend has no exclusive jobs and no jobs that share a launch. */
    void (*schedule)(struct mm_job *job);

    /* Finds tiles for a job with this plan that need at most `bytes` of device memory. Returns false if the
     * job cannot run in tiles, or if even the smallest tile needs more. Any thread. The pointer is NULL if
     * the backend runs no job in tiles. */
    bool (*find_tiles)(const struct mm_job *job, const struct mm_plan *plan, size_t bytes,
                       struct mm_tiling *tiling);

    /* Functions that lock host pages for all devices. NULL if the backend does not copy matrices. */
    const struct mm_page_locking *page_locking;

    /* Returns the free bytes of the device's memory at this moment. Any thread. */
    size_t (*memory_free)(const struct mm_device *device);

    /* Acquires device memory for a stored matrix that will be only on this device. The caller owns *copy, and
     * releases *copy or passes it to the store. MM_STORE_FULL if such matrices would exceed
     * mm_device_stored_bytes_max. MM_NO_DEVICE_MEMORY if memory runs out. Any thread. The pointer is NULL if
     * the backend stores matrices in host memory. */
    enum mm_status (*acquire_copy)(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
                                   struct mm_error *error);

    /* Reads which resources the plan's kernel uses on the device. MM_UNSUPPORTED if the plan has no kernel of
     * this project, or if the device lacks resources. Any thread. The pointer is NULL if the backend has no
     * kernels. */
    enum mm_status (*attributes)(struct mm_device *device, const struct mm_plan *plan,
                                 struct mm_attributes *attributes, struct mm_error *error);

    /* Functions for tests and benchmarks. `acquire` acquires device memory, aligned to 256 bytes. If it fails
     * with MM_NO_DEVICE_MEMORY, *error has the needed bytes and the free bytes. `release` allows NULL.
     * `upload` and `download` wait until the copy is complete. */
    enum mm_status (*acquire)(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
    void (*release)(struct mm_device *device, void *memory);
    enum mm_status (*upload)(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                             struct mm_error *error);
    enum mm_status (*download)(struct mm_device *device, void *to_host, const void *from_device, size_t bytes,
                               struct mm_error *error);

    /* Writes the first `count` random elements of this seed (gpu/matrix/random.h), and waits. */
    enum mm_status (*fill)(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                           uint64_t seed, struct mm_error *error);

    /* Runs a product once by its plan, on matrices in device memory, and waits. Sets *kernel_ns to the
     * kernel's time by the device's clock. kernel_ns may be NULL. Any thread for a host device. */
    enum mm_status (*measure)(struct mm_device *device, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);

    /* Times each of `count` accesses by one warp that is alone on the device. If `speed` is not NULL, also
     * measures the speed of the device's memories. This takes about ten milliseconds. Speeds and global
     * accesses need device memory: four to eight times the L2 cache, and at least 64 MiB. MM_NO_DEVICE_MEMORY
     * if less is free. On failure *speed and *times are undefined. NULL if the devices have no shared memory
     * with banks. */
    enum mm_status (*probe)(struct mm_device *device, const struct mm_access *accesses, size_t count,
                            struct mm_access_time *times, struct mm_memory_speed *speed,
                            struct mm_error *error);
};

/* Plans one job, runs it in lane 0, and waits. The caller has set the members that a job's owner sets.
 * Returns job->work.error.status. Only the thread that uses the device calls this. */
enum mm_status mm_device_run(struct mm_device *device, struct mm_job *job);

/* Returns how many threads use the device. */
static inline unsigned mm_device_threads(const struct mm_device *device) {
    return device->backend->is_over != NULL ? 1 : device->lane_count;
}

static inline bool mm_device_has_failed(const struct mm_device *device) {
    return __atomic_load_n(&device->failed, __ATOMIC_RELAXED) != 0;
}

/* Returns the limit for the bytes of stored matrices on this device: a quarter of the device's memory. */
static inline size_t mm_device_stored_bytes_max(const struct mm_device *device) {
    return device->memory_bytes / 4;
}

/* Returns the bytes of stored matrices that are only on this device. Any thread. */
static inline size_t mm_device_stored_bytes(const struct mm_device *device) {
    return __atomic_load_n(&device->stored_bytes, __ATOMIC_RELAXED);
}

/* Returns the backends that were built in. The preferred backend is first. NULL ends the list. Any thread. */
const struct mm_backend *const *mm_backends(void);
extern const struct mm_backend mm_cpu_backend;

/* The CUDA backend. In a build without CUDA, it can describe its variants, but `count` fails. */
extern const struct mm_backend mm_cuda_backend;

enum { MM_BACKENDS_MAX = 2 };

/* Returns all MM_BACKENDS_MAX backends, even if they were not built in. NULL ends the list. Any thread. */
const struct mm_backend *const *mm_backends_known(void);

/* Finds a built-in backend by name, or returns NULL. Any thread. */
const struct mm_backend *mm_backend_find(const char *name);

/* Finds a variant of a backend by operation and name, or returns NULL. Any thread. */
const struct mm_variant *mm_backend_variant(const struct mm_backend *backend, enum mm_op op,
                                            const char *name);

__END_DECLS
