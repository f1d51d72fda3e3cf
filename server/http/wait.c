/* How a request waits for memory, the worker pool or its job, and how a wait ends. Knows no route. */
#include "server/http/upload.h"
#include "server/http/routes.h"
#include "server/observe/metrics.h"

#include "gpu/store/store.h"

void mm_request_end_wait(struct mm_request *request, const struct mm_error *error) {
    if (error != NULL)
        request->error = *error;
    if (mm_request_state(request) != MM_RESERVING) {
        const bool is_inflated = mm_request_state(request) == MM_INFLATING && error == NULL;
        mm_request_move(request, is_inflated ? MM_RECEIVING : MM_ANSWERING);
        return;
    }
    mm_line_leave(request);
    mm_pace_skip(&request->pace, __atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED),
                 mm_clock_ns());
    mm_request_move(request, MM_RECEIVING);
    if (request->upload.state != MM_UPLOAD_ARRIVING)
        return;
    request->closes = error != NULL;
    mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
}

size_t mm_request_stored_bytes(const struct mm_request *request) {
    return request->server->store == NULL ? 0 : mm_store_totals(request->server->store).host_bytes;
}

/* Checks a request that has failed with MM_BUSY and needs error->needed_bytes more. If a wait cannot help,
 * changes the error: to MM_TOO_LARGE if the budget is too small, or to MM_BUSY without needed_bytes if stored
 * matrices use the memory. Small requests wait even then, because stored matrices do not use the part of the
 * budget for small requests. */
static void check_need(const struct mm_request *request, struct mm_error *error) {
    const struct mm_reservation *memory = &request->memory;
    const size_t limit = memory->budget->part_bytes[MM_BUDGET_MAIN],
                 stored = mm_request_stored_bytes(request);
    const size_t asked = error->needed_bytes, unused = mm_reservation_unused(memory);
    const bool is_small = mm_reservation_line(memory, asked - mm_size_min(asked, unused)) == MM_BUDGET_SMALL;
    size_t together;
    if (!mm_size_add(memory->used_bytes, asked, &together))
        together = SIZE_MAX;
    const size_t needed = together > memory->expected_bytes ? together : memory->expected_bytes;
    if (needed > limit)
        mm_request_fail_memory(request, needed, error);
    else if (!is_small && needed > limit - mm_size_min(limit, stored))
        mm_fail_busy(
            error, MM_BUSY_STORED,
            "the request needs %zu bytes of memory, but of %zu bytes (--memory-budget) stored matrices use "
            "%zu; delete some, or try again later",
            needed, memory->budget->bytes, stored);
}

/* Whether this error makes the request wait for memory. May change the error. */
static bool lacks_memory(const struct mm_request *request, struct mm_error *error) {
    if (error->status != MM_BUSY || error->needed_bytes == 0)
        return false;
    check_need(request, error);
    return error->status == MM_BUSY && error->needed_bytes != 0;
}

/* Puts the request in a line of waiting requests. Call it with server->mutex held. */
static void begin_wait(struct mm_request *request, size_t needed_bytes) {
    const size_t unused = mm_reservation_unused(&request->memory);
    mm_request_move(request, MM_RESERVING);
    mm_line_enter(request, needed_bytes - mm_size_min(needed_bytes, unused));
}

static void work_done(struct mm_work *first);
static void run_on_pool(struct mm_pool_task *task);

/* Requests to resume or to free after the mutex is unlocked. */
struct ends {
    struct mm_resumed resumed;
    struct mm_resumed freed; /* both lists link requests by mm_request.resumed */
};

/* Ends the work on a request, after the worker pool or the queue has finished. A waiting request continues,
 * with `error` if that is not NULL. An abandoned request is freed, unless its connection still uses it. Call
 * it with server->mutex held. */
static void end_work(struct mm_request *request, const struct mm_error *error, struct ends *ends) {
    request->is_worked_on = false;
    if (mm_request_waits(request)) {
        mm_request_end_wait(request, error);
        SLIST_INSERT_HEAD(&ends->resumed, request, resumed);
    } else if (mm_request_state(request) == MM_OVER) {
        SLIST_INSERT_HEAD(&ends->freed, request, resumed);
    }
}

static void resume_and_free(struct ends *ends) {
    struct mm_request *request;
    mm_request_resume(&ends->resumed);
    while ((request = SLIST_FIRST(&ends->freed)) != NULL) {
        SLIST_REMOVE_HEAD(&ends->freed, resumed);
        mm_request_free(request);
    }
}

