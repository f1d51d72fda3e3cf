/* A crew does all that was added, the oldest first, on its own threads, and ends when it is through. */
#include "held.h"

#include "tests/unit/few_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { WORKS = 1000, THREADS = 3 };

struct counted {
    struct mm_crew_work work; /* first */
    int runs;                 /* __atomic */
    int turn;                 /* which of all it was */
    pthread_t thread;
};

static struct counted works[WORKS];
static int turns; /* __atomic */

static void run(struct mm_crew_work *work) {
    struct counted *counted = (struct counted *)work;
    counted->thread = pthread_self();
    counted->turn = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    work->next = work; /* it is the caller's again */
    __atomic_add_fetch(&counted->runs, 1, __ATOMIC_RELEASE);
}

static void add_all(struct mm_crew *crew) {
    turns = 0;
    for (int index = 0; index < WORKS; index++) {
        works[index].runs = 0;
        works[index].work.run = run;
        works[index].work.next = &works[0].work; /* whatever stands there */
        mm_crew_add(crew, &works[index].work);
    }
}

static void all_is_done_once(void **state) {
    struct mm_crew *crew = mm_crew_start(THREADS);
    (void)state;
    assert_non_null(crew);
    add_all(crew);
    mm_crew_stop(crew);
    for (int index = 0; index < WORKS; index++) {
        assert_int_equal(works[index].runs, 1);
        assert_false(pthread_equal(works[index].thread, pthread_self()));
        assert_ptr_equal(works[index].work.next, &works[index].work);
    }
}

static void the_oldest_comes_first(void **state) {
    struct mm_crew *crew = mm_crew_start(1);
    (void)state;
    add_all(crew);
    mm_crew_stop(crew);
    for (int index = 0; index < WORKS; index++)
        assert_int_equal(works[index].turn, index);
}

/* Each adds the next one from where it runs, and ends when all have begun. */
static void all_threads_work_at_once(void **state) {
    struct held held[THREADS];
    struct mm_crew *crew = mm_crew_start(THREADS);
    (void)state;
    for (int index = 0; index < THREADS; index++)
        held_init(&held[index], crew, index + 1 < THREADS ? &held[index + 1] : NULL);
    mm_crew_add(crew, &held[0].work);
    for (int index = 0; index < THREADS; index++)
        held_wait_begun(&held[index]);
    for (int index = 0; index < THREADS; index++)
        held_end(&held[index]);
    mm_crew_stop(crew);
    for (int index = 0; index < THREADS; index++)
        held_destroy(&held[index]);
}

static int is_over; /* __atomic */

static void take_time(struct mm_crew_work *work) {
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    (void)work;
    nanosleep(&pause, NULL);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
}

static void the_end_waits_for_what_runs(void **state) {
    struct mm_crew_work work = {.run = take_time};
    struct mm_crew *crew = mm_crew_start(1);
    (void)state;
    mm_crew_add(crew, &work);
    mm_crew_stop(crew);
    assert_int_equal(__atomic_load_n(&is_over, __ATOMIC_ACQUIRE), 1);
}

static void an_idle_crew_ends(void **state) {
    (void)state;
    mm_crew_stop(mm_crew_start(2));
    mm_crew_stop(NULL);
}

static void few_threads_are_a_crew_and_none_is_not(void **state) {
    (void)state;
    threads_left = 1;
    struct mm_crew *crew = mm_crew_start(THREADS);
    assert_non_null(crew);
    add_all(crew);
    mm_crew_stop(crew);
    assert_int_equal(turns, WORKS);
    threads_left = 0;
    assert_null(mm_crew_start(THREADS));
    threads_left = -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_done_once),         cmocka_unit_test(the_oldest_comes_first),
        cmocka_unit_test(all_threads_work_at_once), cmocka_unit_test(the_end_waits_for_what_runs),
        cmocka_unit_test(an_idle_crew_ends),        cmocka_unit_test(few_threads_are_a_crew_and_none_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
