/* The engine: the open devices, their queue, and the names by which clients choose. This is all that a
 * program needs of gpu/ to multiply. */
#pragma once

#include "gpu/queue/queue.h"
#include "gpu/queue/watch.h"

struct mm_engine;

struct mm_engine_options {
    const char *backend;     /* "auto" (CUDA if a device works, and always the CPU), or a name */
    const unsigned *devices; /* indices of CUDA devices to use; NULL: all */
    size_t device_count;
    unsigned host_jobs; /* the most products at a time on a host device; 0: the device decides */
    struct mm_queue_limits queue;
    struct mm_watch_limits watch;
    size_t device_bytes_max; /* the most device memory for generated operands, C and workspace of a product,
                                unless both operands come with the request and C is not stored; 0: an eighth
                                of the device's */
    uint64_t kernel_ms_max;  /* the most kernel time of a product, by the devices' rates; 0: no limit */
};

/* A backend that the program knows, and its open devices. */
enum { MM_MISSING_MAX = 255 };
struct mm_offer {
    const struct mm_backend *backend;
    struct mm_device *const *devices; /* those that are open */
    size_t device_count;
    char missing[MM_MISSING_MAX + 1]; /* why no device is open; "" if some are */
};

/* Opens the devices, and runs the self-test of each (gpu/queue/self_test.h). MM_NOT_READY with the reason if
 * no device is left, MM_UNSUPPORTED if one of options->devices does not exist, MM_INTERNAL if memory or
 * threads run out; *engine is untouched then. With "auto" a CUDA device that fails is left out;
 * mm_engine_note says why. The caller owns *engine. error may be NULL. */
enum mm_status mm_engine_open(const struct mm_engine_options *options, struct mm_engine **engine,
                              struct mm_error *error);

/* Closes the queue (mm_queue_close) and the devices, and frees the engine. NULL is allowed. */
void mm_engine_close(struct mm_engine *engine);

/* One line that says what mm_engine_open left out and why ("cuda: no NVIDIA driver"); "" if nothing. Valid
 * until close.
 */
const char *mm_engine_note(const struct mm_engine *engine);

/* How to lock pages for the devices that copy; NULL if none does. Any thread. */
const struct mm_page_locking *mm_engine_page_locking(const struct mm_engine *engine);

/* The queue of all devices. The engine owns it; valid until close. Any thread. */
struct mm_queue *mm_engine_queue(struct mm_engine *engine);

/* The open devices, those of the preferred backend first. Valid until close. Any thread. */
struct mm_device *const *mm_engine_devices(const struct mm_engine *engine, size_t *count);

/* All backends that the program knows, for descriptions. Requests can choose only those with open devices.
 * Valid until close. Any thread. */
const struct mm_offer *mm_engine_offers(const struct mm_engine *engine, size_t *count);

/* The backend that "auto" means: the preferred one of those with a working device; the preferred one of all
 * if no device works. Any thread. */
const struct mm_backend *mm_engine_backend(const struct mm_engine *engine);

/* Whether all devices of a backend have failed. Only a new process can use them again. Any thread. */
bool mm_engine_is_lost(const struct mm_engine *engine);

/* The sum of mm_device_stored_bytes_max over the working devices that can store matrices. 0: stored matrices
 * lie in host memory. Any thread. */
size_t mm_engine_stored_bytes_max(const struct mm_engine *engine);

/* Acquires device memory for a stored matrix, by acquire_copy of the backends: tries one device after
 * another, the one with most free bytes first. If all refuse, returns the status and *error of the first.
 * MM_OK with *copy NULL: no device can store matrices, so the matrix has to lie in host memory. Any thread.
 */
enum mm_status mm_engine_acquire_copy(const struct mm_engine *engine, size_t bytes,
                                      struct mm_device_copy **copy, struct mm_error *error);

/* Calls mm_watch_look (gpu/queue/watch.h) for all devices, and returns its status and *error. One thread
 * calls this some times a second, until shutdown begins. */
enum mm_status mm_engine_watch(struct mm_engine *engine, struct mm_error *error);

/* The counts of self-tests since open. Any thread. */
struct mm_watch_counts mm_engine_watch_counts(const struct mm_engine *engine);

/* Sets job->work.backend and job->variant by the names that a client wrote; `backend` may be "auto".
 * MM_UNSUPPORTED, with a list of what there is, if the backend is unknown or has no open device, or if the
 * variant is unknown, missing on every device, or has no function for the operands' type. MM_BAD_REQUEST if
 * the variant does not offer the product's tile. Any thread. */
enum mm_status mm_engine_choose(const struct mm_engine *engine, enum mm_op op, const char *backend,
                                const char *variant, struct mm_job *job, struct mm_error *error);

/* The backend of this name, if the program knows it and none of its devices is open: its variants can be
 * described, but not run. Else NULL. Any thread. */
const struct mm_backend *mm_engine_closed_backend(const struct mm_engine *engine, const char *name);

/* Checks whether some device can run job->product by job->variant within the limits kernel_ms_max (by its
 * rates) and device_bytes_max. If not, MM_TOO_LARGE names the variant and the limit. The matrices need no
 * data. Locks nothing. Any thread. */
enum mm_status mm_engine_check(const struct mm_engine *engine, const struct mm_job *job,
                               struct mm_error *error);
