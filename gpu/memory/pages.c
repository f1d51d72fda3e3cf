#include "gpu/memory/pages.h"

#include "gpu/matrix/matrix.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t huge_page_bytes = (size_t)2 << 20;

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

size_t mm_pages_round_up(size_t bytes) {
    return mm_size_round_up(bytes, page_bytes());
}

static void *reserve(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Aligns the address to a huge page: reserves too much, and then unmaps the excess at both ends. */
static void *reserve_huge(size_t bytes) {
    char *memory = reserve(bytes + huge_page_bytes);
    if (memory == NULL)
        return NULL;
    const size_t before = (huge_page_bytes - (uintptr_t)memory % huge_page_bytes) % huge_page_bytes;
    if (before > 0)
        (void)munmap(memory, before);
    (void)munmap(memory + before + bytes, huge_page_bytes - before);
    (void)madvise(memory + before, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
    return memory + before;
}

void *mm_pages_reserve(size_t bytes) {
    if (bytes > SIZE_MAX - huge_page_bytes - page_bytes())
        return NULL;
    bytes = mm_pages_round_up(bytes);
    return bytes < huge_page_bytes ? reserve(bytes) : reserve_huge(bytes);
}

bool mm_pages_open(void *memory, size_t from, size_t to) {
    from = from / page_bytes() * page_bytes();
    return mprotect((char *)memory + from, mm_pages_round_up(to) - from, PROT_READ | PROT_WRITE) == 0;
}

void mm_pages_close(void *memory, size_t from, size_t to) {
    from = mm_pages_round_up(from);
    to = mm_pages_round_up(to);
    if (from >= to)
        return;
    (void)madvise((char *)memory + from, to - from, MADV_DONTNEED);
    (void)mprotect((char *)memory + from, to - from, PROT_NONE);
}

void *mm_pages_map(size_t bytes) {
    void *memory = mm_pages_reserve(bytes);
    if (memory == NULL || mm_pages_open(memory, 0, bytes))
        return memory;
    mm_pages_unmap(memory, bytes);
    return NULL;
}

void mm_pages_unmap(void *memory, size_t bytes) {
    (void)munmap(memory, mm_pages_round_up(bytes));
}
