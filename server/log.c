/* Log lines: a time, a level, a message. Knows nothing of requests. */
#include "server/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_MAX = 2048, LINE_MAX_BYTES = 6 * MESSAGE_MAX + 128 };

static enum mm_log_format log_format = MM_LOG_TEXT;

void mm_log_set_format(enum mm_log_format format) {
    log_format = format;
}

/* Escapes for a JSON string; bytes past ASCII pass as they are, being UTF-8 wherever we wrote them. */
static size_t escape(char *out, const char *text) {
    size_t length = 0;
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            out[length++] = '\\';
            out[length++] = (char)byte;
        } else if (byte < 0x20) {
            length += (size_t)sprintf(out + length, "\\u%04x", byte);
        } else {
            out[length++] = (char)byte;
        }
    }
    out[length] = '\0';
    return length;
}

__attribute__((format(printf, 2, 0))) static void write_line(const char *level, const char *format,
                                                             va_list arguments) {
    char message[MESSAGE_MAX];
    char line[LINE_MAX_BYTES];
    char when[32];
    struct timespec now;
    struct tm broken_down;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &broken_down);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &broken_down);
    vsnprintf(message, sizeof message, format, arguments);
    int length;
    if (log_format == MM_LOG_JSON) {
        length = sprintf(line, "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"message\":\"", when,
                         now.tv_nsec / 1000000, level);
        length += (int)escape(line + length, message);
        length += sprintf(line + length, "\"}\n");
    } else {
        length =
            snprintf(line, sizeof line, "%s.%03ldZ %-5s %s\n", when, now.tv_nsec / 1000000, level, message);
    }
    /* One write, so that lines of several threads do not mix; a log that cannot be written is no
     * reason to stop serving. */
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}

void mm_log_info(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line("info", format, arguments);
    va_end(arguments);
}

void mm_log_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line("error", format, arguments);
    va_end(arguments);
}
