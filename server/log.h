/* Log lines on stderr, as text for people or as JSON for collectors. They go through log_writer.h. */
#ifndef MM_SERVER_LOG_H
#define MM_SERVER_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

enum mm_log_format { MM_LOG_TEXT, MM_LOG_JSON };

/* Set once, before threads start. The default is text. */
void mm_log_set_format(enum mm_log_format format);
enum mm_log_format mm_log_format(void);

/* Writes one line: time, level, message. Lines longer than 2 KiB are cut. Any thread. */
void mm_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mm_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mm_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum { MM_LOG_TIME_BYTES = 24 };

/* The moment as "2026-11-21T09:30:00.123Z", without a NUL. Any thread. */
void mm_log_time(char text[MM_LOG_TIME_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
