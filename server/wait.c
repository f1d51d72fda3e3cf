/* The wait of an exchange, for the crew and for its job: how it begins, and the ways in which it ends. Knows
 * no route. */
#include "server/metrics.h"
#include "server/operation.h"

#include <string.h>

/* Ends the wait; the connection is to be resumed once the mutex is free. With server->mutex held. */
static void end_wait(struct mm_exchange *exchange, const struct mm_error *error) {
    exchange->waiting = false;
    exchange->state = MM_ANSWERING;
    if (error != NULL)
        exchange->error = *error;
}

/* Whether the wait goes on for another job, which is the queue's then. With server->mutex held. */
static bool submit_next(struct mm_exchange *exchange) {
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(exchange->server));
    struct mm_error error;
    while (exchange->next_job != NULL && exchange->next_job(exchange)) {
        if (mm_queue_submit(queue, &exchange->job, &error) == MM_OK)
            return true;
        exchange->job.error = error;
    }
    return false;
}

static struct mm_exchange *exchange_of(struct mm_crew_work *work) {
    return (struct mm_exchange *)((char *)work - offsetof(struct mm_exchange, work));
}

/* What is to be done once the mutex is free. */
struct ends {
    struct mm_exchange *resumed; /* by next_resumed, and so are the next */
    struct mm_exchange *freed;
    struct mm_crew_work *encoded; /* by next: of exchanges that still wait, and may be abandoned */
};

static void push(struct mm_exchange **list, struct mm_exchange *exchange) {
    exchange->next_resumed = *list;
    *list = exchange;
}

/* Who worked for the exchange lets go of it, and its wait is over, with this error or, where that is NULL,
 * well; unless it was abandoned meanwhile. With server->mutex held. */
static void release(struct mm_exchange *exchange, const struct mm_error *error, bool was_waiting,
                    struct ends *ends) {
    const bool last = --exchange->holders == 0;
    if (was_waiting) {
        end_wait(exchange, error);
        push(&ends->resumed, exchange);
    } else if (last) {
        push(&ends->freed, exchange);
    }
}

static void carry_out(struct mm_server *server, const struct ends *ends) {
    struct mm_exchange *exchange = ends->freed;
    struct mm_crew_work *work = ends->encoded;
    mm_exchange_resume(ends->resumed);
    while (work != NULL) {
        struct mm_crew_work *next = work->next;
        mm_crew_add(server->crew, work);
        work = next;
    }
    while (exchange != NULL) {
        struct mm_exchange *next = exchange->next_resumed;
        mm_exchange_free(exchange);
        exchange = next;
    }
}

/* Releases one exchange; with server->mutex held, which this gives back. */
static void let_go(struct mm_exchange *exchange, const struct mm_error *error, bool was_waiting) {
    struct mm_server *server = exchange->server;
    struct ends ends = {NULL, NULL, NULL};
    release(exchange, error, was_waiting, &ends);
    pthread_mutex_unlock(&server->mutex);
    carry_out(server, &ends);
}

/* Whether the exchange was abandoned before the crew had time for it, and is let go of. */
static bool is_too_late(struct mm_exchange *exchange) {
    pthread_mutex_lock(&exchange->server->mutex);
    if (exchange->waiting) {
        pthread_mutex_unlock(&exchange->server->mutex);
        return false;
    }
    let_go(exchange, NULL, false);
    return true;
}

/* The crew encodes the result. */
static void encode(struct mm_crew_work *work) {
    struct mm_exchange *exchange = exchange_of(work);
    uint64_t span_ns[MM_SPAN_COUNT];
    struct mm_error error;
    if (is_too_late(exchange))
        return;
    const enum mm_status status = mm_operation_encode(exchange, span_ns, &error);
    pthread_mutex_lock(&exchange->server->mutex);
    const bool waits = exchange->waiting;
    if (waits) {
        memcpy(exchange->span_ns, span_ns, sizeof span_ns);
        exchange->encoded = status == MM_OK;
    }
    let_go(exchange, status == MM_OK ? NULL : &error, waits);
}

/* The connection goes on, unless it was answered without the job. With server->mutex held. */
static void settle_job(struct mm_exchange *exchange, struct ends *ends) {
    const bool waits = exchange->waiting;
    if (waits && submit_next(exchange))
        return;
    if (waits && exchange->encodes_long && exchange->job.error.status == MM_OK) {
        exchange->waits_for = MM_WAIT_ENCODE;
        exchange->work.run = encode;
        exchange->work.next = ends->encoded;
        ends->encoded = &exchange->work;
        return;
    }
    release(exchange, NULL, waits, ends);
}

static void tell_metrics(const struct mm_job *job) {
    const struct mm_exchange *exchange = job->owner;
    struct mm_metrics *metrics = exchange->server->metrics;
    mm_metrics_job(metrics, job);
    if (exchange->benchmark != NULL)
        mm_metrics_rows(metrics, exchange->benchmark, job->backend);
}

