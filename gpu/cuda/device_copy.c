/* Copies of stored matrices in device memory. The first job that uses a matrix makes the copy. Variants can
 * derive data from a copy. If device memory is short, copies and derived data are dropped. If a device has
 * the only copy of a matrix, this copy is kept until the matrix is freed. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"
#include "gpu/store/store.h"

#include <pthread.h>
#include <stdlib.h>

/* Data that a variant derived from the matrix. Only the thread of the device's lanes uses this struct. */
struct derived {
    void *data; /* NULL if no memory is allocated */
    size_t bytes;
    uint64_t key;
    cudaEvent_t event; /* completes when `data` can be used; NULL until first recorded */
    bool is_complete;  /* the host has seen that `event` is complete */
    bool was_wanted;   /* an earlier job asked for the data */
    bool is_filled;
};

struct mm_cuda_device_copy {
    struct mm_device_copy head;    /* first member; head.data is NULL if the copy has no device memory */
    struct mm_cuda_device *device; /* NULL after the device was closed */
    size_t bytes;                  /* of the matrix, and of head.data */
    cudaEvent_t copied;            /* completes when head.filled is copied; NULL until first recorded */
    bool is_copied;                /* the host has seen that `copied` is complete */
    struct derived derived[2];     /* [0] is for the matrix as operand A, [1] as operand B */
    LIST_ENTRY(mm_cuda_device_copy) listed;
};

/* Guards each device's members `copies` and `copy_bytes`, and each copy's member `device`. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_only_copy(const struct mm_cuda_device_copy *copy) {
    return copy->head.read != NULL;
}

/* Adds bytes to the device's counts. If is_only, the bytes are of a matrix that is only on this device. The
 * caller holds the mutex. */
static void count(struct mm_cuda_device *device, size_t bytes, bool is_only) {
    device->copy_bytes += bytes;
    if (is_only)
        __atomic_add_fetch(&device->head.stored_bytes, bytes, __ATOMIC_RELAXED);
}

/* Device memory that was removed from a copy, and that the caller must free. */
struct removed {
    void *data[3];
    unsigned count;
};

static void set_data(struct mm_cuda_device_copy *copy, void *data, size_t first, size_t end) {
    __atomic_store_n(&copy->head.data, data, __ATOMIC_RELAXED);
    __atomic_store_n(&copy->head.filled.first, first, __ATOMIC_RELAXED);
    __atomic_store_n(&copy->head.filled.end, end, __ATOMIC_RELAXED);
}

/* The caller holds the mutex. */
static void remove_data(struct mm_cuda_device_copy *copy, struct removed *removed) {
    void *data = copy->head.data;
    if (data == NULL)
        return;
    count(copy->device, -copy->bytes, is_only_copy(copy));
    set_data(copy, NULL, 0, 0);
    copy->is_copied = false;
    removed->data[removed->count++] = data;
}

/* The caller holds the mutex. */
static void remove_derived(struct mm_cuda_device_copy *copy, struct removed *removed) {
    for (unsigned slot = 0; slot < 2; slot++) {
        struct derived *derived = &copy->derived[slot];
        if (derived->data == NULL)
            continue;
        count(copy->device, -derived->bytes, false);
        removed->data[removed->count++] = derived->data;
        derived->data = NULL;
        derived->is_filled = false;
    }
}

static void free_removed(struct mm_cuda_device *device, const struct removed *removed) {
    for (unsigned index = 0; index < removed->count; index++)
        mm_cuda_pool_free(&device->direct, removed->data[index]);
}

static void destroy_events(const struct mm_cuda_device_copy *copy) {
    const cudaEvent_t events[] = {copy->copied, copy->derived[0].event, copy->derived[1].event};
    for (unsigned index = 0; index < sizeof events / sizeof events[0]; index++)
        if (events[index] != NULL)
            cudaEventDestroy(events[index]);
}

/* Removes the copy from its device. Returns the device, or NULL if it is closed. The caller holds the
 * mutex. */
static struct mm_cuda_device *detach(struct mm_cuda_device_copy *copy, struct removed *removed) {
    struct mm_cuda_device *device = copy->device;
    if (device == NULL)
        return NULL;
    remove_data(copy, removed);
    remove_derived(copy, removed);
    LIST_REMOVE(copy, listed);
    copy->device = NULL;
    return device;
}

