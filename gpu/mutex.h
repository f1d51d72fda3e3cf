/* Mutexes that threads keep locked for well under a microsecond. */
#pragma once

#include <pthread.h>

/* Initializes a mutex. If the mutex is locked, a thread spins for a while before it sleeps, because sleeping
 * and waking cost more than a short wait. This cannot fail. */
void mm_mutex_init(pthread_mutex_t *mutex);
