/* Pages from the system. Knows no budget and keeps nothing. */
#include "gpu/pages.h"

#include <stdint.h>
#include <sys/mman.h>

static const size_t page_bytes = 4096;
static const size_t huge_page_bytes = (size_t)2 << 20;

static size_t round_up(size_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* More is mapped than needed, and what lies before and behind the aligned part is given back. */
static void *map_huge(size_t bytes) {
    char *memory = map(bytes + huge_page_bytes);
    if (memory == NULL)
        return NULL;
    const size_t before = (huge_page_bytes - (uintptr_t)memory % huge_page_bytes) % huge_page_bytes;
    if (before > 0)
        (void)munmap(memory, before);
    (void)munmap(memory + before + bytes, huge_page_bytes - before);
    (void)madvise(memory + before, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
    return memory + before;
}

void *mm_pages_map(size_t bytes) {
    if (bytes > SIZE_MAX - huge_page_bytes - page_bytes)
        return NULL;
    bytes = round_up(bytes);
    return bytes < huge_page_bytes ? map(bytes) : map_huge(bytes);
}

void mm_pages_unmap(void *memory, size_t bytes) {
    (void)munmap(memory, round_up(bytes));
}
