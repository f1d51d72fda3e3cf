/* How many of the machine's cores this process may use. Any thread may call this function. */
#pragma once

/* Returns how many cores the process may run on (its affinity), or fewer if the quota of its control group
 * is smaller; at least 1. */
unsigned mm_cores(void);

/* The most products that the CPU computes at a time, even if it has more cores. */
enum { MM_HOST_JOBS_MAX = 16 };
