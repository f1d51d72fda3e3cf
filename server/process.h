/* What the system says of this process, for the process_* metrics. Linux: /proc. */
#ifndef MM_SERVER_PROCESS_H
#define MM_SERVER_PROCESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What cannot be told is 0. */
struct mm_process {
    double cpu_seconds; /* user and system */
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t descriptors;
    uint64_t descriptors_max;
};

/* Looks now. Counting the descriptors takes as long as there are many. Any thread. */
void mm_process_look(struct mm_process *process);

#ifdef __cplusplus
}
#endif
#endif
