/* Stored values in a device's memory. A copy is made when a job first uses the value there, and is kept until
 * the value ends, or until device memory is short. A home is what this device alone has, and is kept until
 * the value ends. This file knows no names. */
#include "gpu/cuda/device.h"
#include "gpu/store/store.h"

#include <pthread.h>
#include <stdlib.h>

/* All of them take at most this part of the device's memory. Past it values are copied for each job, and
 * there is no home for another. */
enum { REPLICAS_PART = 4 };

struct mm_cuda_replica {
    struct mm_replica head; /* first; a copy's data may be NULL: dropped, and made anew if it is used again */
    struct mm_cuda_device *device; /* NULL: it was closed */
    size_t bytes;
    cudaEvent_t copied; /* the copy is there once this is over */
    bool is_copied;     /* the copy is known to be complete; only the lanes' thread uses this */
    LIST_ENTRY(mm_cuda_replica) listed;
};

/* Guards the lists of all devices and what the replicas on them hold. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_home(const struct mm_cuda_replica *replica) {
    return replica->head.read != NULL;
}

/* Counts so many bytes more. With the mutex held. */
static void count(const struct mm_cuda_replica *replica, size_t bytes) {
    replica->device->replica_bytes += bytes;
    if (is_home(replica))
        replica->device->home_bytes += bytes;
}

/* Detaches a listed replica's memory and returns it; the caller frees it. With the mutex held. */
static void *take_data(struct mm_cuda_replica *replica) {
    void *data = replica->head.data;
    if (data != NULL)
        count(replica, -replica->bytes);
    __atomic_store_n(&replica->head.data, NULL, __ATOMIC_RELAXED);
    replica->is_copied = false;
    return data;
}

/* The value has ended, so no job uses it any more. */
static void release(struct mm_replica *head) {
    struct mm_cuda_replica *replica = (struct mm_cuda_replica *)head;
    pthread_mutex_lock(&mutex);
    struct mm_cuda_device *device = replica->device;
    void *data = device == NULL ? NULL : take_data(replica);
    if (device != NULL)
        LIST_REMOVE(replica, listed);
    pthread_mutex_unlock(&mutex);
    if (device != NULL && mm_cuda_use(&device->head, NULL) == MM_OK) {
        cudaEventDestroy(replica->copied);
        if (data != NULL)
            mm_cuda_give(&device->direct, data);
    }
    free(replica);
}

