/* A load of mixed requests, of whose replies every one is judged. Many keep-alive connections ask at the
 * same time for random products in every form that the service speaks, by every variant that it has,
 * among requests that it must refuse; some leave without waiting. It shares no code with the service.
 *
 * The long run, with a look at the service's memory, descriptors and exit:
 *   SOAK_WARM_UP_S=60 sh tests/load/soak.sh build/cpu-only/server/matmuld \
 *       build/cpu-only/tests/load/mixed --seconds 3600 --leave 10
 * ... and ./dev bench trust --rows soak, with faults among them. */
#include "tests/load/client.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, CLIENTS_MAX = 10000, EDGE_MAX = 4096, LARGE_MAX = 512, SECONDS_MAX = 1000000 };

struct options {
    const char *host;
    const char *port;
    const char *backend; /* NULL: every one that there is */
    uint64_t clients;
    uint64_t seconds;
    uint64_t seed;
    uint64_t edge_max;
    uint64_t leave_percent;
    uint64_t fault_percent;
};

static const char usage[] =
    "usage: mixed --port P [--host 127.0.0.1] [--clients 100] [--seconds 60] [--seed S]\n"
    "             [--max-edge 96] [--backend B] [--leave PERCENT] [--faults PERCENT]\n\n"
    "Loads a matmuld with mixed requests and judges every reply. Shapes go up to --max-edge, one in a\n"
    "thousand up to 512. Of --leave percent of the requests the reply is not waited for; --faults percent "
    "are\n"
    "made to fail on the device, which the server tests/http/faulty can. Exits with 1 where any reply is "
    "wrong,\n"
    "malformed or missing.\n";

static bool read_number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *number) {
    char *end;
    *number = strtoull(text, &end, 10);
    if (text[strspn(text, "0123456789")] == '\0' && end != text && *number >= min && *number <= max)
        return true;
    fprintf(stderr, "mixed: --%s must be a number from %" PRIu64 " to %" PRIu64 ", but is '%s'\n", name, min,
            max, text);
    return false;
}

static bool read_options(struct options *options, int argc, char **argv) {
    static const struct option table[] = {
        {"host", required_argument, NULL, 'h'},    {"port", required_argument, NULL, 'p'},
        {"clients", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'r'},    {"max-edge", required_argument, NULL, 'e'},
        {"backend", required_argument, NULL, 'b'}, {"leave", required_argument, NULL, 'l'},
        {"faults", required_argument, NULL, 'f'},  {NULL, 0, NULL, 0},
    };
    bool good = true;
    int index = 0;
    for (int option; good && (option = getopt_long(argc, argv, "", table, &index)) != -1;) {
        const char *name = option == '?' ? "" : table[index].name;
        switch (option) {
        case 'h':
            options->host = optarg;
            break;
        case 'p':
            options->port = optarg;
            break;
        case 'b':
            options->backend = optarg;
            break;
        case 'c':
            good = read_number(name, optarg, 1, CLIENTS_MAX, &options->clients);
            break;
        case 's':
            good = read_number(name, optarg, 1, SECONDS_MAX, &options->seconds);
            break;
        case 'r':
            good = read_number(name, optarg, 0, UINT64_MAX, &options->seed);
            break;
        case 'e':
            good = read_number(name, optarg, 1, EDGE_MAX, &options->edge_max);
            break;
        case 'l':
            good = read_number(name, optarg, 0, 99, &options->leave_percent);
            break;
        case 'f':
            good = read_number(name, optarg, 0, 99, &options->fault_percent);
            break;
        default:
            good = false;
        }
    }
    return good && optind == argc && options->port != NULL;
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
        mm_load_counts_add(counts, &clients[index].counts);
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
    snprintf(authority, sizeof authority, "%s:%s", options->host, options->port);
    if (!mm_load_catalogue_fetch(&catalogue, address, authority, options->backend, problem)) {
        fprintf(stderr, "mixed: %s\n", problem);
        return false;
    }
    const struct mm_load_plan plan = {.authority = authority,
                                      .catalogue = &catalogue,
                                      .edge_max = (size_t)options->edge_max,
                                      .large_max = LARGE_MAX,
                                      .name_backend = options->backend != NULL,
                                      .fault_percent = (unsigned)options->fault_percent};
    printf("%" PRIu64 " clients for %" PRIu64 " s, seed %" PRIu64 ", %zu variants\n", options->clients,
           options->seconds, options->seed, catalogue.count);
    fflush(stdout);
    uint64_t begun_ns = mm_load_clock_ns();
    bool good = run_clients(options, &plan, address, &counts);
    mm_load_counts_print(&counts, &catalogue, (double)(mm_load_clock_ns() - begun_ns) / 1e9, stdout);
    if (counts.exact == 0 || counts.bounded == 0) {
        fprintf(stderr, "mixed: no product was checked of one kind or both, which proves nothing\n");
        return false;
    }
    return good && counts.mismatches == 0 && counts.broken == 0;
}

int main(int argc, char **argv) {
    struct options options = {
        .host = "127.0.0.1", .clients = 100, .seconds = 60, .seed = mm_load_clock_ns(), .edge_max = 96};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (!read_options(&options, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    int failure = getaddrinfo(options.host, options.port, &hints, &addresses);
    if (failure != 0) {
        fprintf(stderr, "mixed: %s port %s: %s\n", options.host, options.port, gai_strerror(failure));
        return EXIT_FAILURE;
    }
    bool good = load(&options, addresses);
    freeaddrinfo(addresses);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
