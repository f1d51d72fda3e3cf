/* The crew's threads and their list. Knows nothing of what the work is. */
#include "server/crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct mm_crew {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    struct mm_crew_work *first; /* oldest first */
    struct mm_crew_work *last;
    bool stopping;
    unsigned idle;  /* threads that wait for work */
    unsigned works; /* in the list, but for helps */
    unsigned thread_count;
    pthread_t threads[];
};

static void help(struct mm_crew_work *work);

/* The oldest work; NULL once there is none and none will come. */
static struct mm_crew_work *take(struct mm_crew *crew) {
    pthread_mutex_lock(&crew->mutex);
    crew->idle++;
    while (crew->first == NULL && !crew->stopping)
        pthread_cond_wait(&crew->changed, &crew->mutex);
    crew->idle--;
    struct mm_crew_work *work = crew->first;
    if (work != NULL) {
        crew->first = work->next;
        crew->works -= work->run != help;
    }
    pthread_mutex_unlock(&crew->mutex);
    return work;
}

static void *work_on(void *argument) {
    struct mm_crew *crew = argument;
    for (;;) {
        struct mm_crew_work *work = take(crew);
        if (work == NULL)
            return NULL;
        work->run(work);
    }
}

struct mm_crew *mm_crew_start(unsigned thread_count) {
    struct mm_crew *crew = calloc(1, sizeof *crew + thread_count * sizeof crew->threads[0]);
    if (crew == NULL)
        return NULL;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->changed, NULL);
    while (crew->thread_count < thread_count &&
           pthread_create(&crew->threads[crew->thread_count], NULL, work_on, crew) == 0)
        pthread_setname_np(crew->threads[crew->thread_count++], "mm-crew");
    if (crew->thread_count > 0)
        return crew;
    mm_crew_stop(crew);
    return NULL;
}

void mm_crew_stop(struct mm_crew *crew) {
    if (crew == NULL)
        return;
    pthread_mutex_lock(&crew->mutex);
    crew->stopping = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
    for (unsigned index = 0; index < crew->thread_count; index++)
        pthread_join(crew->threads[index], NULL);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

/* With the mutex held. */
static void add(struct mm_crew *crew, struct mm_crew_work *work) {
    work->next = NULL;
    *(crew->first == NULL ? &crew->first : &crew->last->next) = work;
    crew->last = work;
    crew->works += work->run != help;
    pthread_cond_signal(&crew->changed);
}

void mm_crew_add(struct mm_crew *crew, struct mm_crew_work *work) {
    pthread_mutex_lock(&crew->mutex);
    add(crew, work);
    pthread_mutex_unlock(&crew->mutex);
}

/* --- work that is shared -------------------------------------------------------------------------- */

enum { HELPERS_MAX = 15 };

/* One thread's help. */
struct help {
    struct mm_crew_work work; /* first */
    struct share *share;
};

struct share {
    struct mm_crew *crew;
    void (*one)(void *data, unsigned index);
    void *data;
    unsigned count;
    unsigned taken; /* indices; __atomic */
    struct help helps[HELPERS_MAX];
    unsigned helping;     /* of these, in the crew's list or at work; with its mutex */
    pthread_cond_t ended; /* none is any more */
};

/* False where none is left. */
static bool do_one(struct share *share) {
    const unsigned index = __atomic_fetch_add(&share->taken, 1, __ATOMIC_RELAXED);
    if (index < share->count)
        share->one(share->data, index);
    return index < share->count;
}

/* Helps while nobody waits for the crew. */
static void help(struct mm_crew_work *work) {
    struct share *share = ((struct help *)work)->share;
    struct mm_crew *crew = share->crew;
    pthread_mutex_lock(&crew->mutex);
    for (bool more = true; more && crew->works == 0;) {
        pthread_mutex_unlock(&crew->mutex);
        more = do_one(share);
        pthread_mutex_lock(&crew->mutex);
    }
    if (--share->helping == 0)
        pthread_cond_signal(&share->ended); /* with the mutex held: once it is free, the share may be gone */
    pthread_mutex_unlock(&crew->mutex);
}

static void ask_for_help(struct share *share) {
    struct mm_crew *crew = share->crew;
    pthread_mutex_lock(&crew->mutex);
    while (share->helping < crew->idle && share->helping + 1 < share->count && share->helping < HELPERS_MAX) {
        struct help *next = &share->helps[share->helping++];
        *next = (struct help){.work = {.run = help}, .share = share};
        add(crew, &next->work);
    }
    pthread_mutex_unlock(&crew->mutex);
}

/* Takes the helps back that no thread has come to. With the mutex held. */
static void take_back(struct share *share) {
    struct mm_crew *crew = share->crew;
    struct mm_crew_work **link = &crew->first;
    while (*link != NULL) {
        struct mm_crew_work *work = *link;
        if (work->run == help && ((struct help *)work)->share == share) {
            *link = work->next;
            share->helping--;
        } else {
            crew->last = work;
            link = &work->next;
        }
    }
}

void mm_crew_share(struct mm_crew *crew, unsigned count, void (*one)(void *data, unsigned index),
                   void *data) {
    struct share share = {.crew = crew, .one = one, .data = data, .count = count};
    pthread_cond_init(&share.ended, NULL);
    ask_for_help(&share);
    while (do_one(&share))
        continue;
    pthread_mutex_lock(&crew->mutex);
    take_back(&share);
    while (share.helping > 0)
        pthread_cond_wait(&share.ended, &crew->mutex);
    pthread_mutex_unlock(&crew->mutex);
    pthread_cond_destroy(&share.ended);
}
