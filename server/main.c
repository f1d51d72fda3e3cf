/* Starts the process, waits for a signal or a lost device, and stops the process. */
#include "commit.h"
#include "gpu/cpu/cores.h"
#include "gpu/mutex.h"
#include "gpu/store/store.h"
#include "server/http/pool.h"
#include "server/drain.h"
#include "server/healthcheck.h"
#include "server/machine.h"
#include "server/http/http.h"
#include "server/auth/keys.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/nvml.h"
#include "server/auth/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_DEVICE_LOST = 70, HTTP_THREADS_MAX = 16, LOOK_MS = 50 };

/* Chooses option values that depend on the machine. HTTP threads get five eighths of the cores, because
 * worker threads and the kernel's network code need cores too. docs/performance.md has the measurements. */
static void complete_options(struct mm_options *options) {
    if (options->threads == 0) {
        const uint64_t share = mm_size_divide_up(mm_cores() * 5, 8);
        options->threads = share > HTTP_THREADS_MAX ? HTTP_THREADS_MAX : share;
    }
    const uint64_t cpu_jobs_max = mm_cores() < MM_HOST_JOBS_MAX ? mm_cores() : MM_HOST_JOBS_MAX;
    if (options->cpu_jobs == 0 || options->cpu_jobs > cpu_jobs_max)
        options->cpu_jobs = cpu_jobs_max;
    if (options->memory_budget_bytes == 0)
        options->memory_budget_bytes = mm_machine_memory() / 2;
    options->body_bytes_max =
        mm_size_min(options->body_bytes_max, mm_budget_main_bytes(options->memory_budget_bytes));
    if (options->log_format == NULL)
        options->log_format = isatty(STDERR_FILENO) ? "text" : "json";
}

/* Returns the size of the store. The default is gpu_bytes or, if that is 0, half of the memory budget. */
static uint64_t store_bytes_max(const struct mm_options *options, uint64_t gpu_bytes) {
    const uint64_t budget = options->memory_budget_bytes, asked = options->store_bytes_max;
    if (asked == UINT64_MAX)
        return gpu_bytes > 0 ? gpu_bytes : budget / 2;
    return gpu_bytes == 0 && asked > budget ? budget : asked;
}

/* Returns a namespace's limit. Without keys, the only namespace may use the whole store (`most`). */
static uint64_t store_key_bytes_max(const struct mm_options *options, uint64_t most, bool has_keys) {
    const uint64_t asked = options->store_key_bytes_max, share = has_keys ? most / 2 : most;
    return asked == 0 ? share : asked > most ? most : asked;
}

/* Returns the limits of the store. With API keys, one namespace may have at most half of the names. */
static struct mm_store_limits store_limits(const struct mm_server *server, uint64_t gpu_bytes) {
    const struct mm_options *options = server->options;
    const size_t count_max = options->store_count_max, most = store_bytes_max(options, gpu_bytes);
    const bool has_keys = server->keys != NULL;
    return (struct mm_store_limits){.bytes_max = most,
                                    .space_bytes_max = store_key_bytes_max(options, most, has_keys),
                                    .host_bytes_max = gpu_bytes > 0 ? options->memory_budget_bytes / 2 : most,
                                    .count_max = count_max,
                                    .space_count_max = has_keys ? (count_max + 1) / 2 : count_max,
                                    .ttl_ns_max = options->store_ttl_s * UINT64_C(1000000000)};
}

/* Opens the store, unless the options switch it off. Returns false if opening fails. */
static bool open_store(struct mm_server *server) {
    const struct mm_store_limits limits = store_limits(server, 0);
    if (server->options->store_bytes_max > 0)
        server->store = mm_store_open(&limits, &server->budget);
    return server->options->store_bytes_max == 0 || server->store != NULL;
}

static bool open_server(struct mm_server *server, const struct mm_options *options, struct mm_keys *keys) {
    memset(server, 0, sizeof *server);
    server->options = options;
    server->keys = keys;
    if (options->trusted_proxies != NULL)
        (void)mm_networks_read(options->trusted_proxies, &server->trusted_proxies); /* checked already */
    const bool has_budget = mm_budget_open(&server->budget, options->memory_budget_bytes);
    server->limits = (struct mm_limits){.dimension_max = options->dimension_max,
                                        .body_bytes_max = options->body_bytes_max,
                                        .memory_bytes_max = server->budget.part_bytes[MM_BUDGET_MAIN]};
    server->mutex = MM_MUTEX_INITIALIZER;
    TAILQ_INIT(&server->connections);
    mm_line_open(&server->line);
    mm_clients_open(&server->clients);
    if (getrandom(&server->id_seed, sizeof server->id_seed, 0) != (ssize_t)sizeof server->id_seed)
        server->id_seed = mm_clock_ns() ^ (uint64_t)getpid() << 48;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    server->started_seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    server->epoch_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - mm_clock_ns();
    server->pool = mm_pool_start(mm_cores());
    return has_budget && server->pool != NULL && open_store(server);
}

