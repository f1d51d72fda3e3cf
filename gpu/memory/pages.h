/* Pages of memory from the system. Devices copy from and to locked pages faster. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How a backend locks pages for all of its devices. lock returns false on failure, which costs only speed.
 * Pages are unlocked before they are unmapped. Any thread. */
struct mm_page_locking {
    bool (*lock)(void *memory, size_t bytes);
    void (*unlock)(void *memory);
};

/* Rounds up to whole pages. */
size_t mm_pages_round_up(size_t bytes);

/* Reserves address space for `bytes` (not 0), without memory. The address is aligned to a page, or for 2
 * MiB and more to 2 MiB, because of huge pages. NULL if the system has no address space left. Any thread. */
void *mm_pages_reserve(size_t bytes);

/* Makes the bytes [from, to) usable, as zeros. The system provides their pages when they are first touched.
 * False if the system refuses. Any thread, one at a time for one reservation. */
bool mm_pages_open(void *memory, size_t from, size_t to);

/* Returns the whole pages of [from, to) to the system. Any thread, one at a time for one reservation. */
void mm_pages_close(void *memory, size_t from, size_t to);

/* Reserves `bytes` and makes them usable. NULL if the system has no memory. Any thread. */
void *mm_pages_map(size_t bytes);

/* Unmaps a reservation or a mapping of so many bytes. Any thread. */
void mm_pages_unmap(void *memory, size_t bytes);
