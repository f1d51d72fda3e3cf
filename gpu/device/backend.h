/* A backend: a kind of device and its table of variants, behind a small table of functions. `cpu` is
 * always there; `cuda` where it was built in. Backends know the product and the job, and nothing of
 * queues, HTTP or JSON. */
#pragma once

#include "gpu/lab/access.h"
#include "gpu/plan/forecast.h"
#include "gpu/queue/job.h"
#include "gpu/memory/pages.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

enum { MM_DEVICES_MAX = 64 }; /* that are open at a time, over all backends */

/* The public head of a device that a backend opened; the backend's own state lies behind it. Constant
 * from open to close, except `failed`, `stored_bytes`, `peer_bytes` and `forecast`. Numbers are 0 and texts
 * "" where a backend has no such thing. */
struct mm_device {
    const struct mm_backend *backend;
    unsigned index;      /* among the backend's devices */
    unsigned number;     /* among all that are open, from 0; set by the engine */
    unsigned lane_count; /* jobs that may be begun and not ended at one time; at least 1 */
    char name[128];
    char driver[32];             /* "13.0", the newest CUDA that the driver speaks */
    unsigned compute_capability; /* 10·major + minor: 90 */
    unsigned multiprocessors;
    size_t memory_bytes;
    size_t l2_bytes;                   /* of the cache that all its multiprocessors share */
    size_t shared_bytes_per_block_max; /* with opting in */
    unsigned shared_bank_bytes; /* of each of its 32 banks: the word at byte b lies in bank b / this mod 32 */
    size_t stored_bytes;        /* of stored matrices that only this device has; __atomic access only */
    int failed;                 /* not 0 once it cannot run jobs any more; __atomic access only */
    uint64_t peer_bytes; /* of stored matrices, copied to it from other devices; __atomic access only */
    struct mm_forecast forecast;
};

struct mm_backend {
    const char *name; /* "cpu", "cuda": as callers write it */

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

