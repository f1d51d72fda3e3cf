/* Starts the service again and again while the first allocation of the process fails, then the second, and so
 * on until there was none to fail before it was ready: first that one alone, then all from it on. Each start
 * must end in time, with status 1 or 2 and a sentence on stderr, or become ready; then it must end well on
 * SIGTERM.
 *
 *   start CONTROL MOST OUTPUT PROGRAM [OPTION…]      MOST is how many starts of each kind there are; 0: all.
 * OUTPUT is a file for what a start says */
#include "tests/faults/arm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, LOOK_MS = 2, OUTPUT_MAX = 64 << 10 };

struct subject {
    struct control *control;
    const char *output; /* the file's name */
    char **command;
    char said[OUTPUT_MAX];
};

struct outcomes {
    unsigned ready;
    unsigned refused;
    unsigned wrong;
};

static const uint64_t never = UINT64_MAX;

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static pid_t launch(const struct subject *subject) {
    const pid_t child = fork();
    if (child != 0)
        return child;
    const int output = open(subject->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (output >= 0 && dup2(output, STDERR_FILENO) >= 0)
        execv(subject->command[0], subject->command);
    _exit(127);
}

static void read_said(struct subject *subject) {
    const int output = open(subject->output, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = output < 0 ? 0 : read(output, subject->said, OUTPUT_MAX - 1);
    subject->said[bytes > 0 ? bytes : 0] = '\0';
    if (output >= 0)
        close(output);
}

static bool says(struct subject *subject, const char *text) {
    read_said(subject);
    return strstr(subject->said, text) != NULL;
}

/* Waits for the end, or only until it says that it is ready; false where there is neither in time. */
static bool await(struct subject *subject, pid_t child, bool or_ready, int *status, bool *has_ended) {
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    const uint64_t until_ms = now_ms() + PATIENCE_MS;
    *has_ended = false;
    while (now_ms() < until_ms) {
        *has_ended = waitpid(child, status, WNOHANG) == child;
        if (*has_ended || (or_ready && says(subject, " ready\n")))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static bool is_refusal(struct subject *subject, int status) {
    read_said(subject);
    return WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2) &&
           (strstr(subject->said, "matmuld: ") != NULL || strstr(subject->said, " error ") != NULL) &&
           strstr(subject->said, "Sanitizer") == NULL;
}

static void tell_wrong(struct subject *subject, const char *what, uint64_t first, int status) {
    read_said(subject);
    printf("FAILED: %s, without %" PRIu64 ": status %#x:\n%.3000s\n", what, first, (unsigned)status,
           subject->said);
}

/* One start; how many allocations failed is returned. */
static uint64_t start(struct subject *subject, uint64_t first, uint64_t last, struct outcomes *outcomes) {
    int status = 0;
    bool has_ended = false;
    /* Or what the start before has said would be taken for this one's. */
    if (truncate(subject->output, 0) != 0 && errno != ENOENT)
        perror(subject->output);
    control_arm(subject->control, 0, first, last);
    const pid_t child = launch(subject);
    const bool in_time = await(subject, child, true, &status, &has_ended);
    const uint64_t failed = control_disarm(subject->control);
    const char *wrong = in_time ? NULL : "it hangs";
    if (in_time && has_ended && is_refusal(subject, status)) {
        outcomes->refused++;
        return failed;
    }
    if (in_time && has_ended)
        wrong = "it ended badly";
    if (in_time && !has_ended) {
        kill(child, SIGTERM);
        if (!await(subject, child, false, &status, &has_ended))
            wrong = "it does not stop";
        else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            wrong = "it stopped badly";
    }
    if (wrong != NULL)
        tell_wrong(subject, wrong, first, status);
    if (!has_ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    outcomes->wrong += wrong != NULL;
    outcomes->ready += wrong == NULL;
    return failed;
}

static bool start_all(struct subject *subject, bool is_once, uint64_t stride) {
    struct outcomes outcomes = {0};
    uint64_t first = (stride + 1) / 2;
    while (start(subject, first, is_once ? first : never, &outcomes) > 0 && outcomes.wrong < 10)
        first += stride;
    printf("  %s: %u starts: %u ready, %u refused, %u wrong\n", is_once ? "one" : "all from it",
           outcomes.ready + outcomes.refused + outcomes.wrong, outcomes.ready, outcomes.refused,
           outcomes.wrong);
    fflush(stdout);
    return outcomes.wrong == 0;
}

int main(int argc, char **argv) {
    static struct subject subject;
    struct outcomes outcomes = {0};
    subject.control = argc < 5 ? NULL : control_open(argv[1]);
    if (subject.control == NULL)
        return EXIT_FAILURE;
    subject.output = argv[3];
    subject.command = argv + 4;
    start(&subject, never, never, &outcomes);
    const uint64_t most = strtoull(argv[2], NULL, 10), sites = control_seen(subject.control);
    const uint64_t stride = most == 0 || sites <= most ? 1 : (sites + most - 1) / most;
    printf("start: %" PRIu64 " allocations\n", sites);
    bool good = outcomes.ready == 1 && sites > 0 && start_all(&subject, true, stride);
    good &= outcomes.ready == 1 && start_all(&subject, false, stride);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
