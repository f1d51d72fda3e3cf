/* Pages of the host, locked for all devices. */
#include "gpu/cuda/device.h"

/* A thread that has no current device would get the first, which may be none of those that were chosen. */
static bool use_any(void) {
    const int index = __atomic_load_n(&mm_cuda_opened_index, __ATOMIC_RELAXED);
    return index >= 0 && cudaSetDevice(index) == cudaSuccess;
}

/* An error that is not taken would be found by the thread's next call. */
static bool lock(void *memory, size_t bytes) {
    if (!use_any())
        return false;
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped) == cudaSuccess)
        return true;
    (void)cudaGetLastError();
    return false;
}

static void unlock(void *memory) {
    if (!use_any() || cudaHostUnregister(memory) != cudaSuccess)
        (void)cudaGetLastError();
}

const struct mm_page_locking mm_cuda_page_locking = {lock, unlock};
