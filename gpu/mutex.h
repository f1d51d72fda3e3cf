/* Mutexes that are held for well under a microsecond. */
#pragma once

#include <pthread.h>

/* A thread that finds the mutex locked tries again for a while before it sleeps, because sleeping and waking
 * cost more than a short wait. This cannot fail: the C library allocates nothing for it. */
void mm_mutex_init(pthread_mutex_t *mutex);
