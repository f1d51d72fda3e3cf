/* The test that every device passes before it serves, and again when it has nothing else to do. */
#pragma once

#include "gpu/device/backend.h"

/* Runs every variant of the device, except those that are wrong on purpose, on a known product or
 * transposition of each element type that it takes, through lane 0. That also loads what a first use would
 * load. MM_DEVICE_FAILED for a wrong result, else the backend's status. On the thread that uses the device;
 * `error` is not NULL. */
enum mm_status mm_self_test(struct mm_device *device, struct mm_error *error);

/* Times every float32 variant of the device on matrices that the device generates, and lets its forecast
 * assume half of the rate (gpu/plan/forecast.h). Takes 12 MiB of device memory and some hundredths of a
 * second. If memory is short, nothing is assumed. MM_DEVICE_FAILED if the device fails. On the thread that
 * uses the device. */
enum mm_status mm_self_test_rates(struct mm_device *device, struct mm_error *error);

/* Tests one row of the device's backend as mm_self_test tests all. MM_OK also if the row is missing on the
 * device, or wrong on purpose. Takes 0.5 MiB of host memory meanwhile. On the thread that uses the device;
 * `error` is not NULL. */
enum mm_status mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);
