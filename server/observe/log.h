/* Log lines on stderr, as text for people or as JSON for collectors. A bounded buffer and a thread that
 * empties it (log_writer.c) keep them whole and in order; many cost one write, and a stderr that nobody reads
 * blocks no request. One log per process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mm_log_format { MM_LOG_TEXT, MM_LOG_JSON };

/* Set once, before threads start. The default is text. */
void mm_log_set_format(enum mm_log_format format);
enum mm_log_format mm_log_format(void);

/* Writes one line: time, level, message. Lines longer than 2 KiB are cut. Any thread. */
#define mm_log_info(...) mm_log("info", __VA_ARGS__)
#define mm_log_warning(...) mm_log("warn", __VA_ARGS__)
#define mm_log_error(...) mm_log("error", __VA_ARGS__)
void mm_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { MM_LOG_TIME_BYTES = 24 };

/* The moment as "2026-11-21T09:30:00.123Z", without a NUL. Any thread. */
void mm_log_time(char text[MM_LOG_TIME_BYTES]);

/* Starts the writer's thread. Without it, each line is written by the thread that logs it. From main. */
void mm_log_start(void);

/* Writes the rest, for at most a second, and ends the thread. From main, once no other thread logs. */
void mm_log_stop(void);

/* Copies a line, newline included. If the buffer is full the line is dropped; one_of_many (a request's) is
 * dropped a little before lines on the service. Does not block while the thread runs. Any thread. */
void mm_log_put(const char *line, size_t bytes, bool one_of_many);

/* Lines dropped, or refused by stderr. Any thread. */
uint64_t mm_log_dropped(void);
