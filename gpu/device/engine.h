/* The engine: the open devices and their queue. It also finds the backend and the variant that a client
 * names. To multiply matrices, a program includes only this header of gpu/. */
#pragma once

#include "gpu/queue/queue.h"
#include "gpu/queue/watch.h"

struct mm_engine;

struct mm_engine_options {
    const char *backend;     /* "cpu", "cuda", or "auto" for the CPU, and also CUDA if CUDA works */
    const unsigned *devices; /* indices of the CUDA devices to use; NULL for all devices */
    size_t device_count;
    unsigned host_jobs; /* most products at a time on the CPU; 0 for the number of cores */
    struct mm_queue_limits queue;
    struct mm_watch_limits watch;

    /* The most device memory that a product may use for generated operands, C and workspace. 0 for an eighth
     * of the device's memory. Does not apply if both operands come with the request and C is not stored. A
     * product that would use more runs in tiles (gpu/plan/tiling.h). So does any product whose matrices and
     * workspace need more than this limit, if the limit is not 0 and the product can run in tiles. */
    size_t device_bytes_max;

    /* The longest kernel time that is allowed for a product, by measured rates; 0 for no limit. */
    uint64_t kernel_ms_max;
};

enum { MM_MISSING_MAX = 255 };

/* A backend that the program knows, with the open devices of the backend. */
struct mm_offer {
    const struct mm_backend *backend;
    struct mm_device *const *devices;
    size_t device_count;
    char missing[MM_MISSING_MAX + 1]; /* why no device is open; "" if one is open */
};

/* Opens the devices, and runs the self-test of each device (gpu/queue/self_test.h). The caller owns *engine.
 * With "auto", a CUDA device that fails is not used, and mm_engine_note says why. MM_NOT_READY with the
 * reason if no device works. MM_UNSUPPORTED if one of options->devices does not exist. MM_INTERNAL if memory
 * or threads run out. *engine is untouched on failure. error may be NULL. */
enum mm_status mm_engine_open(const struct mm_engine_options *options, struct mm_engine **engine,
                              struct mm_error *error);

/* Closes the queue (mm_queue_close) and the devices, and frees the engine. NULL is allowed. */
void mm_engine_close(struct mm_engine *engine);

/* Returns why devices were not opened ("cuda: no NVIDIA driver"), or "". The text is valid until close. */
const char *mm_engine_note(const struct mm_engine *engine);

/* Returns the functions that lock host pages, or NULL if no device copies matrices. Any thread. */
const struct mm_page_locking *mm_engine_page_locking(const struct mm_engine *engine);

/* Returns the queue of all devices. The engine owns the queue. Any thread. */
struct mm_queue *mm_engine_queue(struct mm_engine *engine);

/* Returns the open devices, first those of the preferred backend. Valid until close. Any thread. */
struct mm_device *const *mm_engine_devices(const struct mm_engine *engine, size_t *count);

/* Returns all backends that the program knows, even if they have no open device. Valid until close. Any
 * thread. */
const struct mm_offer *mm_engine_offers(const struct mm_engine *engine, size_t *count);

/* Returns the backend that "auto" means in a request: the most preferred backend that has a working device.
 * If no device works, returns the most preferred of all backends. Any thread. */
const struct mm_backend *mm_engine_backend(const struct mm_engine *engine);

/* Whether all devices of a backend have failed. Then the process must be restarted. Any thread. */
bool mm_engine_is_lost(const struct mm_engine *engine);

/* Returns the sum of mm_device_stored_bytes_max over all devices that work and can store matrices. Returns 0
 * if matrices are stored in host memory. Any thread. */
size_t mm_engine_stored_bytes_max(const struct mm_engine *engine);

/* Acquires device memory for a stored matrix. First tries the device with the most free bytes, and then the
 * other devices. If all devices fail, returns the first device's status and *error. If no device can store
 * matrices, sets *copy to NULL and returns MM_OK. Then the matrix must be in host memory. Any thread. */
enum mm_status mm_engine_acquire_copy(const struct mm_engine *engine, size_t bytes,
                                      struct mm_device_copy **copy, struct mm_error *error);

/* Calls mm_watch_look (gpu/queue/watch.h), and returns the status and *error of that function. One thread
 * calls this several times a second, until shutdown begins. */
enum mm_status mm_engine_watch(struct mm_engine *engine, struct mm_error *error);

/* Returns how many self-tests ran since mm_engine_open. Any thread. */
struct mm_watch_counts mm_engine_watch_counts(const struct mm_engine *engine);

/* Sets job->work.backend and job->variant by the names that a client wrote. `backend` may be "auto".
 * MM_UNSUPPORTED with a list of the choices if the backend is unknown or has no open device, or if the
 * variant is unknown, runs on no device, or does not support the operands' type. MM_BAD_REQUEST if the
 * variant does not offer the product's tile. Any thread. */
enum mm_status mm_engine_choose(const struct mm_engine *engine, enum mm_op op, const char *backend,
                                const char *variant, struct mm_job *job, struct mm_error *error);

/* Sets how many devices may compute the job: job->devices and job->weighs_devices. `devices` is a number,
 * MM_DEVICES_ALL or MM_DEVICES_AUTO. The caller has set the job's backend and variant.
 * MM_UNSUPPORTED if the backend has fewer devices, or if several devices cannot share a product of this
 * variant. Any thread. */
enum mm_status mm_engine_divide(const struct mm_engine *engine, uint64_t devices, struct mm_job *job,
                                struct mm_error *error);

/* Finds a backend without open devices by name, or returns NULL. The variants of such a backend can be
 * described, but not run. Any thread. */
const struct mm_backend *mm_engine_closed_backend(const struct mm_engine *engine, const char *name);

/* Checks whether a device can run job->product by job->variant within kernel_ms_max and device_bytes_max. If
 * not, returns MM_TOO_LARGE with the variant and the limit. Sets job->device_bytes_max. The matrices need no
 * data. Any thread. */
enum mm_status mm_engine_check(const struct mm_engine *engine, struct mm_job *job, struct mm_error *error);
