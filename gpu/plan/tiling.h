/* Tiles: how a device computes a product if its memory cannot hold all matrices. A tile of C is a panel of
 * op(A), which is some rows, times a panel of op(B), which is some columns. Panels have all of k, so a kernel
 * sums up a tile as it sums up a whole product.
 *
 * The device has slots for a few panels. A group is as many panels of B as there are slots. The panels of a
 * group stay on the device while all panels of A pass. The next group takes the panels of A in reverse order,
 * so it begins with those that are still on the device. So A is copied several times, not B, because a panel
 * of A is whole rows, which are copied faster. Any thread may call these functions. */
#pragma once

#include "gpu/plan/plan.h"

enum { MM_TILING_SLOTS_MAX = 8, MM_TILING_C_SLOTS = 2 };

struct mm_tiling {
    size_t rows; /* of a panel of A; the last panel may have fewer */
    size_t cols; /* of a panel of B; the last panel may have fewer */
    size_t a_panels;
    size_t b_panels;
    unsigned a_slots; /* at most MM_TILING_SLOTS_MAX */
    unsigned b_slots;
    size_t a_bytes; /* of a slot, as the next two members */
    size_t b_bytes;
    size_t a_kept_bytes; /* the end of a slot, for data that a launch derives from the panel */
    size_t b_kept_bytes;
    size_t c_bytes;         /* for a tile of C, one of the addend, and the columns of the bias */
    size_t workspace_bytes; /* for the kernels of one tile */

    /* Where the matrices are. Bit i stands for operand i (enum mm_operand_index). */
    unsigned uploads;  /* operands in host memory */
    unsigned in_place; /* A or B if kernels read its panels where they are, and not in slots */
    bool downloads;    /* C is wanted in host memory */
};

/* A tile, and the slots of its panels. */
struct mm_tiling_step {
    size_t a; /* index of the panel */
    size_t b;
    unsigned a_slot;
    unsigned b_slot;
};

/* What a product in tiles will take, in nanoseconds. Uploads, kernels and downloads overlap. */
struct mm_tiling_times {
    double ns;
    double kernel_ns; /* all kernels together */
    double upload_ns; /* all uploads together */
    double first_ns;  /* until the first kernel begins */
    double last_ns;   /* after the last kernel */
};

static inline size_t mm_tiling_count(const struct mm_tiling *tiling) {
    return tiling->a_panels * tiling->b_panels;
}

/* Returns the bytes of all slots and the workspace. */
size_t mm_tiling_bytes(const struct mm_tiling *tiling);

/* Returns the workspace that the launch of a tile by this plan needs, if derived data is kept with panels. */
size_t mm_tiling_workspace(const struct mm_plan *plan);

/* Returns the tile that is computed as number `index`. */
struct mm_tiling_step mm_tiling_tile(const struct mm_tiling *tiling, size_t index);

/* Returns the tile at a corner of C, by numbers 0 to 3. All tiles are as large as one of these. */
static inline struct mm_tiling_step mm_tiling_corner(const struct mm_tiling *tiling, unsigned corner) {
    const struct mm_tiling_step tile = {corner % 2 * (tiling->a_panels - 1),
                                        corner / 2 * (tiling->b_panels - 1), 0, 0};
    return tile;
}

/* Returns the part of a product (mm_product_part) that computes a tile. */
struct mm_product mm_tiling_part(const struct mm_tiling *tiling, const struct mm_product *product,
                                 const struct mm_tiling_step *tile);

/* Forecasts the time by the device's rates. If the device has copied nothing yet, assumes 50 GB/s. Assumes
 * that operands that are not in host memory take no time, because the device reads or generates them fast. */
struct mm_tiling_times mm_tiling_forecast(const struct mm_tiling *tiling, const struct mm_plan *plan,
                                          const struct mm_product *product);

/* Finds the tiles with the shortest forecast that need at most `bytes` of the device. `plan` is the plan of
 * the whole product, which is no stack and not empty. The caller has set the last three members of *tiling.
 * Returns false, with *tiling undefined, if even the smallest tile needs more. */
bool mm_tiling_make(const struct mm_plan *plan, const struct mm_product *product, size_t bytes,
                    struct mm_tiling *tiling);
