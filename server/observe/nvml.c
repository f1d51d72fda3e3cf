/* This file declares NVML's functions (https://docs.nvidia.com/deploy/nvml-api), so the build does not need
 * NVIDIA's headers. */
#include "server/observe/nvml.h"

#include "gpu/clock.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { PAUSE_MS = 100, ASK_EVERY = 10, STALE_S = 5 };

struct utilization {
    unsigned kernel_percent, memory_percent;
};

struct memory {
    unsigned long long total_bytes, free_bytes, used_bytes;
};

/* NVML's functions return 0 if they succeed. */
static struct {
    int (*init)(void);
    int (*find)(const char *uuid, void **gpu);
    int (*utilization)(void *gpu, struct utilization *utilization);
    int (*memory)(void *gpu, struct memory *memory);
    int (*power)(void *gpu, unsigned *milliwatts);
} nvml;

static const struct {
    const char *name;
    void *function; /* address of the function pointer to set */
} symbols[] = {
    {"nvmlInit_v2", &nvml.init},
    {"nvmlDeviceGetHandleByUUID", &nvml.find},
    {"nvmlDeviceGetUtilizationRates", &nvml.utilization},
    {"nvmlDeviceGetMemoryInfo", &nvml.memory},
    {"nvmlDeviceGetPowerUsage", &nvml.power},
};

static pthread_t thread;
static size_t wanted_count; /* GPUs of the thread; 0: the thread was not started */
static int stopping;        /* __atomic access only */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the next three variables */
static struct mm_gpu latest[MM_DEVICES_MAX];
static size_t latest_count;
static uint64_t latest_ns;

/* The library stays open until the process ends. */
static bool open_library(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t index = 0; index < sizeof symbols / sizeof *symbols; index++) {
        void *symbol = library == NULL ? NULL : dlsym(library, symbols[index].name);
        if (symbol == NULL)
            return false;
        memcpy(symbols[index].function, &symbol, sizeof symbol);
    }
    return nvml.init() == 0;
}

static void ask(void *handle, double figures[MM_GPU_FIGURES]) {
    struct utilization utilization;
    struct memory memory;
    unsigned milliwatts;
    const bool has_memory = nvml.memory(handle, &memory) == 0;
    figures[MM_GPU_UTILIZATION] =
        nvml.utilization(handle, &utilization) == 0 ? utilization.kernel_percent / 100.0 : NAN;
    figures[MM_GPU_MEMORY_USED_BYTES] = has_memory ? (double)memory.used_bytes : NAN;
    figures[MM_GPU_MEMORY_TOTAL_BYTES] = has_memory ? (double)memory.total_bytes : NAN;
    figures[MM_GPU_POWER_W] = nvml.power(handle, &milliwatts) == 0 ? milliwatts / 1000.0 : NAN;
}

static void publish(const struct mm_gpu *gpus, size_t count) {
    pthread_mutex_lock(&mutex);
    memcpy(latest, gpus, count * sizeof *gpus);
    latest_count = count;
    latest_ns = mm_clock_ns();
    pthread_mutex_unlock(&mutex);
}

/* `latest` has the UUIDs of the wanted GPUs, and latest_count is 0. */
static void *run(void *argument) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    struct mm_gpu gpus[MM_DEVICES_MAX];
    void *handles[MM_DEVICES_MAX];
    size_t count = 0;
    if (!open_library())
        return NULL;
    for (size_t index = 0; index < wanted_count; index++)
        if (nvml.find(latest[index].uuid, &handles[count]) == 0)
            gpus[count++] = latest[index];
    for (unsigned turn = 0; __atomic_load_n(&stopping, __ATOMIC_RELAXED) == 0; turn++) {
        for (size_t index = 0; index < count && turn % ASK_EVERY == 0; index++)
            ask(handles[index], gpus[index].figures);
        if (turn % ASK_EVERY == 0)
            publish(gpus, count);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

void mm_nvml_start(struct mm_device *const *devices, size_t count) {
    for (size_t index = 0; index < count; index++)
        if (devices[index]->uuid[0] != '\0')
            strcpy(latest[wanted_count++].uuid, devices[index]->uuid);
    if (wanted_count == 0)
        return;
    if (pthread_create(&thread, NULL, run, NULL) == 0)
        pthread_setname_np(thread, "mm-nvml");
    else
        wanted_count = 0;
}

void mm_nvml_stop(void) {
    if (wanted_count == 0)
        return;
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

size_t mm_nvml_look(struct mm_gpu gpus[MM_DEVICES_MAX]) {
    pthread_mutex_lock(&mutex);
    const bool is_stale = mm_clock_ns() - latest_ns > STALE_S * UINT64_C(1000000000);
    const size_t count = is_stale ? 0 : latest_count;
    memcpy(gpus, latest, count * sizeof *gpus);
    pthread_mutex_unlock(&mutex);
    return count;
}
