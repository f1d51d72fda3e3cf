/* A crew does all that was added, on its own threads, and ends when it is through. */
#include "server/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>

#include <cmocka.h>

enum { WORKS = 1000 };

struct counted {
    struct mm_crew_work work; /* first */
    int runs;                 /* __atomic */
    pthread_t thread;
};

static void run(struct mm_crew_work *work) {
    struct counted *counted = (struct counted *)work;
    counted->thread = pthread_self();
    __atomic_add_fetch(&counted->runs, 1, __ATOMIC_RELEASE);
}

static void all_is_done_once(void **state) {
    static struct counted works[WORKS];
    struct mm_crew *crew = mm_crew_start(3);
    (void)state;
    assert_non_null(crew);
    for (int index = 0; index < WORKS; index++) {
        works[index].work.run = run;
        mm_crew_add(crew, &works[index].work);
    }
    mm_crew_stop(crew);
    for (int index = 0; index < WORKS; index++) {
        assert_int_equal(works[index].runs, 1);
        assert_false(pthread_equal(works[index].thread, pthread_self()));
    }
}

static void an_idle_crew_ends(void **state) {
    (void)state;
    mm_crew_stop(mm_crew_start(2));
    mm_crew_stop(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_done_once),
        cmocka_unit_test(an_idle_crew_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
