/* A gate in a stream: what is enqueued behind it starts once the host opens it. A measurement is enqueued as
 * a whole behind one, its two marks and the work between them, so that the time between the marks is the
 * device's and not that of a host which still enqueues: cuBLAS takes tens of microseconds for that. */
#include "gpu/cuda/device.h"

namespace {

/* What a gate waits at most, by the device's clock: a launch may itself wait until the stream is empty (it
 * does under a debugger, or where a library loads a kernel), and nobody would open the gate before it
 * returns. */
constexpr unsigned long long WAIT_NS_MAX = 2000000;

__device__ unsigned long long now_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void gate(const volatile unsigned *is_open) {
    const unsigned long long until_ns = now_ns() + WAIT_NS_MAX;
    while (*is_open == 0 && now_ns() < until_ns) {
    }
}

} // namespace

cudaError_t mm_cuda_gate_make(struct mm_cuda_device *device) {
    return cudaHostAlloc(&device->gate, sizeof *device->gate, cudaHostAllocMapped);
}

void mm_cuda_gate_free(struct mm_cuda_device *device) {
    if (device->gate != nullptr)
        cudaFreeHost(device->gate);
}

cudaError_t mm_cuda_gate_close(struct mm_cuda_device *device) {
    void *arguments[] = {&device->gate};
    __atomic_store_n(device->gate, 0u, __ATOMIC_RELAXED);
    return cudaLaunchKernel(reinterpret_cast<const void *>(gate), dim3(1), dim3(1), arguments, 0,
                            device->direct.stream);
}

void mm_cuda_gate_open(struct mm_cuda_device *device) {
    __atomic_store_n(device->gate, 1u, __ATOMIC_RELEASE);
}
