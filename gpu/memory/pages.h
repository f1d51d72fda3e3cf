/* Pages of memory from the system. Devices copy to and from locked pages faster. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How a backend locks pages for all of its devices. If `lock` returns false, copies are only slower. Pages
 * must be unlocked before they are unmapped. Any thread. */
struct mm_page_locking {
    bool (*lock)(void *memory, size_t bytes);
    void (*unlock)(void *memory);
};

/* Rounds up to whole pages. */
size_t mm_pages_round_up(size_t bytes);

/* Reserves address space for `bytes` (not 0), without memory. Aligned to a page, or to a huge page of 2 MiB
 * if `bytes` is that large. NULL if the system has no address space left. Any thread. */
void *mm_pages_reserve(size_t bytes);

/* Makes the bytes [from, to) usable. They are zeros, and the system provides a page when it is first touched.
 * Returns false if the system refuses. Any thread, one at a time for one reservation. */
bool mm_pages_open(void *memory, size_t from, size_t to);

/* Returns the whole pages of [from, to) to the system. Any thread, one at a time for one reservation. */
void mm_pages_close(void *memory, size_t from, size_t to);

/* Reserves `bytes` and makes them usable. NULL if the system has no memory. Any thread. */
void *mm_pages_map(size_t bytes);

/* Unmaps a reservation or a mapping of so many bytes. Any thread. */
void mm_pages_unmap(void *memory, size_t bytes);
