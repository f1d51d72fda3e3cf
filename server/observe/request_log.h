/* The log line of a request. */
#ifndef MM_SERVER_OBSERVE_REQUEST_LOG_H
#define MM_SERVER_OBSERVE_REQUEST_LOG_H

#include "server/observe/log.h"
#include "server/observe/record.h"

enum { MM_REQUEST_LINE_MAX = 2048 };

/* Writes the line of a record, from `time` (MM_LOG_TIME_BYTES characters) to a newline, without a NUL, and
 * returns its length. Whatever bytes the client sent, it is one line, and as JSON one object. Any thread. */
size_t mm_request_line(char line[MM_REQUEST_LINE_MAX], enum mm_log_format format, const char *time,
                       const struct mm_record *record);

/* Logs the record. Any thread. */
void mm_log_request(const struct mm_record *record);

#endif
