/* The engine: the devices that were opened, the queue in front of them, and the names by which
 * callers choose. What a program needs of gpu/ to multiply. */
#pragma once

#include "gpu/queue/queue.h"
#include "gpu/queue/watch.h"

struct mm_engine;

struct mm_engine_options {
    const char *backend;     /* "auto" (CUDA where a device works, the CPU always), or a name */
    const unsigned *devices; /* indices of CUDA devices to use; NULL: all */
    size_t device_count;
    unsigned
        host_jobs; /* products at a time on a device of the host's, where that would do more; 0: its own */
    struct mm_queue_limits queue;
    struct mm_watch_limits watch;
    size_t device_bytes_max; /* of a device's memory, for a product with an operand that is made: for those, C
                                and workspace; 0: an eighth */
    uint64_t kernel_ms_max;  /* that a product may take by the devices' rates; 0: any time */
};

/* A backend that the program knows, and what the engine has of it. */
enum { MM_MISSING_MAX = 255 };
struct mm_offer {
    const struct mm_backend *backend;
    struct mm_device *const *devices; /* the open ones */
    size_t device_count;
    char missing[MM_MISSING_MAX + 1]; /* a phrase that says why no device is open; "": some are */
};

/* Opens the devices and proves each by a known product by each of its variants. MM_NOT_READY with the
 * reason if no device is left, MM_UNSUPPORTED if one of options->devices does not exist, MM_INTERNAL if
 * memory or threads run out; *engine is untouched then. With "auto" a CUDA device that fails is left out;
 * mm_engine_note says why. The caller owns *engine. error may be NULL. */
enum mm_status mm_engine_open(const struct mm_engine_options *options, struct mm_engine **engine,
                              struct mm_error *error);

/* Drains, closes the devices, frees. NULL is allowed. */
void mm_engine_close(struct mm_engine *engine);

/* One line on what was left out at opening and why ("cuda: no NVIDIA driver"); "" where nothing was. */
const char *mm_engine_note(const struct mm_engine *engine);

/* How pages are locked for the devices that copy; NULL where none does. */
const struct mm_page_locking *mm_engine_page_locking(const struct mm_engine *engine);

/* The queue in front of all its devices. The engine's, valid until close. Any thread. */
struct mm_queue *mm_engine_queue(struct mm_engine *engine);

/* The open devices, the preferred backend's first. Valid until close. */
struct mm_device *const *mm_engine_devices(const struct mm_engine *engine, size_t *count);

/* All backends that the program knows, for descriptions: requests can choose only those with open devices.
 * Valid until close. Any thread. */
const struct mm_offer *mm_engine_offers(const struct mm_engine *engine, size_t *count);

/* The backend that "auto" means: the preferred one with a device that works; with none, the preferred one.
 * Any thread. */
const struct mm_backend *mm_engine_backend(const struct mm_engine *engine);

/* Whether all devices of a backend have failed: only a new process mends that. Any thread. */
bool mm_engine_is_lost(const struct mm_engine *engine);

/* How many bytes of stored matrices the devices that work may have for themselves; 0: such matrices lie in
 * host memory. Any thread. */
size_t mm_engine_stored_bytes_max(const struct mm_engine *engine);

/* Memory for a stored matrix: asks one device after another (acquire_copy of its backend), the one with most
 * room first. If all refuse, returns the first one's status and *error. MM_OK with *copy NULL: the
 * matrix is to lie in host memory. Any thread. */
enum mm_status mm_engine_acquire_copy(const struct mm_engine *engine, size_t bytes,
                                      struct mm_device_copy **copy, struct mm_error *error);

/* Looks at the devices once, and returns mm_watch_look's status and *error (gpu/queue/watch.h). One thread
 * calls it, some times a second, until shutdown begins. */
enum mm_status mm_engine_watch(struct mm_engine *engine, struct mm_error *error);

/* Any thread. */
struct mm_watch_counts mm_engine_watch_counts(const struct mm_engine *engine);

/* Resolves the names a client wrote into job->backend and job->variant; `backend` may be "auto".
 * MM_UNSUPPORTED, naming what there is, for an unknown or unopened backend, an unknown variant, one that
 * is missing on every device, or one that does not take job->product's dtype. MM_BAD_REQUEST for a tile
 * that the variant does not offer. Any thread. */
enum mm_status mm_engine_choose(const struct mm_engine *engine, enum mm_op op, const char *backend,
                                const char *variant, struct mm_job *job, struct mm_error *error);

/* The backend of this name if no device of it is open: its variants can be described, but not run. Else NULL.
 * Any thread. */
const struct mm_backend *mm_engine_closed_backend(const struct mm_engine *engine, const char *name);

/* Judges the kernel time that job->product should take by job->variant on the fastest device, by the
 * options' kernel_ms_max, and what it takes of the device's memory, by device_bytes_max: MM_TOO_LARGE names
 * the variant and the limit. The matrices need no data. Takes no lock. Any thread. */
enum mm_status mm_engine_check(const struct mm_engine *engine, const struct mm_job *job,
                               struct mm_error *error);
