/* A backend: a kind of device and its table of variants, behind a small table of functions. `cpu` is
 * always there; `cuda` where it was built in. Backends know the product and the job, and nothing of
 * queues, HTTP or JSON. */
#ifndef MM_GPU_BACKEND_H
#define MM_GPU_BACKEND_H

#include "gpu/access.h"
#include "gpu/job.h"
#include "gpu/pages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The public head of a device that a backend opened; the backend's own state lies behind it. Constant
 * from open to close, except `failed`. Numbers are 0 and texts "" where a backend has no such thing. */
struct mm_device {
    const struct mm_backend *backend;
    unsigned index;        /* among the backend's devices */
    unsigned lane_count;   /* jobs that may be begun and not ended at one time; at least 1 */
    unsigned thread_count; /* threads that may use it at a time, each with lanes of its own; 0 stands for 1.
                              Lane l is that of thread l mod thread_count */
    char name[128];
    char driver[32];             /* "13.0", the newest CUDA that the driver speaks */
    unsigned compute_capability; /* 10·major + minor: 90 */
    unsigned multiprocessors;
    size_t memory_bytes;
    size_t l2_bytes;                   /* of the cache that all its multiprocessors share */
    size_t shared_bytes_per_block_max; /* with opting in */
    unsigned shared_bank_bytes; /* of each of its 32 banks: the word at byte b lies in bank b / this mod 32 */
    int failed;                 /* not 0 once it cannot run jobs any more; __atomic access only */
};

struct mm_backend {
    const char *name; /* "cpu", "cuda": as callers write it */

    /* Entry 0 is the plain reference; every other entry is tested against the host's entry 0. */
    const struct mm_variant *variants;
    size_t variant_count;

    /* Whether its devices compute on the host's cores, in the host's memory. */
    bool is_host;

    /* How many devices there are. MM_NOT_READY, with the reason as detail ("no NVIDIA driver"), where
     * there is none. */
    enum mm_status (*count)(unsigned *count, struct mm_error *error);

    /* Opens one device; the caller owns it until close. Once open, a device is used from one thread
     * at a time (thread_count at a time, by begin and end), except where a function says otherwise. */
    enum mm_status (*open)(unsigned index, struct mm_device **device, struct mm_error *error);
    void (*close)(struct mm_device *device);

    /* begin starts `count` jobs in a free lane (0 … lane_count − 1): uploads, launches their `ran`,
     * downloads, or enqueues all that and returns. More than one, up to MM_BATCH_MAX, only of one batch_key.
     * job->ran is set, m and n are not 0, job->error is MM_OK. One that cannot be started fails alone: begin
     * fills its error and has released what it took for it. end, where any was started, is called with these
     * alone: it waits for them and fills their spans (those of a shared launch are the launch's), `batched`
     * and error (MM_OK where the result is good). Where
     * job->verify is set, which goes alone, verification is done by the end, in none of the spans. Either
     * tells the bytes that it copied between host and device. Elements of C's storage outside its m×n are
     * left as they are. */
    void (*begin)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
    void (*end)(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);

    /* Whether end would not wait for the jobs that were begun in the lane, on the thread that began them.
     * NULL: the device cannot tell. One that can has one thread. */
    bool (*is_over)(struct mm_device *device, unsigned lane);

    /* What jobs on this device must have in common to be begun together, by one launch; 0: this one goes
     * alone. job->variant is not regarded, `ran` is what it resolves to. Any thread. NULL: all go alone. */
    uint64_t (*batch_key)(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job);

    /* Whether a product, which is not empty, keeps so much of the device busy that nothing should run beside
     * it. job->variant is not regarded. Any thread. NULL: none does. */
    bool (*wants_all)(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job);

    /* How the host's pages are locked for copies at full speed; NULL where nothing is copied. It works once a
     * device is open, for all of the backend's. */
    const struct mm_page_locking *page_locking;

    /* Free bytes of the device's memory at this moment. Any thread. */
    size_t (*memory_free)(const struct mm_device *device);

    /* Reads what the variant's float32 instance uses (a product's the untransposed one), with the tile that a
     * caller may choose or 0. MM_UNSUPPORTED where the backend or the variant has no such thing (the CPU; a
     * library; auto), or the device too little for the tile. Any thread. */
    enum mm_status (*attributes)(struct mm_device *device, const struct mm_variant *variant, unsigned tile,
                                 struct mm_attributes *attributes, struct mm_error *error);

    /* Device memory by hand, for tests and benchmarks. acquire gives memory aligned to 256 bytes, of
     * undefined contents, from the pool that jobs use: MM_NO_DEVICE_MEMORY tells needed and free
     * bytes. upload and download copy between host and device and return when it is done. */
    enum mm_status (*acquire)(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
    void (*release)(struct mm_device *device, void *memory);
    enum mm_status (*upload)(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                             struct mm_error *error);
    enum mm_status (*download)(struct mm_device *device, void *to_host, const void *from_device, size_t bytes,
                               struct mm_error *error);

    /* Writes `count` float32s to device memory, number i being mm_random_element(seed, i), and returns when
     * it is done (gpu/random.h). */
    enum mm_status (*fill)(struct mm_device *device, void *memory, size_t count, uint64_t seed,
                           struct mm_error *error);

    /* Runs a row (not `auto`) once on device memory, waits, and tells the kernel's own time by the
     * device's clock; where kernel_ns is NULL it only runs. m and n are not 0. On the host (is_host) from any
     * thread, at any time. */
    enum mm_status (*measure)(struct mm_device *device, const struct mm_variant *variant,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);

    /* Has one warp do each of `count` accesses (0 is allowed), alone on the device, and tells their times;
     * and where speed is not NULL, the speed of the memories as wholes. It takes some ten milliseconds for
     * 200 accesses and the speeds, and where speeds or accesses to global memory are asked for, device memory
     * of four to eight times the L2 cache, and of 64 MiB at least (MM_NO_DEVICE_MEMORY). On failure *speed
     * and the times are undefined. NULL where a device has no shared memory of the kind (the CPU). */
    enum mm_status (*probe)(struct mm_device *device, const struct mm_access *accesses, size_t count,
                            struct mm_access_time *times, struct mm_memory_speed *speed,
                            struct mm_error *error);
};

/* Runs one job, of which all that begin takes is set, in the device's lane 0, and waits for it. Returns
 * job->error.status. */
enum mm_status mm_device_run(struct mm_device *device, struct mm_job *job);

/* Whether a device cannot run jobs any more. Any thread. */
bool mm_device_has_failed(const struct mm_device *device);

/* The backends that were built in, the preferred one first, ended by NULL. gpu/backends.c. */
const struct mm_backend *const *mm_backends(void);

/* Finds a backend by name; NULL where there is none. */
const struct mm_backend *mm_backend_find(const char *name);

/* Finds a row of a backend by op and name; NULL where there is none. */
const struct mm_variant *mm_backend_variant(const struct mm_backend *backend, enum mm_op op,
                                            const char *name);

#ifdef __cplusplus
}
#endif
#endif
