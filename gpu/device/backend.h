/* A backend: a kind of device with its table of variants, behind a small table of functions. `cpu` is always
 * there, and `cuda` if it was built in. Backends know jobs (gpu/queue/job.h), but not the queue, HTTP or
 * JSON. */
#pragma once

#include "gpu/lab/access.h"
#include "gpu/plan/forecast.h"
#include "gpu/queue/job.h"
#include "gpu/memory/pages.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

enum { MM_DEVICES_MAX = 64 }; /* open at a time, over all backends */

/* A device that a backend opened. The backend embeds this at the beginning of its own state. Constant from
 * open to close, except `failed`, `stored_bytes`, `peer_bytes` and `forecast`. Numbers are 0 and texts "" if
 * they do not apply. */
struct mm_device {
    const struct mm_backend *backend;
    unsigned index;      /* among the backend's devices */
    unsigned number;     /* among all that are open, from 0; set by the engine */
    unsigned lane_count; /* lanes: each has at most one job, or one shared launch, under way. At least 1 */
    char name[128];
    char driver[32];             /* "13.0", the newest CUDA that the driver speaks */
    unsigned compute_capability; /* 10·major + minor: 90 */
    unsigned multiprocessors;
    size_t memory_bytes;
    size_t l2_bytes;                   /* of the cache that all multiprocessors share */
    size_t shared_bytes_per_block_max; /* with opting in */
    unsigned shared_bank_bytes; /* of each of its 32 banks: the word at byte b lies in bank b / this mod 32 */
    size_t stored_bytes;        /* of stored matrices that only this device has; __atomic access only */
    int failed;                 /* not 0 once the device cannot run jobs any more; __atomic access only */
    uint64_t peer_bytes;        /* of stored matrices, copied from other devices; __atomic access only */
    struct mm_forecast forecast;
};

struct mm_backend {
    const char *name; /* "cpu", "cuda": as clients write it */

    /* Entry 0 is the plain reference; every other entry is tested against the host's entry 0. */
    const struct mm_variant *variants;
    size_t variant_count;

    /* What the compiler reported of the variants' kernels, ended by a row of compute capability 0; NULL: it
     * reported nothing. */
    const struct mm_compiled *compiled;

    /* Whether its devices compute on the host's cores, in the host's memory. */
    bool is_host;

    /* How many devices there are. If none, MM_NOT_READY with the reason as detail ("no NVIDIA driver"). */
    enum mm_status (*count)(unsigned *count, struct mm_error *error);

    /* Opens one device; the caller owns it until close. *device is untouched on failure. An open device is
     * used from one thread at a time, unless a function says otherwise; begin and end from a thread for each
     * lane if the backend has no is_over. */
    enum mm_status (*open)(unsigned index, struct mm_device **device, struct mm_error *error);
    void (*close)(struct mm_device *device);

