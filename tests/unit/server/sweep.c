/* Tests which connections count as idle. */
#include "server/http/connection.h"
#include "server/http/sweep.h"
#include "tests/unit/unit.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Opens a connection over loopback, and returns both ends. */
static void connect_both(int *client, int *accepted) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    *client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(*client, (struct sockaddr *)&address, length), 0);
    *accepted = accept(listener, NULL, NULL);
    assert_true(*accepted >= 0);
    close(listener);
}

static uint64_t received_bytes(int fd) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    return info.tcpi_bytes_received;
}

/* The client has sent the next request, but the server has not read it, so the connection is not idle. */
static void unread_request(void **state) {
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    static int session;
    char read_bytes[sizeof request];
    for (unsigned by_tls = 0; by_tls < 2; by_tls++) {
        int client, accepted;
        connect_both(&client, &accepted);
        assert_int_equal(send(client, request, sizeof request, 0), sizeof request);
        struct pollfd ready = {.fd = accepted, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 10000), 1);
        struct mm_connection connection = {.fd = accepted,
                                           .phase = MM_PHASE_HEAD,
                                           .tls = by_tls ? &session : NULL,
                                           .requests = !by_tls,
                                           .requests_seen = !by_tls,
                                           .bytes_seen = received_bytes(accepted)};
        struct mm_server server = {0};
        TAILQ_INIT(&server.connections);
        TAILQ_INSERT_HEAD(&server.connections, &connection, listed);
        pthread_mutex_init(&server.mutex, NULL);
        assert_int_equal(mm_sweep_close_idle(&server, 1), 0);
        assert_int_equal(recv(accepted, read_bytes, sizeof read_bytes, 0), sizeof request);
        assert_int_equal(mm_sweep_close_idle(&server, 1), 1);
        pthread_mutex_destroy(&server.mutex);
        close(client);
        close(accepted);
    }
}

RUN_TESTS(unread_request)
