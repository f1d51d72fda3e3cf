/* The engine: the open devices, their queue, and the names by which clients choose a backend and a
 * variant. A program needs no other part of gpu/ to multiply. */
#pragma once

#include "gpu/queue/queue.h"
#include "gpu/queue/watch.h"

struct mm_engine;

struct mm_engine_options {
    const char *backend;     /* a name, or "auto": CUDA if a device works, and always the CPU */
    const unsigned *devices; /* indices of CUDA devices to use; NULL: all */
    size_t device_count;
    unsigned host_jobs; /* the most products at a time on the CPU; 0: one for each core */
    struct mm_queue_limits queue;
    struct mm_watch_limits watch;
    size_t device_bytes_max; /* the most device memory of a product for generated operands, C and workspace;
                                0: an eighth of the device's memory. No limit applies if both operands come
                                with the request and C is not stored */
    uint64_t kernel_ms_max;  /* the most kernel time of a product in milliseconds, by the devices' measured
                                rates; 0: no limit */
};

/* A backend that the program knows, and its open devices. */
enum { MM_MISSING_MAX = 255 };
struct mm_offer {
    const struct mm_backend *backend;
    struct mm_device *const *devices; /* open devices of this backend */
    size_t device_count;
    char missing[MM_MISSING_MAX + 1]; /* why no device is open; "" if one is open */
};

/* Opens the devices, and runs the self-test of each (gpu/queue/self_test.h). MM_NOT_READY with the reason
 * if no device works. MM_UNSUPPORTED if one of options->devices does not exist. MM_INTERNAL if memory or
 * threads run out. *engine is untouched on failure. With "auto" a CUDA device that fails is not used, and
 * mm_engine_note says why. The caller owns *engine. error may be NULL. */
enum mm_status mm_engine_open(const struct mm_engine_options *options, struct mm_engine **engine,
                              struct mm_error *error);

/* Closes the queue (mm_queue_close) and the devices, and frees the engine. NULL is allowed. */
void mm_engine_close(struct mm_engine *engine);

/* Returns one line that says which devices mm_engine_open could not use and why ("cuda: no NVIDIA
 * driver"). "" if it could use all. Valid until close. */
const char *mm_engine_note(const struct mm_engine *engine);

/* Returns the functions that lock pages for the devices that copy; NULL if none copies. Any thread. */
const struct mm_page_locking *mm_engine_page_locking(const struct mm_engine *engine);

/* Returns the queue of all devices. The engine owns it; valid until close. Any thread. */
struct mm_queue *mm_engine_queue(struct mm_engine *engine);

/* Returns the open devices; the devices of the preferred backend come first. Valid until close. Any
 * thread. */
struct mm_device *const *mm_engine_devices(const struct mm_engine *engine, size_t *count);

/* Returns all backends that the program knows, for descriptions. Requests can choose only backends with
 * open devices. Valid until close. Any thread. */
const struct mm_offer *mm_engine_offers(const struct mm_engine *engine, size_t *count);

/* Returns the backend that "auto" means: the preferred backend among those with a working device. If no
 * device works, the preferred backend of all. Any thread. */
const struct mm_backend *mm_engine_backend(const struct mm_engine *engine);

/* Whether all devices of a backend have failed. Only a new process can use them again. Any thread. */
bool mm_engine_is_lost(const struct mm_engine *engine);

/* Returns the sum of mm_device_stored_bytes_max over the working devices that can store matrices. 0:
 * stored matrices are in host memory. Any thread. */
size_t mm_engine_stored_bytes_max(const struct mm_engine *engine);

/* Acquires device memory for a stored matrix: tries one device after another, the device with the most
 * free bytes first. If all fail, returns the status and the *error of the first. MM_OK with *copy NULL: no
 * device can store matrices, so the matrix must be in host memory. Any thread. */
enum mm_status mm_engine_acquire_copy(const struct mm_engine *engine, size_t bytes,
                                      struct mm_device_copy **copy, struct mm_error *error);

/* Checks all devices: calls mm_watch_look (gpu/queue/watch.h), and returns its status and *error. One
 * thread calls this several times a second, until shutdown begins. */
enum mm_status mm_engine_watch(struct mm_engine *engine, struct mm_error *error);

/* Returns how many self-tests ran since open. Any thread. */
struct mm_watch_counts mm_engine_watch_counts(const struct mm_engine *engine);

/* Sets job->work.backend and job->variant by the names that a client wrote; `backend` may be "auto".
 * MM_UNSUPPORTED, with a list of the choices, if the backend is unknown or has no open device.
 * MM_UNSUPPORTED also if the variant is unknown, missing on every device, or does not support the
 * operands' type. MM_BAD_REQUEST if the variant does not offer the product's tile. Any thread. */
enum mm_status mm_engine_choose(const struct mm_engine *engine, enum mm_op op, const char *backend,
                                const char *variant, struct mm_job *job, struct mm_error *error);

/* Returns the backend of this name, if the program knows it and none of its devices is open. Its variants
 * can be described, but not run. Else NULL. Any thread. */
const struct mm_backend *mm_engine_closed_backend(const struct mm_engine *engine, const char *name);

/* Checks whether a device can run job->product by job->variant within the limits kernel_ms_max and
 * device_bytes_max. If not, MM_TOO_LARGE names the variant and the limit. The matrices need no data. Locks
 * nothing. Any thread. */
enum mm_status mm_engine_check(const struct mm_engine *engine, const struct mm_job *job,
                               struct mm_error *error);