/* Opens the devices. The socket already accepts connections, so health probes get replies meanwhile. */
static bool open_engine(struct mm_server *server) {
    const struct mm_options *options = server->options;
    struct mm_engine *engine = NULL;
    struct mm_error error;
    const struct mm_engine_options wanted = {
        .backend = options->backend,
        .devices = options->devices.all ? NULL : options->devices.indices,
        .device_count = options->devices.count,
        .host_jobs = (unsigned)options->cpu_jobs,
        .queue = {.jobs_max = options->queue_depth,
                  .client_jobs_max = options->jobs_per_key,
                  .wait_ns_max = options->queue_wait_ms * UINT64_C(1000000)},
        .watch = {.hang_ns = options->watchdog_ms * UINT64_C(1000000),
                  .rest_ns = options->self_test_ms * UINT64_C(1000000)},
        .device_bytes_max = options->max_device_memory_bytes,
        .kernel_ms_max = options->max_kernel_ms};
    if (mm_engine_open(&wanted, &engine, &error) != MM_OK) {
        mm_log_error("cannot multiply: %s", error.detail);
        return false;
    }
    if (mm_engine_note(engine)[0] != '\0')
        mm_log_info("left out: %s", mm_engine_note(engine));
    size_t count;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    for (size_t index = 0; index < count; index++)
        mm_log_info("device %s:%u is %s", devices[index]->backend->name, devices[index]->index,
                    devices[index]->name);
    const struct mm_store_limits limits = store_limits(server, mm_engine_stored_bytes_max(engine));
    if (server->store != NULL)
        mm_store_limit(server->store, &limits);
    if (mm_engine_page_locking(engine) != NULL)
        mm_buffers_lock(server->budget.buffers, mm_engine_page_locking(engine));
    if (!mm_server_set_engine(server, engine)) {
        mm_log_error("the system has no memory for the description of the devices");
        mm_engine_close(engine);
        return false;
    }
    mm_nvml_start(devices, count);
    mm_log_info("ready");
    return true;
}

/* How far the stop is. SIGTERM takes one step, or two if there is no lame duck, and SIGINT takes two. A stop
 * signal during the drain ends the process at once. */
enum { SERVING, LAME_DUCK, DRAINING };

/* The main thread checks for signals every LOOK_MS. Waiting for blocked signals would not work, because a
 * thread that a library starts before main would not block them. Handlers run on any thread, so access these
 * variables only by __atomic. */
static int stop_steps; /* DRAINING or more: the drain */
static int sigterm_steps;
static int reload_asked;

static int stop_stage(void) {
    return __atomic_load_n(&stop_steps, __ATOMIC_RELAXED);
}

static void on_stop_signal(int number) {
    const int steps = number == SIGINT ? DRAINING : __atomic_load_n(&sigterm_steps, __ATOMIC_RELAXED);
    if (__atomic_fetch_add(&stop_steps, steps, __ATOMIC_RELAXED) >= DRAINING)
        _exit(128 + number);
}

static void on_reload_signal(int number) {
    __atomic_store_n(&reload_asked, 1, __ATOMIC_RELAXED);
}

/* Opens closed standard streams. Otherwise a client's socket could become stderr, and logs would go there. */
static void fill_standard_streams(void) {
    int opened;
    do
        opened = open("/dev/null", O_RDWR);
    while (opened >= 0 && opened <= STDERR_FILENO);
    if (opened >= 0)
        close(opened);
}

/* Other threads start with SIGHUP blocked, so SIGHUP interrupts none of their system calls. */
static void set_reload_signal(int how) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(how, &signals, NULL);
}

