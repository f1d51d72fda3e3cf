/* Work for a crew that holds the thread that does it, until it is told to end. */
#ifndef TESTS_UNIT_SERVER_HELD_H
#define TESTS_UNIT_SERVER_HELD_H

#include "server/crew.h"

#include <semaphore.h>

struct held {
    struct mm_crew_work work; /* first */
    struct mm_crew *crew;
    struct held *next; /* added to the crew when this has begun; NULL: none */
    sem_t begun;
    sem_t end;
};

void held_init(struct held *held, struct mm_crew *crew, struct held *next);
void held_wait_begun(struct held *held);
void held_end(struct held *held);
void held_destroy(struct held *held); /* once the crew has ended */

#endif
