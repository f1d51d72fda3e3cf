/* The way of log lines to stderr: a bounded buffer and a thread that empties it, so that lines are whole
 * and in order, many cost one write, and a stderr that nobody reads holds up nobody who serves. There is
 * one a process. */
#ifndef MM_SERVER_LOG_WRITER_H
#define MM_SERVER_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the thread. Before, and where that fails, lines are written by who has them. From main. */
void mm_log_writer_start(void);

/* Writes what is left, for a second at most, and ends the thread. From main, once no other thread logs. */
void mm_log_writer_stop(void);

/* Takes a line, its newline included; it is copied. Where the buffer is full the line is dropped, one of
 * many (a request's) a little before those that tell of the service. Does not block while the thread
 * runs. Any thread. */
void mm_log_writer_put(const char *line, size_t bytes, bool one_of_many);

/* Lines that were dropped or that stderr refused. Any thread. */
uint64_t mm_log_writer_dropped(void);

#ifdef __cplusplus
}
#endif
#endif
