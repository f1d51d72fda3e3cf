/* Log lines on stderr, as text for people or as JSON for collectors. They go through log_writer.h. */
#ifndef MM_SERVER_OBSERVE_LOG_H
#define MM_SERVER_OBSERVE_LOG_H

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

#endif