void mm_cuda_drop_replicas(struct mm_cuda_device *device, bool for_good) {
    struct mm_cuda_replica *replica, *next;
    pthread_mutex_lock(&mutex);
    for (replica = LIST_FIRST(&device->replicas); replica != NULL; replica = next) {
        next = LIST_NEXT(replica, listed);
        if (is_home(replica) && !for_good)
            continue;
        void *data = take_data(replica);
        if (data != NULL)
            mm_cuda_give(&device->direct, data);
        if (!for_good)
            continue;
        LIST_REMOVE(replica, listed);
        cudaEventDestroy(replica->copied);
        replica->device = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

static struct mm_cuda_replica *find(const struct mm_stored *value, const struct mm_cuda_device *device) {
    return (struct mm_cuda_replica *)mm_stored_find_replica(value, &device->head);
}

/* Lets the lane's stream wait for the copy, which another lane may have begun. */
static cudaError_t wait_for_copy(struct mm_cuda_replica *replica, const struct mm_lane *lane) {
    if (replica->is_copied)
        return cudaSuccess;
    const cudaError_t code = cudaEventQuery(replica->copied);
    replica->is_copied = code == cudaSuccess;
    if (code != cudaErrorNotReady)
        return code;
    (void)cudaGetLastError(); /* else a later question for the last error gets this one */
    return cudaStreamWaitEvent(lane->stream, replica->copied, 0);
}

/* What is left beside `taken`, one of the device's two accounts. */
static size_t room_bytes(const struct mm_cuda_device *device, const size_t *taken) {
    pthread_mutex_lock(&mutex);
    const size_t bytes = device->head.memory_bytes / REPLICAS_PART - *taken;
    pthread_mutex_unlock(&mutex);
    return bytes;
}

/* Without memory. NULL if the system has none. */
static struct mm_cuda_replica *make_replica(size_t bytes, struct mm_cuda_device *device) {
    struct mm_cuda_replica *replica = calloc(1, sizeof *replica);
    if (replica == NULL)
        return NULL;
    replica->head = (struct mm_replica){.device = &device->head, .release = release};
    replica->device = device;
    replica->bytes = bytes;
    if (cudaEventCreateWithFlags(&replica->copied, cudaEventDisableTiming) != cudaSuccess) {
        free(replica);
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    LIST_INSERT_HEAD(&device->replicas, replica, listed);
    pthread_mutex_unlock(&mutex);
    return replica;
}

static void set_data(struct mm_cuda_replica *replica, void *data) {
    pthread_mutex_lock(&mutex);
    count(replica, replica->bytes);
    __atomic_store_n(&replica->head.data, data, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&mutex);
}

cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, void *to, const struct mm_lane *lane) {
    const struct mm_replica *home = value->home;
    if (home == NULL)
        return cudaMemcpyAsync(to, value->data, value->bytes, cudaMemcpyHostToDevice, lane->stream);
    struct mm_device *device = &lane->device->head;
    const cudaError_t code = cudaMemcpyPeerAsync(to, (int)device->index, home->data, (int)home->device->index,
                                                 value->bytes, lane->stream);
    if (code == cudaSuccess)
        __atomic_add_fetch(&device->peer_bytes, value->bytes, __ATOMIC_RELAXED);
    return code;
}

/* Takes memory, and enqueues the copy. */
static cudaError_t copy(const struct mm_stored *value, struct mm_cuda_replica *replica,
                        struct mm_lane *lane) {
    void *data;
    if (mm_cuda_take(lane, mm_cuda_aligned(value->bytes), &data, NULL) != MM_OK)
        return cudaSuccess;
    cudaError_t code = mm_cuda_copy_stored(value, data, lane);
    if (code == cudaSuccess)
        code = cudaEventRecord(replica->copied, lane->stream);
    if (code != cudaSuccess) {
        mm_cuda_give(lane, data);
        return code;
    }
    set_data(replica, data);
    return cudaSuccess;
}

/* The value's replica on the lane's device, which is made if there is none; NULL if the system has no memory.
 */
static struct mm_cuda_replica *find_or_make(struct mm_stored *value, const struct mm_lane *lane) {
    struct mm_cuda_replica *replica = find(value, lane->device);
    if (replica != NULL)
        return replica;
    replica = make_replica(value->bytes, lane->device);
    if (replica != NULL)
        mm_stored_add_replica(value, &replica->head);
    return replica;
}

enum mm_status mm_cuda_hold_replica(const struct mm_source *source, struct mm_lane *lane,
                                    size_t *copied_bytes, void **data, struct mm_error *error) {
    struct mm_cuda_device *device = lane->device;
    struct mm_stored *value = source->stored;
    cudaError_t code = cudaSuccess;
    *data = NULL;
    if (source->kind != MM_SOURCE_STORED || value->bytes == 0)
        return MM_OK;
    struct mm_cuda_replica *replica = find(value, device);
    if (replica != NULL && replica->head.data != NULL) {
        code = wait_for_copy(replica, lane);
    } else if (mm_replica_judge_home(value->home, error) != MM_OK) {
        return error->status;
    } else if (value->bytes <= room_bytes(device, &device->replica_bytes)) {
        replica = find_or_make(value, lane);
        if (replica != NULL)
            code = copy(value, replica, lane);
        if (replica != NULL && replica->head.data != NULL)
            *copied_bytes += value->home == NULL ? value->bytes : 0;
    }
    if (code != cudaSuccess)
        return mm_cuda_status(device, code, "copying a stored matrix to the device", error);
    if (replica != NULL)
        *data = replica->head.data;
    return MM_OK;
}

/* --- homes */

/* By a stream of its own: the device's work goes on beside it, and several threads may read at a time. */
static enum mm_status read(struct mm_replica *head, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error) {
    struct mm_lane lane = {.device = ((struct mm_cuda_replica *)head)->device};
    const enum mm_status status = mm_cuda_use(&lane.device->head, error);
    if (status != MM_OK)
        return status;
    cudaError_t code = cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
    if (code == cudaSuccess) {
        code = mm_cuda_copy_part(to, head->data, dtype, part, &lane);
        const cudaError_t waited = cudaStreamSynchronize(lane.stream);
        code = code == cudaSuccess ? waited : code;
        cudaStreamDestroy(lane.stream);
    }
    return mm_cuda_status(lane.device, code, "copying a stored matrix from the device", error);
}

/* Copies can be dropped, homes cannot. */
static enum mm_status fail_room(const struct mm_cuda_device *device, size_t bytes, struct mm_error *error) {
    const size_t limit = device->head.memory_bytes / REPLICAS_PART;
    const size_t free_bytes = room_bytes(device, &device->home_bytes);
    mm_fail_limit(error, "", limit,
                  "the result needs %zu bytes of the memory of %s, where stored matrices may take %zu, of "
                  "which %zu are free; delete what you no longer need",
                  bytes, device->head.name, limit, free_bytes);
    error->status = bytes <= free_bytes ? MM_NO_DEVICE_MEMORY : MM_STORE_FULL;
    error->needed_bytes = bytes;
    error->free_bytes = free_bytes;
    return error->status;
}

enum mm_status mm_cuda_take_home(size_t bytes, struct mm_lane *lane, struct mm_replica **home,
                                 struct mm_error *error) {
    struct mm_cuda_device *device = lane->device;
    void *data;
    if (bytes > room_bytes(device, &device->replica_bytes))
        return fail_room(device, bytes, error);
    struct mm_cuda_replica *replica = make_replica(bytes, device);
    if (replica == NULL)
        return mm_fail(error, MM_INTERNAL, "the system has no memory for a matrix's place on the device");
    replica->head.read = read;
    replica->is_copied = true;
    if (mm_cuda_take(lane, mm_cuda_aligned(bytes), &data, error) != MM_OK) {
        release(&replica->head);
        return error->status;
    }
    set_data(replica, data);
    *home = &replica->head;
    return MM_OK;
}
