/* Resources that this process uses, and its memory limit. Read from Linux's /proc and control groups. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A member is 0 if the system does not report the value. */
struct mm_process {
    double cpu_seconds;
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t descriptors;
    uint64_t descriptors_max;
};

/* Fills in *process. Takes longer the more descriptors are open. Any thread may call it. */
void mm_process_look(struct mm_process *process);

/* The memory that this process may use, in bytes: the lowest limit of its control group and that group's
 * ancestors, or the RAM if that is less. Reads control groups of version 1 and 2. */
size_t mm_machine_memory(void);
