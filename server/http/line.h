/* The line: requests that wait for memory of the budget, and what the server does to find some for the first.
 *
 *   head ──► first step ──► later steps ──► need ──► job ──► reply
 *            body and need  as much as the   operands, result,
 *            if they are    request holds,   copy, check, text
 *            small, else    64 KiB to 2 MiB
 *            64 KiB
 *
 * A step that does not fit waits here. There are two lines: one for small requests, which have a sixteenth of
 * the budget to themselves, and one for all others. In each, requests that hold memory go before those that
 * hold none, and the request that arrived first goes first. Memory goes to the first of a line alone. While
 * that does not fit, mm_line_look
 *
 *   1. answers who has waited for --memory-wait-ms with 429;
 *   2. ends uploads and replies that are too slow (pace.h), those that hold most first;
 *   3. if waiting requests hold so much that the first would not fit even if all others ended, answers the
 *      waiting request that arrived last, and holds memory, with 429.
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
    TAILQ_HEAD(mm_waiting_requests, mm_request) requests[MM_BUDGET_PARTS]; /* the first goes first */
};

/* A request's place in a line. */
struct mm_place {
    size_t lacked_bytes; /* of the step that it waits for; 0: its reservation only has to change its part */
    int line;            /* a part of the budget */
    bool holds;          /* memory already */
    uint64_t since_ns;
    uint64_t waited_ns; /* in waits that are over */
    TAILQ_ENTRY(mm_request) next;
};

void mm_line_open(struct mm_line *line);

/* Enter and leave the line. With server->mutex held. */
void mm_line_enter(struct mm_request *request, size_t lacked_bytes);
void mm_line_leave(struct mm_request *request);

/* Memory has been released: gives it to those that wait, if there are any. Any thread, no mutex held. */
void mm_line_serve(struct mm_server *server);

/* Serves the lines, and makes room for their first as said above. The sweep's thread, no mutex held. */
void mm_line_look(struct mm_server *server, uint64_t now_ns);
