/* A worker pool: threads for long work, which would delay all connections of a connection's thread. The
 * caller embeds the task in a struct of its own. */
#pragma once

#include <sys/queue.h>

struct mm_pool;

/* Belongs to the pool from mm_pool_add until the pool calls run(task), on one of its threads and with no lock
 * held. */
struct mm_pool_task {
    void (*run)(struct mm_pool_task *task);
    STAILQ_ENTRY(mm_pool_task) listed; /* used by the pool */
};

/* Starts so many threads, or fewer if the system has no more. NULL if it has none. The caller owns the pool.
 */
struct mm_pool *mm_pool_start(unsigned thread_count);

/* Ends and frees the pool once it has done all tasks. NULL is allowed. */
void mm_pool_stop(struct mm_pool *pool);

/* Adds a task. Any thread may call it. */
void mm_pool_add(struct mm_pool *pool, struct mm_pool_task *task);

/* Calls one(data, index) for each index below count, and returns once all calls are done. This thread and
 * idle threads of the pool share the calls. Any thread may call it, also one of the pool. */
void mm_pool_share(struct mm_pool *pool, unsigned count, void (*one)(void *data, unsigned index), void *data);