    /* begin uploads, launches and downloads `count` jobs by their plans in a free lane (0 … lane_count − 1),
     * or enqueues all that and returns. Each job->plan is made, m and n are not 0, and job->work.error is
     * MM_OK. More than one job, up to MM_BATCH_MAX, share a batch_key. A job that cannot start fails alone:
     * begin fills its error and releases what it took. begin leaves MM_NO_DEVICE_MEMORY in each job that
     * found no device memory, beside others in the call or in other lanes; the worker then waits until all
     * lanes are free and begins each of these jobs alone, and what begin says of a job with all lanes free is
     * final.
     *
     * end is called with the jobs that were started. It waits for them and fills their spans (those of a
     * shared launch are the launch's), `batched` and error. If job->verify is set, which goes alone, the
     * product is verified by then, in none of the spans. Both add to the bytes copied. Elements of C's
     * storage outside its m×n are left as they are.
     *
     * A host device may compute one part of the product (job->progress) and set job->more: then both are
     * called again, in any lane, unless the job is cancelled. The spans are the sum over all parts. A GPU
     * cuts a long product itself, and ends it with MM_STOPPING once mm_work_is_cancelled. */
    void (*begin)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
    void (*end)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);

    /* Whether end would return at once for the jobs begun in the lane. One thread uses all lanes then. NULL:
     * the device cannot tell, and each lane has its own thread. */
    bool (*is_over)(struct mm_device *device, unsigned lane);

    /* Fills in the backend's part of a plan whose device, variant and is_frugal are set, by the variant's
     * own `plan`. MM_UNSUPPORTED for a shape that it does not do. Any thread. NULL: nothing to fill in. */
    enum mm_status (*plan)(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

    /* Sets work.is_exclusive and work.batch_key of a job whose product is planned and not empty. Any thread.
     * NULL: jobs run side by side, each by itself. */
    void (*schedule)(struct mm_job *job);

    /* How host pages are locked for copies at full speed, for all open devices of the backend; NULL if
     * nothing is copied. */
    const struct mm_page_locking *page_locking;

    /* Free bytes of the device's memory at this moment. Any thread. */
    size_t (*memory_free)(const struct mm_device *device);

    /* Memory for a stored matrix that the device alone will have: *copy is the caller's, who releases it
     * or gives it to the store. MM_STORE_FULL if the device would have more than mm_device_stored_bytes_max
     * of such; or MM_NO_DEVICE_MEMORY. Any thread. NULL: stored matrices lie in host memory. */
    enum mm_status (*acquire_copy)(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
                                   struct mm_error *error);

    /* Reads what the plan's kernel uses. MM_UNSUPPORTED if that is none of ours (a library's, a plain copy),
     * or the device has too little for it. Any thread. NULL: the backend has no kernels (the CPU). */
    enum mm_status (*attributes)(struct mm_device *device, const struct mm_plan *plan,
                                 struct mm_attributes *attributes, struct mm_error *error);

    /* Device memory for tests and benchmarks. acquire gives memory of undefined contents, aligned to 256
     * bytes, from the jobs' pool: MM_NO_DEVICE_MEMORY tells needed and free bytes. release takes NULL.
     * upload and download copy between host and device and return when done. */
    enum mm_status (*acquire)(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
    void (*release)(struct mm_device *device, void *memory);
    enum mm_status (*upload)(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                             struct mm_error *error);
    enum mm_status (*download)(struct mm_device *device, void *to_host, const void *from_device, size_t bytes,
                               struct mm_error *error);

    /* Writes `count` elements of a type to device memory, element i of the stream of this seed being the i-th
     * (gpu/matrix/random.h), and returns when it is done. */
    enum mm_status (*fill)(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                           uint64_t seed, struct mm_error *error);

    /* Runs a planned product once on device memory, waits, and gives the kernel's own time by the device's
     * clock; if kernel_ns is NULL it only runs. On the host (is_host) from any thread, at any time. */
    enum mm_status (*measure)(struct mm_device *device, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);

    /* Times one warp doing each of `count` accesses (0 is allowed), alone on the device, and if speed is
     * not NULL, the memories as wholes. 200 accesses and the speeds take some ten milliseconds. Speeds and
     * global accesses take device memory: four to eight times the L2 cache, at least 64 MiB
     * (MM_NO_DEVICE_MEMORY). On failure *speed and the times are undefined. NULL if the device has no
     * shared memory in banks (the CPU). */
    enum mm_status (*probe)(struct mm_device *device, const struct mm_access *accesses, size_t count,
                            struct mm_access_time *times, struct mm_memory_speed *speed,
                            struct mm_error *error);
};

/* Plans one job, runs it in the device's lane 0, and waits for it. The caller has set its part of the job.
 * Returns job->work.error.status. */
enum mm_status mm_device_run(struct mm_device *device, struct mm_job *job);

/* How many threads use the device: one for all lanes, or one for each lane. */
static inline unsigned mm_device_threads(const struct mm_device *device) {
    return device->backend->is_over != NULL ? 1 : device->lane_count;
}

/* Whether a device cannot run jobs any more. Any thread. */
static inline bool mm_device_has_failed(const struct mm_device *device) {
    return __atomic_load_n(&device->failed, __ATOMIC_RELAXED) != 0;
}

/* How many bytes of stored matrices a device may have for itself: a quarter of its memory. */
static inline size_t mm_device_stored_bytes_max(const struct mm_device *device) {
    return device->memory_bytes / 4;
}

static inline size_t mm_device_stored_bytes(const struct mm_device *device) {
    return __atomic_load_n(&device->stored_bytes, __ATOMIC_RELAXED);
}

/* The backends that were built in, the preferred one first, ended by NULL. gpu/device/backends.c. */
const struct mm_backend *const *mm_backends(void);
extern const struct mm_backend mm_cpu_backend;

/* In a build without CUDA it has only a name, rows to be read, and a `count` that says why it has no
 * devices. */
extern const struct mm_backend mm_cuda_backend;

/* The same list with those that were not built in, for descriptions; at most MM_BACKENDS_MAX. */
enum { MM_BACKENDS_MAX = 2 };
const struct mm_backend *const *mm_backends_known(void);

/* Finds a backend by name; NULL where there is none. */
const struct mm_backend *mm_backend_find(const char *name);

/* Finds a row of a backend by op and name; NULL where there is none. */
const struct mm_variant *mm_backend_variant(const struct mm_backend *backend, enum mm_op op,
                                            const char *name);

__END_DECLS
