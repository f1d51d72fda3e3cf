/* Every backend's `fill` against the numbers that the host makes: counts below and past one round of the
 * device's threads, streams that begin in the middle, and guards behind what is filled. Ends with 77 where
 * the backend asked for has no device. */
#include "gpu/backend.h"
#include "gpu/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARDS = 64 };

static const uint64_t seed = UINT64_C(0xfedcba9876543210);

/* How many elements, guards included, are not what they must be. */
static size_t count_wrong(const float *got, const float *guards, size_t first, size_t count) {
    size_t wrong = 0;
    for (size_t index = 0; index < count; index++)
        wrong += got[index] != mm_random_element(seed, first + index);
    return wrong + (memcmp(got + count, guards, GUARDS * sizeof(float)) != 0);
}

static bool check(struct mm_device *device, size_t first, size_t count) {
    const struct mm_backend *backend = device->backend;
    struct mm_error error = {.status = MM_OK};
    const size_t bytes = (count + GUARDS) * sizeof(float);
    float *host = malloc(bytes);
    float guards[GUARDS];
    void *memory = NULL;
    if (host == NULL)
        return false;
    for (size_t index = 0; index < GUARDS; index++)
        guards[index] = (float)(2 + index);
    memset(host, 0xff, bytes);
    memcpy(host + count, guards, sizeof guards);
    enum mm_status status = backend->acquire(device, bytes, &memory, &error);
    if (status == MM_OK)
        status = backend->upload(device, memory, host, bytes, &error);
    if (status == MM_OK)
        status = backend->fill(device, memory, count, mm_random_skip(seed, first), &error);
    if (status == MM_OK)
        status = backend->download(device, host, memory, bytes, &error);
    const size_t wrong = status == MM_OK ? count_wrong(host, guards, first, count) : 0;
    if (memory != NULL)
        backend->release(device, memory);
    free(host);
    if (status != MM_OK || wrong > 0)
        printf("FAIL %s: %zu numbers from %zu: %zu wrong %s\n", backend->name, count, first, wrong,
               error.detail);
    return status == MM_OK && wrong == 0;
}

int main(int argc, char **argv) {
    static const size_t counts[] = {0, 1, 31, 255, 256, 257, 65536, 1000003, 20000003};
    const struct mm_backend *backend = argc == 2 ? mm_backend_find(argv[1]) : NULL;
    struct mm_device *device = NULL;
    struct mm_error error;
    bool good = true;
    if (backend == NULL || backend->open(0, &device, &error) != MM_OK) {
        printf("no such device: %s\n", backend == NULL ? "usage: fill BACKEND" : error.detail);
        return 77;
    }
    for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++)
        good = check(device, 0, counts[index]) && check(device, 12345, counts[index]) && good;
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    backend->close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
