/* Makes pthread_create fail. Tests that use this are linked with --wrap=pthread_create. */
#pragma once

/* Number of threads that can still be created. Negative, as at the start, for no limit. */
extern int threads_left;
