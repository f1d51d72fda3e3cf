/* A backend for tests of what lies in front of backends: its devices take jobs when told to. */
#ifndef TESTS_UNIT_GPU_FAKE_BACKEND_H
#define TESTS_UNIT_GPU_FAKE_BACKEND_H

#include "gpu/backend.h"

#include <pthread.h>

/* Products of ALONE_N columns want the device alone. */
enum { ALONE_N = 99, LANES_MAX = 16 };

struct fake_device {
    struct mm_device device;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool open_gate;                  /* whether `end` returns */
    unsigned open_lanes;             /* a bit for each lane that is over though the gate is closed, once */
    unsigned passes;                 /* calls of `end` that return all the same */
    bool fail_begin;                 /* whether `begin` fails */
    bool fail_end;                   /* whether `end` tells of a failure */
    bool is_starved;                 /* whether it has no memory for HUNGRY_N */
    uint64_t kernel_ns;              /* of each job; 0: 1 */
    unsigned batches;                /* calls of begin */
    unsigned begun;                  /* jobs that begin was called for */
    unsigned under_way;              /* begun and not ended */
    unsigned most;                   /* the most under way at one time */
    unsigned alone;                  /* of these, products of n = ALONE_N */
    bool was_shared;                 /* one of them was under way beside another product */
    struct mm_job *lanes[LANES_MAX]; /* the first of what is under way in each */
    pthread_t owners[LANES_MAX]; /* of lane l mod thread_count: the thread that uses them, once has_owner */
    bool has_owner[LANES_MAX];
    bool was_misused; /* a lane was not free, not the thread's, or not there */
};

/* Products of so many columns fail in begin. */
enum { FAILING_N = 98 };

/* Products of so many columns find no memory beside others, nor where the device is starved. */
enum { HUNGRY_N = 97 };

/* The begin of products of so many columns waits for the gate. */
enum { SLOW_N = 96 };

extern const struct mm_backend fake_backend;
extern const struct mm_backend fake_async; /* the same, but it tells when a lane is over, and products go
                                              together by their tile */
extern const struct mm_backend fake_host;  /* the same on the host, whose kernels take no time */

void fake_device_init(struct fake_device *fake, unsigned index, unsigned lane_count, bool open_gate);

/* Asserts that no lane was misused. */
void fake_device_destroy(struct fake_device *fake);

void fake_device_open_gate(struct fake_device *fake);
void fake_device_open_lane(struct fake_device *fake, unsigned lane);
void fake_device_close_gate(struct fake_device *fake);
void fake_device_let_pass(struct fake_device *fake, unsigned jobs); /* while the gate is closed */
void fake_device_wait_begun(struct fake_device *fake, unsigned begun);
unsigned fake_device_begun(struct fake_device *fake);

#endif
