/* How many cores this process may use. Any thread may call this function. */
#pragma once

/* Returns the cores that the process may run on (its affinity), or its control group's CPU quota if that is
 * less. At least 1. */
unsigned mm_cores(void);

/* The most products that the CPU computes at a time. */
enum { MM_HOST_JOBS_MAX = 16 };
