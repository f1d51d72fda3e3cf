/* What a CUDA error means for a job and for its device. */
#include "gpu/cuda/device.h"

enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error) {
    const cudaError_t code = cudaSetDevice((int)head->index);
    if (code == cudaSuccess)
        return MM_OK;
    return mm_cuda_fail((struct mm_cuda_device *)head, code, "being selected", error);
}

enum mm_status mm_cuda_fail(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                            struct mm_error *error) {
    (void)cudaGetLastError(); /* else who asks for the last error later is told of this one */

    /* After a kernel's fault (an illegal address, an assertion, an uncorrectable memory error) the
     * context is lost, and every later call repeats the error. That is the test, rather than a list
     * of codes, which grows with each CUDA. */
    if (cudaDeviceSynchronize() != cudaSuccess) {
        __atomic_store_n(&device->head.failed, 1, __ATOMIC_RELEASE);
        return mm_fail(error, MM_DEVICE_FAILED, "%s failed while %s and takes no more jobs: %s (%s)",
                       device->head.name, doing, cudaGetErrorString(code), cudaGetErrorName(code));
    }
    if (code == cudaErrorMemoryAllocation) {
        const size_t free_bytes = mm_cuda_memory_free(&device->head);
        mm_fail(error, MM_NO_DEVICE_MEMORY, "%s ran out of memory while %s; %zu bytes are free",
                device->head.name, doing, free_bytes);
        if (error != NULL)
            error->free_bytes = free_bytes;
        return MM_NO_DEVICE_MEMORY;
    }
    return mm_fail(error, MM_INTERNAL, "%s failed while %s: %s (%s)", device->head.name, doing,
                   cudaGetErrorString(code), cudaGetErrorName(code));
}
