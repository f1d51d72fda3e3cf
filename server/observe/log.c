#include "server/observe/log.h"

#include "api/json/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MESSAGE_MAX = 2048, LINE_MAX_BYTES = 6 * MESSAGE_MAX + 128 };

static enum mm_log_format log_format = MM_LOG_TEXT;

void mm_log_set_format(enum mm_log_format format) {
    log_format = format;
}

enum mm_log_format mm_log_format(void) {
    return log_format;
}

/* Formats the date only once a second, because this takes longer than all other fields of a log line. */
void mm_log_time(char text[MM_LOG_TIME_BYTES]) {
    static _Thread_local time_t second = -1;
    static _Thread_local char written[MM_LOG_TIME_BYTES + 8];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second) {
        struct tm broken_down;
        gmtime_r(&now.tv_sec, &broken_down);
        strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%S.000Z", &broken_down);
        second = now.tv_sec;
    }
    long ms = now.tv_nsec / 1000000;
    memcpy(text, written, MM_LOG_TIME_BYTES);
    text[20] = (char)('0' + ms / 100);
    text[21] = (char)('0' + ms / 10 % 10);
    text[22] = (char)('0' + ms % 10);
}

void mm_log(const char *level, const char *format, ...) {
    char message[MESSAGE_MAX];
    char line[LINE_MAX_BYTES];
    char when[MM_LOG_TIME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    mm_log_time(when);
    int length;
    if (log_format == MM_LOG_JSON) {
        length =
            sprintf(line, "{\"time\":\"%.*s\",\"level\":\"%s\",\"message\":", MM_LOG_TIME_BYTES, when, level);
        length = (int)(mm_put_text(mm_put_json_string(line + length, message), "}\n") - line);
    } else {
        length = snprintf(line, sizeof line, "%.*s %-5s %s\n", MM_LOG_TIME_BYTES, when, level, message);
    }
    mm_log_put(line, (size_t)length, false);
}
