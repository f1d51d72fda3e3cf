/* Makes each request of a group again and again, while in the server the first allocation fails, then the
 * second, and so on until there was none to fail: first that one alone, then all from it on. Whatever fails,
 * the reply must be the one that there is with memory, or a 500 or 503 as a problem, or the connection
 * closed, in time; and the same request must be answered well right after.
 *
 *   routes CONTROL PORT GROUP MOST          MOST is how many such runs a request has of each kind; 0: all
 *   routes CONTROL arm FIRST LAST
 *   routes CONTROL disarm                   prints how many failed, and of how many */
#include "tests/faults/arm.h"
#include "tests/faults/exchange.h"
#include "tests/faults/requests.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* What is said of the replies to one request. */
struct outcomes {
    unsigned expected;
    unsigned refused;
    unsigned closed;
    unsigned wrong;
};

struct subject {
    const struct request *request;
    struct control *control;
    unsigned port;
    char *text;
    size_t bytes;
    char *text_before; /* where memory is to be mapped anew */
    size_t bytes_before;
    struct reply baseline; /* with memory */
};

static const uint64_t never = UINT64_MAX;

enum { LARGE_BYTES = 256 << 10 };

/* With what comes before the request, while nothing fails: its connection, if that is made by then, else −1.
 */
static int prepare(const struct subject *subject) {
    const bool is_second = (subject->request->flags & SECOND) != 0;
    const char *text = is_second ? subject->text : subject->text_before;
    struct reply reply;
    if (text == NULL)
        return -1;
    const int connection = exchange_connect(subject->port);
    exchange_talk(connection, text, is_second ? subject->bytes : subject->bytes_before, &reply);
    reply_free(&reply);
    if (is_second)
        return connection;
    close(connection);
    return -1;
}

/* Sends the request with allocations failing as told, the connection's too. How many failed is returned. */
static uint64_t ask(const struct subject *subject, uint64_t first, uint64_t last, struct reply *reply) {
    int connection = prepare(subject);
    *reply = (struct reply){.ending = CLOSED};
    control_arm(subject->control, (subject->request->flags & SHORT_OF_LARGE) != 0 ? LARGE_BYTES : 0, first,
                last);
    if (connection < 0)
        connection = exchange_connect(subject->port);
    if (connection >= 0)
        exchange_talk(connection, subject->text, subject->bytes, reply);
    const uint64_t failed = control_disarm(subject->control);
    if (connection >= 0)
        close(connection);
    return failed;
}

static bool holds(const struct reply *reply, const char *text) {
    return text == NULL || memmem(reply->body, reply->body_bytes, text, strlen(text)) != NULL;
}

/* The line of the baseline's first header that the reply has not; NULL where it has all. */
static const char *missing_header(const struct reply *reply, const struct reply *baseline) {
    const char *line = strchr(baseline->head, '\n') + 1;
    for (; line + 2 < baseline->head + baseline->head_bytes; line = strchr(line, '\n') + 1)
        if (reply_header(reply, line, strcspn(line, ":")) == NULL)
            return line;
    return NULL;
}

static bool has_type(const struct reply *reply, const char *type) {
    const char *found = reply_header(reply, "Content-Type", 12);
    return found != NULL && strncmp(found, type, strlen(type)) == 0;
}

/* Of a body what is the same each time: all of a matrix, of JSON the matrix, else nothing. */
static size_t steady_bytes(const struct subject *subject) {
    const struct reply *baseline = &subject->baseline;
    const char *matrix_end = memmem(baseline->body, baseline->body_bytes, "]]", 2);
    if ((subject->request->flags & STEADY) != 0 || has_type(baseline, "application/octet-stream") ||
        has_type(baseline, "application/x-npy"))
        return baseline->body_bytes;
    if (baseline->body_bytes > 5 && memcmp(baseline->body, "{\"c\":", 5) == 0 && matrix_end != NULL)
        return (size_t)(matrix_end - baseline->body);
    return 0;
}

static bool is_expected(const struct subject *subject, const struct reply *reply) {
    const struct reply *baseline = &subject->baseline;
    const size_t steady = steady_bytes(subject);
    return reply->ending == COMPLETE && reply->status == subject->request->status &&
           holds(reply, subject->request->expected) && missing_header(reply, baseline) == NULL &&
           reply->body_bytes >= steady && memcmp(reply->body, baseline->body, steady) == 0;
}

static bool is_refusal(const struct reply *reply) {
    return reply->ending == COMPLETE && (reply->status == 500 || reply->status == 503) &&
           has_type(reply, "application/problem+json") && reply_header(reply, "X-Request-Id", 12) != NULL &&
           holds(reply, reply->status == 500 ? "\"code\": \"internal\"" : "\"code\": \"not_ready\"") &&
           holds(reply, "\"detail\": ");
}

static void tell_wrong(const struct subject *subject, const struct reply *reply, const char *when,
                       uint64_t first) {
    static const char *const endings[] = {[COMPLETE] = "complete", [CLOSED] = "closed", [HUNG] = "hung"};
    const char *missing =
        reply->status == subject->request->status ? missing_header(reply, &subject->baseline) : NULL;
    printf("FAILED: %s: %s %" PRIu64 ": %s, status %u, %zu bytes", subject->request->name, when, first,
           endings[reply->ending], reply->status, reply->body_bytes);
    if (missing != NULL)
        printf(", no %.*s\n", (int)strcspn(missing, ":"), missing);
    else
        printf(":\n%.1000s\n", reply->text == NULL ? "" : reply->text);
}

