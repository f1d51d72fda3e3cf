/* Host memory counted against a budget. Memory comes from the C library for now; large pieces are
 * advised to huge pages, since page faults are what a large body costs most. */
#include "gpu/buffer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE_BYTES = 2 << 20 };

struct mm_buffers {
    size_t budget_bytes;
    size_t used_bytes; /* __atomic access only; never over the budget */
};

struct mm_buffers *mm_buffers_open(size_t budget_bytes) {
    struct mm_buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers != NULL)
        buffers->budget_bytes = budget_bytes;
    return buffers;
}

void mm_buffers_close(struct mm_buffers *buffers) {
    assert(buffers == NULL || mm_buffers_used(buffers) == 0);
    free(buffers);
}

/* Takes `bytes` of the budget, or none of it. */
static bool take(struct mm_buffers *buffers, size_t bytes) {
    size_t used = __atomic_load_n(&buffers->used_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes > buffers->budget_bytes - used)
            return false;
    } while (!__atomic_compare_exchange_n(&buffers->used_bytes, &used, used + bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

static enum mm_status fail_budget(const struct mm_buffers *buffers, enum mm_status status, size_t bytes,
                                  struct mm_error *error) {
    mm_fail(error, status, "%zu bytes of memory are needed, but of the budget of %zu bytes %zu are taken",
            bytes, buffers->budget_bytes, mm_buffers_used(buffers));
    if (error != NULL)
        error->needed_bytes = bytes;
    if (error != NULL && status == MM_TOO_LARGE) {
        error->limit = buffers->budget_bytes;
        error->has_limit = true;
        snprintf(error->got, sizeof error->got, "%zu", bytes);
    }
    return status;
}

static void *allocate(size_t bytes) {
    size_t alignment = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : ALIGNMENT;
    void *data = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (data != NULL && alignment == HUGE_PAGE_BYTES)
        (void)madvise(data, bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE);
    return data;
}

enum mm_status mm_buffers_reserve(struct mm_buffers *buffers, size_t bytes, struct mm_error *error) {
    if (bytes > buffers->budget_bytes)
        return fail_budget(buffers, MM_TOO_LARGE, bytes, error);
    if (!take(buffers, bytes))
        return fail_budget(buffers, MM_BUSY, bytes, error);
    return MM_OK;
}

void mm_buffers_unreserve(struct mm_buffers *buffers, size_t bytes) {
    size_t left = __atomic_sub_fetch(&buffers->used_bytes, bytes, __ATOMIC_RELAXED);
    assert(left <= buffers->budget_bytes);
    (void)left;
}

enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error) {
    if (bytes == 0)
        bytes = 1; /* so that data is never NULL where a buffer is held */
    enum mm_status status = mm_buffers_reserve(buffers, bytes, error);
    if (status != MM_OK)
        return status;
    void *data = allocate(bytes);
    if (data == NULL) {
        mm_buffers_unreserve(buffers, bytes);
        return mm_fail(error, MM_INTERNAL, "the system has no memory for %zu bytes", bytes);
    }
    *buffer = (struct mm_buffer){.data = data, .bytes = bytes};
    return MM_OK;
}

void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer) {
    if (buffer->data == NULL)
        return;
    free(buffer->data);
    mm_buffers_unreserve(buffers, buffer->bytes);
    *buffer = (struct mm_buffer){0};
}

size_t mm_buffers_used(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->used_bytes, __ATOMIC_RELAXED);
}

size_t mm_buffers_budget(const struct mm_buffers *buffers) {
    return buffers->budget_bytes;
}
