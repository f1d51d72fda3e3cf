/* A connection: its phase, and how to end it while a head or a body still arrives, when MHD accepts no reply.
 * Knows no request. The phases:
 *
 *   HEAD     no head, or a part of a head, has arrived; the sweep may end the connection
 *   BODY     the head was checked and the body arrives; the sweep may end the connection
 *   HANDLED  the request is checked, worked on or answered; the sweep must not end the connection
 *   CUT      the connection was ended early; bytes that still arrive are dropped
 *
 * The thread that moves a connection from HEAD or BODY to another phase has exclusive use of it. This is the
 * connection's thread or the sweep. */
#pragma once

#include "server/http/headers.h"
#include "server/server.h"
#include "server/auth/tls.h"

#include <microhttpd.h>

enum mm_phase { MM_PHASE_HEAD, MM_PHASE_BODY, MM_PHASE_HANDLED, MM_PHASE_CUT };

struct mm_last_words;

struct mm_connection {
    int fd;    /* MHD's; open while the connection is in server->connections */
    int phase; /* enum mm_phase; __atomic access only */
    void *tls; /* MHD's TLS session, for the connection's thread only; NULL without TLS */

    /* NULL between requests. The connection's thread sets it, and clears it with server->mutex held, so a
     * thread that holds the mutex may use the request. __atomic access only. */
    struct mm_request *request;

    /* Only the connection's thread uses the next two members. */
    void *spare;         /* memory of the last request, to reuse for the next; NULL: none */
    size_t target_bytes; /* length of the request target before decoding, up to a zero byte */

    unsigned requests; /* requests so far; __atomic access only */
    int answers;       /* 1 while MHD has a reply to send; __atomic access only */

    /* server->mutex guards the next three members. */
    TAILQ_ENTRY(mm_connection) listed;
    uint64_t idle_since_ns; /* when it opened, or when the sweep first saw its latest request */
    bool is_closing;

    /* With TLS: what the session reads from, and a last reply that the connection's thread must still send.
     * `late` is owned, NULL if there is none, and for __atomic access only. late_bytes counts the bytes of
     * its body that were sent; only the connection's thread uses it. */
    struct mm_tls_stream stream;
    struct mm_last_words *late;
    size_t late_bytes;

    uint64_t cut_ns; /* when the connection was ended early; the sweep reads it in MM_PHASE_CUT */

    /* Only the sweep uses the members below, with server->mutex held. */
    unsigned requests_seen;
    uint64_t bytes_seen;       /* bytes received when the sweep saw the latest request */
    uint64_t head_since_ns;    /* when a part of a head was first seen; 0: none */
    uint64_t reading_since_ns; /* when the sweep began to watch the client read; 0: nothing is unread */
    uint64_t read_bytes;       /* bytes that the client had read at reading_since_ns */
    unsigned reading_requests; /* value of `requests` at reading_since_ns */
};

/* Callback of MHD (server/http/http.c). */
void mm_connection_notify(void *server, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code);

/* The state of a connection of MHD; NULL if there was no memory for it. The connection's thread calls it. */
struct mm_connection *mm_connection_of(struct MHD_Connection *connection);

enum mm_phase mm_connection_phase(const struct mm_connection *connection);

/* Moves a connection to another phase. False if it is no longer in `from`. Any thread may call it. */
bool mm_connection_move(struct mm_connection *connection, enum mm_phase from, enum mm_phase to);

/* Sends the reply without MHD, and ends the sending side. Returns how many bytes of the body were sent. Does
 * not wait: bytes that the socket does not accept are lost, and so is the whole reply if memory runs out. The
 * connection's thread calls it, and must have exclusive use of the connection. */
size_t mm_connection_cut(struct mm_connection *connection, const struct mm_problem_reply *reply);

/* Sends the reply without MHD, and ends the sending side. Returns how many bytes of the body were sent. For
 * other threads than the connection's: the caller has moved the connection to MM_PHASE_CUT and holds
 * server->mutex. With TLS only the connection's thread may send. So this function returns 0 and ends the
 * receiving side; then the connection's thread wakes, sends the reply if the handshake is over, and sets
 * late_bytes. */
size_t mm_connection_cut_from_outside(struct mm_connection *connection, const struct mm_problem_reply *reply);

/* Sends the reply that mm_connection_cut_from_outside has left to the connection's thread, if there is one.
 * Call it if MHD reads no more from the connection. The connection's thread calls it, with no mutex held. */
void mm_connection_say_late(struct mm_server *server, struct mm_connection *connection);

/* Marks the connection as idle from now on, and lists it first. Call it with server->mutex held. */
void mm_connection_renew(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns);

/* Whether bytes have arrived that no thread has read. Call it with server->mutex held. */
bool mm_connection_has_unread(const struct mm_connection *connection);

/* Whether no connection has a request or unread bytes. Any thread may call it, with no mutex held. */
bool mm_connection_all_quiet(struct mm_server *server);

/* Enlarges the socket's receive buffer to 2 MiB. The system often chooses a smaller one; then the client
 * spends more than half of the time waiting for the TCP window. Call it on the connection's thread. */
void mm_connection_widen(struct mm_connection *connection);

/* Ends the receiving side, so the connection's thread closes it. Call it with server->mutex held. */
void mm_connection_stop_reading(struct mm_connection *connection);

/* Resets the connection; data that is not sent yet is lost. Call it with server->mutex held. */
void mm_connection_drop(struct mm_connection *connection);

/* Closes an idle connection and moves it to MM_PHASE_CUT; data that was sent still arrives. False if the
 * connection has a request. Call it with server->mutex held. */
bool mm_connection_close_idle(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns);

/* Ends the receiving side in MM_PHASE_CUT. If the client still sends, resets the connection; otherwise the
 * client would wait for minutes on a full TCP window. */
void mm_connection_stop_sender(struct mm_connection *connection);
