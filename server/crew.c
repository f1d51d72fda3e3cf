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
    unsigned thread_count;
    pthread_t threads[];
};

/* The oldest work; NULL once there is none and none will come. */
static struct mm_crew_work *take(struct mm_crew *crew) {
    pthread_mutex_lock(&crew->mutex);
    while (crew->first == NULL && !crew->stopping)
        pthread_cond_wait(&crew->changed, &crew->mutex);
    struct mm_crew_work *work = crew->first;
    if (work != NULL)
        crew->first = work->next;
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

void mm_crew_add(struct mm_crew *crew, struct mm_crew_work *work) {
    work->next = NULL;
    pthread_mutex_lock(&crew->mutex);
    *(crew->first == NULL ? &crew->first : &crew->last->next) = work;
    crew->last = work;
    pthread_cond_signal(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
}
