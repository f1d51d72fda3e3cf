/* Computes a share (gpu/queue/share.h) while its B is copied from other devices. B is copied in panels of
 * columns, on the device's stream for uploads. The kernels for a panel of C wait only for the panel of B.
 * mm_job_copies_in_panels chooses the jobs. */
#pragma once

#include "gpu/cuda/device.h"

/* Enqueues the copying of B to its device copy, and the kernels for all of C, and marks MM_CUDA_UPLOADED
 * before the first kernel. The other operands are copied, and that mark is recorded. After a failure, the
 * caller calls mm_cuda_wait. */
enum mm_status mm_cuda_launch_panels(struct mm_lane *lane, struct mm_error *error);
