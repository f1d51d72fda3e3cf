/* Mutexes that threads keep locked for well under a microsecond. */
#pragma once

#include <pthread.h>

/* An unlocked mutex. If it is locked, a thread spins for a while before it sleeps, because sleeping and
 * waking cost more than a short wait. */
#define MM_MUTEX_INITIALIZER ((pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP)
