/* Makes pthread_create fail. Tests that use this are linked with --wrap=pthread_create. */
#pragma once

/* Number of threads that can still be created. A negative number, as at the start, means no limit. */
extern int threads_left;
