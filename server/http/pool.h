/* A worker pool: threads for long work, which would delay other connections of an HTTP thread. The caller
 * embeds struct mm_pool_task in its own struct. */
#pragma once

#include <sys/queue.h>

struct mm_pool;

/* The task must stay valid until `run` is called. `run` may free or reuse it. A pool thread calls `run` with
 * no lock held. */
struct mm_pool_task {
    void (*run)(struct mm_pool_task *task);
    STAILQ_ENTRY(mm_pool_task) listed;
};

/* Starts up to thread_count threads. NULL if none of them starts or memory runs out. The caller owns it. */
struct mm_pool *mm_pool_start(unsigned thread_count);

/* Finishes all tasks, then ends the threads and frees the pool. NULL is allowed. */
void mm_pool_stop(struct mm_pool *pool);

/* Lets the pool run a task. Any thread may call it. */
void mm_pool_add(struct mm_pool *pool, struct mm_pool_task *task);

/* Calls one(data, index) for each index below count, and returns when all calls have ended. The calling
 * thread and idle pool threads make these calls. Any thread may call it, even a pool thread. */
void mm_pool_share(struct mm_pool *pool, unsigned count, void (*one)(void *data, unsigned index), void *data);
