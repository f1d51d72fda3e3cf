/* The pool's threads and their list. Knows nothing of what a task is. */
#include "server/http/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct mm_pool {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    struct mm_pool_task *first; /* oldest first */
    struct mm_pool_task *last;
    bool stopping;
    unsigned idle;  /* threads */
    unsigned tasks; /* in the list, without helps */
    unsigned thread_count;
    pthread_t threads[];
};

static void help(struct mm_pool_task *task);

/* NULL once the list is empty and the pool stops. */
static struct mm_pool_task *take(struct mm_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->idle++;
    while (pool->first == NULL && !pool->stopping)
        pthread_cond_wait(&pool->changed, &pool->mutex);
    pool->idle--;
    struct mm_pool_task *task = pool->first;
    if (task != NULL) {
        pool->first = task->next;
        pool->tasks -= task->run != help;
    }
    pthread_mutex_unlock(&pool->mutex);
    return task;
}

static void *work_on(void *argument) {
    struct mm_pool *pool = argument;
    for (;;) {
        struct mm_pool_task *task = take(pool);
        if (task == NULL)
            return NULL;
        task->run(task);
    }
}

struct mm_pool *mm_pool_start(unsigned thread_count) {
    struct mm_pool *pool = calloc(1, sizeof *pool + thread_count * sizeof pool->threads[0]);
    if (pool == NULL)
        return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
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

/* With the mutex held. */
static void add(struct mm_pool *pool, struct mm_pool_task *task) {
    task->next = NULL;
    *(pool->first == NULL ? &pool->first : &pool->last->next) = task;
    pool->last = task;
    pool->tasks += task->run != help;
    pthread_cond_signal(&pool->changed);
}

void mm_pool_add(struct mm_pool *pool, struct mm_pool_task *task) {
    pthread_mutex_lock(&pool->mutex);
    add(pool, task);
    pthread_mutex_unlock(&pool->mutex);
}

/* --- a task that is shared ------------------------------------------------------------------------ */

enum { HELPERS_MAX = 15 };

/* One thread's help. */
struct help {
    struct mm_pool_task task; /* first */
    struct share *share;
};

struct share {
    struct mm_pool *pool;
    void (*one)(void *data, unsigned index);
    void *data;
    unsigned count;
    unsigned taken; /* indices; __atomic */
    struct help helps[HELPERS_MAX];
    unsigned helping;     /* how many are in the list or run; guarded by the pool's mutex */
    pthread_cond_t ended; /* helping is 0 */
};

/* False where none is left. */
static bool do_one(struct share *share) {
    const unsigned index = __atomic_fetch_add(&share->taken, 1, __ATOMIC_RELAXED);
    if (index < share->count)
        share->one(share->data, index);
    return index < share->count;
}

/* Helps while no other task waits. */
static void help(struct mm_pool_task *task) {
    struct share *share = ((struct help *)task)->share;
    struct mm_pool *pool = share->pool;
    pthread_mutex_lock(&pool->mutex);
    for (bool more = true; more && pool->tasks == 0;) {
        pthread_mutex_unlock(&pool->mutex);
        more = do_one(share);
        pthread_mutex_lock(&pool->mutex);
    }
    if (--share->helping == 0)
        pthread_cond_signal(&share->ended); /* with the mutex held: once unlocked, the share may be gone */
    pthread_mutex_unlock(&pool->mutex);
}

static void ask_for_help(struct share *share) {
    struct mm_pool *pool = share->pool;
    pthread_mutex_lock(&pool->mutex);
    while (share->helping < pool->idle && share->helping + 1 < share->count && share->helping < HELPERS_MAX) {
        struct help *next = &share->helps[share->helping++];
        *next = (struct help){.task = {.run = help}, .share = share};
        add(pool, &next->task);
    }
    pthread_mutex_unlock(&pool->mutex);
}

/* Removes the helps that no thread has begun. With the mutex held. */
static void take_back(struct share *share) {
    struct mm_pool *pool = share->pool;
    struct mm_pool_task **link = &pool->first;
    while (*link != NULL) {
        struct mm_pool_task *task = *link;
        if (task->run == help && ((struct help *)task)->share == share) {
            *link = task->next;
            share->helping--;
        } else {
            pool->last = task;
            link = &task->next;
        }
    }
}

void mm_pool_share(struct mm_pool *pool, unsigned count, void (*one)(void *data, unsigned index),
                   void *data) {
    struct share share = {.pool = pool, .one = one, .data = data, .count = count};
    pthread_cond_init(&share.ended, NULL);
    ask_for_help(&share);
    while (do_one(&share))
        continue;
    pthread_mutex_lock(&pool->mutex);
    take_back(&share);
    while (share.helping > 0)
        pthread_cond_wait(&share.ended, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&share.ended);
}