static void release(struct mm_device_copy *head) {
    struct mm_cuda_device_copy *copy = (struct mm_cuda_device_copy *)head;
    struct removed removed = {.count = 0};
    pthread_mutex_lock(&mutex);
    struct mm_cuda_device *device = detach(copy, &removed);
    pthread_mutex_unlock(&mutex);
    if (device != NULL && mm_cuda_use(&device->head, NULL) == MM_OK) {
        destroy_events(copy);
        free_removed(device, &removed);
    }
    free(copy);
}

void mm_cuda_drop_copies(struct mm_cuda_device *device, bool for_good) {
    struct mm_cuda_device_copy *copy, *next;
    pthread_mutex_lock(&mutex);
    for (copy = LIST_FIRST(&device->copies); copy != NULL; copy = next) {
        struct removed removed = {.count = 0};
        next = LIST_NEXT(copy, listed);
        if (for_good) {
            (void)detach(copy, &removed);
            destroy_events(copy);
        } else {
            remove_derived(copy, &removed);
            if (!is_only_copy(copy))
                remove_data(copy, &removed);
        }
        free_removed(device, &removed);
    }
    pthread_mutex_unlock(&mutex);
}

/* Adds bytes to the device's counts. Returns false, and adds nothing, if a count would exceed the limit for
 * stored matrices. If is_only, the limit applies to the matrices that are only on this device. Otherwise it
 * applies to all copies and derived data. */
static bool reserve(struct mm_cuda_device *device, size_t bytes, bool is_only) {
    const size_t limit = mm_device_stored_bytes_max(&device->head);
    pthread_mutex_lock(&mutex);
    const size_t used = is_only ? mm_device_stored_bytes(&device->head) : device->copy_bytes;
    const bool fits = used <= limit && bytes <= limit - used;
    if (fits)
        count(device, bytes, is_only);
    pthread_mutex_unlock(&mutex);
    return fits;
}

static void unreserve(struct mm_cuda_device *device, size_t bytes, bool is_only) {
    pthread_mutex_lock(&mutex);
    count(device, -bytes, is_only);
    pthread_mutex_unlock(&mutex);
}

static struct mm_cuda_device_copy *find(const struct mm_stored *value, const struct mm_cuda_device *device) {
    return (struct mm_cuda_device_copy *)mm_stored_find_copy(value, &device->head);
}

/* Makes the lane's stream wait for the event, unless the event is already complete. */
static cudaError_t wait_for(cudaEvent_t event, bool *is_complete, const struct mm_lane *lane) {
    if (*is_complete)
        return cudaSuccess;
    const cudaError_t code = cudaEventQuery(event);
    *is_complete = code == cudaSuccess;
    if (code != cudaErrorNotReady)
        return code;
    (void)cudaGetLastError();
    return cudaStreamWaitEvent(lane->stream, event, 0);
}

/* Records the event on the lane's stream. Creates the event if it is NULL. */
static cudaError_t record(cudaEvent_t *event, const struct mm_lane *lane) {
    const cudaError_t code =
        *event == NULL ? cudaEventCreateWithFlags(event, cudaEventDisableTiming) : cudaSuccess;
    return code == cudaSuccess ? cudaEventRecord(*event, lane->stream) : code;
}

/* Acquires device memory in the order of the lane's stream. The memory is for derived data, or for a copy
 * that can be dropped. Returns NULL if the limit for stored matrices is reached, or memory runs out. */
static void *acquire(size_t bytes, struct mm_lane *lane) {
    void *data;
    if (!reserve(lane->device, bytes, false))
        return NULL;
    if (mm_cuda_pool_acquire(lane, mm_cuda_aligned(bytes), &data, NULL) == MM_OK)
        return data;
    unreserve(lane->device, bytes, false);
    return NULL;
}

