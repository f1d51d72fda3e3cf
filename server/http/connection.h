/* A connection and its phases. MHD accepts no reply while a head or a body still arrives. So these functions
 * can end a connection without MHD. This file knows no request. The phases:
 *
 *   HEAD     no head, or a part of a head, has arrived; the sweep may end the connection
 *   BODY     the head was checked and the body arrives; the sweep may end the connection
 *   HANDLED  a thread checks, processes or answers the request; the sweep must not end the connection
 *   CUT      the connection was ended early; bytes that still arrive are dropped
 *
 * A thread that moves a connection out of HEAD or BODY gets exclusive use of the connection. Only the
 * connection's thread and the sweep do that. */
#pragma once

#include "server/http/headers.h"
#include "server/server.h"
#include "server/auth/tls.h"

#include <microhttpd.h>

enum mm_phase { MM_PHASE_HEAD, MM_PHASE_BODY, MM_PHASE_HANDLED, MM_PHASE_CUT };

struct mm_last_words;

struct mm_connection {
    int fd;    /* owned by MHD; open while the connection is in server->connections */
    int phase; /* enum mm_phase; __atomic access only */
    void *tls; /* TLS session of MHD, for the connection's thread only; NULL without TLS */
    struct mm_address address;

    /* The current request, or NULL. Only the connection's thread writes it, and clears it with server->mutex
     * held. So a thread that holds the mutex may use the request. __atomic access only. */
    struct mm_request *request;

    /* Only the connection's thread uses the next two members. */
    void *spare;         /* memory of the last request, to be reused; or NULL */
    size_t target_bytes; /* length of the encoded request target, up to a zero byte */

    unsigned requests; /* requests so far; __atomic access only */
    int answers;       /* 1 while MHD sends a reply; __atomic access only */

    /* server->mutex guards the next three members. */
    TAILQ_ENTRY(mm_connection) listed;
    /* When the connection opened, or later, when the sweep first noticed its newest request. */
    uint64_t idle_since_ns;
    bool is_closing;

    /* For TLS only. `late` is owned: a last reply that the connection's thread must still send, or NULL;
     * __atomic access only. Only this thread uses late_bytes, the sent bytes of the reply's body. */
    struct mm_tls_stream stream;
    struct mm_last_words *late;
    size_t late_bytes;

    uint64_t cut_ns; /* when the connection was ended early; the sweep reads it in MM_PHASE_CUT */

    /* Only the sweep uses the members below, with server->mutex held. */
    unsigned requests_seen;
    uint64_t bytes_seen;       /* bytes received when the sweep first saw the latest request */
    uint64_t head_since_ns;    /* when the sweep first saw a part of a head; 0: no part yet */
    uint64_t reading_since_ns; /* when the sweep began to measure how the client reads; 0: no measurement */
    uint64_t read_bytes;       /* bytes read by the client at reading_since_ns */
    unsigned reading_requests; /* value of `requests` at reading_since_ns */
};

/* Callback of MHD (server/http/http.c). */
void mm_connection_notify(void *server, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code);

/* Returns the state of an MHD connection; NULL if memory ran out. Call it on the connection's thread. */
struct mm_connection *mm_connection_of(struct MHD_Connection *connection);

enum mm_phase mm_connection_phase(const struct mm_connection *connection);

/* Moves a connection from one phase to another. False if its phase was not `from`. Any thread may call it. */
bool mm_connection_move(struct mm_connection *connection, enum mm_phase from, enum mm_phase to);

/* Sends the reply without MHD, and closes the sending side. Returns how many bytes of the body were sent. It
 * never waits: bytes that the socket does not accept are lost. If memory runs out, the whole reply is lost.
 * Call it on the connection's thread, which must have exclusive use of the connection. */
size_t mm_connection_cut(struct mm_connection *connection, const struct mm_problem_reply *reply);

/* Sends the reply without MHD, and closes the sending side. Returns how many bytes of the body were sent.
 * Call it on another thread than the connection's, with server->mutex held, after moving the connection to
 * MM_PHASE_CUT. With TLS only the connection's thread may send. So with TLS this function only closes the
 * receiving side and returns 0. That wakes the connection's thread. This thread sends the reply if the
 * handshake is over, and sets late_bytes. */
size_t mm_connection_cut_from_outside(struct mm_connection *connection, const struct mm_problem_reply *reply);

/* Sends the reply that mm_connection_cut_from_outside could not send because of TLS. Call it on the
 * connection's thread, with no mutex held, when MHD no longer reads from the connection. */
void mm_connection_say_late(struct mm_server *server, struct mm_connection *connection);

/* Marks the connection as idle from now on, and moves it to the list's front. Needs server->mutex. */
void mm_connection_renew(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns);

/* Whether the socket has bytes that no thread has read. Call it with server->mutex held. */
bool mm_connection_has_unread(const struct mm_connection *connection);

/* Whether no connection has a request or unread bytes. Any thread may call it, with no mutex held. */
bool mm_connection_all_quiet(struct mm_server *server);

/* Enlarges the socket's receive buffer to 2 MiB. The system often chooses a smaller buffer, and then the
 * client spends more than half of the time waiting for the TCP window. Call it on the connection's thread. */
void mm_connection_widen(struct mm_connection *connection);

/* Closes the receiving side, so the connection's thread ends the connection. Needs server->mutex. */
void mm_connection_stop_reading(struct mm_connection *connection);

/* Resets the connection. Data that is not sent yet is lost. Call it with server->mutex held. */
void mm_connection_drop(struct mm_connection *connection);

/* Closes an idle connection and moves it to MM_PHASE_CUT. Data that was sent still arrives. Returns false if
 * the connection has a request. Call it with server->mutex held. */
bool mm_connection_close_idle(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns);

/* Closes the receiving side. Call it in MM_PHASE_CUT. If the client still sends, resets the connection,
 * because the client would otherwise wait for minutes on a full TCP window. */
void mm_connection_stop_sender(struct mm_connection *connection);
