/* A timeline of the copies and kernels that the CUDA backend enqueues. The linker's option --wrap puts the
 * functions of timeline.c before those of CUDA. */
#pragma once

/* Notes all copies and kernels from now on. */
void timeline_begin(void);

/* Writes a CSV file with one line for each copy and kernel since timeline_begin, in the order in which they
 * were enqueued. All have ended. Returns the number of lines, or -1 on failure. */
int timeline_write(const char *path);
