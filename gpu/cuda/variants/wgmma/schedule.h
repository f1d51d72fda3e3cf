/* The schedule of the tensor core kernels: which cluster of blocks computes which part of C (stream-K). A
 * block computes a tile of C. A cluster computes a cluster tile, which is its blocks' tiles one below the
 * other. Clusters first compute whole cluster tiles, in rounds. Then the clusters share the steps along k of
 * the remaining cluster tiles evenly. The fix-up adds up the partial sums of a shared tile: in `fp32_tensor`
 * the cluster with the tile's first step does this, and in `tensor` a second kernel. */
#pragma once

#include "gpu/names.h"
#include "gpu/plan/plan.h"

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* Rows of cluster tiles in a band. Cluster tiles are numbered band by band, and column by column within a
 * band. So clusters that run at one time read few different rows of op(A) and columns of op(B). */
enum { MM_BAND_ROWS = 4 };

/* Replaces a division by d: for n below 2^31, n / d is n * multiplier >> shift (Granlund and Montgomery,
 * 1994). The many instructions of a division would delay a kernel's start. */
struct mm_divisor {
    unsigned multiplier;
    unsigned shift;
};

/* A share begins and ends at a boundary of two tiles, or at least this many steps away from each boundary. */
enum { MM_SHARE_STEPS_MIN = 4 };

struct mm_schedule {
    unsigned steps;             /* steps of a tile along k */
    unsigned cluster_tile_rows; /* one product's C has rows × cols cluster tiles */
    unsigned cluster_tile_cols;
    struct mm_divisor band; /* divides by the number of cluster tiles in a band */
    unsigned clusters;
    unsigned whole_cluster_tiles; /* cluster tiles that are not shared; they come first */
    unsigned sharers;             /* clusters 0 to sharers - 1 share cluster tiles; 0 if none are shared */
    unsigned share;               /* steps of each cluster's share */
    unsigned longer_shares;       /* how many shares have one more step */
};

/* Returns the step at which a cluster's share begins, counted over all shared tiles. If the cluster has no
 * share, returns the number of steps of all shared tiles. schedule->sharers must not be 0. No share begins
 * within MM_SHARE_STEPS_MIN - 1 steps of a boundary of two tiles: it begins at the boundary instead. No share
 * is empty. If `sharers` is a multiple of the number of shared tiles, no share includes parts of two
 * tiles. */
MM_HOST_AND_DEVICE unsigned mm_share_begin(const struct mm_schedule *schedule, unsigned cluster) {
    const unsigned sharer = cluster < schedule->sharers ? cluster : schedule->sharers;
    const unsigned begin = sharer * schedule->share + sharer * schedule->longer_shares / schedule->sharers;
    const unsigned within = begin % schedule->steps;
    if (within < MM_SHARE_STEPS_MIN)
        return begin - within;
    return schedule->steps - within < MM_SHARE_STEPS_MIN ? begin - within + schedule->steps : begin;
}

MM_HOST_AND_DEVICE unsigned mm_shared_tiles(const struct mm_schedule *schedule) {
    return schedule->sharers == 0
               ? 0
               : (schedule->sharers * schedule->share + schedule->longer_shares) / schedule->steps;
}

/* Clusters `first` to `end` - 1. Their shares begin inside one shared tile, after its first step. */
struct mm_sharers {
    unsigned first;
    unsigned end;
};

/* Returns the clusters whose shares begin inside shared tile number `tile`. The search starts at the first
 * cluster that can have the tile's first step. */
MM_HOST_AND_DEVICE struct mm_sharers mm_sharers_of(const struct mm_schedule *schedule, unsigned tile) {
    const unsigned begin = tile * schedule->steps;
    struct mm_sharers sharers;
    sharers.first = begin / (schedule->share + 1);
    while (mm_share_begin(schedule, sharers.first) <= begin)
        sharers.first++;
    sharers.end = sharers.first;
    while (mm_share_begin(schedule, sharers.end) < begin + schedule->steps)
        sharers.end++;
    return sharers;
}

/* The time of the fix-up, in steps of the product kernel. */
struct mm_fix_up_cost {
    double fixed; /* steps for any fix-up */
    double each;  /* steps for each cluster that shares a tile */
    double all;   /* steps for each tile of partial sums in the workspace */
};

/* Returns the fastest schedule of `count` products on at most clusters_max clusters. `steps` must not be 0,
 * and there must be fewer than 2^31 cluster tiles. */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max, const struct mm_fix_up_cost *fix_up);

/* Returns where C, with cluster tiles of rows × cols elements, may be cut. A share computes each element as
 * the whole product does if its cluster tiles lie in the bands of the whole, and if the last share has all
 * tiles that clusters share. */
struct mm_cuts mm_schedule_cuts(const struct mm_schedule *whole, size_t rows, size_t cols);

/* Returns the schedule of a share of a product with cluster tiles of rows × cols elements, or the schedule
 * itself if the product is no share. The last share, with the last rows and columns, has the tiles that
 * clusters share. */
struct mm_schedule mm_schedule_share(const struct mm_schedule *whole, const struct mm_product *product,
                                     size_t rows, size_t cols);

/* Estimates the time of a schedule, in steps of the product kernel. */
double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up);

__END_DECLS
