/* Pages from the system, for what is too large to be cut from something, and locked to their place where
 * a device copies from and to them faster then. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How a backend locks pages for all of its devices. lock returns false on failure, which only costs speed;
 * unlock comes before the pages are unmapped. Any thread. */
struct mm_page_locking {
    bool (*lock)(void *memory, size_t bytes);
    void (*unlock)(void *memory);
};

/* Up to whole pages, whose size the system tells. */
size_t mm_pages_round_up(size_t bytes);

/* Reserves address space for `bytes` (not 0) without memory, aligned to a page, or to 2 MiB (for huge
 * pages) if it is as large as one. NULL if the system has none left. Any thread. */
void *mm_pages_reserve(size_t bytes);

/* open makes the bytes [from, to) usable: zeros, whose pages the system takes when first touched; false if
 * it refuses. close gives their whole pages back. Any thread, one at a time for the same memory. */
bool mm_pages_open(void *memory, size_t from, size_t to);
void mm_pages_close(void *memory, size_t from, size_t to);

/* Reserves and opens all of it; NULL if the system has no memory. unmap ends what was reserved or mapped, and
 * takes the same size. Any thread. */
void *mm_pages_map(size_t bytes);
void mm_pages_unmap(void *memory, size_t bytes);
