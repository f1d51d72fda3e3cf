/* Log lines on stderr, as text for people or as JSON for collectors. A thread (log_writer.c) writes them from
 * a bounded buffer. So lines stay whole and in order, one write has many lines, and no request waits for
 * stderr. The process has one log. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mm_log_format { MM_LOG_TEXT, MM_LOG_JSON };

/* Set and get the format. Set it only before threads start. The default is text. */
void mm_log_set_format(enum mm_log_format format);
enum mm_log_format mm_log_format(void);

enum mm_log_level { MM_LOG_DEBUG, MM_LOG_INFO, MM_LOG_WARNING, MM_LOG_ERROR, MM_LOG_LEVELS };

/* Sets the least level that the log shows, by a word of --log-level. Set it only before threads start. The
 * default is MM_LOG_INFO. */
void mm_log_set_level(const char *word);
bool mm_log_shows(enum mm_log_level level);

/* Writes one line: time, level, message. A message over 2 KiB is truncated. Does nothing if the log does not
 * show the level. Any thread may call it. */
#define mm_log_info(...) mm_log(MM_LOG_INFO, __VA_ARGS__)
#define mm_log_warning(...) mm_log(MM_LOG_WARNING, __VA_ARGS__)
#define mm_log_error(...) mm_log(MM_LOG_ERROR, __VA_ARGS__)
void mm_log(enum mm_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { MM_LOG_TIME_BYTES = 24 };

/* Writes the present time, as in "2026-11-21T09:30:00.123Z", without a NUL. Any thread may call it. */
void mm_log_time(char text[MM_LOG_TIME_BYTES]);

/* Starts the writer's thread. Without it, each thread writes its own lines. Only main may call it. */
void mm_log_start(void);

/* Writes the remaining lines, for at most a second, and ends the thread. Only main may call it, last. */
void mm_log_stop(void);

/* Adds a line, with its newline, to the buffer. If the buffer is full, the line is lost. one_of_many means
 * that the line is about one request. The last 64 KiB of the buffer are only for other lines. The call does
 * not block while the writer's thread runs. Any thread may call it. */
void mm_log_put(const char *line, size_t bytes, bool one_of_many);

/* Returns how many lines were lost, because the buffer was full or a write failed. Any thread may call it. */
uint64_t mm_log_dropped(void);