static bool catch_signals(const struct mm_options *options) {
    __atomic_store_n(&sigterm_steps, options->lame_duck_ms > 0 ? LAME_DUCK : DRAINING, __ATOMIC_RELAXED);
    const struct sigaction stop = {.sa_handler = on_stop_signal};
    const struct sigaction reload = {.sa_handler = on_reload_signal};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    return sigaction(SIGTERM, &stop, NULL) == 0 && sigaction(SIGINT, &stop, NULL) == 0 &&
           sigaction(SIGPIPE, &ignore, NULL) == 0 && sigaction(SIGHUP, &reload, NULL) == 0;
}

static void watch_devices(const struct mm_server *server) {
    struct mm_error error;
    if (mm_engine_watch(server->engine, &error) != MM_OK)
        mm_log_error("%s", error.detail);
}

/* Drops the stored matrices of API keys that are no longer valid. */
static void drop_old_spaces(const struct mm_server *server) {
    uint64_t spaces[MM_KEYS_MAX], newest;
    const size_t count = mm_keys_spaces(server->keys, spaces, &newest);
    if (server->store != NULL)
        mm_store_set_spaces(server->store, spaces, count, newest);
}

static void reload(const struct mm_server *server) {
    struct mm_error error;
    if (server->keys == NULL && server->options->tls_cert == NULL)
        mm_log_info("SIGHUP: there are no API keys and no certificate to reload");
    if (server->keys != NULL) {
        if (!mm_keys_reload(server->keys))
            mm_metrics_reload_failed(MM_RELOAD_KEYS);
        drop_old_spaces(server);
    }
    if (mm_tls_load(server->options, &error) != MM_OK) {
        mm_log_error("the certificate and its key stay as they were: %s", error.detail);
        mm_metrics_reload_failed(MM_RELOAD_TLS);
    }
}

/* Begins the lame duck: load balancers see that the server is not ready, but it still serves requests.
 * Returns when the drain must begin. */
static uint64_t begin_lame_duck(struct mm_server *server) {
    const uint64_t ms = server->options->lame_duck_ms;
    mm_server_leave(server);
    mm_log_info("lame duck: /readyz is 503, and requests are served for %" PRIu64 " ms more", ms);
    return mm_clock_ns() + ms * UINT64_C(1000000);
}

/* Handles signals until the drain must begin (true) or a device is lost (false). */
static bool serve_signals(struct mm_server *server) {
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t until_ns = UINT64_MAX; /* the end of the lame duck, once it has begun */
    if (stop_stage() == LAME_DUCK)  /* the signal came before the server was ready, so nobody must leave */
        __atomic_add_fetch(&stop_steps, 1, __ATOMIC_RELAXED);
    set_reload_signal(SIG_UNBLOCK);
    while (stop_stage() < DRAINING && !mm_engine_is_lost(server->engine)) {
        if (until_ns == UINT64_MAX && stop_stage() == LAME_DUCK)
            until_ns = begin_lame_duck(server);
        else if (mm_clock_ns() >= until_ns)
            __atomic_add_fetch(&stop_steps, 1, __ATOMIC_RELAXED);
        watch_devices(server);
        if (__atomic_exchange_n(&reload_asked, 0, __ATOMIC_RELAXED) != 0)
            reload(server);
        nanosleep(&pause, NULL);
    }
    set_reload_signal(SIG_BLOCK);
    return stop_stage() >= DRAINING;
}

static _Noreturn void end_at_once(int result) {
    mm_log_info("stopped");
    mm_log_stop();
    _exit(result);
}

static bool has_failed_device(const struct mm_engine *engine) {
    size_t count = 0;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    for (size_t index = 0; index < count; index++)
        if (mm_device_has_failed(devices[index]))
            return true;
    return false;
}

/* Ends the process in less than a second. Joins no thread, because a thread may hang in the failed device. */
static _Noreturn void end_without_device(struct mm_server *server) {
    watch_devices(server); /* logs why the device failed, if the reason is known by now */
    mm_log_error("a device has failed for good: the process ends with status %d and must be started again",
                 EXIT_DEVICE_LOST);
    (void)mm_drain(server, 500, 200, MM_NOT_READY, "a device failed, and the service ended");
    end_at_once(EXIT_DEVICE_LOST);
}

/* Drains the server, and returns if everything can be closed safely. Ends the process in these cases:
 * - The drain timed out. A thread may still suspend a connection, which libmicrohttpd forbids while it stops.
 * - A kernel still runs. It would write to freed memory.
 * - A device failed. It must not be closed. */
