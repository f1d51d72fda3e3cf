/* How a test tells what is to fail. */
#include "tests/faults/arm.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct control *control_open(const char *path) {
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(struct control)) == 0)
        memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        perror(path);
    if (file >= 0)
        close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

void control_arm(struct control *control, uint64_t bytes, uint64_t first, uint64_t last) {
    __atomic_store_n(&control->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&control->first, first, __ATOMIC_RELAXED);
    __atomic_store_n(&control->last, last, __ATOMIC_RELAXED);
    __atomic_store_n(&control->seen, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&control->failed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&control->armed, 1, __ATOMIC_RELEASE);
}

uint64_t control_disarm(struct control *control) {
    __atomic_store_n(&control->armed, 0, __ATOMIC_RELEASE);
    return __atomic_load_n(&control->failed, __ATOMIC_RELAXED);
}

uint64_t control_seen(const struct control *control) {
    return __atomic_load_n(&control->seen, __ATOMIC_RELAXED);
}
