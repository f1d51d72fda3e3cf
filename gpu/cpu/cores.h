/* How many cores this process may use. Any thread may call this function. */
#pragma once

/* Returns the cores in the process's CPU affinity, or the CPU quota of its control group if that is less. At
 * least 1. */
unsigned mm_cores(void);

/* The most products that the CPU computes at a time. */
enum { MM_HOST_JOBS_MAX = 16 };
