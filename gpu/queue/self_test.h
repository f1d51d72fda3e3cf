/* The self-test. Every device must pass it at start, and repeats it when idle. */
#pragma once

#include "gpu/device/backend.h"

/* Runs every variant of the device on a known product or transposition of each supported element type, in
 * lane 0. Skips variants that are wrong on purpose. Also loads everything that a first request would have to
 * load. MM_DEVICE_FAILED if a result is wrong, otherwise the backend's status. Only the thread that uses the
 * device calls this. `error` is not NULL. */
enum mm_status mm_self_test(struct mm_device *device, struct mm_error *error);

/* Times every float32 variant on generated matrices, and lets forecasts assume half of the rate
 * (gpu/plan/forecast.h). Needs 12 MiB of device memory and some hundredths of a second. If memory is short,
 * does nothing. MM_DEVICE_FAILED if the device fails. Only the thread that uses the device calls this. */
enum mm_status mm_self_test_rates(struct mm_device *device, struct mm_error *error);

/* Tests one row of the backend's variant table. MM_OK also if the variant is missing on the device or wrong
 * on purpose. Needs 0.5 MiB of host memory. Only the thread that uses the device calls this. `error` is not
 * NULL. */
enum mm_status mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);
