/* A backend for tests of what lies in front of backends: its devices take jobs when told to. */
#ifndef TESTS_UNIT_GPU_FAKE_BACKEND_H
#define TESTS_UNIT_GPU_FAKE_BACKEND_H

#include "gpu/backend.h"

#include <pthread.h>

struct fake_device {
    struct mm_device device;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool open_gate;      /* whether `end` returns */
    unsigned open_lanes; /* a bit for each lane that is over though the gate is closed, once */
    bool fail_begin;     /* whether `begin` fails */
    bool is_starved;
    uint64_t kernel_ns; /* of each job; 0: 1 */
    unsigned batches;   /* calls of begin */
    unsigned begun;     /* jobs that begin was called for */
    unsigned under_way; /* begun and not ended */
    unsigned most;      /* the most under way at one time */
    unsigned alone;     /* of these, products of n = ALONE_N */
    bool was_shared;    /* one of them was under way beside another product */
};

/* Products of so many columns want the device alone. */
enum { ALONE_N = 99 };

/* Products of so many columns fail in begin. */
enum { FAILING_N = 98 };

/* Products of so many columns find no memory beside others, nor where the device is starved. */
enum { HUNGRY_N = 97 };

extern const struct mm_backend fake_backend;
extern const struct mm_backend fake_async; /* the same, but it tells when a lane is over, and products go
                                              together by their tile */
extern const struct mm_backend fake_host;  /* the same on the host, whose kernels take no time */

void fake_device_init(struct fake_device *fake, unsigned index, unsigned lane_count, bool open_gate);
void fake_device_destroy(struct fake_device *fake);
void fake_device_open_gate(struct fake_device *fake);
void fake_device_open_lane(struct fake_device *fake, unsigned lane);
void fake_device_wait_begun(struct fake_device *fake, unsigned begun);
unsigned fake_device_begun(struct fake_device *fake);

#endif
