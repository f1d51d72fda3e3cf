/* Work that is shared among a crew's idle threads and who asks: each part is done once, all are done when the
 * call returns, and who is busy is neither waited for nor kept. */
#include "server/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { THREADS = 3, PARTS_MAX = 100 };

static struct {
    int runs[PARTS_MAX]; /* __atomic */
    pthread_t threads[PARTS_MAX];
    long pause_ns; /* of each part */
} parts;

static void one(void *data, unsigned index) {
    const struct timespec pause = {.tv_nsec = parts.pause_ns};
    assert_ptr_equal(data, &parts);
    if (pause.tv_nsec > 0)
        nanosleep(&pause, NULL);
    parts.threads[index] = pthread_self();
    __atomic_add_fetch(&parts.runs[index], 1, __ATOMIC_RELAXED);
}

static void share(struct mm_crew *crew, unsigned count, long pause_ns) {
    memset(&parts, 0, sizeof parts);
    parts.pause_ns = pause_ns;
    mm_crew_share(crew, count, one, &parts);
    for (unsigned index = 0; index < PARTS_MAX; index++)
        assert_int_equal(__atomic_load_n(&parts.runs[index], __ATOMIC_RELAXED), index < count);
}

/* How many threads did the parts, and of those the caller's. */
static unsigned count_threads(unsigned count, bool *own) {
    unsigned different = 0;
    *own = false;
    for (unsigned index = 0; index < count; index++) {
        bool is_new = true;
        for (unsigned before = 0; before < index; before++)
            is_new = is_new && !pthread_equal(parts.threads[before], parts.threads[index]);
        different += is_new;
        *own = *own || pthread_equal(parts.threads[index], pthread_self());
    }
    return different;
}

/* The threads of a new crew are idle after a while. */
static void idle_threads_help(void **state) {
    struct mm_crew *crew = mm_crew_start(THREADS);
    unsigned most = 0;
    bool own = true;
    (void)state;
    for (int tries = 0; tries < 1000 && most < THREADS + 1; tries++) {
        share(crew, THREADS + 1, 5000000);
        const unsigned threads = count_threads(THREADS + 1, &own);
        most = threads > most ? threads : most;
        assert_true(own);
    }
    assert_int_equal(most, THREADS + 1);
    mm_crew_stop(crew);
}

static void any_number_of_parts_is_done_once(void **state) {
    static const unsigned counts[] = {0, 1, 2, 3, 17, PARTS_MAX};
    struct mm_crew *crew = mm_crew_start(THREADS);
    (void)state;
    for (int times = 0; times < 500; times++)
        for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++)
            share(crew, counts[index], 0);
    mm_crew_stop(crew);
}

struct held {
    struct mm_crew_work work; /* first */
    sem_t begun;
    sem_t end;
};

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        continue;
}

static void hold(struct mm_crew_work *work) {
    struct held *held = (struct held *)work;
    sem_post(&held->begun);
    wait_for(&held->end);
}

static void who_is_busy_is_not_waited_for(void **state) {
    struct held held = {.work.run = hold};
    struct mm_crew *crew = mm_crew_start(1);
    bool own;
    (void)state;
    sem_init(&held.begun, 0, 0);
    sem_init(&held.end, 0, 0);
    mm_crew_add(crew, &held.work);
    wait_for(&held.begun);
    share(crew, 10, 1000);
    assert_int_equal(count_threads(10, &own), 1);
    assert_true(own);
    sem_post(&held.end);
    mm_crew_stop(crew);
    sem_destroy(&held.begun);
    sem_destroy(&held.end);
}

/* Work that shares, and counts that it was done. */
struct sharing {
    struct mm_crew_work work; /* first */
    struct mm_crew *crew;
    int sums[8]; /* __atomic */
    int runs;    /* __atomic */
};

static void add_one(void *data, unsigned index) {
    struct sharing *sharing = data;
    __atomic_add_fetch(&sharing->sums[index], 1, __ATOMIC_RELAXED);
}

static void share_again(struct mm_crew_work *work) {
    struct sharing *sharing = (struct sharing *)work;
    mm_crew_share(sharing->crew, 8, add_one, sharing);
    __atomic_add_fetch(&sharing->runs, 1, __ATOMIC_RELEASE);
}

/* All at one time, so that helps stand among other work in the list, and are taken back from there. */
static void the_crew_itself_shares(void **state) {
    enum { WORKS = 2000 };
    static struct sharing works[WORKS];
    (void)state;
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        struct mm_crew *crew = mm_crew_start(threads);
        for (int index = 0; index < WORKS; index++) {
            works[index] = (struct sharing){.work.run = share_again, .crew = crew};
            mm_crew_add(crew, &works[index].work);
            if (index % 50 == 0)
                share(crew, 5, 0);
        }
        mm_crew_stop(crew);
        for (int index = 0; index < WORKS; index++) {
            assert_int_equal(works[index].runs, 1);
            for (int part = 0; part < 8; part++)
                assert_int_equal(works[index].sums[part], 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_threads_help),
        cmocka_unit_test(any_number_of_parts_is_done_once),
        cmocka_unit_test(who_is_busy_is_not_waited_for),
        cmocka_unit_test(the_crew_itself_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
