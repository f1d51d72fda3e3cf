/* Figures of GPUs from NVIDIA's management library (NVML). The program loads NVML at run time and works
 * without it. A thread asks NVML every second, because a call can take long, or hang if a GPU is broken. */
#pragma once

#include "gpu/device/backend.h"

enum mm_gpu_figure {
    MM_GPU_UTILIZATION, /* part of the last moments in which a kernel ran: 0 to 1 */
    MM_GPU_MEMORY_USED_BYTES,
    MM_GPU_MEMORY_TOTAL_BYTES,
    MM_GPU_POWER_W,
    MM_GPU_FIGURES
};

struct mm_gpu {
    char uuid[96];
    double figures[MM_GPU_FIGURES]; /* NaN: NVML does not know the figure */
};

/* Starts the thread if a device has a pci_bus_id. */
void mm_nvml_start(struct mm_device *const *devices, size_t count);

/* Stops the thread. Waits for its end, but at most a second, because a call of NVML can hang. */
void mm_nvml_stop(void);

/* Copies the latest figures of each GPU, and returns the number of GPUs. Returns 0 if NVML is missing or has
 * not answered for some seconds. Any thread. Does not wait for NVML. */
size_t mm_nvml_look(struct mm_gpu gpus[MM_DEVICES_MAX]);
