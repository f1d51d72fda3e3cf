/* Log lines on their way to stderr: a bounded buffer and a thread that empties it. Lines are whole and in
 * order, many cost one write, and a stderr that nobody reads blocks no request. One per process. */
#ifndef MM_SERVER_OBSERVE_LOG_WRITER_H
#define MM_SERVER_OBSERVE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the thread. Without it, each line is written by the thread that logs it. From main. */
void mm_log_writer_start(void);

/* Writes the rest, for at most a second, and ends the thread. From main, once no other thread logs. */
void mm_log_writer_stop(void);

/* Copies a line, newline included. If the buffer is full the line is dropped; one_of_many (a request's) is
 * dropped a little before lines on the service. Does not block while the thread runs. Any thread. */
void mm_log_writer_put(const char *line, size_t bytes, bool one_of_many);

/* Lines dropped, or refused by stderr. Any thread. */
uint64_t mm_log_writer_dropped(void);

#endif
