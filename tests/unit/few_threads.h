/* Makes pthread_create fail in tests. The test must be linked with --wrap=pthread_create. */
#pragma once

/* Threads that can still be started before pthread_create fails. Negative, as at the start: no limit. */
extern int threads_left;
