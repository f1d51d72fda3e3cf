/* The process: options, start, the wait for a signal or for a device that is lost, and the end. */
#include "gpu/cores.h"
#include "server/budget.h"
#include "server/crew.h"
#include "server/drain.h"
#include "server/healthcheck.h"
#include "server/http.h"
#include "server/keys.h"
#include "server/log.h"
#include "server/log_writer.h"
#include "server/metrics.h"
#include "server/sweep.h"
#include "server/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_DEVICE_LOST = 70, HTTP_THREADS_MAX = 16, LOOK_MS = 50 };

/* Fills in what comes from the machine. */
static void complete_options(struct mm_options *options) {
    if (options->threads == 0) {
        uint64_t cores = mm_cores();
        options->threads = cores > HTTP_THREADS_MAX ? HTTP_THREADS_MAX : cores;
    }
    if (options->memory_budget_bytes == 0)
        options->memory_budget_bytes = mm_budget_memory() / 2;
    if (options->body_bytes_max > options->memory_budget_bytes)
        options->body_bytes_max = options->memory_budget_bytes;
    if (options->log_format == NULL)
        options->log_format = isatty(STDERR_FILENO) ? "text" : "json";
}

static bool open_server(struct mm_server *server, const struct mm_options *options, struct mm_keys *keys,
                        struct mm_tls *tls) {
    memset(server, 0, sizeof *server);
    server->options = options;
    server->keys = keys;
    server->tls = tls;
    server->limits = (struct mm_limits){.dimension_max = options->dimension_max,
                                        .body_bytes_max = options->body_bytes_max,
                                        .memory_bytes_max = options->memory_budget_bytes};
    pthread_mutex_init(&server->mutex, NULL);
    if (getrandom(&server->id_seed, sizeof server->id_seed, 0) != (ssize_t)sizeof server->id_seed)
        server->id_seed = mm_clock_ns() ^ (uint64_t)getpid() << 48;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    server->started_seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    server->buffers = mm_buffers_open(options->memory_budget_bytes);
    server->metrics = mm_metrics_open();
    server->crew = mm_crew_start(mm_cores());
    return server->buffers != NULL && server->metrics != NULL && server->crew != NULL;
}

/* Opens the devices while the socket already accepts, so that a probe finds a process that lives. */
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
                  .bytes_max = options->memory_budget_bytes,
                  .wait_ns_max = options->queue_wait_ms * UINT64_C(1000000)},
        .watch = {.hang_ns = options->watchdog_ms * UINT64_C(1000000),
                  .rest_ns = options->self_test_ms * UINT64_C(1000000)}};
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
    if (mm_engine_page_locking(engine) != NULL)
        mm_buffers_lock(server->buffers, mm_engine_page_locking(engine));
    __atomic_store_n(&server->engine, engine, __ATOMIC_RELEASE);
    mm_log_info("ready");
    return true;
}

/* The first signal wakes main through a pipe; the second ends the process wherever main is. Handlers
 * rather than a blocked mask, since a library's thread, begun before main, would not have the mask; no
 * SA_RESTART, so that main's read ends where a tool puts handlers off to the end of the call. */
static int signal_pipe[2];
static int stop_signals; /* __atomic access only: handlers run on any thread */
static int
    reload_asked; /* likewise; not 0 from the signal until main has read it, so that the pipe never fills */

enum { STOP = 'S', RELOAD = 'R' };

static void wake_main(char why) {
    int interrupted = errno;
    ssize_t written = write(signal_pipe[1], &why, 1);
    (void)written;
    errno = interrupted;
}

static void on_stop_signal(int number) {
    if (__atomic_fetch_add(&stop_signals, 1, __ATOMIC_RELAXED) > 0)
        _exit(128 + number);
    wake_main(STOP);
}

static void on_reload_signal(int number) {
    (void)number;
    if (__atomic_exchange_n(&reload_asked, 1, __ATOMIC_RELAXED) == 0)
        wake_main(RELOAD);
}

/* Where a standard stream was closed, the next thing to be opened would be it, and a caller's connection
 * would get the log. */
static void fill_standard_streams(void) {
    int opened;
    do
        opened = open("/dev/null", O_RDWR);
    while (opened >= 0 && opened <= STDERR_FILENO);
    if (opened >= 0)
        close(opened);
}

