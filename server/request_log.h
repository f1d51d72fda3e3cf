/* The log's line of a request: its record as one line, in the log's format. */
#ifndef MM_SERVER_REQUEST_LOG_H
#define MM_SERVER_REQUEST_LOG_H

#include "server/log.h"
#include "server/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_REQUEST_LINE_MAX = 2048 };

/* Writes the line that begins with `time` (MM_LOG_TIME_BYTES characters), ends it with a newline and
 * returns its length; there is no NUL. Whatever bytes the caller's texts hold, the line is one line, and as
 * JSON one object. Allocates nothing. Any thread. */
size_t mm_request_line(char line[MM_REQUEST_LINE_MAX], enum mm_log_format format, const char *time,
                       const struct mm_record *record);

/* Logs the record. Any thread. */
void mm_log_request(const struct mm_record *record);

#ifdef __cplusplus
}
#endif
#endif
