/* How many cores this process may use. Any thread may call this function. */
#pragma once

/* The number is the process's CPU affinity, or its control group's CPU quota if that is less, and at least
 * 1. */
unsigned mm_cores(void);

/* The most products that the CPU computes at a time. */
enum { MM_HOST_JOBS_MAX = 16 };