/* Submits request->work. If the queue refuses it, returns false and sets *error. Needs server->mutex. */
static bool submit(struct mm_request *request, struct mm_error *error) {
    mm_request_move(request, MM_QUEUED);
    request->work->done = work_done;
    request->work->owner = request;
    request->work->client = request->memory.client;
    return mm_queue_submit(mm_engine_queue(mm_server_engine(request->server)), request->work, error) == MM_OK;
}

/* Lets the worker pool inflate, decode or encode. Call it with server->mutex held. */
static void add_to_pool(struct mm_request *request, enum mm_request_state state) {
    mm_request_move(request, state);
    request->task.run = run_on_pool;
    mm_pool_add(request->server->pool, &request->task);
}

/* Returns the next state of a request whose work has succeeded: MM_INFLATING for the next slice, MM_RECEIVING
 * with the inflated body, or what the route wants. If the route wants a job, submits the job and
 * returns MM_QUEUED. If the queue refuses the first job, returns MM_ANSWERING and sets *error. If the queue
 * refuses a later job, the route's `next` decides. Call it with server->mutex held. */
static enum mm_request_state do_next_step(struct mm_request *request, struct mm_error *error) {
    const struct mm_route_state *route = request->route->state;
    const enum mm_request_state ended = mm_request_state(request);
    if (ended == MM_INFLATING) {
        request->record.stage_ns[MM_SPAN_RECEIVE] = mm_clock_ns() - request->started_ns;
        return request->upload.inflation.coding != 0 ? MM_INFLATING : MM_RECEIVING;
    }
    enum mm_request_state next = route->next == NULL ? MM_ANSWERING : route->next(request, ended);
    while (next == MM_QUEUED && !submit(request, error)) {
        if (ended != MM_QUEUED)
            return MM_ANSWERING;
        request->work->error = *error;
        error->status = MM_OK;
        next = route->next(request, MM_QUEUED);
    }
    return next;
}

/* Continues a request after the worker pool or the queue has ended with *error. The request then waits for
 * memory, does its next work, or ends its wait. Call it with server->mutex held. */
static void go_on(struct mm_request *request, struct mm_error *error, struct ends *ends) {
    const enum mm_request_state ended = mm_request_state(request);
    enum mm_request_state next = MM_ANSWERING;
    if ((ended == MM_INFLATING || ended == MM_DECODING) && lacks_memory(request, error)) {
        request->is_worked_on = false;
        begin_wait(request, error->needed_bytes);
        return;
    }
    if (error->status == MM_OK && mm_request_waits(request))
        next = do_next_step(request, error);
    if (next == MM_INFLATING || next == MM_ENCODING)
        add_to_pool(request, next);
    else if (next != MM_QUEUED)
        end_work(request, error->status == MM_OK ? NULL : error, ends);
}

/* Continues one request. Call it with server->mutex held; it unlocks the mutex. */
static void go_on_and_unlock(struct mm_request *request, struct mm_error *error) {
    struct mm_server *server = request->server;
    struct ends ends = {{NULL}, {NULL}};
    go_on(request, error, &ends);
    const bool waits_for_memory = mm_request_state(request) == MM_RESERVING;
    pthread_mutex_unlock(&server->mutex);
    resume_and_free(&ends);
    if (waits_for_memory)
        mm_line_serve(server); /* memory may be free, because an unfair request waits whenever others do */
}

/* The queue calls it with a list of finished work. It locks the mutex only once for the whole list. */
static void work_done(struct mm_work *first) {
    struct mm_server *server = ((struct mm_request *)first->owner)->server;
    struct ends ends = {{NULL}, {NULL}};
    struct mm_work *next;
    for (struct mm_work *work = first; work != NULL; work = work->next)
        mm_metrics_work(work, ((struct mm_request *)work->owner)->record.account);
    pthread_mutex_lock(&server->mutex);
    for (struct mm_work *work = first; work != NULL; work = next) {
        struct mm_error error = {.status = MM_OK}; /* the route itself reads work->error */
        next = work->next;                         /* read first, because go_on may submit the work again */
        go_on(work->owner, &error, &ends);
    }
    pthread_mutex_unlock(&server->mutex);
    resume_and_free(&ends);
}