    /* Uploads, launches and downloads `count` jobs by their plans in a free lane (0 … lane_count − 1), or
     * enqueues all that and returns. Each job is planned, m and n are not 0, and job->work.error is MM_OK.
     * Several jobs, up to MM_BATCH_MAX, have one batch_key. A job that cannot start fails alone: this fills
     * its error, and releases what it has acquired. MM_NO_DEVICE_MEMORY is final only if all other lanes are
     * free and the job is alone. Else the worker waits until all lanes are free, and begins the job again,
     * alone. */
    void (*begin)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);

    /* Waits for the jobs that were started in the lane, and fills their spans (those of the whole launch, if
     * it was shared), `batched` and errors. The check of a job with job->verify, which shares no launch, is
     * done by then and counts in no span. begin and end add to the bytes copied. Elements of C's storage
     * outside its m×n stay as they are.
     *
     * A host device may compute one part of the product (job->progress) and set job->more. Then begin and end
     * are called again, in any lane, unless the job is cancelled; the spans are sums over all parts. A GPU
     * cuts a long product itself, and ends it with MM_STOPPING once mm_work_is_cancelled. */
    void (*end)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);

    /* Whether the jobs in the lane are over, so end would return at once. One thread uses all lanes. NULL:
     * the device cannot tell, and each lane has its own thread. */
    bool (*is_over)(struct mm_device *device, unsigned lane);

    /* Completes a plan whose device, variant and is_frugal are set, by the variant's own `plan`.
     * MM_UNSUPPORTED for a shape that the variant does not do. Any thread. NULL: the plan is complete. */
    enum mm_status (*plan)(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

    /* Sets work.is_exclusive and work.batch_key of a job whose product is planned and not empty. Any thread.
     * NULL: no job is exclusive, and none shares a launch. */
    void (*schedule)(struct mm_job *job);

    /* How to lock host pages, for all open devices of the backend. NULL: the backend copies nothing. */
    const struct mm_page_locking *page_locking;

    /* Free bytes of the device's memory at this moment. Any thread. */
    size_t (*memory_free)(const struct mm_device *device);

    /* Acquires memory for a stored matrix that only this device will have. The caller owns *copy, and
     * releases it or passes it to the store. MM_STORE_FULL if such matrices would exceed
     * mm_device_stored_bytes_max; MM_NO_DEVICE_MEMORY. Any thread. NULL: stored matrices lie in host memory.
     */
    enum mm_status (*acquire_copy)(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
                                   struct mm_error *error);

    /* Reads from the device what the plan's kernel uses. MM_UNSUPPORTED if the plan has no kernel of ours (a
     * library, a plain copy), or the device has too little for the kernel. Any thread. NULL: the backend has
     * no kernels. */
    enum mm_status (*attributes)(struct mm_device *device, const struct mm_plan *plan,
                                 struct mm_attributes *attributes, struct mm_error *error);

    /* Device memory for tests and benchmarks. acquire gets memory of undefined contents, aligned to 256
     * bytes, from the pool of the jobs: MM_NO_DEVICE_MEMORY has the needed and free bytes. release allows
     * NULL. upload and download copy between host and device, and return when the copy is done. */
    enum mm_status (*acquire)(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
    void (*release)(struct mm_device *device, void *memory);
    enum mm_status (*upload)(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                             struct mm_error *error);
    enum mm_status (*download)(struct mm_device *device, void *to_host, const void *from_device, size_t bytes,
                               struct mm_error *error);

    /* Writes the first `count` elements of the random stream of this seed (gpu/matrix/random.h) to device
     * memory, and returns when that is done. */
    enum mm_status (*fill)(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                           uint64_t seed, struct mm_error *error);

    /* Runs a planned product once, on matrices in device memory, and waits. *kernel_ns is the kernel's time
     * by the device's clock; kernel_ns may be NULL. A host device allows this on any thread at any time. */
    enum mm_status (*measure)(struct mm_device *device, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);

    /* Times each of `count` accesses (0 is allowed) by one warp that is alone on the device; and, if speed is
     * not NULL, the device's memories as a whole. 200 accesses and the speeds take some ten milliseconds.
     * Speeds and global accesses need device memory: four to eight times the L2 cache, at least 64 MiB
     * (MM_NO_DEVICE_MEMORY). On failure *speed and the times are undefined. NULL: the devices have no shared
     * memory in banks (the CPU). */
    enum mm_status (*probe)(struct mm_device *device, const struct mm_access *accesses, size_t count,
                            struct mm_access_time *times, struct mm_memory_speed *speed,
                            struct mm_error *error);
};

/* Plans one job, runs it in the device's lane 0, and waits for it. The caller has set the owner's members of
 * the job. Returns job->work.error.status. On the thread that uses the device. */
enum mm_status mm_device_run(struct mm_device *device, struct mm_job *job);

/* How many threads use the device: one for all lanes, or one for each lane. */
static inline unsigned mm_device_threads(const struct mm_device *device) {
    return device->backend->is_over != NULL ? 1 : device->lane_count;
}

/* Whether a device cannot run jobs any more. Any thread. */
static inline bool mm_device_has_failed(const struct mm_device *device) {
    return __atomic_load_n(&device->failed, __ATOMIC_RELAXED) != 0;
}

/* The most bytes of stored matrices that only this device has: a quarter of its memory. Copies of other
 * matrices are made while they and these matrices together do not exceed that. */
static inline size_t mm_device_stored_bytes_max(const struct mm_device *device) {
    return device->memory_bytes / 4;
}

/* Bytes of stored matrices that only this device has. Any thread. */
static inline size_t mm_device_stored_bytes(const struct mm_device *device) {
    return __atomic_load_n(&device->stored_bytes, __ATOMIC_RELAXED);
}

/* The backends that were built in, the preferred one first, ended by NULL. Any thread. */
const struct mm_backend *const *mm_backends(void);
extern const struct mm_backend mm_cpu_backend;

/* In a build without CUDA this has only a name, rows to read, and a `count` that fails. */
extern const struct mm_backend mm_cuda_backend;

/* All backends that the program knows, also those that were not built in, ended by NULL; at most
 * MM_BACKENDS_MAX. Any thread. */
enum { MM_BACKENDS_MAX = 2 };
const struct mm_backend *const *mm_backends_known(void);

/* Finds a built-in backend by name; NULL if there is none. Any thread. */
const struct mm_backend *mm_backend_find(const char *name);

/* Finds a row of a backend by op and name; NULL if there is none. Any thread. */
const struct mm_variant *mm_backend_variant(const struct mm_backend *backend, enum mm_op op,
                                            const char *name);

__END_DECLS