/* SIGHUP is for main alone, as far as that can be had: other threads start with it blocked, so that none has
 * a call interrupted by it. */
static void set_reload_signal(int how) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(how, &signals, NULL);
}

/* Without a file there is nothing to read again, and SIGHUP ends the process as it does others. */
static bool has_files(const struct mm_options *options) {
    return options->api_key_file != NULL || options->tls_cert != NULL;
}

static bool catch_reload(const struct mm_options *options) {
    const struct sigaction reload = {.sa_handler = on_reload_signal};
    if (!has_files(options))
        return true;
    return sigaction(SIGHUP, &reload, NULL) == 0;
}

static bool catch_signals(const struct mm_options *options) {
    const struct sigaction stop = {.sa_handler = on_stop_signal};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    return pipe2(signal_pipe, O_CLOEXEC) == 0 && sigaction(SIGTERM, &stop, NULL) == 0 &&
           sigaction(SIGINT, &stop, NULL) == 0 && sigaction(SIGPIPE, &ignore, NULL) == 0 &&
           catch_reload(options);
}

static void watch_devices(const struct mm_server *server) {
    struct mm_error error;
    if (mm_engine_watch(server->engine, &error) != MM_OK)
        mm_log_error("%s", error.detail);
}

static void reload(const struct mm_server *server) {
    if (server->options->api_key_file != NULL)
        mm_keys_reload(server->keys);
    if (server->tls != NULL)
        mm_tls_reload(server->tls);
}

/* Until the process is to stop; false where a device was lost before. */
static bool serve_signals(const struct mm_server *server) {
    const bool reloads = has_files(server->options);
    struct pollfd signalled = {.fd = signal_pipe[0], .events = POLLIN};
    char why = 0;
    if (reloads)
        set_reload_signal(SIG_UNBLOCK);
    while (why != STOP && !mm_engine_is_lost(server->engine)) {
        watch_devices(server);
        if (poll(&signalled, 1, LOOK_MS) <= 0 || read(signal_pipe[0], &why, 1) != 1 || why != RELOAD)
            continue;
        __atomic_store_n(&reload_asked, 0, __ATOMIC_RELAXED);
        reload(server);
    }
    if (reloads)
        set_reload_signal(SIG_BLOCK);
    return why == STOP;
}

