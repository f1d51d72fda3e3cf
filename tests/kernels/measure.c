/* A CUDA device's `measure` must report the time of the device, even if the host enqueues the kernel slowly.
 * So a gate on the device delays the kernel until the host has enqueued it. If the gate times out, the result
 * includes the delay of the host. Exits with 77 without a device. */
#include "gpu/device/backend.h"
#include "gpu/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EDGE = 4, MS = 1000000 };

static long dawdle_ns;

static struct mm_plan plain;

/* Launches the naive kernel after a delay on the host. */
static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct timespec pause = {.tv_nsec = dawdle_ns};
    (void)plan;
    nanosleep(&pause, NULL);
    return plain.launch(&plain, product, lane, error);
}

/* Returns the smallest of several measurements, because a busy host may delay some. Returns UINT64_MAX on
 * failure. */
static uint64_t measure(struct mm_device *device, void *memory, long pause_ns) {
    struct mm_product product = {.m = EDGE, .n = EDGE, .k = EDGE};
    struct mm_error error;
    char *at = memory;
    product.a = mm_matrix_dense(MM_FLOAT32, EDGE, EDGE, at);
    product.b = mm_matrix_dense(MM_FLOAT32, EDGE, EDGE, at + 256);
    product.c = mm_matrix_dense(MM_FLOAT32, EDGE, EDGE, at + 512);
    enum mm_status status = mm_plan_make(device, &mm_cuda_backend.variants[0], &product, &plain, &error);
    struct mm_plan late = plain;
    uint64_t least_ns = UINT64_MAX;
    late.launch = launch;
    dawdle_ns = pause_ns;
    for (unsigned turn = 0; turn < 10 && status == MM_OK; turn++) {
        uint64_t kernel_ns = 0;
        status = device->backend->measure(device, &late, &product, &kernel_ns, &error);
        least_ns = kernel_ns < least_ns ? kernel_ns : least_ns;
    }
    if (status == MM_OK)
        return least_ns;
    printf("FAIL: %s\n", error.detail);
    return UINT64_MAX;
}

/* The kernel multiplies 4×4 matrices in a few microseconds, so any delay of the host shows in the result. */
static bool check(struct mm_device *device, void *memory) {
    const uint64_t prompt_ns = measure(device, memory, 0);
    const uint64_t late_ns = measure(device, memory, MS);
    const uint64_t latest_ns = measure(device, memory, 20 * MS);
    printf("%" PRIu64 " ns, %" PRIu64 " ns after 1 ms of the host's, %" PRIu64 " ns after 20 ms\n", prompt_ns,
           late_ns, latest_ns);
    return prompt_ns < 100000 && late_ns < 100000 && latest_ns > 10 * MS && latest_ns != UINT64_MAX;
}

int main(void) {
    struct mm_device *device = NULL;
    struct mm_error error;
    void *memory = NULL;
    if (mm_cuda_backend.open(0, &device, &error) != MM_OK) {
        printf("no such device: %s\n", error.detail);
        return 77;
    }
    const bool good = mm_cuda_backend.acquire(device, 1024, &memory, &error) == MM_OK &&
                      mm_cuda_backend.fill(device, memory, MM_FLOAT32, 256, 1, &error) == MM_OK &&
                      check(device, memory);
    if (memory != NULL)
        mm_cuda_backend.release(device, memory);
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    mm_cuda_backend.close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
