/* A connection as far as it concerns us between its requests: whose turn it is, and how it is cut off
 * where MHD takes no reply, which is while a head or a body still comes. Knows no request. The phases:
 *
 *   HEAD     nothing, or a part of a head has come; the sweep may cut
 *   BODY     the head was judged and the body comes; the sweep may cut
 *   HANDLED  the request is judged, worked on or answered; nobody cuts
 *   CUT      the last reply was written past MHD; what still comes is dropped, and soon no more is read
 *
 * Who changes the phase from HEAD or BODY has the connection to itself: either its own thread, which goes
 * on with the request, or the sweep. */
#ifndef MM_SERVER_CONNECTION_H
#define MM_SERVER_CONNECTION_H

#include "server/cors.h"
#include "server/server.h"
#include "server/tls.h"

#include <microhttpd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mm_phase { MM_PHASE_HEAD, MM_PHASE_BODY, MM_PHASE_HANDLED, MM_PHASE_CUT };

struct mm_last_words;

struct mm_connection {
    int fd;    /* MHD's; open as long as the connection is on the server's list */
    int phase; /* enum mm_phase; __atomic access only */
    void *tls; /* MHD's session, its thread's alone; NULL: no TLS */

    /* The request at hand, or NULL. Set by the connection's thread, cleared by it under server->mutex, so
     * that who holds the mutex may look at it. __atomic access only. */
    struct mm_exchange *exchange;

    unsigned requests; /* heads so far; __atomic access only */
    int answers;       /* not 0 while MHD has a reply to send; __atomic access only */

    /* Guarded by server->mutex. */
    struct mm_connection *newer;
    struct mm_connection *older;

    /* By TLS: the way by which it is read, and what its thread is to say when that has an end. `late` is
     * owned; NULL: nothing; __atomic access only. late_bytes of its body went out: the thread's. */
    struct mm_tls_stream stream;
    struct mm_last_words *late;
    size_t late_bytes;

    uint64_t cut_ns; /* when it was cut off; of whoever did that, until the sweep sees MM_PHASE_CUT */

    /* The sweep's alone. */
    unsigned requests_seen;
    uint64_t bytes_seen;    /* by the system's count, when it last saw a new request */
    uint64_t head_since_ns; /* when it first saw a part of a head; 0: there is none */
    uint64_t
        taking_since_ns;  /* when it last began to count what the caller takes; 0: nothing waits for him */
    uint64_t taken_bytes; /* by the system's count, then */
    unsigned taking_requests; /* requests, then */
};

/* MHD's callback for connections that open and close (server/http.c). */
void mm_connection_notify(void *server, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code);

/* The connection's record; NULL where there was no memory for one. The connection's thread. */
struct mm_connection *mm_connection_of(struct MHD_Connection *connection);

enum mm_phase mm_connection_phase(const struct mm_connection *connection);

/* Moves on from one phase to the next; false where the connection is no more in `from`. Any thread. */
bool mm_connection_move(struct mm_connection *connection, enum mm_phase from, enum mm_phase to);

/* The last reply of a connection that is cut off. All is the caller's and read during the call alone. */
struct mm_last_reply {
    const struct mm_error *error;
    const char *request_id;
    const char *allow; /* of the header of that name; "": none */
    struct mm_cors cors;
    bool head_only;         /* HEAD was asked: no body goes out */
    unsigned retry_after_s; /* of Retry-After; 0: none */
};

/* Writes the reply past MHD, and ends our sending side, so that the caller can still read it; says how many
 * bytes of its body went out. Who calls is the connection's thread, and has it to itself by a move. What the
 * socket does not take at once is lost: a caller who reads nothing misses a sentence. Where there is no
 * memory for the reply, the end is all that the caller sees. */
size_t mm_connection_cut(struct mm_connection *connection, const struct mm_last_reply *reply);

/* The same for another thread, which holds server->mutex. By TLS, where its own thread alone may write, that
 * one is told that there is no more to read and then writes, if the handshake is over: 0 is returned, and
 * late_bytes told later. Who sends on meanwhile may miss the reply, since nobody waits then for him to read
 * it. */
size_t mm_connection_cut_from_outside(struct mm_connection *connection, const struct mm_last_reply *reply);

/* Whether bytes lie there that nobody has read yet. With server->mutex held. */
bool mm_connection_has_unread(const struct mm_connection *connection);

/* Whether no connection has a request that is received or answered, whatever the answer, or bytes that nobody
 * has read. Any thread, no mutex held. */
bool mm_connection_all_quiet(struct mm_server *server);

/* Reads no more from it, so that its thread sees an end and closes. With server->mutex held. */
void mm_connection_stop_reading(struct mm_connection *connection);

/* Ends it at once, both ways, and with it what waits there to be sent. With server->mutex held. */
void mm_connection_drop(struct mm_connection *connection);

/* Reads no more, of one in MM_PHASE_CUT: who is still sending then is told by a reset. Without it the system
 * would leave him for minutes before a window that never opens. */
void mm_connection_stop_sender(struct mm_connection *connection);

#ifdef __cplusplus
}
#endif
#endif
