/* Runs a product in tiles (gpu/plan/tiling.h). Panels are copied to the device or generated there, and tiles
 * of C are copied to the host, while kernels compute. Only the thread that uses the device's lanes calls
 * these functions, unless a comment says otherwise. One job at a time runs in tiles, because such a job is
 * exclusive. */
#pragma once

#include "gpu/cuda/device.h"

/* Makes the streams and events. On failure the caller closes them as well. */
cudaError_t mm_cuda_copier_open(struct mm_cuda_copier *copier);
void mm_cuda_copier_close(const struct mm_cuda_copier *copier);

/* Returns the bytes of device memory that a job in tiles needs. Any thread. */
size_t mm_cuda_tiles_bytes(const struct mm_job *job, const struct mm_tiling *tiling);

/* Acquires the memory of lane->bands.tiling, and enqueues the first tiles. The caller has set the other
 * members of lane->bands. After a failure, the caller calls mm_cuda_wait. */
enum mm_status mm_cuda_begin_tiles(struct mm_lane *lane, struct mm_error *error);

/* Enqueues the next tile. The lane's job must have a tile that is not enqueued (mm_job_computes). */
enum mm_status mm_cuda_enqueue_tile(struct mm_lane *lane, struct mm_error *error);

/* Returns the event after which the next tile of the job should be enqueued. */
cudaEvent_t mm_cuda_tile_awaited(const struct mm_lane *lane);

/* Sets *took_ns to the time of the checks of all tiles. All work of the lane's job has ended. */
cudaError_t mm_cuda_read_check_time(struct mm_lane *lane, uint64_t *took_ns);

/* Waits for all work of the lane's job. */
cudaError_t mm_cuda_wait(const struct mm_lane *lane);
