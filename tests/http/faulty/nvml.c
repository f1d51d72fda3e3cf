/* A stand-in for NVIDIA's management library. It knows the GPUs of the faulty server (backends.c): GPU 0 has
 * all figures, GPU 1 only its memory. While the file MATMULD_FAULTY_NVML exists, its functions hang. */
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu);
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned percents[2]);
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long bytes[3]);
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts);

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static char gpus[2];

int nvmlInit_v2(void) {
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu) {
    static const char all_but_last[] = "GPU-00000000-0000-0000-0000-00000000000";
    const size_t length = sizeof all_but_last - 1;
    if (strncmp(uuid, all_but_last, length) != 0 || (uuid[length] != '0' && uuid[length] != '1'))
        return NOT_FOUND;
    *gpu = &gpus[uuid[length] - '0'];
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
