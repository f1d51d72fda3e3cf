/* A load of mixed requests, of whose replies every one is judged. Many keep-alive connections ask at the
 * same time for random products in every form that the service speaks, by every variant that it has,
 * among requests that it must refuse; some leave without waiting. It shares no code with the service.
 *
 * The long run, with a look at the service's memory, descriptors and exit:
 *   SOAK_WARM_UP_S=60 sh tests/load/soak.sh build/cpu-only/server/matmuld \
 *       build/cpu-only/tests/load/mixed --seconds 3600 --leave 10
 * ... and ./dev bench trust --rows soak, with faults among them. */
#include "tests/load/client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, CLIENTS_MAX = 10000, SECONDS_MAX = 1000000 };

#define HOST "127.0.0.1"

struct options {
    const char *port;
    const char *backend; /* NULL: every one that there is */
    uint64_t clients;
    uint64_t seconds;
    uint64_t seed;
    uint64_t leave_percent;
    uint64_t fault_percent;
};

static const char usage[] =
    "usage: mixed --port P [--clients 100] [--seconds 60] [--seed S] [--backend B] [--leave PERCENT]\n"
    "             [--faults PERCENT]\n\n"
    "Loads a matmuld on this machine with mixed requests and judges every reply. Of --leave percent of the\n"
    "requests the reply is not waited for; --faults percent are made to fail on the device, which the\n"
    "server tests/http/faulty can. Exits with 1 if any reply is wrong, malformed or missing.\n";

static bool read_number(struct options *options, const char *name, const char *text) {
    const struct {
        const char *name;
        uint64_t min, max;
        uint64_t *number;
    } numbers[] = {
        {"--clients", 1, CLIENTS_MAX, &options->clients}, {"--seconds", 1, SECONDS_MAX, &options->seconds},
        {"--seed", 0, UINT64_MAX, &options->seed},        {"--leave", 0, 99, &options->leave_percent},
        {"--faults", 0, 99, &options->fault_percent},
    };
    for (size_t index = 0; index < sizeof numbers / sizeof numbers[0]; index++) {
        if (strcmp(name, numbers[index].name) != 0)
            continue;
        char *end;
        *numbers[index].number = strtoull(text, &end, 10);
        return text[strspn(text, "0123456789")] == '\0' && end != text &&
               *numbers[index].number >= numbers[index].min && *numbers[index].number <= numbers[index].max;
    }
    return false;
}

static bool read_options(struct options *options, int argc, char **argv) {
    for (int at = 1; at < argc; at += 2) {
        const char *value = at + 1 < argc ? argv[at + 1] : "";
        if (strcmp(argv[at], "--port") == 0)
            options->port = value;
        else if (strcmp(argv[at], "--backend") == 0)
            options->backend = value;
        else if (!read_number(options, argv[at], value))
            return false;
    }
    return options->port != NULL;
}

static void add(struct mm_load_counts *counts, const struct mm_load_counts *more) {
    uint64_t *to = (uint64_t *)counts;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t index = 0; index < sizeof *counts / sizeof *to; index++)
        to[index] += from[index];
}

static void print_row(const char *name, uint64_t count) {
    printf("%-36s %12" PRIu64 "\n", name, count);
}

static void print(const struct mm_load_counts *counts, const struct mm_load_catalogue *catalogue,
                  double seconds) {
    char name[3 * MM_LOAD_NAME_BYTES];
    print_row("requests", counts->requests);
    printf("%-36s %12.3f\n", "requests a second", (double)counts->requests / seconds);
    print_row("  in chunks", counts->chunked);
    print_row("  pipelined", counts->pipelined);
    print_row("left before the reply", counts->left);
    print_row("products right", counts->exact + counts->bounded);
    print_row("  exactly", counts->exact);
    print_row("  within the bound", counts->bounded);
    for (size_t index = 0; index < catalogue->count; index++) {
        const struct mm_load_variant *variant = &catalogue->variants[index];
        snprintf(name, sizeof name, "  by %s:%s", variant->backend, variant->name);
        print_row(name, counts->variants[index]);
    }
    for (size_t index = 0; index < MM_LOAD_CODE_COUNT; index++) {
        snprintf(name, sizeof name, "%u %s", mm_load_codes[index].status, mm_load_codes[index].name);
        if (counts->codes[index] > 0)
            print_row(name, counts->codes[index]);
    }
    print_row("broken connections", counts->broken);
    print_row("mismatches", counts->mismatches);
}

/* Runs the clients to the end of their time, and adds up what they counted. False where the system gives
 * no more threads. */
static bool run_clients(const struct options *options, const struct mm_load_plan *plan,
                        const struct addrinfo *address, struct mm_load_counts *counts) {
    size_t count = (size_t)options->clients;
    struct mm_load_client *clients = mm_load_allocate(count * sizeof *clients);
    pthread_t *threads = mm_load_allocate(count * sizeof *threads);
    uint64_t until_ns = mm_load_clock_ns() + options->seconds * UINT64_C(1000000000);
    size_t started = 0;
    for (; started < count; started++) {
        clients[started] = (struct mm_load_client){.plan = plan,
                                                   .address = address,
                                                   .number = (unsigned)started,
                                                   .seed = options->seed,
                                                   .leave_percent = options->leave_percent,
                                                   .until_ns = until_ns};
        if (pthread_create(&threads[started], NULL, mm_load_client_run, &clients[started]) != 0)
            break;
    }
    for (size_t index = 0; index < started; index++) {
        pthread_join(threads[index], NULL);
        add(counts, &clients[index].counts);
    }
    free(threads);
    free(clients);
    if (started < count)
        fprintf(stderr, "mixed: only %zu of %zu clients could be started\n", started, count);
    return started == count;
}

static bool load(const struct options *options, const struct addrinfo *address) {
    static struct mm_load_catalogue catalogue;
    static struct mm_load_counts counts;
    char problem[MM_LOAD_PROBLEM_BYTES];
    char authority[300];
    snprintf(authority, sizeof authority, HOST ":%s", options->port);
    if (!mm_load_catalogue_fetch(&catalogue, address, authority, options->backend, problem)) {
        fprintf(stderr, "mixed: %s\n", problem);
        return false;
    }
    const struct mm_load_plan plan = {.authority = authority,
                                      .catalogue = &catalogue,
                                      .name_backend = options->backend != NULL,
                                      .fault_percent = (unsigned)options->fault_percent};
    printf("%" PRIu64 " clients for %" PRIu64 " s, seed %" PRIu64 ", %zu variants\n", options->clients,
           options->seconds, options->seed, catalogue.count);
    fflush(stdout);
    uint64_t begun_ns = mm_load_clock_ns();
    bool good = run_clients(options, &plan, address, &counts);
    print(&counts, &catalogue, (double)(mm_load_clock_ns() - begun_ns) / 1e9);
    if (counts.exact == 0 || counts.bounded == 0) {
        fprintf(stderr, "mixed: no product was checked of one kind or both, which proves nothing\n");
        return false;
    }
    return good && counts.mismatches == 0 && counts.broken == 0;
}

int main(int argc, char **argv) {
    struct options options = {.clients = 100, .seconds = 60, .seed = mm_load_clock_ns()};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (!read_options(&options, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    int failure = getaddrinfo(HOST, options.port, &hints, &addresses);
    if (failure != 0) {
        fprintf(stderr, "mixed: port %s: %s\n", options.port, gai_strerror(failure));
        return EXIT_FAILURE;
    }
    bool good = load(&options, addresses);
    freeaddrinfo(addresses);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