/* Makes the struct of a copy, still without device memory. Returns NULL if host memory runs out. */
static struct mm_cuda_device_copy *make_copy(const struct mm_device_copy *head, size_t bytes,
                                             struct mm_cuda_device *device) {
    struct mm_cuda_device_copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    copy->head = *head;
    copy->head.device = &device->head;
    copy->device = device;
    copy->bytes = bytes;
    copy->is_copied = is_only_copy(copy);
    copy->head.filled.end = copy->is_copied ? bytes : 0;
    pthread_mutex_lock(&mutex);
    LIST_INSERT_HEAD(&device->copies, copy, listed);
    pthread_mutex_unlock(&mutex);
    return copy;
}

/* Enqueues the copying of these bytes to their place in `data`, and counts them. */
static cudaError_t copy_range(const struct mm_stored *value, size_t first, size_t end, void *data,
                              const struct mm_lane *lane, struct mm_outcome *outcome) {
    if (first >= end)
        return cudaSuccess;
    *(value->only_copy == NULL ? &outcome->uploaded_bytes : &outcome->peer_bytes) +=
        mm_stored_absent_bytes(value, (struct mm_stored_range){first, end}, &lane->device->head);
    return mm_cuda_copy_stored(value, first, end - first, (char *)data + first, lane);
}

/* Enqueues the copying of what the copy lacks of these bytes. Acquires device memory if the copy has none. If
 * device memory is short, does nothing and returns cudaSuccess. */
static cudaError_t fill(const struct mm_stored *value, struct mm_stored_range wanted,
                        struct mm_cuda_device_copy *copy, struct mm_lane *lane, struct mm_outcome *outcome) {
    const bool is_new = copy->head.data == NULL;
    const struct mm_stored_range has =
        is_new ? (struct mm_stored_range){wanted.first, wanted.first} : copy->head.filled;
    void *data = is_new ? acquire(value->bytes, lane) : copy->head.data;
    if (data == NULL)
        return cudaSuccess;
    /* After the wait, the next event stands for all bytes. */
    cudaError_t code = is_new ? cudaSuccess : wait_for(copy->copied, &copy->is_copied, lane);
    if (code == cudaSuccess)
        code = copy_range(value, wanted.first, has.first, data, lane, outcome);
    if (code == cudaSuccess)
        code = copy_range(value, has.end, wanted.end, data, lane, outcome);
    if (code == cudaSuccess)
        code = record(&copy->copied, lane);
    if (code == cudaSuccess) {
        copy->is_copied = false;
        set_data(copy, data, mm_size_min(has.first, wanted.first), mm_size_max(has.end, wanted.end));
    } else if (is_new) {
        mm_cuda_pool_free(lane, data);
        unreserve(lane->device, value->bytes, false);
    }
    return code;
}

/* Acquires memory for a copy that panels.c fills. Returns false if the copy has elements, or if memory is
 * short. */
static bool begin_panels(const struct mm_stored *value, struct mm_cuda_device_copy *copy,
                         struct mm_lane *lane) {
    const bool is_empty = copy->head.filled.first == copy->head.filled.end;
    void *data = copy->head.data == NULL ? acquire(value->bytes, lane) : copy->head.data;
    if (data == NULL || !is_empty)
        return false;
    set_data(copy, data, 0, 0);
    copy->is_copied = true; /* nothing is copied yet */
    return true;
}

cudaError_t mm_cuda_note_copied(const struct mm_lane *lane) {
    const struct mm_job *job = lane->bands.job;
    const struct mm_stored_range read = mm_job_reads(job, MM_OPERAND_B);
    struct mm_cuda_device_copy *copy = find(job->sources[MM_OPERAND_B].stored, lane->device);
    const cudaError_t code = record(&copy->copied, lane);
    if (code != cudaSuccess)
        return code;
    copy->is_copied = false;
    copy->derived[MM_OPERAND_B].was_wanted = true; /* without panels this job would have asked */
    set_data(copy, copy->head.data, read.first, read.end);
    return cudaSuccess;
}

/* Returns NULL if host memory runs out. */
static struct mm_cuda_device_copy *find_or_make(struct mm_stored *value, const struct mm_lane *lane) {
    struct mm_cuda_device_copy *copy = find(value, lane->device);
    if (copy != NULL)
        return copy;
    copy = make_copy(&(struct mm_device_copy){.release = release}, value->bytes, lane->device);
    if (copy != NULL)
        mm_stored_add_copy(value, &copy->head);
    return copy;
}

