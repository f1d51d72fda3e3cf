#include "held.h"

#include <stddef.h>

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        continue;
}

static void hold(struct mm_crew_work *work) {
    struct held *held = (struct held *)work;
    if (held->next != NULL)
        mm_crew_add(held->crew, &held->next->work);
    sem_post(&held->begun);
    wait_for(&held->end);
}

void held_init(struct held *held, struct mm_crew *crew, struct held *next) {
    *held = (struct held){.work.run = hold, .crew = crew, .next = next};
    sem_init(&held->begun, 0, 0);
    sem_init(&held->end, 0, 0);
}

void held_wait_begun(struct held *held) {
    wait_for(&held->begun);
}

void held_end(struct held *held) {
    sem_post(&held->end);
}

void held_destroy(struct held *held) {
    sem_destroy(&held->begun);
    sem_destroy(&held->end);
}
