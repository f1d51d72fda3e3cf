/* The memory traffic of one run of a kernel: accesses of its warps to global and shared memory. It is
 * predicted from the addresses that the warps use (kernels.h), and not measured.
 *
 * The functions keep no state, so any thread may call them. */
#pragma once

#include "gpu/names.h"

#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One row for each figure: constant, name in the API, name for people. The figures are sums over all kernels
 * of one run:
 *
 * - elements that threads or copies load from global memory, each counted as often as it is loaded;
 * - sectors of 32 bytes that loads and stores of global memory access, before any cache. One access of a
 *   warp counts each sector once. Asynchronous copies are loads;
 * - passes over the banks of shared memory that loads and stores of a warp need;
 * - passes that are only necessary because one bank must serve several words. */
#define MM_TRAFFIC_TABLE(X)                                                                                  \
    X(MM_GLOBAL_LOADS, "global_loads", "global loads")                                                       \
    X(MM_GLOBAL_LOAD_SECTORS, "global_load_sectors", "load sectors")                                         \
    X(MM_GLOBAL_STORE_SECTORS, "global_store_sectors", "store sectors")                                      \
    X(MM_SHARED_LOAD_PASSES, "shared_load_passes", "shared load passes")                                     \
    X(MM_SHARED_STORE_PASSES, "shared_store_passes", "shared store passes")                                  \
    X(MM_BANK_CONFLICT_PASSES, "bank_conflict_passes", "of these for conflicts")

enum mm_traffic_figure { MM_TRAFFIC_TABLE(MM_CONSTANT) MM_TRAFFIC_COUNT };

/* Return the name in the API, and the name for people. Static strings. */
const char *mm_traffic_name(enum mm_traffic_figure figure);
const char *mm_traffic_title(enum mm_traffic_figure figure);

/* Replaces a figure that is not known, because the kernel has no model. */
#define MM_TRAFFIC_UNKNOWN UINT64_MAX

/* The figures, indexed by enum mm_traffic_figure. 64 bits are enough for days of a device's traffic. */
struct mm_traffic {
    uint64_t figures[MM_TRAFFIC_COUNT];
};

/* Returns traffic whose figures are all unknown. */
struct mm_traffic mm_traffic_unknown(void);

/* Returns floating-point operations for each byte of the sectors that are loaded and stored; 0 if these
 * are unknown, or 0. */
double mm_traffic_intensity(const struct mm_traffic *traffic, double flops);

__END_DECLS
