/* Finds, opens and closes CUDA devices, and locks host pages. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/tiles.h"
#include "gpu/cuda/variants.h"

#include <stdio.h>
#include <stdlib.h>

static int opened_index = -1; /* index of the device opened last, or -1; __atomic access only */

/* cudaGetDeviceCount returns the same error for a missing and for a too old driver. So this function also
 * reads the driver's version, which is 0 if the driver is missing. */
enum mm_status mm_cuda_count(unsigned *count, struct mm_error *error) {
    int driver = 0;
    int devices = 0;
    cudaError_t code = cudaDriverGetVersion(&driver);
    if (code == cudaSuccess && driver == 0)
        return mm_fail(error, MM_NOT_READY, "no NVIDIA driver");
    if (code == cudaSuccess)
        code = cudaGetDeviceCount(&devices);
    if (code == cudaErrorInsufficientDriver)
        return mm_fail(error, MM_NOT_READY,
                       "the NVIDIA driver speaks CUDA %d.%d, this build needs %d.0 or newer", driver / 1000,
                       driver % 1000 / 10, CUDART_VERSION / 1000);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && devices == 0))
        return mm_fail(error, MM_NOT_READY, "an NVIDIA driver (CUDA %d.%d), but no CUDA device",
                       driver / 1000, driver % 1000 / 10);
    if (code != cudaSuccess)
        return mm_fail(error, MM_NOT_READY, "CUDA does not start: %s (%s)", cudaGetErrorString(code),
                       cudaGetErrorName(code));
    *count = (unsigned)devices;
    return MM_OK;
}

static cudaError_t lane_open(struct mm_cuda_device *device, struct mm_lane *lane) {
    lane->device = device;
    cudaError_t code = cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking);
    for (unsigned mark = 0; mark < MM_CUDA_MARKS && code == cudaSuccess; mark++)
        code = cudaEventCreate(&lane->marks[mark]);
    if (code == cudaSuccess)
        code = cudaHostAlloc((void **)&lane->path, sizeof *lane->path, cudaHostAllocMapped);
    if (code == cudaSuccess)
        code = cudaHostAlloc((void **)&lane->verification, sizeof *lane->verification, cudaHostAllocMapped);
    if (code == cudaSuccess)
        code = cudaHostAlloc((void **)&lane->reduction, sizeof *lane->reduction, cudaHostAllocMapped);
    return code;
}

static void lane_close(struct mm_lane *lane) {
    mm_cuda_blas_close(lane);
    if (lane->workspace != NULL)
        mm_cuda_pool_free(lane, lane->workspace);
    if (lane->path != NULL)
        cudaFreeHost(lane->path);
    if (lane->verification != NULL)
        cudaFreeHost(lane->verification);
    if (lane->reduction != NULL)
        cudaFreeHost(lane->reduction);
    for (unsigned mark = 0; mark < MM_CUDA_MARKS; mark++)
        if (lane->marks[mark] != NULL)
            cudaEventDestroy(lane->marks[mark]);
    if (lane->stream != NULL)
        cudaStreamDestroy(lane->stream);
}

static cudaError_t describe(struct mm_cuda_device *device) {
    struct mm_device *head = &device->head;
    struct cudaDeviceProp properties;
    int driver = 0;
    int reads = 0;
    cudaError_t code = cudaDriverGetVersion(&driver);
    if (code == cudaSuccess)
        code = cudaGetDeviceProperties(&properties, (int)head->index);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&reads, cudaDevAttrCanUseHostPointerForRegisteredMem, (int)head->index);
    if (code == cudaSuccess)
        code = cudaDeviceGetPCIBusId(head->pci_bus_id, sizeof head->pci_bus_id, (int)head->index);
    if (code != cudaSuccess)
        return code;
    snprintf(head->name, sizeof head->name, "%.*s", (int)sizeof head->name - 1, properties.name);
    snprintf(head->driver, sizeof head->driver, "%d.%d", driver / 1000, driver % 1000 / 10);
    head->compute_capability = (unsigned)(10 * properties.major + properties.minor);
    head->multiprocessors = (unsigned)properties.multiProcessorCount;
    head->memory_bytes = properties.totalGlobalMem;
    head->l2_bytes = (size_t)properties.l2CacheSize;
    head->shared_bytes_per_block_max = properties.sharedMemPerBlockOptin;
    /* Every chip since compute capability 5.0 has banks of 4 bytes. */
    head->shared_bank_bytes = 4;
    device->pitch_bytes_max = properties.memPitch;
    device->reads_locked_pages = reads != 0;
    return cudaSuccess;
}

/* Opens a pool that keeps freed memory, because allocating memory from the driver takes long. */
static cudaError_t pool_open(struct mm_cuda_device *device) {
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .handleTypes = cudaMemHandleTypeNone,
        .location = {.type = cudaMemLocationTypeDevice, .id = (int)device->head.index},
    };
    uint64_t keep_bytes = UINT64_MAX;
    cudaError_t code = cudaMemPoolCreate(&device->pool, &properties);
    if (code == cudaSuccess)
        code = cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &keep_bytes);
    return code;
}

