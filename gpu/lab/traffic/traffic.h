/* The memory traffic of one run of a kernel: what its warps ask of global and of shared memory. It is
 * predicted by arithmetic over the addresses of warps (kernels.h); nothing is measured.
 *
 * The functions keep no state: any thread. */
#pragma once

#include "gpu/names.h"

#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One row a figure: constant, wire name, name for people. They count, of all kernels of one run:
 *
 * - the elements that threads or copies load from global memory, each as often as it is loaded;
 * - the sectors of 32 bytes that loads, and stores, of global memory ask for before any cache: those of a
 *   warp's one access that hold a byte of it. Asynchronous copies are loads;
 * - the passes over the banks of shared memory that loads, and stores, take a warp;
 * - those of these passes that only repeat another one, because a bank has more than one word to serve. */
#define MM_TRAFFIC_TABLE(X)                                                                                  \
    X(MM_GLOBAL_LOADS, "global_loads", "global loads")                                                       \
    X(MM_GLOBAL_LOAD_SECTORS, "global_load_sectors", "load sectors")                                         \
    X(MM_GLOBAL_STORE_SECTORS, "global_store_sectors", "store sectors")                                      \
    X(MM_SHARED_LOAD_PASSES, "shared_load_passes", "shared load passes")                                     \
    X(MM_SHARED_STORE_PASSES, "shared_store_passes", "shared store passes")                                  \
    X(MM_BANK_CONFLICT_PASSES, "bank_conflict_passes", "of these for conflicts")

enum mm_traffic_figure { MM_TRAFFIC_TABLE(MM_CONSTANT) MM_TRAFFIC_COUNT };

/* Static strings. */
const char *mm_traffic_name(enum mm_traffic_figure figure);
const char *mm_traffic_head(enum mm_traffic_figure figure);

/* In place of a figure that is not known: the kernel has no model. */
#define MM_TRAFFIC_UNKNOWN UINT64_MAX

/* By enum mm_traffic_figure. 64 bits hold what a device does in days. */
struct mm_traffic {
    uint64_t figures[MM_TRAFFIC_COUNT];
};

/* All figures unknown. */
struct mm_traffic mm_traffic_unknown(void);

/* Floating-point operations a byte of the sectors that are loaded and stored; 0 if those are not known, or
 * none. */
double mm_traffic_intensity(const struct mm_traffic *traffic, double flops);

__END_DECLS
