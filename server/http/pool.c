#include "server/http/pool.h"

#include "gpu/mutex.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* The calls of one mm_pool_share, whose thread owns this struct. The pool's mutex guards the struct. */
struct share {
    void (*one)(void *data, unsigned index);
    void *data;
    unsigned count;
    unsigned begun;
    unsigned ended;
    pthread_cond_t done; /* signalled when all calls have ended */
    LIST_ENTRY(share) listed;
};

struct mm_pool {
    pthread_mutex_t mutex; /* guards `tasks`, `shares` and `stopping` */
    pthread_cond_t changed;
    STAILQ_HEAD(tasks, mm_pool_task) tasks; /* the oldest task comes first */
    LIST_HEAD(shares, share) shares;        /* shares with calls that have not begun */
    bool stopping;
    unsigned thread_count;
    pthread_t threads[];
};

/* Makes the next call of a share. Call it with the mutex held; it unlocks the mutex only during the call. */
static void do_part(struct mm_pool *pool, struct share *share) {
    const unsigned index = share->begun++;
    if (share->begun == share->count)
        LIST_REMOVE(share, listed);
    pthread_mutex_unlock(&pool->mutex);
    share->one(share->data, index);
    pthread_mutex_lock(&pool->mutex);
    if (++share->ended == share->count)
        pthread_cond_signal(&share->done); /* before the unlock, because the share may be gone afterwards */
}

/* Runs tasks until the pool stops. Makes calls of shares only while no task waits. */
static void *work_on(void *argument) {
    struct mm_pool *pool = argument;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        struct mm_pool_task *task = STAILQ_FIRST(&pool->tasks);
        if (task != NULL) {
            STAILQ_REMOVE_HEAD(&pool->tasks, listed);
            pthread_mutex_unlock(&pool->mutex);
            task->run(task);
            pthread_mutex_lock(&pool->mutex);
        } else if (!LIST_EMPTY(&pool->shares)) {
            do_part(pool, LIST_FIRST(&pool->shares));
        } else if (!pool->stopping) {
            pthread_cond_wait(&pool->changed, &pool->mutex);
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

struct mm_pool *mm_pool_start(unsigned thread_count) {
    struct mm_pool *pool = calloc(1, sizeof *pool + thread_count * sizeof pool->threads[0]);
    if (pool == NULL)
        return NULL;
    pool->mutex = MM_MUTEX_INITIALIZER;
    pthread_cond_init(&pool->changed, NULL);
    STAILQ_INIT(&pool->tasks);
    while (pool->thread_count < thread_count &&
           pthread_create(&pool->threads[pool->thread_count], NULL, work_on, pool) == 0)
        pthread_setname_np(pool->threads[pool->thread_count++], "mm-pool");
    if (pool->thread_count > 0)
        return pool;
    mm_pool_stop(pool);
    return NULL;
}

void mm_pool_stop(struct mm_pool *pool) {
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned index = 0; index < pool->thread_count; index++)
        pthread_join(pool->threads[index], NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

void mm_pool_add(struct mm_pool *pool, struct mm_pool_task *task) {
    pthread_mutex_lock(&pool->mutex);
    STAILQ_INSERT_TAIL(&pool->tasks, task, listed);
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

void mm_pool_share(struct mm_pool *pool, unsigned count, void (*one)(void *data, unsigned index),
                   void *data) {
    struct share share = {.one = one, .data = data, .count = count};
    if (count == 0)
        return;
    pthread_cond_init(&share.done, NULL);
    pthread_mutex_lock(&pool->mutex);
    LIST_INSERT_HEAD(&pool->shares, &share, listed);
    for (unsigned helper = 1; helper < count; helper++)
        pthread_cond_signal(&pool->changed);
    while (share.begun < count)
        do_part(pool, &share);
    while (share.ended < count)
        pthread_cond_wait(&share.done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&share.done);
}
