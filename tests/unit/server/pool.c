/* Tests the worker pool. It runs all tasks, the oldest first, before it stops. It also divides work among
 * idle threads. The caller then waits only for threads that really help. */
#include "server/http/pool.h"
#include "tests/unit/few_threads.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum { THREADS = 3, PARTS_MAX = 100 };

/* A task that keeps its thread busy until the test posts `end`. */
struct held {
    struct mm_pool_task work; /* must be first, so its address can be cast */
    struct mm_pool *pool;
    struct held *next; /* task to add when this task runs; NULL if none */
    sem_t begun, end;
};

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        continue;
}

static void hold(struct mm_pool_task *work) {
    struct held *held = (struct held *)work;
    if (held->next != NULL)
        mm_pool_add(held->pool, &held->next->work);
    sem_post(&held->begun);
    wait_for(&held->end);
}

static void held_init(struct held *held, struct mm_pool *pool, struct held *next) {
    *held = (struct held){.work.run = hold, .pool = pool, .next = next};
    sem_init(&held->begun, 0, 0);
    sem_init(&held->end, 0, 0);
}

/* Each task adds the next task, then waits. All tasks run at once only if each has its own thread. */
static void all_threads_work_at_once(void **state) {
    struct held held[THREADS];
    struct mm_pool *pool = mm_pool_start(THREADS);
    for (int index = 0; index < THREADS; index++)
        held_init(&held[index], pool, index + 1 < THREADS ? &held[index + 1] : NULL);
    mm_pool_add(pool, &held[0].work);
    for (int index = 0; index < THREADS; index++)
        wait_for(&held[index].begun);
    for (int index = 0; index < THREADS; index++)
        sem_post(&held[index].end);
    mm_pool_stop(pool);
}

static void pool_needs_at_least_one_thread(void **state) {
    threads_left = 1;
    struct mm_pool *pool = mm_pool_start(THREADS);
    assert_non_null(pool);
    mm_pool_stop(pool);
    threads_left = 0;
    assert_null(mm_pool_start(THREADS));
    mm_pool_stop(NULL);
    threads_left = -1;
}

static struct {
    int runs[PARTS_MAX]; /* atomic */
    pthread_t threads[PARTS_MAX];
    long pause_ns; /* duration of each part */
} parts;

static void one(void *data, unsigned index) {
    const struct timespec pause = {.tv_nsec = parts.pause_ns};
    assert_ptr_equal(data, &parts);
    if (pause.tv_nsec > 0)
        nanosleep(&pause, NULL);
    parts.threads[index] = pthread_self();
    __atomic_add_fetch(&parts.runs[index], 1, __ATOMIC_RELAXED);
}

static void share(struct mm_pool *pool, unsigned count, long pause_ns) {
    memset(&parts, 0, sizeof parts);
    parts.pause_ns = pause_ns;
    mm_pool_share(pool, count, one, &parts);
    for (unsigned index = 0; index < PARTS_MAX; index++)
        assert_int_equal(__atomic_load_n(&parts.runs[index], __ATOMIC_RELAXED), index < count);
}

/* Returns how many different threads ran the parts. */
static unsigned count_threads(unsigned count) {
    unsigned different = 0;
    for (unsigned index = 0; index < count; index++) {
        bool is_new = true;
        for (unsigned before = 0; before < index; before++)
            is_new = is_new && !pthread_equal(parts.threads[before], parts.threads[index]);
        different += is_new;
    }
    return different;
}

static void do_nothing(struct mm_pool_task *work) {
}

/* When all threads are idle, each of them and the caller runs one part. */
static void idle_threads_help(void **state) {
    struct mm_pool_task other = {.run = do_nothing};
    struct mm_pool *pool = mm_pool_start(THREADS);
    unsigned most = 0;
    mm_pool_add(pool, &other);
    for (int tries = 0; tries < 1000 && most < THREADS + 1; tries++) {
        share(pool, THREADS + 1, 5000000);
        const unsigned threads = count_threads(THREADS + 1);
        most = threads > most ? threads : most;
    }
    assert_int_equal(most, THREADS + 1);
    mm_pool_stop(pool);
}

