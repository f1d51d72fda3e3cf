/* Runs the cases on several threads. Each thread opens its own device, because only one thread may use a
 * device at a time. Threads are faster than processes, because a GPU serves only one process at a time. */
#include "tests/kernels/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct sharer {
    cases_function *check;
    const struct plan *plan;
    struct mm_device *device; /* only this thread uses it; the first thread has the caller's device */
    struct subject *subjects; /* copies; owned */
    size_t count;
    pthread_t thread;
};

static void *run(void *data) {
    struct sharer *sharer = data;
    sharer->check(sharer->subjects, sharer->count, sharer->plan);
    return NULL;
}

/* Copies the subjects without their results, for the device of a thread. */
static void take_subjects(struct sharer *sharer, const struct subject *subjects, size_t count) {
    sharer->subjects = harness_allocate(count * sizeof *subjects);
    sharer->count = count;
    for (size_t index = 0; index < count; index++) {
        sharer->subjects[index] = subjects[index];
        sharer->subjects[index].device = sharer->device;
    }
}

static void add_subject(struct subject *sum, const struct subject *part) {
    sum->cases += part->cases;
    sum->unsupported += part->unsupported;
    sum->failures += part->failures;
    if (part->fraction_max > sum->fraction_max)
        sum->fraction_max = part->fraction_max;
}

bool share_check(cases_function *check, unsigned threads, struct subject *subjects, size_t count,
                 const struct plan *plan) {
    struct sharer sharers[SHARE_THREADS_MAX] = {0};
    struct mm_device *device = subjects[0].device;
    struct plan shared = *plan;
    atomic_size_t next_unit = 0;
    unsigned started = 0;
    shared.next_unit = &next_unit;
    for (; started < threads; started++) {
        struct sharer *sharer = &sharers[started];
        struct mm_error error = {0};
        *sharer = (struct sharer){.check = check, .plan = &shared, .device = device};
        if (started > 0 && device->backend->open(device->index, &sharer->device, &error) != MM_OK) {
            printf("FAIL: a device for thread %u does not open: %s\n", started + 1, error.detail);
            break;
        }
        take_subjects(sharer, subjects, count);
        if (pthread_create(&sharer->thread, NULL, run, sharer) != 0) {
            fprintf(stderr, "kernels: cannot start a thread\n");
            abort();
        }
    }
    for (unsigned index = 0; index < started; index++) {
        struct sharer *sharer = &sharers[index];
        pthread_join(sharer->thread, NULL);
        for (size_t subject = 0; subject < count; subject++)
            add_subject(&subjects[subject], &sharer->subjects[subject]);
        free(sharer->subjects);
        if (index > 0)
            device->backend->close(sharer->device);
    }
    return started == threads;
}
