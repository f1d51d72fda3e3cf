/* Work that is shared among a crew's idle threads and who asks: each part is done once, all are done when the
 * call returns, and who has other work to do is neither waited for nor kept. */
#include "held.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <pthread.h>
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

/* How many threads did the parts. */
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

static void do_nothing(struct mm_crew_work *work) {
    (void)work;
}

/* The threads of a crew are idle after a while, and once other work is done: then they and the caller do a
 * part each. */
static void idle_threads_help(void **state) {
    struct mm_crew_work other = {.run = do_nothing};
    struct mm_crew *crew = mm_crew_start(THREADS);
    unsigned most = 0;
    (void)state;
    mm_crew_add(crew, &other);
    for (int tries = 0; tries < 1000 && most < THREADS + 1; tries++) {
        share(crew, THREADS + 1, 5000000);
        const unsigned threads = count_threads(THREADS + 1);
        most = threads > most ? threads : most;
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

/* A thread that is idle when it is asked for help has other work to do before. The share must not wait for
 * that. */
static void help_that_does_not_come_is_not_waited_for(void **state) {
    enum { TIMES = 100 };
    static struct held held[TIMES];
    struct mm_crew *crew = mm_crew_start(1);
    (void)state;
    for (int times = 0; times < TIMES; times++) {
        held_init(&held[times], crew, NULL);
        mm_crew_add(crew, &held[times].work);
        share(crew, 10, 0);
        assert_int_equal(count_threads(10), 1);
        assert_true(pthread_equal(parts.threads[0], pthread_self()));
        held_wait_begun(&held[times]);
        held_end(&held[times]);
    }
    mm_crew_stop(crew);
    for (int times = 0; times < TIMES; times++)
        held_destroy(&held[times]);
}

/* A share of two parts and more: the caller's waits until the crew's thread has done one, and work that was
 * added meanwhile. */
struct patience {
    struct mm_crew_work work; /* first */
    struct mm_crew *crew;
    pthread_t caller;
    bool has_help; /* it did come; __atomic */
    bool is_done;  /* the work; __atomic */
};

static void note_done(struct mm_crew_work *work) {
    __atomic_store_n(&((struct patience *)work)->is_done, true, __ATOMIC_RELEASE);
}

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
}

static void add_work_or_wait_for_it(void *data, unsigned index) {
    struct patience *patience = data;
    (void)index;
    if (!pthread_equal(pthread_self(), patience->caller)) {
        if (__atomic_exchange_n(&patience->has_help, true, __ATOMIC_ACQ_REL))
            while (!__atomic_load_n(&patience->is_done, __ATOMIC_ACQUIRE))
                pause_a_little();
        else
            mm_crew_add(patience->crew, &patience->work);
        return;
    }
    for (int tries = 0; tries < 20 && !__atomic_load_n(&patience->has_help, __ATOMIC_ACQUIRE); tries++)
        pause_a_little(); /* it may not come at all */
    while (__atomic_load_n(&patience->has_help, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&patience->is_done, __ATOMIC_ACQUIRE))
        pause_a_little();
}

static void who_helps_leaves_for_other_work(void **state) {
    struct patience patience = {.has_help = false};
    (void)state;
    for (int tries = 0; tries < 1000 && !patience.has_help; tries++) {
        struct mm_crew *crew = mm_crew_start(1);
        patience = (struct patience){.work.run = note_done, .crew = crew, .caller = pthread_self()};
        pause_a_little(); /* until its thread is idle */
        mm_crew_share(crew, 3, add_work_or_wait_for_it, &patience);
        mm_crew_stop(crew);
    }
    assert_true(patience.has_help);
    assert_true(patience.is_done);
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
        cmocka_unit_test(help_that_does_not_come_is_not_waited_for),
        cmocka_unit_test(who_helps_leaves_for_other_work),
        cmocka_unit_test(the_crew_itself_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
