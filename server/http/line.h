/* Lines: queues of requests that wait for memory of the budget. This file also frees memory for the
 * first request of each line. A request reserves memory in steps:
 *
 *   head ──► first step ──► later steps ──► last step ──► job ──► reply
 *            all memory     doubles the     operands,
 *            if it is       reservation,    result, copy,
 *            small, else    by 64 KiB to    check, text
 *            64 KiB         2 MiB
 *
 * If a step does not fit, the request waits. There are two lines: one for small requests, which have a
 * sixteenth of the budget for themselves, and one for all other requests. In each line, requests that already
 * have memory come before requests without memory. Otherwise the oldest request comes first. But while others
 * wait, a client gets no memory beyond half of the budget, unless all its requests wait. Only the first
 * request of a line gets memory. If its step does not fit, mm_line_look does this:
 *
 *   1. Requests that have waited for --memory-wait-ms are answered with 429.
 *   2. Uploads and replies that are too slow (pace.h) are ended, beginning with those that free most memory.
 *   3. If other waiting requests have reserved memory that the first request needs, the waiting request that
 *      arrived last is answered with 429.
 *
 * server->mutex guards the lines, and struct mm_place of each request. */
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
    size_t lacked_bytes; /* memory that the next step lacks; 0: it has enough, but in another part */
    int line;            /* index of the line, which is also the part of the budget */
    size_t held_bytes;   /* memory that the request had when it began to wait */
    uint64_t since_ns;
    uint64_t waited_ns; /* duration of earlier waits */
    TAILQ_ENTRY(mm_request) next;
};

void mm_line_open(struct mm_line *line);

/* Add a request to its line, or remove it. The request's next step needs lacked_bytes more memory than it has
 * reserved. Call these functions with server->mutex held. */
void mm_line_enter(struct mm_request *request, size_t lacked_bytes);
void mm_line_leave(struct mm_request *request);

/* Gives free memory to waiting requests. Call it after a release, on any thread, with no mutex held. */
void mm_line_serve(struct mm_server *server);

/* Gives memory to waiting requests, and frees memory for the first request of each line (see the top of this
 * file). Only the sweep's thread may call it, with no mutex held. */
void mm_line_look(struct mm_server *server, uint64_t now_ns);
