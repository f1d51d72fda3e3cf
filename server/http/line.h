/* The line: requests that wait for memory of the budget, and what the server does to get memory for the
 * first.
 *
 *   head ──► first step ──► later steps ──► need ──► job ──► reply
 *            body and need  as much as the   operands, result,
 *            if they are    request holds,   copy, check, text
 *            small, else    64 KiB to 2 MiB
 *            64 KiB
 *
 * A step that does not fit waits here. There are two lines: one for small requests, which have a sixteenth of
 * the budget to themselves, and one for all others. In each line, requests that have memory go before those
 * that have none, and then the request that arrived first goes first. Only the first of a line gets memory.
 * While it does not fit, mm_line_look
 *
 *   1. answers requests that have waited for --memory-wait-ms with 429;
 *   2. ends uploads and replies that are too slow (pace.h), those with most memory first;
 *   3. answers the waiting request that arrived last with 429, if the memory of all waiting requests leaves
 * too little for the first.
 *
 * server->mutex guards the lines and the places. */
#pragma once

#include "gpu/memory/budget.h"

#include <stdint.h>
#include <sys/queue.h>

struct mm_request;
struct mm_resumed;
struct mm_server;

struct mm_line {
    TAILQ_HEAD(mm_waiting_requests, mm_request) requests[MM_BUDGET_PARTS]; /* in the order of service */
};

/* A request's place in a line. */
struct mm_place {
    size_t lacked_bytes; /* of the step that it waits for; 0: its reservation only moves to another part */
    int line;            /* the line, which is a part of the budget */
    bool holds;          /* the request already has memory */
    uint64_t since_ns;
    uint64_t waited_ns; /* in earlier waits */
    TAILQ_ENTRY(mm_request) next;
};

void mm_line_open(struct mm_line *line);

/* Adds a request to its line, or removes it. lacked_bytes: how much more memory the request's next step
 * needs. Call these with server->mutex held. */
void mm_line_enter(struct mm_request *request, size_t lacked_bytes);
void mm_line_leave(struct mm_request *request);

/* Gives memory that was released to requests that wait. Call this after a release. Any thread, no mutex held.
 */
void mm_line_serve(struct mm_server *server);

/* Serves the lines, and makes memory available for their first requests by the three steps above. The sweep's
 * thread, no mutex held.
 */
void mm_line_look(struct mm_server *server, uint64_t now_ns);
