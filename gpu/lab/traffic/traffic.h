/* The memory traffic of one run of a kernel, predicted from the addresses that its warps use (kernels.h).
 * Any thread may call these functions. */
#pragma once

#include "gpu/names.h"

#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One row for each figure: constant, name in the API, name for people. A figure is a sum over all kernels of
 * one run.
 *
 * global_loads: elements that threads or asynchronous copies load from global memory, each counted as often
 * as it is loaded.
 *
 * *_sectors: sectors of 32 bytes that loads or stores access, before any cache. One access of a warp counts
 * each sector once.
 *
 * *_passes: passes over the banks of shared memory. Conflict passes are the additional passes that bank
 * conflicts cause. */
#define MM_TRAFFIC_TABLE(X)                                                                                  \
    X(MM_GLOBAL_LOADS, "global_loads", "global loads")                                                       \
    X(MM_GLOBAL_LOAD_SECTORS, "global_load_sectors", "load sectors")                                         \
    X(MM_GLOBAL_STORE_SECTORS, "global_store_sectors", "store sectors")                                      \
    X(MM_SHARED_LOAD_PASSES, "shared_load_passes", "shared load passes")                                     \
    X(MM_SHARED_STORE_PASSES, "shared_store_passes", "shared store passes")                                  \
    X(MM_BANK_CONFLICT_PASSES, "bank_conflict_passes", "of these for conflicts")

enum mm_traffic_figure { MM_TRAFFIC_TABLE(MM_CONSTANT) MM_TRAFFIC_COUNT };

/* Return the name in the API, and the name for people. Both are static strings. */
const char *mm_traffic_name(enum mm_traffic_figure figure);
const char *mm_traffic_title(enum mm_traffic_figure figure);

/* The value of a figure that is not known. */
#define MM_TRAFFIC_UNKNOWN UINT64_MAX

struct mm_traffic {
    uint64_t figures[MM_TRAFFIC_COUNT];
};

struct mm_traffic mm_traffic_unknown(void);

/* Returns operations for each byte of the sectors that are loaded and stored; 0 if the sectors are unknown
 * or 0. */
double mm_traffic_intensity(const struct mm_traffic *traffic, double flops);

__END_DECLS
