/* What the system tells about this process and its memory limit. Linux: /proc and control groups. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0: the system does not tell. */
struct mm_process {
    double cpu_seconds; /* user and system */
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t descriptors;
    uint64_t descriptors_max;
};

/* Counting the descriptors takes longer the more there are. Any thread may call it. */
void mm_process_look(struct mm_process *process);

/* How much memory this process may count on, in bytes: the lowest limit of its control group and the group's
 * ancestors (version 2, or version 1's memory controller), or the RAM if that is less. */
size_t mm_machine_memory(void);
