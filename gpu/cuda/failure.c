/* Decides what a CUDA error means for a job, for its device, and for other devices of the process. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the list of open devices */
static struct mm_cuda_device *opened;

void mm_cuda_add_open_device(struct mm_cuda_device *device) {
    pthread_mutex_lock(&mutex);
    device->next_opened = opened;
    opened = device;
    pthread_mutex_unlock(&mutex);
}

struct mm_cuda_device *mm_cuda_open_devices(void) {
    return opened;
}

void mm_cuda_remove_open_device(const struct mm_cuda_device *device) {
    pthread_mutex_lock(&mutex);
    struct mm_cuda_device **at = &opened;
    while (*at != NULL && *at != device)
        at = &(*at)->next_opened;
    if (*at != NULL)
        *at = device->next_opened;
    pthread_mutex_unlock(&mutex);
}

static void mark_failed(struct mm_cuda_device *device) {
    __atomic_store_n(&device->head.failed, 1, __ATOMIC_RELEASE);
}

/* A fault in one kernel can make every CUDA call of the process fail, on every device. So this function sets
 * `failed` of the other devices that no longer work. Then requests that wait for such a device fail at
 * once. */
static void check_others(const struct mm_cuda_device *failed) {
    size_t free_bytes;
    size_t total_bytes;
    pthread_mutex_lock(&mutex);
    for (struct mm_cuda_device *other = opened; other != NULL; other = other->next_opened)
        if (other != failed && (cudaSetDevice((int)other->head.index) != cudaSuccess ||
                                cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess))
            mark_failed(other);
    pthread_mutex_unlock(&mutex);
    (void)cudaSetDevice((int)failed->head.index);
}

enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error) {
    const cudaError_t code = cudaSetDevice((int)head->index);
    return mm_cuda_status((struct mm_cuda_device *)head, code, "being selected", error);
}

enum mm_status mm_cuda_status(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                              struct mm_error *error) {
    if (code == cudaSuccess)
        return MM_OK;
    (void)cudaGetLastError();

    if (code == cudaErrorMemoryAllocation) /* the device still works, so no synchronization is needed */
        return mm_cuda_fail_memory(device, 0, error);

    /* Synchronizing fails if a kernel has faulted. After other errors, synchronizing succeeds. */
    if (cudaDeviceSynchronize() != cudaSuccess) {
        mark_failed(device);
        check_others(device);
        return mm_fail(error, MM_DEVICE_FAILED, "%s failed while %s and takes no more jobs: %s (%s)",
                       device->head.name, doing, cudaGetErrorString(code), cudaGetErrorName(code));
    }
    return mm_fail(error, MM_INTERNAL, "%s failed while %s: %s (%s)", device->head.name, doing,
                   cudaGetErrorString(code), cudaGetErrorName(code));
}
