/* Fakes for tests of a variant that keeps copies of stored operands: a device, the variant's workspace, and
 * the memory of the copies. */
#pragma once

#include "gpu/cuda/device.h"
#include "gpu/cuda/device_copy.h"
#include "tests/unit/unit.h"

enum { MULTIPROCESSORS = 132, SCRATCH_BYTES = 1 << 27, KEPT_BYTES = 1 << 20 };

extern struct mm_cuda_device device;
extern char scratch[SCRATCH_BYTES]; /* the workspace, and the data of all matrices; never written */

/* The copies of A and of B that are kept. */
extern struct kept {
    char *copy;
    size_t bytes;  /* how many bytes the variant needs */
    bool is_noted; /* the variant has filled the copy */
} kept[2];

/* From now on the device keeps copies. `filled` has a bit for each copy that is filled already. */
void keep_copies(unsigned filled);

/* From now on the device keeps no copies. */
void keep_no_copies(void);

/* Asserts that the address is in the workspace. Returns the distance from the workspace's begin. */
size_t offset_of(const void *address);
