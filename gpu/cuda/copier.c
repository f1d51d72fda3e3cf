/* Makes the streams and events of products in tiles or panels, and waits for the streams. */
#include "gpu/cuda/tiles.h"

static cudaError_t open_slots(struct mm_cuda_slot *slots, unsigned count) {
    cudaError_t code = cudaSuccess;
    for (unsigned index = 0; index < count && code == cudaSuccess; index++) {
        code = cudaEventCreateWithFlags(&slots[index].ready, cudaEventDisableTiming);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&slots[index].used, cudaEventDisableTiming);
    }
    return code;
}

cudaError_t mm_cuda_copier_open(struct mm_cuda_copier *copier) {
    cudaError_t code = cudaStreamCreateWithFlags(&copier->upload, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&copier->download, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = open_slots(copier->a, MM_TILING_SLOTS_MAX);
    if (code == cudaSuccess)
        code = open_slots(copier->b, MM_TILING_SLOTS_MAX);
    if (code == cudaSuccess)
        code = open_slots(copier->c, MM_TILING_C_SLOTS);
    for (unsigned index = 0; index < MM_CUDA_TILES_AHEAD && code == cudaSuccess; index++) {
        code = cudaEventCreateWithFlags(&copier->computed[index], cudaEventDefault);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&copier->checked[index], cudaEventDefault);
    }
    return code;
}

static void close_event(cudaEvent_t event) {
    if (event != NULL)
        cudaEventDestroy(event);
}

static void close_slots(const struct mm_cuda_slot *slots, unsigned count) {
    for (unsigned index = 0; index < count; index++) {
        close_event(slots[index].ready);
        close_event(slots[index].used);
    }
}

void mm_cuda_copier_close(const struct mm_cuda_copier *copier) {
    close_slots(copier->a, MM_TILING_SLOTS_MAX);
    close_slots(copier->b, MM_TILING_SLOTS_MAX);
    close_slots(copier->c, MM_TILING_C_SLOTS);
    for (unsigned index = 0; index < MM_CUDA_TILES_AHEAD; index++) {
        close_event(copier->computed[index]);
        close_event(copier->checked[index]);
    }
    if (copier->upload != NULL)
        cudaStreamDestroy(copier->upload);
    if (copier->download != NULL)
        cudaStreamDestroy(copier->download);
}

cudaError_t mm_cuda_wait(const struct mm_lane *lane) {
    cudaError_t code = cudaStreamSynchronize(lane->stream);
    if (lane->bands.tiling.rows == 0 && !lane->bands.in_panels)
        return code;
    const cudaStream_t streams[] = {lane->device->copier.upload, lane->device->copier.download};
    for (unsigned index = 0; index < 2; index++) {
        const cudaError_t waited = cudaStreamSynchronize(streams[index]);
        code = code == cudaSuccess ? waited : code;
    }
    return code;
}
