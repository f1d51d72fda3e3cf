/* The wait of an exchange for its job: how it begins, and the two ways in which it ends. Knows no route. */
#include "server/exchange.h"
#include "server/metrics.h"

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

/* The worker's last word of a job: the connection goes on, unless it was answered without the job. */
static void job_done(struct mm_job *job) {
    struct mm_exchange *exchange = job->owner;
    struct mm_server *server = exchange->server;
    mm_metrics_job(server->metrics, job);
    if (exchange->benchmark != NULL)
        mm_metrics_rows(server->metrics, exchange->benchmark, job->backend);
    pthread_mutex_lock(&server->mutex);
    bool resume = exchange->waiting;
    bool goes_on = resume && submit_next(exchange);
    bool last = !goes_on && --exchange->holders == 0;
    if (resume && !goes_on)
        end_wait(exchange, NULL);
    pthread_mutex_unlock(&server->mutex);
    if (goes_on)
        return;
    if (resume)
        MHD_resume_connection(exchange->connection);
    else if (last)
        mm_exchange_free(exchange);
}

void mm_exchange_submit(struct mm_exchange *exchange) {
    struct mm_server *server = exchange->server;
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(server));
    struct mm_error error;
    exchange->job.done = job_done;
    exchange->job.owner = exchange;
    /* Suspended before anyone can resume it. Waiting and submitted in one: who ends the wait early finds
     * the job in the queue, and the job's end, which may come before submit returns, finds the wait. */
    MHD_suspend_connection(exchange->connection);
    pthread_mutex_lock(&server->mutex);
    exchange->state = MM_WAITING;
    exchange->waiting = true;
    exchange->holders++;
    bool refused = mm_queue_submit(queue, &exchange->job, &error) != MM_OK;
    if (refused) {
        exchange->holders--;
        end_wait(exchange, &error);
    }
    pthread_mutex_unlock(&server->mutex);
    if (refused)
        MHD_resume_connection(exchange->connection);
}

void mm_exchange_abandon(struct mm_exchange *exchange, const struct mm_error *error) {
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(exchange->server));
    bool in_queue = mm_queue_cancel(queue, &exchange->job);
    if (in_queue)
        exchange->holders--;
    mm_record_cancel(exchange, in_queue);
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