/* The worker's last word of some jobs, for which the mutex is taken once. */
static void jobs_done(struct mm_job *first) {
    struct mm_server *server = ((struct mm_exchange *)first->owner)->server;
    struct ends ends = {NULL, NULL, NULL};
    struct mm_job *next;
    for (const struct mm_job *job = first; job != NULL; job = job->next)
        tell_metrics(job);
    pthread_mutex_lock(&server->mutex);
    for (struct mm_job *job = first; job != NULL; job = next) {
        next = job->next; /* read before: it may be submitted again */
        settle_job(job->owner, &ends);
    }
    pthread_mutex_unlock(&server->mutex);
    carry_out(server, &ends);
}

/* The job becomes the queue's; false where that refuses it. With server->mutex held. */
static bool submit(struct mm_exchange *exchange, struct mm_error *error) {
    exchange->waits_for = MM_WAIT_JOB;
    exchange->job.done = jobs_done;
    exchange->job.owner = exchange;
    return mm_queue_submit(mm_engine_queue(mm_server_engine(exchange->server)), &exchange->job, error) ==
           MM_OK;
}

/* The crew decodes the body. Of an exchange that is abandoned meanwhile, its connection's thread reads
 * nothing that this writes before it has the mutex. */
static void decode(struct mm_crew_work *work) {
    struct mm_exchange *exchange = exchange_of(work);
    uint64_t decode_ns = 0;
    struct mm_error error;
    if (is_too_late(exchange))
        return;
    const bool is_good = mm_operation_decode(exchange, exchange->content_type, &decode_ns, &error) == MM_OK;
    pthread_mutex_lock(&exchange->server->mutex);
    const bool waits = exchange->waiting;
    if (waits && is_good) {
        mm_operation_tell(exchange, decode_ns);
        if (submit(exchange, &error)) {
            pthread_mutex_unlock(&exchange->server->mutex);
            return;
        }
    }
    let_go(exchange, &error, waits);
}

/* Suspended before anyone can resume it. */
static void begin_wait(struct mm_exchange *exchange, enum mm_wait what) {
    MHD_suspend_connection(exchange->connection);
    pthread_mutex_lock(&exchange->server->mutex);
    exchange->state = MM_WAITING;
    exchange->waiting = true;
    exchange->waits_for = what;
    exchange->holders++;
}

void mm_exchange_decode_by_crew(struct mm_exchange *exchange) {
    begin_wait(exchange, MM_WAIT_DECODE);
    exchange->work.run = decode;
    pthread_mutex_unlock(&exchange->server->mutex);
    mm_crew_add(exchange->server->crew, &exchange->work);
}

/* Waiting and submitted in one: who ends the wait early finds the job in the queue, and the job's end, which
 * may come before submit returns, finds the wait. */
void mm_exchange_submit(struct mm_exchange *exchange) {
    struct mm_error error;
    begin_wait(exchange, MM_WAIT_JOB);
    if (submit(exchange, &error))
        pthread_mutex_unlock(&exchange->server->mutex);
    else
        let_go(exchange, &error, true);
}

void mm_exchange_abandon(struct mm_exchange *exchange, const struct mm_error *error) {
    static const unsigned stages[] = {
        [MM_WAIT_DECODE] = MM_SPAN_DECODE, [MM_WAIT_JOB] = MM_SPAN_KERNEL, [MM_WAIT_ENCODE] = MM_SPAN_ENCODE};
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(exchange->server));
    const bool in_queue = exchange->waits_for == MM_WAIT_JOB && mm_queue_cancel(queue, &exchange->job);
    if (in_queue)
        exchange->holders--;
    mm_record_cancel(exchange, in_queue ? MM_SPAN_QUEUE : stages[exchange->waits_for]);
    exchange->record.left = error == NULL;
    end_wait(exchange, error);
}

void mm_exchange_abandon_all(struct mm_server *server, enum mm_status status, const char *detail) {
    struct mm_exchange *abandoned = NULL;
    struct mm_error error;
    mm_fail(&error, status, "%s", detail);
    pthread_mutex_lock(&server->mutex);
    for (struct mm_connection *peer = server->newest; peer != NULL; peer = peer->older) {
        struct mm_exchange *exchange = __atomic_load_n(&peer->exchange, __ATOMIC_ACQUIRE);
        if (exchange == NULL || !exchange->waiting)
            continue;
        mm_exchange_abandon(exchange, &error);
        exchange->next_resumed = abandoned;
        abandoned = exchange;
    }
    pthread_mutex_unlock(&server->mutex);
    mm_exchange_resume(abandoned);
}

void mm_exchange_resume(struct mm_exchange *first) {
    while (first != NULL) {
        struct mm_exchange *next = first->next_resumed; /* read before: resumed, it may be gone */
        MHD_resume_connection(first->connection);
        first = next;
    }
}
