/* The test that every device passes before it serves, and again when it has nothing else to do. */
#ifndef MM_GPU_SELF_TEST_H
#define MM_GPU_SELF_TEST_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs every variant that is not missing on the device once, on a known product or transposition, through
 * lane 0: a device that is wrong by any of them must not serve. Running them all also loads what a first
 * use would load, so that no caller's first measurement pays for it. MM_DEVICE_FAILED for a wrong result;
 * else what the backend says. The thread that uses the device; `error` is not NULL. */
enum mm_status mm_self_test(struct mm_device *device, struct mm_error *error);

/* The same of one row of the device's backend alone; MM_OK where it is missing. It takes 0.5 MiB meanwhile.
 */
enum mm_status mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
