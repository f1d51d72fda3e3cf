/* Writes the log line of a request, as `name=value` or `"name":value` pairs. printf would be too slow. */
#include "server/observe/record.h"

#include "api/number/digits.h"
#include "server/http/routes.h"
#include "server/http/traceparent.h"

#include <string.h>

/* An unfinished log line. Its length is limited: texts are short, and a byte becomes at most 5 characters. */
struct line {
    char *end;
    bool json;
};

static void put_text(struct line *line, const char *text) {
    line->end = mm_put_text(line->end, text);
}

/* Repeats the call in both branches, so the compiler knows the length of each literal. */
static void begin_name(struct line *line, const char *name) {
    line->end = line->json ? mm_put_text(line->end, ",\"") : mm_put_text(line->end, " ");
    put_text(line, name);
}

static void put_name(struct line *line, const char *name) {
    begin_name(line, name);
    line->end = line->json ? mm_put_text(line->end, "\":") : mm_put_text(line->end, "=");
}

static void put_quote(struct line *line) {
    if (line->json)
        *line->end++ = '"';
}

/* Writes a word without quotes, spaces or backslashes. */
static void put_word(struct line *line, const char *name, const char *word) {
    put_name(line, name);
    put_quote(line);
    put_text(line, word);
    put_quote(line);
}

/* Writes any text. Bytes other than printable ASCII become \xNN, even in JSON, which cannot express bytes. */
static void put_foreign(struct line *line, const char *name, const char *text) {
    static const char hexadecimal[] = "0123456789abcdef";
    put_name(line, name);
    *line->end++ = '"';
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
            *line->end++ = (char)byte;
            continue;
        }
        put_text(line, line->json ? "\\\\x" : "\\x");
        *line->end++ = hexadecimal[byte >> 4];
        *line->end++ = hexadecimal[byte & 15];
    }
    *line->end++ = '"';
}

static void put_trace(struct line *line, const char *traceparent) {
    put_name(line, "trace_id");
    put_quote(line);
    line->end = mempcpy(line->end, traceparent + MM_TRACE_ID_AT, MM_TRACE_ID_CHARS);
    put_quote(line);
}

static void put_address(struct line *line, const char *name, const struct mm_address *address) {
    put_name(line, name);
    put_quote(line);
    line->end = mm_address_put(line->end, address);
    put_quote(line);
}

static void put_count(struct line *line, const char *name, uint64_t count) {
    put_name(line, name);
    line->end = mm_put_digits(line->end, count);
}

static void put_ms(struct line *line, const char *name, uint64_t ns) {
    const uint64_t us = (ns + 500) / 1000;
    begin_name(line, name);
    line->end = line->json ? mm_put_text(line->end, "_ms\":") : mm_put_text(line->end, "_ms=");
    line->end = mm_put_digits(line->end, us / 1000);
    *line->end++ = '.';
    line->end = mm_put_last_digits(line->end, us, 3);
}

static void put_work(struct line *line, struct mm_work *work) {
    const struct mm_job *job = mm_work_job(work);
    put_word(line, "backend", work->backend->name);
    if (job != NULL && job->outcome.ran != NULL)
        put_word(line, "variant", job->outcome.ran->name);
    if (work->device != NULL)
        put_count(line, "device", work->device->index);
    if (job != NULL && job->outcome.devices > 1)
        put_count(line, "devices", job->outcome.devices);
    if (job != NULL && job->outcome.verification.is_done && work->error.status == MM_OK)
        put_word(line, "verify", mm_verdict_name(mm_verification_verdict(&job->outcome.verification)));
}

static void put_record(struct line *line, const struct mm_record *record) {
    put_word(line, "request_id", record->request_id);
    if (record->traceparent != NULL && record->traceparent[0] != '\0')
        put_trace(line, record->traceparent);
    if (record->key[0] != '\0')
        put_word(line, "key", record->key);
    if (record->client != NULL)
        put_address(line, "client", record->client);
    put_foreign(line, "method", record->method);
    put_word(line, "route", mm_route_label(record->route));
    if (record->path[0] != '\0')
        put_foreign(line, "path", record->path);
    put_count(line, "code", record->code);
    if (record->problem != MM_OK)
        put_word(line, "problem", mm_status_name(record->problem));
    if (record->cancelled)
        put_word(line, "cancelled", mm_stage_name(record->cancelled_in));
    put_count(line, "in_bytes", record->in_bytes);
    put_count(line, "out_bytes", record->out_bytes);
    if (record->has_shape) {
        put_count(line, "m", record->m);
        if (record->has_depth)
            put_count(line, "k", record->k);
        put_count(line, "n", record->n);
        if (record->products > 1)
            put_count(line, "products", record->products);
    }
    if (record->a != NULL)
        put_word(line, "a", record->a);
    if (record->b != NULL)
        put_word(line, "b", record->b);
    if (record->epilogue[0] != '\0')
        put_word(line, "epilogue", record->epilogue);
    if (record->work != NULL)
        put_work(line, record->work);
    for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++)
        if (record->has_shape || stage == MM_SPAN_RECEIVE || stage == MM_STAGE_SEND)
            put_ms(line, mm_stage_name(stage), record->stage_ns[stage]);
    put_ms(line, "duration", record->duration_ns);
}

size_t mm_request_line(char text[MM_REQUEST_LINE_MAX], enum mm_log_format format, const char *time,
                       const struct mm_record *record) {
    struct line line = {.end = text, .json = format == MM_LOG_JSON};
    if (line.json)
        put_text(&line, "{\"time\":\"");
    line.end = mempcpy(line.end, time, MM_LOG_TIME_BYTES);
    if (record->is_probe)
        put_text(&line, line.json ? "\",\"level\":\"debug\",\"message\":\"request\"" : " debug request");
    else
        put_text(&line, line.json ? "\",\"level\":\"info\",\"message\":\"request\"" : " info  request");
    put_record(&line, record);
    put_text(&line, line.json ? "}\n" : "\n");
    return (size_t)(line.end - text);
}
