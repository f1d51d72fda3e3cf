/* Allocates device memory from a pool, in a stream's order. Also copies data for tests and benchmarks. */
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/job_memory.h"

enum mm_status mm_cuda_fail_memory(const struct mm_cuda_device *device, uint64_t needed_bytes,
                                   struct mm_error *error) {
    if (error == NULL)
        return MM_NO_DEVICE_MEMORY;
    return mm_fail_device_memory(error, device->head.name, needed_bytes, mm_cuda_memory_free(&device->head));
}

enum mm_status mm_cuda_pool_acquire(struct mm_lane *lane, size_t bytes, void **memory,
                                    struct mm_error *error) {
    struct mm_cuda_device *device = lane->device;
    const size_t at_least = bytes > 0 ? bytes : 1; /* cudaMallocFromPoolAsync refuses 0 bytes */
    void *taken = NULL;
    const cudaError_t code = cudaMallocFromPoolAsync(&taken, at_least, device->pool, lane->stream);
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return mm_cuda_fail_memory(device, bytes, error);
    }
    if (code == cudaSuccess)
        *memory = taken;
    return mm_cuda_status(device, code, "allocating device memory", error);
}

void mm_cuda_pool_free(struct mm_lane *lane, void *memory) {
    /* A failure is ignored. It means that the device has failed, and then the memory is lost anyway. */
    cudaFreeAsync(memory, lane->stream);
}

static void drop_workspace(struct mm_lane *lane) {
    if (lane->workspace != NULL)
        mm_cuda_pool_free(lane, lane->workspace);
    lane->workspace = NULL;
    __atomic_store_n(&lane->workspace_bytes, 0, __ATOMIC_RELAXED);
}

/* A workspace up to this size is made 50% larger, so it is seldom replaced if products grow slowly. */
enum { SMALL_BYTES = 64 << 20 };

enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error) {
    if (bytes > lane->workspace_bytes || lane->workspace == NULL) {
        size_t taken = bytes <= SMALL_BYTES ? bytes + bytes / 2 : bytes;
        drop_workspace(lane);
        enum mm_status status = mm_cuda_pool_acquire(lane, taken, &lane->workspace, error);
        if (status != MM_OK && taken > bytes) {
            taken = bytes;
            status = mm_cuda_pool_acquire(lane, taken, &lane->workspace, error);
        }
        if (status != MM_OK)
            return status;
        __atomic_store_n(&lane->workspace_bytes, taken, __ATOMIC_RELAXED);
    }
    *memory = lane->workspace;
    return MM_OK;
}

void mm_cuda_free_large_workspace(struct mm_lane *lane) {
    if (lane->workspace_bytes > mm_cuda_large_bytes(&lane->device->head))
        drop_workspace(lane);
}

void mm_cuda_trim(struct mm_cuda_device *device) {
    bool is_busy = false;
    for (unsigned lane = 0; lane < MM_CUDA_LANES; lane++) {
        is_busy |= device->lanes[lane].is_busy;
        if (!device->lanes[lane].is_busy)
            drop_workspace(&device->lanes[lane]);
    }
    drop_workspace(&device->direct);
    if (!is_busy)
        mm_cuda_drop_copies(device, false);
    cudaDeviceSynchronize();
    cudaMemPoolTrimTo(device->pool, 0);
}

size_t mm_cuda_memory_free(const struct mm_device *head) {
    const struct mm_cuda_device *device = (const struct mm_cuda_device *)head;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    uint64_t reserved_bytes = 0;
    uint64_t used_bytes = 0;
    if (cudaSetDevice((int)head->index) != cudaSuccess ||
        cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        return 0;
    if (cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent, &reserved_bytes) !=
            cudaSuccess ||
        cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent, &used_bytes) != cudaSuccess)
        return free_bytes;
    free_bytes += (size_t)(reserved_bytes > used_bytes ? reserved_bytes - used_bytes : 0);
    for (unsigned index = 0; index < MM_CUDA_LANES; index++) {
        const struct mm_lane *lane = &device->lanes[index];
        if (!__atomic_load_n(&lane->is_busy, __ATOMIC_RELAXED))
            free_bytes +=
                __atomic_load_n(&lane->workspace_bytes, __ATOMIC_RELAXED); /* mm_cuda_trim can free this */
    }
    free_bytes += __atomic_load_n(&device->direct.workspace_bytes, __ATOMIC_RELAXED);
    return free_bytes;
}

enum mm_status mm_cuda_acquire(struct mm_device *head, size_t bytes, void **memory, struct mm_error *error) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_cuda_retry retry = {.lane = &device->direct};
    void *taken = NULL;
    enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK)
        return status;
    do
        status = mm_cuda_pool_acquire(&device->direct, bytes, &taken, error);
    while (status == MM_NO_DEVICE_MEMORY && mm_cuda_prepare_retry(&retry));
    if (status != MM_OK)
        return status;
    /* Wait for the allocation, because the caller may use the memory on other streams. */
    const cudaError_t code = cudaStreamSynchronize(device->direct.stream);
    if (code != cudaSuccess) {
        mm_cuda_pool_free(&device->direct, taken);
        return mm_cuda_status(device, code, "acquiring device memory", error);
    }
    *memory = taken;
    return MM_OK;
}

void mm_cuda_release(struct mm_device *head, void *memory) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    if (memory == NULL || mm_cuda_use(head, NULL) != MM_OK)
        return;
    mm_cuda_pool_free(&device->direct, memory);
    cudaStreamSynchronize(device->direct.stream);
}

/* Copies on the direct lane's stream and waits. cudaMemcpy would be wrong here. It uses the default stream,
 * and the lanes' streams do not wait for the default stream. */
static enum mm_status copy(struct mm_device *head, void *to, const void *from, size_t bytes,
                           enum cudaMemcpyKind kind, struct mm_error *error) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    const enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK || bytes == 0)
        return status;
    cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, device->direct.stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(device->direct.stream);
    return mm_cuda_status(device, code, "copying", error);
}

enum mm_status mm_cuda_upload(struct mm_device *head, void *to_device, const void *from_host, size_t bytes,
                              struct mm_error *error) {
    return copy(head, to_device, from_host, bytes, cudaMemcpyHostToDevice, error);
}

enum mm_status mm_cuda_download(struct mm_device *head, void *to_host, const void *from_device, size_t bytes,
                                struct mm_error *error) {
    return copy(head, to_host, from_device, bytes, cudaMemcpyDeviceToHost, error);
}
