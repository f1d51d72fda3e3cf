/* The loop of a client: one request at a time, now and then some at once, each reply judged. */
#include "tests/load/client.h"

#include "tests/load/check.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* What is pipelined is small, so that all of it and its replies fit the sockets' buffers, and a client
 * that does not read yet stops nobody. A client gives up where more goes wrong than tells anything. It makes
 * some requests even if the machine stops for as long as it is to last. */
enum {
    REQUESTS_MIN = 20,
    BATCH_MAX = 6,
    PIPELINE_PERCENT = 5,
    PIECES_PERCENT = 5,
    FAILURES_MAX = 10,
    FAILURES_SHOWN = 30,
    LEAVE_NS_MAX = 20000000
};

struct run {
    struct mm_load_client *client;
    struct mm_load_random random;
    struct mm_load_connection connection;
    struct mm_load_reply reply;
    struct mm_load_request requests[BATCH_MAX];
    uint64_t made; /* requests, all in all */
};

uint64_t mm_load_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void report(const struct mm_load_request *request, const char *problem) {
    static unsigned shown; /* by all clients */
    char text[512];
    if (__atomic_fetch_add(&shown, 1, __ATOMIC_RELAXED) >= FAILURES_SHOWN)
        return;
    mm_load_request_describe(request, text, sizeof text);
    fprintf(stderr, "%s: %s\n", text, problem);
}

static bool fail_connection(struct run *run, const struct mm_load_request *request, const char *problem) {
    run->client->counts.broken++;
    report(request, problem);
    mm_load_disconnect(&run->connection);
    return false;
}

static void count_right(struct mm_load_counts *counts, const struct mm_load_plan *plan,
                        const struct mm_load_request *request) {
    if (request->refusal != NULL)
        return;
    if (request->product.whole)
        counts->exact++;
    else
        counts->bounded++;
    counts->variants[request->variant - plan->catalogue->variants]++;
}

/* Judges the reply that was received. False where the connection is of no more use. */
static bool judge(struct run *run, const struct mm_load_request *request) {
    struct mm_load_counts *counts = &run->client->counts;
    struct mm_load_verdict verdict;
    counts->requests++;
    counts->chunked += request->chunked;
    mm_load_check(request, &run->reply, run->client->plan->catalogue, &verdict);
    if (verdict.outcome == MM_LOAD_WRONG) {
        counts->mismatches++;
        report(request, verdict.problem);
    } else {
        counts->codes[verdict.code]++;
    }
    if (verdict.outcome == MM_LOAD_RIGHT)
        count_right(counts, run->client->plan, request);
    /* A body that was refused unread may cost the connection, and so may a chunked one: libmicrohttpd 0.9
     * reports a trailer that is none if the last line ends in a later packet (SECURITY.md). */
    if (run->reply.closes && !request->waits && !request->chunked)
        return fail_connection(run, request, "the reply closes the connection without need");
    if (run->reply.closes)
        mm_load_disconnect(&run->connection);
    return true;
}

static bool take_reply(struct run *run, const struct mm_load_request *request) {
    char problem[MM_LOAD_PROBLEM_BYTES];
    if (!mm_load_receive(&run->connection, &run->reply, problem))
        return fail_connection(run, request, problem);
    return judge(run, request);
}

/* Sends the bytes, now and then in pieces of any size. */
static bool send_bytes(struct run *run, const struct mm_load_bytes *bytes, char *problem) {
    bool pieces = mm_load_random_chance(&run->random, PIECES_PERCENT);
    for (size_t at = 0; at < bytes->length;) {
        size_t count = bytes->length - at;
        if (pieces)
            count = 1 + mm_load_random_below(&run->random, count);
        if (!mm_load_send(&run->connection, bytes->data + at, count, problem))
            return false;
        at += count;
    }
    return true;
}

static void make(struct run *run, struct mm_load_request *request, bool small) {
    char id[MM_LOAD_NAME_BYTES];
    snprintf(id, sizeof id, "%" PRIx64 ".%u.%" PRIu64, run->client->seed, run->client->number, run->made++);
    mm_load_request_make(request, &run->random, run->client->plan, id, small);
}

