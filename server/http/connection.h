/* A connection: its phase, and how to cut it off while a head or a body still arrives, when MHD does not
 * accept a reply. Knows no request. The phases:
 *
 *   HEAD     nothing, or a part of a head has arrived; the sweep may cut
 *   BODY     the head was checked and the body arrives; the sweep may cut
 *   HANDLED  the request is checked, worked on or answered; nothing cuts
 *   CUT      refused past MHD, or closed as idle; what still arrives is dropped
 *
 * Only the thread that moves a connection on from HEAD or BODY may use it then: either the connection's
 * thread, or the sweep. */
#pragma once

#include "server/http/headers.h"
#include "server/server.h"
#include "server/auth/tls.h"

#include <microhttpd.h>

enum mm_phase { MM_PHASE_HEAD, MM_PHASE_BODY, MM_PHASE_HANDLED, MM_PHASE_CUT };

struct mm_last_words;

struct mm_connection {
    int fd;    /* MHD's; open while the connection is on the server's list */
    int phase; /* enum mm_phase; __atomic access only */
    void *tls; /* MHD's session; only the connection's thread uses it; NULL: no TLS */

    /* NULL between requests. The connection's thread sets it, and clears it with server->mutex held, so a
     * thread that holds the mutex may use the request. __atomic access only. */
    struct mm_request *request;

    /* Only the connection's thread uses these. */
    void *spare;         /* memory of the last request, for the next; NULL: none */
    size_t target_bytes; /* length of the target as sent, up to a zero byte */

    unsigned requests; /* so far; __atomic access only */
    int answers;       /* not 0 while MHD has a reply to send; __atomic access only */

    /* Guarded by server->mutex. */
    TAILQ_ENTRY(mm_connection) listed;
    uint64_t idle_since_ns; /* when it opened, or when the sweep first saw its latest request */
    bool is_closing;        /* closed as idle */

    /* With TLS: what the session reads from, and the reply that its thread sends at the end. `late` is owned;
     * NULL: none; __atomic access only. late_bytes of the body were sent; only the thread uses it. */
    struct mm_tls_stream stream;
    struct mm_last_words *late;
    size_t late_bytes;

    uint64_t cut_ns; /* when it was cut off; set by the thread that cuts, read by the sweep in MM_PHASE_CUT */

    /* Only the sweep uses these, with server->mutex held. */
    unsigned requests_seen;
    uint64_t bytes_seen;       /* received by the system's count, when the sweep saw the latest request */
    uint64_t head_since_ns;    /* when a part of a head was first seen; 0: none */
    uint64_t reading_since_ns; /* when the sweep began to count what the client reads; 0: nothing is unread */
    uint64_t read_bytes;       /* read until then, by the system's count */
    unsigned reading_requests; /* `requests` at that time */
};

/* Callback of MHD (server/http/http.c). */
void mm_connection_notify(void *server, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code);

/* The state of a connection of MHD; NULL if memory ran out for it. The connection's thread. */
struct mm_connection *mm_connection_of(struct MHD_Connection *connection);

enum mm_phase mm_connection_phase(const struct mm_connection *connection);

/* Moves a connection from one phase to another. False if it is not in `from` any more. Any thread. */
bool mm_connection_move(struct mm_connection *connection, enum mm_phase from, enum mm_phase to);

/* Writes the reply past MHD and ends our sending side; returns the bytes of the body that were sent. Does not
 * wait: what the socket does not accept is lost, and the whole reply if memory runs out. The connection's
 * thread, which has the connection to itself. */
size_t mm_connection_cut(struct mm_connection *connection, const struct mm_problem_reply *reply);

/* Writes the reply past MHD and ends our sending side; returns the bytes of the body that were sent. For
 * another thread than the connection's, which has moved the connection and holds server->mutex. With TLS only
 * the connection's thread may write. This returns 0 then, and ends our reading side, so the connection's
 * thread wakes and writes the reply if the handshake is over; late_bytes counts that. */
size_t mm_connection_cut_from_outside(struct mm_connection *connection, const struct mm_problem_reply *reply);

/* Sends the reply that mm_connection_cut_from_outside has left to this thread, if there is one and MHD does
 * not read on. The connection's thread, no mutex held. */
void mm_connection_say_late(struct mm_server *server, struct mm_connection *connection);

/* Marks the connection as idle from now on: it becomes the first of the list. Call it with server->mutex
 * held. */
void mm_connection_renew(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns);

/* Whether the connection has received bytes that no thread has read. With server->mutex held. */
bool mm_connection_has_unread(const struct mm_connection *connection);

/* Whether no connection has a request or unread bytes. Any thread may call it, with no mutex held. */
bool mm_connection_all_quiet(struct mm_server *server);

/* Sets the socket's receive buffer to 2 MiB. The system would choose a size by how much is read at a time,
 * which is often too small: the client then waits for its window more than half of the time. The connection's
 * thread. */
void mm_connection_widen(struct mm_connection *connection);

/* Shuts down the socket for reading: the connection's thread finds its end, and closes the connection. With
 * server->mutex held. */
void mm_connection_stop_reading(struct mm_connection *connection);

/* Resets the connection; what waits to be sent is lost. With server->mutex held. */
void mm_connection_drop(struct mm_connection *connection);

/* Closes an idle connection and moves it to MM_PHASE_CUT; what was sent still arrives. False if the
 * connection has a request. With server->mutex held. */
bool mm_connection_close_idle(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns);

/* Ends the receiving side in MM_PHASE_CUT. If the client still sends, the connection is reset; else the
 * client would hang for minutes before a full window. */
void mm_connection_stop_sender(struct mm_connection *connection);
