/* A crew: threads for what would hold up a connection's thread, and with it all of that thread's connections,
 * for long. Work waits in one list; whoever adds it embeds it in what it needs to know. */
#ifndef MM_SERVER_CREW_H
#define MM_SERVER_CREW_H

#ifdef __cplusplus
extern "C" {
#endif

struct mm_crew;

/* Once added, the crew's until it calls run(work), on one of its threads with no lock held; then the caller's
 * again. */
struct mm_crew_work {
    void (*run)(struct mm_crew_work *work);
    struct mm_crew_work *next; /* the crew's own */
};

/* Starts a crew of so many threads, or fewer where the system has no more; NULL where it has none. */
struct mm_crew *mm_crew_start(unsigned thread_count);

/* Ends it, once it has done all that was added. NULL is allowed. */
void mm_crew_stop(struct mm_crew *crew);

/* Any thread. */
void mm_crew_add(struct mm_crew *crew, struct mm_crew_work *work);

/* Calls one(data, index) for each index below count, and returns once all are done: on this thread, which may
 * be of the crew, and on those of the crew that have nothing else to do, at several indices at one time. */
void mm_crew_share(struct mm_crew *crew, unsigned count, void (*one)(void *data, unsigned index), void *data);

#ifdef __cplusplus
}
#endif
#endif