enum mm_status mm_cuda_acquire_operand(struct mm_job *job, unsigned index, struct mm_lane *lane, void **data,
                                       struct mm_error *error) {
    const struct mm_source *source = &job->sources[index];
    struct mm_stored *value = source->stored;
    cudaError_t code = cudaSuccess;
    *data = NULL;
    if (source->kind != MM_SOURCE_STORED || value->bytes == 0)
        return MM_OK;
    const struct mm_stored_range wanted = mm_job_reads(job, index);
    const bool may_use_panels = index == MM_OPERAND_B && lane->bands.in_panels;
    if (may_use_panels)
        lane->bands.in_panels = false;
    *data = mm_stored_find_part(value, wanted, &lane->device->head);
    if (*data != NULL)
        return MM_OK;
    struct mm_cuda_device_copy *copy = find(value, lane->device);
    if (copy != NULL && copy->head.data != NULL && wanted.first >= copy->head.filled.first &&
        wanted.end <= copy->head.filled.end) {
        code = wait_for(copy->copied, &copy->is_copied, lane);
    } else if (mm_device_copy_check(value->only_copy, error) != MM_OK) {
        return error->status;
    } else {
        copy = find_or_make(value, lane);
        if (may_use_panels && copy != NULL && begin_panels(value, copy, lane))
            lane->bands.in_panels = true;
        else if (copy != NULL)
            code = fill(value, wanted, copy, lane, &job->outcome);
    }
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "copying a stored matrix to the device", error);
    if (copy != NULL)
        *data = copy->head.data;
    return MM_OK;
}

/* Returns the device copy of an operand of the lane's job, or NULL if there is no such copy. */
static struct mm_cuda_device_copy *find_operand(const struct mm_lane *lane, unsigned slot) {
    const struct mm_job *job = lane->bands.job;
    const struct mm_source *source = job == NULL ? NULL : &job->sources[slot];
    return source == NULL || source->kind != MM_SOURCE_STORED ? NULL : find(source->stored, lane->device);
}

/* Whether the lane's job, which is a share, uses only a part of the stored operand. */
static bool is_part(const struct mm_lane *lane, unsigned slot) {
    const struct mm_job *job = lane->bands.job;
    const struct mm_matrix *operand = mm_product_operand(&job->product, slot);
    return job->product.whole.m > 0 && mm_matrix_dense_bytes(operand) < job->sources[slot].stored->bytes;
}

static cudaError_t note(struct derived *derived, const struct mm_lane *lane) {
    derived->is_complete = false;
    return record(&derived->event, lane);
}

void *mm_cuda_acquire_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key,
                              size_t bytes, bool *is_filled) {
    struct mm_cuda_slot *panel = lane->bands.panels[slot];
    if (panel != NULL) {
        if (bytes > panel->kept_bytes || (panel->is_kept && panel->key != key))
            return NULL;
        *is_filled = panel->is_kept;
        panel->key = key;
        return panel->kept;
    }
    struct mm_cuda_device_copy *copy = find_operand(lane, slot);
    if (copy == NULL || copy->head.data != from || is_part(lane, slot))
        return NULL;
    struct derived *derived = &copy->derived[slot];
    const bool is_first = !derived->was_wanted;
    derived->was_wanted = true;
    if (derived->data == NULL && !is_first) {
        derived->data = acquire(bytes, lane);
        derived->bytes = bytes;
        derived->key = key;
        if (derived->data != NULL)
            (void)note(derived, lane); /* if this fails, the kernels that fill the memory will fail too */
    }
    if (derived->data == NULL || derived->key != key || derived->bytes != bytes ||
        wait_for(derived->event, &derived->is_complete, lane) != cudaSuccess) /* later calls fail too */
        return NULL;
    *is_filled = derived->is_filled;
    return derived->data;
}

cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot) {
    struct mm_cuda_slot *panel = lane->bands.panels[slot];
    if (panel != NULL) { /* all launches that use the panel are in this stream */
        panel->is_kept = true;
        return cudaSuccess;
    }
    struct derived *derived = &find_operand(lane, slot)->derived[slot];
    const cudaError_t code = note(derived, lane);
    derived->is_filled = code == cudaSuccess;
    return code;
}

/* Opens a temporary lane with its own stream. With such a lane, any thread can copy while jobs run in the
 * device's lanes. */
