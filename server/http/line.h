/* The line: requests that wait for memory of the budget, and how the server gets memory for the first.
 *
 *   head ──► first step ──► later steps ──► need ──► job ──► reply
 *            body and need  as much as the   operands, result,
 *            if they are    request holds,   copy, check, text
 *            small, else    64 KiB to 2 MiB
 *            64 KiB
 *
 * A request waits here if its next step does not fit. There are two lines: one for small requests, for which
 * a sixteenth of the budget is reserved, and one for all others. In each line, requests that already have
 * memory come first; among these, and among the others, the oldest comes first. Only the first of a line gets
 * memory. While the first does not fit, mm_line_look
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

struct mm_place {
    size_t lacked_bytes; /* memory that the next step lacks; 0: only the part of the budget changes */
    int line;            /* index of the line, and of its part of the budget */
    bool holds;
    uint64_t since_ns;
    uint64_t waited_ns; /* time of earlier waits */
    TAILQ_ENTRY(mm_request) next;
};

void mm_line_open(struct mm_line *line);

/* Add a request to its line, or remove it. lacked_bytes: how much more memory the request's next step needs.
 * Call these functions with server->mutex held. */
void mm_line_enter(struct mm_request *request, size_t lacked_bytes);
void mm_line_leave(struct mm_request *request);

/* Gives released memory to waiting requests. Any thread may call it after a release, with no mutex held. */
void mm_line_serve(struct mm_server *server);

/* Serves the lines, and gets memory for their first requests as described at the top of this file. Only the
 * sweep's thread calls it, with no mutex held. */
void mm_line_look(struct mm_server *server, uint64_t now_ns);