/* Inflates, decodes or encodes on the worker pool. If the request is abandoned meanwhile, the result is not
 * used. */
static void run_on_pool(struct mm_pool_task *task) {
    struct mm_request *request = (struct mm_request *)((char *)task - offsetof(struct mm_request, task));
    struct mm_error error = {.status = MM_OK};
    pthread_mutex_lock(&request->server->mutex);
    if (mm_request_waits(request)) {
        const enum mm_request_state state = mm_request_state(request);
        pthread_mutex_unlock(&request->server->mutex);
        const enum mm_status status = state == MM_INFLATING
                                          ? mm_upload_inflate(request, &error)
                                          : request->route->state->work(request, state, &error);
        if (status == MM_OK)
            error.status = MM_OK;
        pthread_mutex_lock(&request->server->mutex);
    }
    go_on_and_unlock(request, &error);
}

/* Suspends the connection and locks server->mutex. No thread can resume the connection before the unlock. */
static void suspend(struct mm_request *request) {
    MHD_suspend_connection(request->connection);
    pthread_mutex_lock(&request->server->mutex);
}

bool mm_request_wait_for_memory(struct mm_request *request) {
    const size_t needed_bytes = request->error.needed_bytes;
    if (!lacks_memory(request, &request->error))
        return false;
    request->error = (struct mm_error){0};
    suspend(request);
    begin_wait(request, needed_bytes);
    pthread_mutex_unlock(&request->server->mutex);
    mm_line_serve(request->server); /* memory may have become free before the request entered the line */
    return true;
}

void mm_request_trim(struct mm_request *request) {
    mm_reservation_trim(&request->memory);
    mm_line_serve(request->server);
}

void mm_request_leave_to_pool(struct mm_request *request, enum mm_request_state state) {
    suspend(request);
    request->is_worked_on = true;
    add_to_pool(request, state);
    pthread_mutex_unlock(&request->server->mutex);
}

/* Keeps the mutex locked during the whole submission. So mm_request_abandon always finds the work in the
 * queue. work_done always finds the request waiting, even if it begins before `submit` returns. */
void mm_request_submit(struct mm_request *request) {
    struct mm_error error;
    suspend(request);
    request->is_worked_on = true;
    if (submit(request, &error))
        pthread_mutex_unlock(&request->server->mutex);
    else
        go_on_and_unlock(request, &error);
}

void mm_request_abandon(struct mm_request *request, const struct mm_error *error) {
    static const unsigned stages[] = {[MM_RESERVING] = MM_SPAN_RECEIVE,
                                      [MM_INFLATING] = MM_SPAN_RECEIVE,
                                      [MM_DECODING] = MM_SPAN_DECODE,
                                      [MM_QUEUED] = MM_SPAN_KERNEL,
                                      [MM_ENCODING] = MM_SPAN_ENCODE};
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(request->server));
    const enum mm_request_state state = mm_request_state(request);
    const bool in_queue = state == MM_QUEUED && mm_queue_cancel(queue, request->work);
    if (in_queue)
        request->is_worked_on = false;
    if (state == MM_QUEUED)
        request->record.stage_ns[MM_SPAN_QUEUE] += mm_queue_waited_ns(queue, request->work);
    mm_record_cancel(&request->record, in_queue ? MM_SPAN_QUEUE : stages[state]);
    request->record.left = error == NULL;
    mm_request_end_wait(request, error);
}

void mm_request_abandon_all(struct mm_server *server, enum mm_status status, const char *detail) {
    struct mm_resumed abandoned = SLIST_HEAD_INITIALIZER(abandoned);
    struct mm_error error;
    mm_fail(&error, status, "%s", detail);
    pthread_mutex_lock(&server->mutex);
    const struct mm_connection *peer;
    TAILQ_FOREACH(peer, &server->connections, listed) {
        struct mm_request *request = __atomic_load_n(&peer->request, __ATOMIC_ACQUIRE);
        if (request == NULL || !mm_request_waits(request))
            continue;
        mm_request_abandon(request, &error);
        SLIST_INSERT_HEAD(&abandoned, request, resumed);
    }
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&abandoned);
}

void mm_request_resume(struct mm_resumed *list) {
    struct mm_request *request;
    while ((request = SLIST_FIRST(list)) != NULL) {
        SLIST_REMOVE_HEAD(list, resumed); /* first, because a resumed request can be freed at once */
        MHD_resume_connection(request->connection);
    }
}