static enum mm_status open_lane(struct mm_cuda_device *device, struct mm_lane *lane, struct mm_error *error) {
    *lane = (struct mm_lane){.device = device};
    if (mm_cuda_use(&device->head, error) != MM_OK)
        return MM_DEVICE_FAILED;
    const cudaError_t code = cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking);
    return mm_cuda_status(lane->device, code, "making a stream", error);
}

/* Waits for the lane's stream, and closes the lane. `code` is the result of the work on the stream so far. */
static enum mm_status close_lane(struct mm_lane *lane, cudaError_t code, const char *doing,
                                 struct mm_error *error) {
    const cudaError_t waited = cudaStreamSynchronize(lane->stream);
    cudaStreamDestroy(lane->stream);
    return mm_cuda_status(lane->device, code == cudaSuccess ? waited : code, doing, error);
}

static enum mm_status read(struct mm_device_copy *head, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error) {
    struct mm_lane lane;
    const enum mm_status status = open_lane(((struct mm_cuda_device_copy *)head)->device, &lane, error);
    if (status != MM_OK)
        return status;
    return close_lane(&lane, mm_cuda_copy_part(to, head->data, dtype, part, &lane),
                      "copying a stored matrix from the device", error);
}

static enum mm_status write(struct mm_device_copy *head, size_t offset, const void *from, size_t bytes,
                            struct mm_error *error) {
    struct mm_lane lane;
    const enum mm_status status = open_lane(((struct mm_cuda_device_copy *)head)->device, &lane, error);
    if (status != MM_OK)
        return status;
    return close_lane(
        &lane, cudaMemcpyAsync((char *)head->data + offset, from, bytes, cudaMemcpyHostToDevice, lane.stream),
        "copying a matrix to the device", error);
}

static enum mm_status fail_full(const struct mm_device *device, size_t bytes, struct mm_error *error) {
    const size_t limit = mm_device_stored_bytes_max(device), used = mm_device_stored_bytes(device);
    const size_t free_bytes = limit - mm_size_min(used, limit);
    mm_fail_limit(
        error, "", limit,
        "the matrix needs %zu bytes of memory on %s, but only %zu of the %zu bytes for stored matrices "
        "are free; delete matrices that you no longer need",
        bytes, device->name, free_bytes, limit);
    error->status = MM_STORE_FULL;
    error->needed_bytes = bytes;
    error->free_bytes = free_bytes;
    return MM_STORE_FULL;
}

enum mm_status mm_cuda_acquire_copy_on(size_t bytes, struct mm_lane *lane, struct mm_device_copy **copy,
                                       struct mm_error *error) {
    const struct mm_device_copy head = {.release = release, .read = read, .write = write};
    struct mm_cuda_device_copy *acquired = make_copy(&head, bytes, lane->device);
    void *data = NULL;
    if (acquired == NULL)
        return mm_fail(error, MM_INTERNAL, "out of host memory while storing a matrix on the device");
    const bool fits = reserve(lane->device, bytes, true);
    const enum mm_status status = fits ? mm_cuda_pool_acquire(lane, mm_cuda_aligned(bytes), &data, error)
                                       : fail_full(&lane->device->head, bytes, error);
    if (status != MM_OK) {
        if (fits)
            unreserve(lane->device, bytes, true);
        release(&acquired->head);
        return status;
    }
    acquired->head.data = data;
    *copy = &acquired->head;
    return MM_OK;
}

enum mm_status mm_cuda_acquire_copy(struct mm_device *head, size_t bytes, struct mm_device_copy **copy,
                                    struct mm_error *error) {
    struct mm_device_copy *acquired = NULL;
    struct mm_lane lane;
    enum mm_status status = open_lane((struct mm_cuda_device *)head, &lane, error);
    if (status != MM_OK)
        return status;
    status = mm_cuda_acquire_copy_on(bytes, &lane, &acquired, error);
    const enum mm_status ended =
        close_lane(&lane, cudaSuccess, "acquiring device memory", status == MM_OK ? error : NULL);
    if (status != MM_OK)
        return status;
    if (ended != MM_OK)
        acquired->release(acquired);
    else
        *copy = acquired;
    return ended;
}
