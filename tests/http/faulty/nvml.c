/* A stand-in for NVIDIA's management library. It knows the GPUs of the faulty server (backends.c): GPU 0 has
 * all figures, GPU 1 only its memory. While the file MATMULD_FAULTY_NVML exists, its functions hang. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **gpu);
int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned bytes);
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned percents[2]);
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long bytes[3]);
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts);

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static char gpus[2];

int nvmlInit_v2(void) {
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **gpu) {
    const int is_first = strcmp(pci_bus_id, "FFFF:FF:00.0") == 0;
    *gpu = is_first ? &gpus[0] : &gpus[1];
    return is_first || strcmp(pci_bus_id, "FFFF:FF:01.0") == 0 ? 0 : NOT_FOUND;
}

int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned bytes) {
    snprintf(uuid, bytes, "GPU-00000000-0000-0000-0000-00000000000%d", gpu == &gpus[1]);
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *gpu, unsigned percents[2]) {
    percents[0] = 37;
    percents[1] = 99;
    return gpu == &gpus[0] ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long bytes[3]) {
    const char *hold = getenv("MATMULD_FAULTY_NVML");
    while (hold != NULL && access(hold, F_OK) == 0)
        usleep(10000);
    bytes[0] = 150754820096;
    bytes[1] = 50754820096;
    bytes[2] = 100000000000;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) {
    *milliwatts = 612345;
    return gpu == &gpus[0] ? 0 : NOT_SUPPORTED;
}
