/* How many of the machine's cores this process may keep busy. Any thread may call these functions. */
#pragma once

/* The cores on which the process may run (its affinity), or fewer if its control group's quota of time is
 * smaller; at least 1. */
unsigned mm_cores(void);

/* The most products that the CPU computes at a time, however many cores it has. */
enum { MM_HOST_JOBS_MAX = 16 };
