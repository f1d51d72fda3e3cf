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

static const char *const level_names[MM_LOG_LEVELS] = {
    [MM_LOG_DEBUG] = "debug", [MM_LOG_INFO] = "info", [MM_LOG_WARNING] = "warn", [MM_LOG_ERROR] = "error"};

static enum mm_log_level least_level = MM_LOG_INFO;

/* A name is the word or its beginning: "warn" for "warning". */
void mm_log_set_level(const char *word) {
    for (unsigned level = 0; level < MM_LOG_LEVELS; level++)
        if (strncmp(word, level_names[level], strlen(level_names[level])) == 0)
            least_level = (enum mm_log_level)level;
}

bool mm_log_shows(enum mm_log_level level) {
    return level >= least_level;
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

void mm_log(enum mm_log_level level, const char *format, ...) {
    const char *name = level_names[level];
    char message[MESSAGE_MAX];
    char line[LINE_MAX_BYTES];
    char when[MM_LOG_TIME_BYTES];
    va_list arguments;
    if (!mm_log_shows(level))
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    mm_log_time(when);
    int length;
    if (log_format == MM_LOG_JSON) {
        length =
            sprintf(line, "{\"time\":\"%.*s\",\"level\":\"%s\",\"message\":", MM_LOG_TIME_BYTES, when, name);
        length = (int)(mm_put_text(mm_put_json_string(line + length, message), "}\n") - line);
    } else {
        length = snprintf(line, sizeof line, "%.*s %-5s %s\n", MM_LOG_TIME_BYTES, when, name, message);
    }
    mm_log_put(line, (size_t)length, false);
}
