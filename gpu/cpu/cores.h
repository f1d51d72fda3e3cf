/* How many of the machine's cores this process may keep busy. Any thread may call these functions. */
#pragma once

/* Those that it may run on (its affinity), or less where its control group has a quota of time for fewer;
 * at least 1. */
unsigned mm_cores(void);

/* Products that the CPU computes at a time at most, however many its cores are. */
enum { MM_HOST_JOBS_MAX = 16 };