/* The pool's only thread is busy with another task, so the caller must run all parts itself. */
static void caller_does_not_wait_for_busy_threads(void **state) {
    enum { TIMES = 100 };
    static struct held held[TIMES];
    struct mm_pool *pool = mm_pool_start(1);
    for (int times = 0; times < TIMES; times++) {
        held_init(&held[times], pool, NULL);
        mm_pool_add(pool, &held[times].work);
        share(pool, 10, 0);
        assert_int_equal(count_threads(10), 1);
        assert_true(pthread_equal(parts.threads[0], pthread_self()));
        wait_for(&held[times].begun);
        sem_post(&held[times].end);
    }
    mm_pool_stop(pool);
}

/* Tests that a helping thread leaves for a waiting task. The pool's thread adds this task while it helps the
 * caller. The caller does not end its part until the task has run. */
struct patience {
    struct mm_pool_task work; /* must be first, so its address can be cast */
    struct mm_pool *pool;
    pthread_t caller;
    bool has_help; /* set when the pool's thread helps; atomic */
    bool is_done;  /* set when the task has run; atomic */
};

static void note_done(struct mm_pool_task *work) {
    __atomic_store_n(&((struct patience *)work)->is_done, true, __ATOMIC_RELEASE);
}

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
}

static void add_work_or_wait_for_it(void *data, unsigned index) {
    struct patience *patience = data;
    if (!pthread_equal(pthread_self(), patience->caller)) {
        if (__atomic_exchange_n(&patience->has_help, true, __ATOMIC_ACQ_REL))
            while (!__atomic_load_n(&patience->is_done, __ATOMIC_ACQUIRE))
                pause_a_little();
        else
            mm_pool_add(patience->pool, &patience->work);
        return;
    }
    for (int tries = 0; tries < 20 && !__atomic_load_n(&patience->has_help, __ATOMIC_ACQUIRE); tries++)
        pause_a_little(); /* the thread may start too late to help */
    while (__atomic_load_n(&patience->has_help, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&patience->is_done, __ATOMIC_ACQUIRE))
        pause_a_little();
}

static void helping_thread_leaves_for_other_work(void **state) {
    struct patience patience = {.has_help = false};
    for (int tries = 0; tries < 1000 && !patience.has_help; tries++) {
        struct mm_pool *pool = mm_pool_start(1);
        patience = (struct patience){.work.run = note_done, .pool = pool, .caller = pthread_self()};
        pause_a_little(); /* lets the pool's thread become idle */
        mm_pool_share(pool, 3, add_work_or_wait_for_it, &patience);
        mm_pool_stop(pool);
    }
    assert_true(patience.has_help);
    assert_true(patience.is_done);
}

/* A task that divides its own work among threads. */
struct sharing {
    struct mm_pool_task work; /* must be first, so its address can be cast */
    struct mm_pool *pool;
    int sums[8]; /* atomic */
    int runs;    /* atomic */
    int turn;    /* number of tasks that began before this task */
};

static void add_one(void *data, unsigned index) {
    struct sharing *sharing = data;
    __atomic_add_fetch(&sharing->sums[index], 1, __ATOMIC_RELAXED);
}

static int turns; /* atomic */

static void share_again(struct mm_pool_task *work) {
    struct sharing *sharing = (struct sharing *)work;
    sharing->turn = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    work->listed.stqe_next = work; /* the pool must not read the task any more */
    mm_pool_share(sharing->pool, 8, add_one, sharing);
    __atomic_add_fetch(&sharing->runs, 1, __ATOMIC_RELEASE);
}

/* Tasks divide work among threads while other tasks wait. Each task and each part runs once. */
static void tasks_of_the_pool_can_share_work(void **state) {
    enum { MANY = 2000 };
    static const unsigned counts[] = {0, 1, 2, 3, 17, PARTS_MAX};
    static struct sharing shared[MANY];
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        struct mm_pool *pool = mm_pool_start(threads);
        turns = 0;
        for (int index = 0; index < MANY; index++) {
            shared[index] = (struct sharing){.work.run = share_again, .pool = pool};
            mm_pool_add(pool, &shared[index].work);
            if (index % 10 == 0)
                share(pool, counts[index / 10 % COUNT(counts)], 0);
        }
        mm_pool_stop(pool);
        for (int index = 0; index < MANY; index++) {
            assert_int_equal(shared[index].runs, 1);
            assert_true(threads > 1 || shared[index].turn == index);
            for (int part = 0; part < 8; part++)
                assert_int_equal(shared[index].sums[part], 1);
        }
    }
}

RUN_TESTS(all_threads_work_at_once, pool_needs_at_least_one_thread, idle_threads_help,
          caller_does_not_wait_for_busy_threads, helping_thread_leaves_for_other_work,
          tasks_of_the_pool_can_share_work)
