/* Log lines on stderr, as text for people or as JSON for collectors; one write each. */
#ifndef MM_SERVER_LOG_H
#define MM_SERVER_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mm_log_format { MM_LOG_TEXT, MM_LOG_JSON };

/* Set once, before threads start. The default is text. */
void mm_log_set_format(enum mm_log_format format);

/* Writes one line: time, level, message. Lines longer than 2 KiB are cut. Any thread. */
void mm_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mm_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif
#endif