static void count(const struct subject *subject, const struct reply *reply, const char *when, uint64_t first,
                  struct outcomes *outcomes) {
    if (reply->ending == CLOSED)
        outcomes->closed++;
    else if (is_expected(subject, reply))
        outcomes->expected++;
    else if (is_refusal(reply))
        outcomes->refused++;
    else {
        outcomes->wrong++;
        tell_wrong(subject, reply, when, first);
    }
}

/* One run of the kind; false where nothing failed in it, or nothing works any more. */
static bool run(const struct subject *subject, bool is_once, uint64_t first, struct outcomes *outcomes) {
    struct reply reply;
    const char *when = is_once ? "without the allocation" : "without allocations from";
    const uint64_t failed = ask(subject, first, is_once ? first : never, &reply);
    if (failed > 0)
        count(subject, &reply, when, first, outcomes);
    reply_free(&reply);
    if (failed == 0)
        return false;
    ask(subject, never, never, &reply);
    const bool works = is_expected(subject, &reply);
    if (!works) {
        outcomes->wrong++;
        tell_wrong(subject, &reply,
                   is_once ? "after a run without the allocation" : "after a run without those from", first);
    }
    reply_free(&reply);
    return works;
}

static void tell(const char *what, const struct outcomes *outcomes) {
    printf("  %s: %u runs: %u as with memory, %u refused, %u closed, %u wrong\n", what,
           outcomes->expected + outcomes->refused + outcomes->closed + outcomes->wrong, outcomes->expected,
           outcomes->refused, outcomes->closed, outcomes->wrong);
}

/* One run: it does not matter then who asks first. */
static bool run_short_of_large(const struct subject *subject) {
    struct outcomes outcomes = {0};
    (void)run(subject, false, 1, &outcomes);
    tell("all large", &outcomes);
    return outcomes.wrong == 0;
}

/* The runs of one kind; false where one was not as it must be. */
static bool run_all(const struct subject *subject, bool is_once, uint64_t stride) {
    struct outcomes outcomes = {0};
    uint64_t first = (stride + 1) / 2;
    while (run(subject, is_once, first, &outcomes))
        first += stride;
    tell(is_once ? "one" : "all from it", &outcomes);
    return outcomes.wrong == 0;
}

/* Twice, since the first of a kind can bring what later ones find there. */
static bool find_baseline(struct subject *subject) {
    subject->baseline.ending = HUNG;
    for (unsigned time = 0; time < 2; time++) {
        reply_free(&subject->baseline);
        ask(subject, never, never, &subject->baseline);
    }
    const struct reply *reply = &subject->baseline;
    if (reply->ending == COMPLETE && reply->status == subject->request->status &&
        holds(reply, subject->request->expected))
        return true;
    tell_wrong(subject, reply, "with memory", 0);
    return false;
}

static bool try_request(const struct request *request, struct control *control, unsigned port,
                        uint64_t most) {
    struct subject subject = {.request = request, .control = control, .port = port};
    subject.text = request_text(request, &subject.bytes);
    if ((request->flags & MAPPED) != 0)
        subject.text_before = request_text(&request_of_all_memory, &subject.bytes_before);
    bool good = subject.text != NULL && find_baseline(&subject);
    if (good) {
        const uint64_t sites = control_seen(control);
        const uint64_t stride = most == 0 || sites <= most ? 1 : (sites + most - 1) / most;
        printf("%s: %" PRIu64 " allocations\n", request->name, sites);
        good = sites > 0; /* else the library is not under the server */
        if ((request->flags & SHORT_OF_LARGE) != 0) {
            good &= run_short_of_large(&subject);
        } else {
            good &= run_all(&subject, true, stride);
            good &= run_all(&subject, false, stride);
        }
    }
    reply_free(&subject.baseline);
    free(subject.text_before);
    free(subject.text);
    fflush(stdout);
    return good;
}

static int try_group(struct control *control, const char *port, const char *group, const char *most) {
    unsigned tried = 0;
    bool good = true;
    for (const struct request *request = requests; request->name != NULL; request++) {
        if (strcmp(request->group, group) != 0)
            continue;
        good &= try_request(request, control, (unsigned)strtoul(port, NULL, 10), strtoull(most, NULL, 10));
        tried++;
    }
    return good && tried > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    struct control *control = argc < 3 ? NULL : control_open(argv[1]);
    if (control == NULL)
        return EXIT_FAILURE;
    if (argc == 5 && strcmp(argv[2], "arm") == 0) {
        control_arm(control, 0, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[2], "disarm") == 0) {
        const uint64_t failed = control_disarm(control);
        printf("%" PRIu64 " %" PRIu64 "\n", failed, control_seen(control));
        return EXIT_SUCCESS;
    }
    return argc == 5 ? try_group(control, argv[2], argv[3], argv[4]) : EXIT_FAILURE;
}
