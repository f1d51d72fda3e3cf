/* A CUDA device's measure tells the device's own time, however long the host takes to enqueue: by a row whose
 * launch dawdles, for less than a gate waits and for longer. Ends with 77 where there is no device. */
#include "gpu/backend.h"
#include "gpu/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EDGE = 4, MS = 1000000 };

static long dawdle_ns;

static struct mm_plan plain;

/* The plain kernel, late. */
static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct timespec pause = {.tv_nsec = dawdle_ns};
    (void)plan;
    nanosleep(&pause, NULL);
    return plain.launch(&plain, product, lane, error);
}

/* The least of several, since a host that is busy may wake up late. */
static bool measure(struct mm_device *device, void *memory, uint64_t *least_ns) {
    struct mm_product product = {.m = EDGE, .n = EDGE, .k = EDGE};
    struct mm_error error;
    char *at = memory;
    product.a = mm_matrix_dense(MM_FLOAT32, EDGE, EDGE, at);
    product.b = mm_matrix_dense(MM_FLOAT32, EDGE, EDGE, at + 256);
    product.c = mm_matrix_dense(MM_FLOAT32, EDGE, EDGE, at + 512);
    if (mm_plan_make(device, &mm_cuda_backend.variants[0], &product, false, &plain, &error) != MM_OK) {
        printf("FAIL: %s\n", error.detail);
        return false;
    }
    struct mm_plan late = plain;
    late.launch = launch;
    *least_ns = UINT64_MAX;
    for (unsigned turn = 0; turn < 10; turn++) {
        uint64_t kernel_ns = 0;
        if (device->backend->measure(device, &late, &product, &kernel_ns, &error) != MM_OK) {
            printf("FAIL: %s\n", error.detail);
            return false;
        }
        *least_ns = kernel_ns < *least_ns ? kernel_ns : *least_ns;
    }
    return true;
}

/* A product of 4×4 takes a GPU some microseconds. */
static bool check(struct mm_device *device, void *memory) {
    uint64_t prompt_ns = 0;
    uint64_t late_ns = 0;
    uint64_t latest_ns = 0;
    dawdle_ns = 0;
    bool good = measure(device, memory, &prompt_ns);
    dawdle_ns = MS;
    good = good && measure(device, memory, &late_ns);
    dawdle_ns = 20 * MS;
    good = good && measure(device, memory, &latest_ns);
    if (!good)
        return false;
    printf("%llu ns, %llu ns after 1 ms of the host's, %llu ns after 20 ms\n", (unsigned long long)prompt_ns,
           (unsigned long long)late_ns, (unsigned long long)latest_ns);
    return prompt_ns < 100000 && late_ns < 100000 && latest_ns > 10 * MS;
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
                      mm_cuda_backend.fill(device, memory, 256, 1, &error) == MM_OK && check(device, memory);
    if (memory != NULL)
        mm_cuda_backend.release(device, memory);
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    mm_cuda_backend.close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
