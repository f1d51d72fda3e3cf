/* How much memory this process may count on: its control group's limit, or the machine's RAM. */
#ifndef MM_SERVER_BUDGET_H
#define MM_SERVER_BUDGET_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The least memory limit of the process's control group and its ancestors (version 2, or version 1's
 * memory controller), or the RAM where none is lower. Bytes. */
size_t mm_budget_memory(void);

#ifdef __cplusplus
}
#endif
#endif
