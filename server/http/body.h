/* Receiving a body. Memory counts as it arrives. If the budget has no room, the connection is suspended until
 * the sweep finds some. Knows no format. */
#pragma once

#include "server/http/request.h"

/* Bodies, and the large outputs of complete requests, leave this part of the memory budget to others: else
 * small requests would wait until the large ones end. */
enum { MM_OTHERS_PART = 16, MM_LARGE_OUTPUT_BYTES = 1 << 20 };

/* A large output that takes more than this part of the budget is huge. Huge outputs leave MM_OTHERS_PART once
 * more, and what does not fill that goes past a huge output that waits: a request of a few bytes, of which
 * the client reads nothing, would hold up all bodies. The huge one gets its turn as soon as it would without
 * them. */
enum { MM_HUGE_OUTPUT_PART = 256 };

/* What is kept of a body that is passed on. */
enum { MM_BODY_PASSED_BYTES = 2 << 20 };

/* Judges the memory of a complete request's output, beside held_bytes that the request has: MM_TOO_LARGE if
 * it never fits. If it is large: MM_BUSY, with needed_bytes, if there is none now, or older requests wait for
 * some; without needed_bytes if stored matrices take it, since that may last. The connection's thread or one
 * of the worker pool. */
enum mm_status mm_body_judge_output(struct mm_request *request, size_t held_bytes, size_t bytes,
                                    struct mm_error *error);

/* The most that an output can be beside what is stored. Any thread. */
size_t mm_body_output_bytes_max(const struct mm_server *server);

/* Notes that the output of the request holds so many bytes now, or will at once: mm_body_judge_output has
 * done so. The thread that works on the request. */
void mm_body_count_output(struct mm_request *request, size_t bytes);

/* Of a request that waits for memory: how much more it needs, and whether that is for a huge output. With
 * server->mutex held. */
size_t mm_body_lacked_bytes(const struct mm_request *request);
bool mm_body_waits_for_huge(const struct mm_request *request);

/* Whether a huge output that waits loses nothing by all else that is held, and by so much more. Any thread.
 */
bool mm_body_passes_huge(const struct mm_server *server, size_t more_bytes);

/* How much of the budget an output finds taken: a huge one also what may go past it. Any thread. */
size_t mm_body_taken_bytes(const struct mm_server *server, bool is_huge);

/* Judges the length of a body by the head: MM_LENGTH_REQUIRED, MM_TOO_LARGE. A route of MM_BODY_SIZED judges
 * the limit in `admit`. The connection's thread. */
enum mm_status mm_body_judge(struct mm_request *request);
enum mm_status mm_body_judge_limit(struct mm_request *request);

/* The same for a route whose requests may lack the length of an empty body: MM_LENGTH_REQUIRED if this one
 * has neither Content-Length nor chunks. */
enum mm_status mm_body_require_length(struct mm_request *request);

/* Acquires memory for the whole body if its length is known, for a client that waits for 100 Continue;
 * MM_BUSY if there is none now, or older requests wait for some. The connection's thread. */
enum mm_status mm_body_acquire(struct mm_request *request);

/* Keeps a piece of the body and sets *bytes to 0; drops it if the request was refused or needs no body. If
 * there is no memory, suspends the connection and leaves *bytes: MHD passes the piece again after the resume.
 * The connection's thread. */
enum MHD_Result mm_body_receive(struct mm_request *request, const char *data, size_t *bytes);

/* Makes room for the first `bytes` of the body: MM_TOO_LARGE, MM_BUSY, MM_INTERNAL. If other requests hold
 * memory, it leaves MM_OTHERS_PART of the budget, unless it is told to take memory to_the_last: it
 * then makes room for the whole body, if its length is known. The connection's thread, which has it to
 * itself; or any thread with server->mutex held, while the request waits. */
enum mm_status mm_body_grow(struct mm_request *request, size_t bytes, bool to_the_last,
                            struct mm_error *error);

/* How much is kept of so many bytes of the body. Any thread. */
size_t mm_body_kept_bytes(const struct mm_request *request, size_t bytes);

/* Releases the memory of the body and of its reader. The same threads. */
void mm_body_drop(struct mm_request *request);

/* The same, and what the route holds for it: the request ends, and its client may come again as soon as it
 * hears of that. With server->mutex held, of a request that waits, or in MM_PHASE_CUT. */
void mm_body_drop_all(struct mm_request *request);

/* How many bytes of the body have come, with a piece that waits for memory, or has waited and is yet to be
 * kept. With server->mutex held. */
size_t mm_body_arrived_bytes(const struct mm_request *request);

/* How long the upload has taken so far. Its waits for memory do not count. With server->mutex held. */
uint64_t mm_body_upload_ns(const struct mm_request *request, uint64_t now_ns);

/* Whether the deadline has passed before the body was complete; *error is then the reply. With server->mutex
 * held. */
bool mm_body_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error);

/* Notes two things about the upload. It stands if the last second brought less than the even rate that
 * completes the body at its deadline. It lasts if it needs more than two seconds at the pace of the last one.
 * In MM_PHASE_BODY. The sweep's thread, server->mutex held. */
void mm_body_judge_pace(struct mm_request *request, uint64_t now_ns);

/* The same for the reply, whose even rate completes it within --timeout-ms. taken_bytes: what the client has
 * read, by the system's count; we_are_slow: it has read all that was sent. While MHD has a reply to send. */
void mm_body_judge_reply(struct mm_request *request, size_t taken_bytes, bool we_are_slow, uint64_t now_ns);

/* Whether the body does not wait behind others for its memory: it has at most 64 KiB, and is not chunked. */
bool mm_body_is_small(const struct mm_request *request);

/* Memory has been released: resumes the complete requests that wait, from the first, as far as it suffices.
 * Any thread, no mutex held. */
void mm_body_serve_complete(struct mm_server *server);

/* Ends the wait of bodies whose deadline has passed, and gives memory to the others: first to complete
 * requests and to small bodies, then by age. If there is none, refuses an upload or drops a reply for it:
 * docs/http-api.md, "Time limits". Any thread, no mutex held. */
void mm_body_serve_waiting(struct mm_server *server, uint64_t now_ns);
