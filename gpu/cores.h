/* How many of the machine's cores this process may keep busy. */
#ifndef MM_GPU_CORES_H
#define MM_GPU_CORES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Those that it may run on (its affinity), or less where its control group has a quota of time for fewer;
 * at least 1. */
unsigned mm_cores(void);

#ifdef __cplusplus
}
#endif
#endif
