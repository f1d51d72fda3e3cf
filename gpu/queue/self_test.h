/* The test that every device passes before it serves, and again when it has nothing else to do. */
#pragma once

#include "gpu/device/backend.h"

/* Runs every variant of the device, except those that are wrong on purpose, on a known product or
 * transposition of each element type that it takes, through lane 0. That also loads what a first use would
 * load. MM_DEVICE_FAILED for a wrong result; else what the backend says. On the thread that uses the device;
 * `error` is not NULL. */
enum mm_status mm_self_test(struct mm_device *device, struct mm_error *error);

/* Runs each once more on matrices that the device makes, and lets its forecast assume half the rate
 * (gpu/plan/forecast.h). Takes some MiB and some hundredths of a second; without memory nothing is assumed.
 * MM_DEVICE_FAILED if the device fails. On the thread that uses the device. */
enum mm_status mm_self_test_rates(struct mm_device *device, struct mm_error *error);

/* The test of one row of the device's backend; MM_OK if it is missing, or wrong on purpose. It takes 0.5 MiB
 * meanwhile. */
enum mm_status mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);
