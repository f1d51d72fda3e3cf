/* The self-test, which every device must pass before it is used. Idle devices are tested again. */
#pragma once

#include "gpu/device/backend.h"

/* Runs every variant of the device, for each supported element type, on a product or transposition with a
 * known result. Uses lane 0, and skips variants that are wrong on purpose. This also loads all code before
 * the first request. MM_DEVICE_FAILED if a result is wrong, otherwise the backend's status. Only the thread
 * that uses the device calls this. `error` must not be NULL. */
enum mm_status mm_self_test(struct mm_device *device, struct mm_error *error);

/* Times every variant on float32 matrices, and sets the first rates for forecasts (gpu/plan/forecast.h).
 * Needs 12 MiB of device memory, and takes some hundredths of a second. If memory is short, does nothing.
 * MM_DEVICE_FAILED if the device fails. Only the thread that uses the device calls this. */
enum mm_status mm_self_test_rates(struct mm_device *device, struct mm_error *error);

/* Tests the variant with index `row` in the backend's table. Returns MM_OK without a test if the variant is
 * missing on the device or wrong on purpose. Needs 0.5 MiB of host memory. Only the thread that uses the
 * device calls this. `error` must not be NULL. */
enum mm_status mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);
