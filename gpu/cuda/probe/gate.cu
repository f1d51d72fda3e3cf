/* A gate is a kernel that waits until the host opens the gate. Work that is enqueued after the gate in a
 * stream waits too. The host closes the gate, enqueues a whole measurement, and then opens the gate. So the
 * measured time does not include the host's time for launches, which is tens of microseconds for cuBLAS. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/stream.h"

/* The state of a gate, in locked host memory that the device can read and write. */
struct mm_cuda_gate {
    unsigned is_open;
    unsigned has_timed_out;
};

namespace {

/* The longest wait at a gate. Under a debugger, or while a library loads a kernel, a launch can block the
 * host until the stream is empty. Without this limit, host and gate would wait for each other forever. */
constexpr unsigned long long WAIT_NS_MAX = 2000000;

__device__ unsigned long long now_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void wait(volatile struct mm_cuda_gate *gate) {
    const unsigned long long until_ns = now_ns() + WAIT_NS_MAX;
    while (gate->is_open == 0) {
        if (now_ns() >= until_ns) {
            gate->has_timed_out = 1;
            break;
        }
    }
}

} // namespace

cudaError_t mm_cuda_gate_make(struct mm_cuda_gate **gate) {
    return cudaHostAlloc(gate, sizeof **gate, cudaHostAllocMapped);
}

void mm_cuda_gate_free(struct mm_cuda_gate *gate) {
    if (gate != nullptr)
        cudaFreeHost(gate);
}

cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream) {
    void *arguments[] = {&gate};
    __atomic_store_n(&gate->has_timed_out, 0u, __ATOMIC_RELAXED);
    __atomic_store_n(&gate->is_open, 0u, __ATOMIC_RELEASE);
    return cudaLaunchKernel(reinterpret_cast<const void *>(wait), dim3(1), dim3(1), arguments, 0, stream);
}

void mm_cuda_gate_open(struct mm_cuda_gate *gate) {
    __atomic_store_n(&gate->is_open, 1u, __ATOMIC_RELEASE);
}

bool mm_cuda_gate_timed_out(const struct mm_cuda_gate *gate) {
    return __atomic_load_n(&gate->has_timed_out, __ATOMIC_ACQUIRE) != 0;
}
