/* Mutexes that are held for well under a microsecond. */
#pragma once

#include <pthread.h>

/* A thread that finds the mutex taken tries again for a while before it sleeps: to sleep and to be woken
 * costs more than such a wait. It cannot fail: the C library allocates nothing for this. */
void mm_mutex_init(pthread_mutex_t *mutex);
