/* A job: one product on its way through a queue and a device. Its owner embeds it (in a connection's
 * state, say), so that queueing allocates nothing. */
#ifndef MM_GPU_JOB_H
#define MM_GPU_JOB_H

#include "gpu/clock.h"
#include "gpu/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_backend;

/* Who owns it when: the caller until mm_queue_submit returns MM_OK; then the queue until it calls
 * done(job), from a worker's thread or from mm_queue_abort, with no lock held; then the caller again.
 * Meanwhile the caller keeps the matrices of `product` alive and reads nothing of the job. */
struct mm_job {
    /* Set by the caller. */
    struct mm_product product;        /* host memory; conforming; m = 0, n = 0, k = 0 allowed */
    const struct mm_backend *backend; /* whose table `variant` stands in */
    const struct mm_variant *variant; /* as chosen; may be the row `auto` */
    uint64_t deadline_ns;             /* mm_clock_ns() past which it is not started; 0: none */
    void (*done)(struct mm_job *job);
    void *owner; /* the caller's own */

    /* Set by the queue and the backend; readable from done on. */
    struct mm_error error;           /* status MM_OK where the result is good; else C is undefined */
    const struct mm_variant *ran;    /* never `auto`; NULL where nothing was chosen */
    const struct mm_device *device;  /* NULL where no device took it up */
    uint64_t span_ns[MM_SPAN_COUNT]; /* queue, upload, kernel, download are written here */
    unsigned batched;                /* jobs in the launch that it was part of; 1: alone */
    size_t uploaded_bytes; /* copied to the device's own memory, and back; 0 where that is the host's */
    size_t downloaded_bytes;

    /* The queue's own while it owns the job. */
    struct mm_job *next;
    struct mm_job *previous;
    void *worker; /* in whose list it waits; NULL: in none */
    uint64_t queued_ns;
    size_t queued_bytes;
};

/* 2·m·n·k per nanosecond of kernel time, which is GFLOP/s; 0 where nothing ran. */
double mm_job_gflops(const struct mm_job *job);

/* Of a transposition: the bytes of A and of C, each read or written once, per nanosecond of kernel time,
 * which is GB/s; 0 where nothing ran. */
double mm_job_gigabytes_per_second(const struct mm_job *job);

#ifdef __cplusplus
}
#endif
#endif