/* Ends the process as it stands, and leaves the rest to the system. */
static _Noreturn void end_at_once(int result) {
    mm_log_info("stopped");
    mm_log_writer_stop();
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

/* In all it takes less than a second: no thread is waited for, since one may wait for the device. */
static _Noreturn void give_up(struct mm_server *server) {
    static const struct mm_drain_terms terms = {.accepted_ms = 500,
                                                .last_ms = 200,
                                                .status = MM_NOT_READY,
                                                .detail = "a device failed, and the service ended"};
    watch_devices(server); /* which may know why */
    mm_log_error("a device has failed for good: the process ends with status %d, to be started anew",
                 EXIT_DEVICE_LOST);
    (void)mm_drain(server, &terms);
    end_at_once(EXIT_DEVICE_LOST);
}

static void stop(struct mm_server *server, struct mm_http *http, struct mm_sweep *sweep) {
    const struct mm_drain_terms terms = {.accepted_ms = server->options->drain_timeout_ms,
                                         .last_ms = 1000,
                                         .status = MM_STOPPING,
                                         .detail = "the service stopped before the job's turn or end"};
    struct mm_engine *engine = mm_server_engine(server);
    /* Where the time was up, someone may still decode, and suspend a connection, which libmicrohttpd does not
     * let happen while it stops. A kernel that cannot be interrupted still writes to memory that would be
     * freed, its caller being answered; and a device that failed may not even be closed. */
    if (!mm_drain(server, &terms) || mm_queue_jobs(mm_engine_queue(engine)) > 0 || has_failed_device(engine))
        end_at_once(EXIT_SUCCESS);
    mm_sweep_stop(sweep);
    mm_http_stop(http);
}

static void warn_of_openness(const struct mm_options *options) {
    mm_log_warning(
        "NO API KEYS: %s can be reached from other machines, and whoever reaches it may use it all. Give "
        "--api-key-file or MATMULD_API_KEY, listen on 127.0.0.1, or put a proxy in front that lets in "
        "whom you want (see SECURITY.md)",
        options->host);
}

static void tell_of_listeners(const struct mm_options *options) {
    mm_log_info(
        "no TLS: API keys come to %s as they are, so that whoever can listen on the way has them. Give "
        "--tls-cert and --tls-key, or put a proxy in front that has TLS",
        options->host);
}

static int serve(const struct mm_options *options, struct mm_keys *keys, struct mm_tls *tls) {
    struct mm_server server;
    struct mm_http *http = NULL;
    char problem[256];
    unsigned port = 0;
    if (!catch_signals(options)) {
        mm_log_error("signals cannot be caught: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    int result = EXIT_FAILURE;
    struct mm_sweep *sweep = NULL;
    if (!open_server(&server, options, keys, tls)) {
        mm_log_error("the system has no memory, or no threads");
        goto close_server;
    }
    sweep = mm_sweep_start(&server);
    if (sweep == NULL) {
        mm_log_error("the system has no thread for the sweep");
        goto close_server;
    }
    if (!mm_http_start(&server, &http, &port, problem, sizeof problem)) {
        mm_log_error("%s", problem);
        goto close_server;
    }
    bool is_ipv6 = strchr(options->host, ':') != NULL;
    mm_log_info("listening on %s://%s%s%s:%u", tls == NULL ? "http" : "https", is_ipv6 ? "[" : "",
                options->host, is_ipv6 ? "]" : "", port);
    if (server.keys == NULL && !mm_http_is_local(http))
        warn_of_openness(options);
    else if (tls == NULL && !mm_http_is_local(http))
        tell_of_listeners(options);
    if (!open_engine(&server)) {
        mm_http_stop(http);
        goto close_server;
    }
    if (!serve_signals(&server))
        give_up(&server);
    stop(&server, http, sweep);
    sweep = NULL;
    result = EXIT_SUCCESS;
    mm_log_info("stopped");
close_server:
    mm_sweep_stop(sweep);
    mm_crew_stop(server.crew); /* before the memory that abandoned work still writes to */
    mm_engine_close(server.engine);
    mm_buffers_close(server.buffers);
    mm_metrics_close(server.metrics);
    pthread_mutex_destroy(&server.mutex);
    return result;
}

/* Nothing but the reason is printed, so that a container's record of its probes stays short. */
static int check_health(const struct mm_options *options) {
    char problem[256];
    if (options->port == 0) {
        fprintf(stderr, "matmuld: --healthcheck needs the port of the server to ask: port 0 is any\n");
        return EXIT_USAGE;
    }
    if (mm_healthcheck(options, problem, sizeof problem))
        return EXIT_SUCCESS;
    fprintf(stderr, "matmuld: not healthy: %s\n", problem);
    return EXIT_FAILURE;
}

int main(int argc, char **argv) {
    struct mm_options options;
    char problem[960];
    if (!mm_options_parse(&options, argc, argv, problem, sizeof problem)) {
        fprintf(stderr, "matmuld: %s\nTry 'matmuld --help'.\n", problem);
        return EXIT_USAGE;
    }
    if (options.help || options.version) {
        if (options.help)
            mm_options_help(stdout);
        else
            printf("matmuld %s\n", MATMULD_VERSION);
        return EXIT_SUCCESS;
    }
    if (options.healthcheck)
        return check_health(&options);
    complete_options(&options);
    mm_log_set_format(strcmp(options.log_format, "json") == 0 ? MM_LOG_JSON : MM_LOG_TEXT);
    if (options.print_config) {
        mm_options_print(&options, stdout);
        return EXIT_SUCCESS;
    }
    fill_standard_streams();
    struct mm_keys *keys = NULL;
    struct mm_tls *tls = NULL;
    if (!mm_keys_open(&options, &keys, problem, sizeof problem) ||
        !mm_tls_open(&options, &tls, problem, sizeof problem)) {
        fprintf(stderr, "matmuld: %s\n", problem);
        mm_keys_close(keys);
        return EXIT_USAGE;
    }
    if (has_files(&options))
        set_reload_signal(SIG_BLOCK); /* before there is another thread */
    mm_log_writer_start();
    int result = serve(&options, keys, tls);
    mm_log_writer_stop();
    mm_tls_close(tls);
    mm_keys_close(keys);
    return result;
}
