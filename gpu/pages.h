/* Pages from the system, for what is too large to be cut from something, and locked to their place where
 * a device copies from and to them faster then. */
#ifndef MM_GPU_PAGES_H
#define MM_GPU_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a backend locks pages. lock makes the pages of `memory` known to all of its devices, and is false
 * where that failed, which costs speed alone; unlock takes back what was locked, before the pages go. Any
 * thread. */
struct mm_page_locking {
    bool (*lock)(void *memory, size_t bytes);
    void (*unlock)(void *memory);
};

/* Maps `bytes` (not 0) of zeros, aligned to 4096 bytes, or to huge pages (2 MiB, and asked for) where it is
 * as large as one; NULL where the system has none. unmap takes the same size. Any thread. */
void *mm_pages_map(size_t bytes);
void mm_pages_unmap(void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
