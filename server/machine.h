/* Reads from Linux's /proc and control groups which resources this process uses, and its memory limit. */
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

/* Fills in *process. The call takes longer if more descriptors are open. Any thread may call it. */
void mm_process_look(struct mm_process *process);

/* Returns how many bytes of memory this process may use: the RAM, or less if a control group of this process
 * sets a lower limit. Parent groups count too. Reads control groups of version 1 and 2. */
size_t mm_machine_memory(void);
