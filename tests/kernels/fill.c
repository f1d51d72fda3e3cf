/* Every backend must fill device memory with the host's random numbers, and write nothing outside. Exits with
 * 77 without a device. */
#include "gpu/device/backend.h"
#include "gpu/matrix/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARDS = 64, LARGE = 1 << 20 };

static const uint64_t seed = UINT64_C(0xfedcba9876543210);

/* Returns the number of wrong elements, including elements of the guards. */
static size_t count_wrong(enum mm_dtype dtype, const char *got, const char *guards, size_t first,
                          size_t count) {
    size_t wrong = 0;
    for (size_t index = 0; index < count; index++)
        wrong += mm_dtype_get(dtype, got, index) != mm_random_number(dtype, seed, first + index);
    return wrong + (memcmp(got + count * mm_dtype_bytes(dtype), guards, GUARDS) != 0);
}

static bool check(struct mm_device *device, enum mm_dtype dtype, size_t first, size_t count) {
    const struct mm_backend *backend = device->backend;
    struct mm_error error = {.status = MM_OK};
    const size_t bytes = count * mm_dtype_bytes(dtype) + GUARDS;
    char *host = malloc(bytes);
    char guards[GUARDS];
    void *memory = NULL;
    if (host == NULL)
        return false;
    for (size_t index = 0; index < GUARDS; index++)
        guards[index] = (char)(2 + index);
    memset(host, 0xff, bytes);
    memcpy(host + bytes - GUARDS, guards, sizeof guards);
    enum mm_status status = backend->acquire(device, bytes, &memory, &error);
    if (status == MM_OK)
        status = backend->upload(device, memory, host, bytes, &error);
    if (status == MM_OK)
        status = backend->fill(device, memory, dtype, count, mm_random_skip(seed, first), &error);
    if (status == MM_OK)
        status = backend->download(device, host, memory, bytes, &error);
    const size_t wrong = status == MM_OK ? count_wrong(dtype, host, guards, first, count) : 0;
    if (memory != NULL)
        backend->release(device, memory);
    free(host);
    if (status != MM_OK || wrong > 0)
        printf("FAIL %s: %zu elements of %s from %zu: %zu wrong %s\n", backend->name, count,
               mm_dtype_name(dtype), first, wrong, error.detail);
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
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++) {
            if (dtype != MM_FLOAT32 && counts[index] > LARGE)
                continue; /* for large counts, one type suffices */
            good = check(device, dtype, 0, counts[index]) && good;
            good = check(device, dtype, 12345, counts[index]) && good;
        }
    printf("%s on %s\n", good ? "right" : "wrong", device->name);
    backend->close(device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