/* A large body is sent once the service asks for it; what comes instead is its refusal. */
static bool exchange_waiting(struct run *run, const struct mm_load_request *request, char *problem) {
    if (!send_bytes(run, &request->head, problem) || !mm_load_receive(&run->connection, &run->reply, problem))
        return fail_connection(run, request, problem);
    if (run->reply.status != 100)
        return judge(run, request);
    if (!send_bytes(run, &request->wire, problem))
        return fail_connection(run, request, problem);
    return take_reply(run, request);
}

/* Leaves: in the middle of the request, right after it, or some milliseconds later, when the job waits, runs
 * or is being answered; by a close or by a reset. */
static bool leave(struct run *run, const struct mm_load_request *request) {
    char problem[MM_LOAD_PROBLEM_BYTES];
    size_t bytes = request->head.length;
    if (mm_load_random_chance(&run->random, 50))
        bytes = mm_load_random_below(&run->random, bytes + 1);
    struct timespec pause = {.tv_nsec = (long)mm_load_random_below(&run->random, LEAVE_NS_MAX)};
    (void)mm_load_send(&run->connection, request->head.data, bytes, problem);
    if (mm_load_random_chance(&run->random, 50))
        nanosleep(&pause, NULL);
    if (mm_load_random_chance(&run->random, 50))
        mm_load_reset(&run->connection);
    else
        mm_load_disconnect(&run->connection);
    run->client->counts.left++;
    return true;
}

static bool exchange_one(struct run *run) {
    struct mm_load_request *request = &run->requests[0];
    char problem[MM_LOAD_PROBLEM_BYTES];
    bool leaves = mm_load_random_chance(&run->random, (unsigned)run->client->leave_percent);
    make(run, request, false);
    if (leaves) {
        mm_load_bytes_add(&request->head, request->wire.data, request->wire.length);
        return leave(run, request);
    }
    if (request->waits)
        return exchange_waiting(run, request, problem);
    mm_load_bytes_add(&request->head, request->wire.data, request->wire.length);
    if (!send_bytes(run, &request->head, problem))
        return fail_connection(run, request, problem);
    return take_reply(run, request);
}

/* Several requests in one go, whose replies must come in their order. */
static bool exchange_batch(struct run *run) {
    size_t count = 2 + mm_load_random_below(&run->random, BATCH_MAX - 1);
    struct mm_load_bytes *all = &run->requests[0].head;
    char problem[MM_LOAD_PROBLEM_BYTES];
    for (size_t index = 0; index < count; index++) {
        struct mm_load_request *request = &run->requests[index];
        make(run, request, true);
        if (index > 0)
            mm_load_bytes_add(all, request->head.data, request->head.length);
        mm_load_bytes_add(all, request->wire.data, request->wire.length);
    }
    if (!send_bytes(run, all, problem))
        return fail_connection(run, &run->requests[0], problem);
    for (size_t index = 0; index < count; index++)
        if (!take_reply(run, &run->requests[index]))
            return false;
    run->client->counts.pipelined += count - 1;
    return true;
}

static bool is_spent(const struct run *run) {
    const struct mm_load_counts *counts = &run->client->counts;
    return (mm_load_clock_ns() >= run->client->until_ns && run->made >= REQUESTS_MIN) ||
           counts->mismatches + counts->broken >= FAILURES_MAX;
}

void *mm_load_client_run(void *argument) {
    struct mm_load_client *client = argument;
    struct run run = {.client = client, .connection = {.socket = -1}};
    char problem[MM_LOAD_PROBLEM_BYTES];
    run.random.state = client->seed ^ ((uint64_t)(client->number + 1) << 32);
    while (!is_spent(&run)) {
        if (run.connection.socket < 0 && !mm_load_connect(&run.connection, client->address, problem)) {
            client->counts.broken++;
            fprintf(stderr, "client %u: %s\n", client->number, problem);
            break;
        }
        bool good =
            mm_load_random_chance(&run.random, PIPELINE_PERCENT) ? exchange_batch(&run) : exchange_one(&run);
        if (good && run.connection.received.length > 0)
            fail_connection(&run, &run.requests[0], "malformed reply: more bytes came than it had");
    }
    mm_load_disconnect(&run.connection);
    mm_load_reply_free(&run.reply);
    for (size_t index = 0; index < BATCH_MAX; index++)
        mm_load_request_free(&run.requests[index]);
    return NULL;
}
