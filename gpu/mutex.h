/* Mutexes that threads keep locked for well under a microsecond. */
#pragma once

#include <pthread.h>

/* Initializes a mutex. A thread that finds it locked spins for a while before it sleeps, because sleeping
 * and waking cost more than a short wait. Initialization cannot fail: the C library allocates nothing for
 * a mutex. */
void mm_mutex_init(pthread_mutex_t *mutex);
