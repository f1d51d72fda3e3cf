/* Pages of memory from the system (mmap). Copies between locked pages and a device are faster. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How a backend locks pages for all of its devices. If `lock` fails and returns false, the pages can still be
 * used. Pages must be unlocked before they are unmapped. Any thread may call these functions. */
struct mm_page_locking {
    bool (*lock)(void *memory, size_t bytes);
    void (*unlock)(void *memory);
};

size_t mm_pages_round_up(size_t bytes);

/* Reserves address space of `bytes`, which must not be 0, without memory. From 2 MiB on, the address is
 * aligned to a huge page of 2 MiB. Returns NULL if the system has no address space left. Any thread. */
void *mm_pages_reserve(size_t bytes);

/* Makes the bytes [from, to) of a reservation usable. The bytes are zeros. The system provides each page when
 * the page is first used. Returns false on failure. Any thread, one at a time for a reservation. */
bool mm_pages_open(void *memory, size_t from, size_t to);

/* Gives the system back all pages that begin in [from, to). Any thread, one at a time for a reservation. */
void mm_pages_close(void *memory, size_t from, size_t to);

/* Reserves `bytes` and makes them usable. Returns NULL if the system has no memory. Any thread. */
void *mm_pages_map(size_t bytes);

/* Unmaps memory of mm_pages_reserve or mm_pages_map, of which `bytes` must be the size. Any thread. */
void mm_pages_unmap(void *memory, size_t bytes);
