/* The table of chips, and the model of occupancy. */
#include "gpu/lab/occupancy.h"

#include "gpu/matrix/matrix.h"

#include <assert.h>

MM_DEFINE_NAMES(mm_limiter_name, mm_limiter, MM_LIMITER_COUNT, MM_LIMITER_TABLE)

/* All chips of the table have these numbers: the registers of a multiprocessor, the unit in which registers
 * are allocated, and the partitions of a multiprocessor. */
enum { REGISTERS = 65536, REGISTER_UNIT = 256, PARTS = 4 };

/* One row for each compute capability, and a last row of zeros. */
static const struct chip {
    unsigned capability;     /* 10·major + minor */
    unsigned warps, blocks;  /* most resident warps and blocks of a multiprocessor */
    size_t shared;           /* bytes of shared memory of a multiprocessor */
    size_t shared_per_block; /* most bytes of a block */
    size_t shared_reserved;  /* bytes reserved in each block */
    size_t shared_unit;      /* bytes by which memory is allocated */
} chips[] = {
    {70, 64, 32, 98304, 98304, 0, 256},
    {75, 32, 16, 65536, 65536, 0, 256},
    {80, 64, 32, 167936, 166912, 1024, 128},
    {86, 48, 16, 102400, 101376, 1024, 128},
    {89, 48, 24, 102400, 101376, 1024, 128},
    {90, 64, 32, 233472, 232448, 1024, 128},
    {100, 64, 32, 233472, 232448, 1024, 128},
    {120, 48, 24, 102400, 101376, 1024, 128},
    {0},
};

unsigned mm_occupancy_capability(size_t index) {
    return chips[index].capability;
}

/* The registers of a warp are all in one partition. The warps of all blocks are distributed over the
 * partitions. */
static unsigned blocks_by_registers(unsigned block_warps, unsigned registers_per_thread) {
    const unsigned each =
        (unsigned)mm_size_round_up((size_t)registers_per_thread * MM_WARP_LANES, REGISTER_UNIT);
    if (each == 0)
        return MM_OCCUPANCY_UNLIMITED;
    return REGISTERS / PARTS / each * PARTS / block_warps;
}

static unsigned blocks_by_shared(const struct chip *chip, size_t shared_bytes) {
    if (shared_bytes > chip->shared_per_block)
        return 0;
    const size_t each = mm_size_round_up(shared_bytes + chip->shared_reserved, chip->shared_unit);
    return each == 0 ? MM_OCCUPANCY_UNLIMITED : (unsigned)(chip->shared / each);
}

bool mm_occupancy_predict(unsigned compute_capability, const struct mm_block_use *use,
                          struct mm_occupancy *occupancy) {
    const unsigned block_warps = mm_occupancy_block_warps(use->threads);
    const struct chip *chip = chips;
    assert(use->threads >= 1 && use->threads <= MM_BLOCK_THREADS_MAX);
    assert(use->registers_per_thread <= MM_THREAD_REGISTERS_MAX);
    while (chip->capability != 0 && chip->capability != compute_capability)
        chip++;
    if (chip->capability == 0)
        return false;
    *occupancy = (struct mm_occupancy){
        .blocks = MM_OCCUPANCY_UNLIMITED,
        .warps_max = chip->warps,
        .blocks_by = {[MM_LIMITER_THREADS] = chip->warps / block_warps,
                      [MM_LIMITER_REGISTERS] = blocks_by_registers(block_warps, use->registers_per_thread),
                      [MM_LIMITER_SHARED_MEMORY] = blocks_by_shared(chip, use->shared_bytes),
                      [MM_LIMITER_BLOCKS] = chip->blocks}};
    for (unsigned limiter = 0; limiter < MM_LIMITER_COUNT; limiter++)
        if (occupancy->blocks_by[limiter] < occupancy->blocks)
            occupancy->blocks = occupancy->blocks_by[limiter];
    occupancy->warps = occupancy->blocks * block_warps;
    return true;
}