static void drain(struct mm_server *server) {
    const bool drained = mm_drain(server, server->options->drain_timeout_ms, 1000, MM_STOPPING,
                                  "the service stopped before the job's turn or end");
    if (!drained || mm_queue_look(mm_engine_queue(server->engine)).jobs > 0 ||
        has_failed_device(server->engine))
        end_at_once(EXIT_SUCCESS);
}

/* Warns that the server is open to other machines. Call it only if other machines can reach the address. */
static void warn_of_openness(const struct mm_server *server) {
    if (server->keys == NULL)
        mm_log_warning(
            "NO API KEYS: %s can be reached from other machines, and every client can use all of it. "
            "Give --api-key-file or MATMULD_API_KEY, listen on 127.0.0.1, or put a proxy in front that "
            "admits the right clients (see SECURITY.md)",
            server->options->host);
    else if (server->options->tls_cert == NULL)
        mm_log_info("no TLS: API keys come to %s in the clear, and who can listen on the way has them. Give "
                    "--tls-cert and --tls-key, or put a proxy in front that has TLS",
                    server->options->host);
}

static int serve(const struct mm_options *options, struct mm_keys *keys) {
    struct mm_server server;
    struct mm_http *http = NULL;
    struct mm_error error;
    unsigned port = 0;
    if (!catch_signals(options)) {
        mm_log_error("signals cannot be caught: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    int result = EXIT_FAILURE;
    if (!open_server(&server, options, keys)) {
        mm_log_error("the system has no memory, or no threads");
        goto close_server;
    }
    if (mm_http_start(&server, &http, &port, &error) != MM_OK) {
        mm_log_error("%s", error.detail);
        goto close_server;
    }
    bool is_ipv6 = strchr(options->host, ':') != NULL;
    mm_log_info("listening on %s://%s%s%s:%u", options->tls_cert == NULL ? "http" : "https",
                is_ipv6 ? "[" : "", options->host, is_ipv6 ? "]" : "", port);
    if (!server.is_local)
        warn_of_openness(&server);
    if (!open_engine(&server))
        goto close_server;
    if (!serve_signals(&server))
        end_without_device(&server);
    drain(&server);
    result = EXIT_SUCCESS;
close_server:
    mm_http_stop(http);
    mm_nvml_stop();
    if (result == EXIT_SUCCESS)
        mm_log_info("stopped");
    mm_pool_stop(server.pool); /* first, because unfinished work still writes to memory that is
                                  freed below */
    mm_engine_close(server.engine);
    free(server.openapi);
    mm_store_close(server.store);
    mm_budget_close(&server.budget);
    mm_clients_close(&server.clients);
    pthread_mutex_destroy(&server.mutex);
    return result;
}

int main(int argc, char **argv) {
    struct mm_options options;
    struct mm_error error;
    int result = EXIT_SUCCESS;
    if (mm_options_parse(&options, argc, argv, &error) != MM_OK) {
        fprintf(stderr, "matmuld: %s\nTry 'matmuld --help'.\n", error.detail);
        return EXIT_USAGE;
    }
    if (options.help || options.version) {
        if (options.help)
            mm_options_help(stdout);
        else
            printf("matmuld %s commit %s\n", MATMULD_VERSION, MATMULD_COMMIT);
        return EXIT_SUCCESS;
    }
    if (options.healthcheck && options.port != 0)
        return mm_healthcheck(&options);
    if (options.healthcheck) {
        fprintf(stderr, "matmuld: --healthcheck needs the port of the server to ask: port 0 is any\n");
        return EXIT_USAGE;
    }
    complete_options(&options);
    mm_log_set_format(strcmp(options.log_format, "json") == 0 ? MM_LOG_JSON : MM_LOG_TEXT);
    mm_log_set_level(options.log_level);
    mm_environment_warn();
    fill_standard_streams();
    struct mm_keys *keys = NULL;
    if (mm_keys_open(&options, &keys, &error) != MM_OK || mm_tls_load(&options, &error) != MM_OK) {
        fprintf(stderr, "matmuld: %s\n", error.detail);
        mm_keys_close(keys);
        return EXIT_USAGE;
    }
    if (options.print_config) {
        mm_options_print(&options, stdout);
        goto close_files;
    }
    set_reload_signal(SIG_BLOCK); /* before other threads start, because they inherit the signal mask */
    mm_log_start();
    result = serve(&options, keys);
    mm_log_stop();
close_files:
    mm_tls_close();
    mm_keys_close(keys);
    return result;
}
