/* This file declares NVML's functions (https://docs.nvidia.com/deploy/nvml-api), so the build does not need
 * NVIDIA's headers. */
#include "server/observe/nvml.h"

#include "gpu/clock.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { PAUSE_MS = 100, ASK_EVERY = 10, STALE_S = 5, STOP_TURNS = 100 };

/* NVML's functions return 0 if they succeed. */
static int (*init)(void);
static int (*find)(const char *pci_bus_id, void **gpu);
static int (*read_uuid)(void *gpu, char *uuid, unsigned bytes);
static int (*read_utilization)(void *gpu, unsigned percents[2]);   /* of kernels and of memory */
static int (*read_memory)(void *gpu, unsigned long long bytes[3]); /* total, free, used */
static int (*read_power)(void *gpu, unsigned *milliwatts);

static const struct {
    const char *name;
    void *function; /* address of the function pointer to set */
} symbols[] = {
    {"nvmlInit_v2", &init},
    {"nvmlDeviceGetHandleByPciBusId_v2", &find},
    {"nvmlDeviceGetUUID", &read_uuid},
    {"nvmlDeviceGetUtilizationRates", &read_utilization},
    {"nvmlDeviceGetMemoryInfo", &read_memory},
    {"nvmlDeviceGetPowerUsage", &read_power},
};

static int is_running; /* the thread has not ended; __atomic access only */
static int stopping;   /* __atomic access only */
static char pci_bus_ids[MM_DEVICES_MAX][sizeof((struct mm_device *)NULL)->pci_bus_id];
static size_t gpu_count;

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
    return init() == 0;
}

static void ask(void *gpu, double figures[MM_GPU_FIGURES]) {
    unsigned percents[2], milliwatts;
    unsigned long long bytes[3];
    const bool has_memory = read_memory(gpu, bytes) == 0;
    figures[MM_GPU_UTILIZATION] = read_utilization(gpu, percents) == 0 ? percents[0] / 100.0 : NAN;
    figures[MM_GPU_MEMORY_USED_BYTES] = has_memory ? (double)bytes[2] : NAN;
    figures[MM_GPU_MEMORY_TOTAL_BYTES] = has_memory ? (double)bytes[0] : NAN;
    figures[MM_GPU_POWER_W] = read_power(gpu, &milliwatts) == 0 ? milliwatts / 1000.0 : NAN;
}

static void watch(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    struct mm_gpu gpus[MM_DEVICES_MAX];
    void *handles[MM_DEVICES_MAX];
    size_t count = 0;
    if (!open_library())
        return;
    for (size_t index = 0; index < gpu_count; index++)
        if (find(pci_bus_ids[index], &handles[count]) == 0 &&
            read_uuid(handles[count], gpus[count].uuid, sizeof gpus[count].uuid) == 0)
            count++;
    for (unsigned turn = 0; count > 0 && __atomic_load_n(&stopping, __ATOMIC_RELAXED) == 0; turn++) {
        nanosleep(&pause, NULL);
        if (turn % ASK_EVERY > 0)
            continue;
        for (size_t index = 0; index < count; index++)
            ask(handles[index], gpus[index].figures);
        pthread_mutex_lock(&mutex);
        memcpy(latest, gpus, count * sizeof *gpus);
        latest_count = count;
        latest_ns = mm_clock_ns();
        pthread_mutex_unlock(&mutex);
    }
}

static void *run(void *argument) {
    watch();
    __atomic_store_n(&is_running, 0, __ATOMIC_RELEASE);
    return NULL;
}

void mm_nvml_start(struct mm_device *const *devices, size_t count) {
    pthread_t thread;
    for (size_t index = 0; index < count; index++)
        if (devices[index]->pci_bus_id[0] != '\0')
            strcpy(pci_bus_ids[gpu_count++], devices[index]->pci_bus_id);
    if (gpu_count == 0)
        return;
    is_running = 1;
    if (pthread_create(&thread, NULL, run, NULL) != 0) {
        is_running = 0;
        return;
    }
    pthread_setname_np(thread, "mm-nvml");
    pthread_detach(thread);
}

void mm_nvml_stop(void) {
    const struct timespec pause = {.tv_nsec = 10 * 1000000L};
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    for (unsigned turn = 0; turn < STOP_TURNS && __atomic_load_n(&is_running, __ATOMIC_ACQUIRE) != 0; turn++)
        nanosleep(&pause, NULL);
}

size_t mm_nvml_look(struct mm_gpu gpus[MM_DEVICES_MAX]) {
    pthread_mutex_lock(&mutex);
    const bool is_stale = mm_clock_ns() - latest_ns > STALE_S * UINT64_C(1000000000);
    const size_t count = is_stale ? 0 : latest_count;
    memcpy(gpus, latest, count * sizeof *gpus);
    pthread_mutex_unlock(&mutex);
    return count;
}