static cudaError_t make(struct mm_cuda_device *device) {
    cudaError_t code = cudaSetDevice((int)device->head.index);
    if (code == cudaSuccess)
        code = describe(device);
    if (code == cudaSuccess)
        code = pool_open(device);
    if (code == cudaSuccess)
        code = lane_open(device, &device->direct);
    if (code == cudaSuccess)
        code = mm_cuda_gate_make(&device->gate);
    if (code == cudaSuccess)
        code = mm_cuda_copier_open(&device->copier);
    for (unsigned lane = 0; lane < MM_CUDA_LANES && code == cudaSuccess; lane++)
        code = lane_open(device, &device->lanes[lane]);
    return code;
}

/* Fails if the build has no code for the device's chip. Checks only a kernel of the first variant, because
 * this variant is compiled for every supported chip. */
static enum mm_status check_code(struct mm_cuda_device *device, struct mm_error *error) {
    struct mm_attributes ignored;
    struct mm_plan plan;
    enum mm_dtype dtype;
    struct mm_error reason;
    if (mm_plan_smallest(&device->head, &mm_cuda_variants[0], 0, &plan, &dtype, &reason) == MM_OK &&
        mm_cuda_attributes(&device->head, &plan, &ignored, &reason) == MM_OK)
        return MM_OK;
    return mm_fail(error, MM_NOT_READY,
                   "CUDA device %u (%s, compute capability %u.%u) cannot run this build for %s: %.150s",
                   device->head.index, device->head.name, device->head.compute_capability / 10,
                   device->head.compute_capability % 10, MM_CUDA_ARCHITECTURES, reason.detail);
}

/* Lets `reader` read the memory of `owner`, if the hardware can. Otherwise CUDA copies through the host. */
static void connect(struct mm_cuda_device *reader, const struct mm_cuda_device *owner) {
    const int from = (int)owner->head.index, to = (int)reader->head.index;
    const struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = to},
                                             .flags = cudaMemAccessFlagsProtReadWrite};
    int can_read = 0;
    if (cudaDeviceCanAccessPeer(&can_read, to, from) != cudaSuccess || can_read == 0 ||
        cudaSetDevice(to) != cudaSuccess)
        return;
    const cudaError_t code = cudaDeviceEnablePeerAccess(from, 0);
    (void)cudaGetLastError();
    if ((code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled) &&
        cudaMemPoolSetAccess(owner->pool, &access, 1) == cudaSuccess)
        reader->head.peers |= UINT64_C(1) << from;
}

enum mm_status mm_cuda_open(unsigned index, struct mm_device **device, struct mm_error *error) {
    unsigned count = 0;
    enum mm_status status = mm_cuda_count(&count, error);
    if (status != MM_OK)
        return status;
    if (index >= count)
        return mm_fail(error, MM_NOT_READY, "there is no CUDA device %u; %u were found, numbered from 0",
                       index, count);
    struct mm_cuda_device *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return mm_fail(error, MM_INTERNAL, "out of memory while opening CUDA device %u", index);
    opened->head.backend = &mm_cuda_backend;
    opened->head.index = index;
    opened->head.lane_count = MM_CUDA_LANES;
    const cudaError_t code = make(opened);
    if (code != cudaSuccess)
        status = mm_fail(error, MM_NOT_READY, "CUDA device %u does not open: %s (%s)", index,
                         cudaGetErrorString(code), cudaGetErrorName(code));
    else
        status = check_code(opened, error);
    if (status != MM_OK) {
        mm_cuda_close(&opened->head);
        return status;
    }
    for (struct mm_cuda_device *other = mm_cuda_open_devices(); other != NULL; other = other->next_opened) {
        connect(opened, other);
        connect(other, opened);
    }
    __atomic_store_n(&opened_index, (int)index, __ATOMIC_RELAXED);
    mm_cuda_add_open_device(opened);
    *device = &opened->head;
    return MM_OK;
}

void mm_cuda_close(struct mm_device *head) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    mm_cuda_remove_open_device(device);
    cudaSetDevice((int)head->index);
    mm_cuda_drop_copies(device, true);
    for (unsigned lane = MM_CUDA_LANES; lane-- > 0;)
        lane_close(&device->lanes[lane]);
    lane_close(&device->direct);
    mm_cuda_copier_close(&device->copier);
    mm_cuda_gate_free(device->gate);
    if (device->pool != NULL)
        cudaMemPoolDestroy(device->pool);
    free(device);
}

/* Makes an open device current. Otherwise CUDA would use device 0, even if the user has excluded device 0. */
static bool use_any(void) {
    const int index = __atomic_load_n(&opened_index, __ATOMIC_RELAXED);
    return index >= 0 && cudaSetDevice(index) == cudaSuccess;
}

/* Calls cudaGetLastError after a failure, so later CUDA calls do not return the old error. */
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
