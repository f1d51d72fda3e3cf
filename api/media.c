/* Media types and Accept, read by hand: RFC 9110's grammar of them is small, and a header that is
 * wrong in one place still means something in the others. */
#include "api/media.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* A piece of a header, without the spaces around it. */
struct span {
    const char *start;
    size_t length;
};

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

static struct span trim(const char *start, const char *end) {
    while (start < end && is_space(*start))
        start++;
    while (end > start && is_space(end[-1]))
        end--;
    return (struct span){start, (size_t)(end - start)};
}

/* Where the piece that starts here ends: at `separator` outside of quotes, or at the end of the text. */
static const char *piece_end(const char *text, const char *end, char separator) {
    bool quoted = false;
    for (; text < end && (quoted || *text != separator); text++) {
        if (*text == '"')
            quoted = !quoted;
        else if (quoted && *text == '\\' && text + 1 < end)
            text++;
    }
    return text;
}

static bool span_is(struct span span, const char *text) {
    return span.length == strlen(text) && strncasecmp(span.start, text, span.length) == 0;
}

bool mm_media_is(const char *content_type, const char *type) {
    if (content_type == NULL)
        return false;
    return span_is(trim(content_type, content_type + strcspn(content_type, ";")), type);
}

/* How exactly a range names the type: 0 for not at all, 1 for any, 2 for its main type, 3 for itself.
 * Malformed ranges ("*", "json") name nothing, and `valid` says so. */
static int range_fit(struct span range, const char *type, bool *valid) {
    const char *slash = memchr(range.start, '/', range.length);
    if (slash == NULL || slash == range.start || slash + 1 == range.start + range.length)
        return 0;
    struct span main = {range.start, (size_t)(slash - range.start)};
    struct span sub = {slash + 1, range.length - main.length - 1};
    bool any_main = span_is(main, "*");
    bool any_sub = span_is(sub, "*");
    if (any_main && !any_sub)
        return 0;
    *valid = true;
    if (any_main)
        return 1;
    if (strncasecmp(range.start, type, main.length + 1) != 0)
        return 0;
    if (any_sub)
        return 2;
    return span_is(range, type) ? 3 : 0;
}

/* The weight of "0.5" in thousandths: at most three decimals, at most 1; 0 where it is malformed. The
 * leading 0 may be missing, since a widespread client (Java's HttpURLConnection) sends "q=.2". */
static int read_weight(struct span text) {
    const char *digit = text.start;
    const char *end = text.start + text.length;
    int weight = 0;
    if (digit < end && (*digit == '0' || *digit == '1'))
        weight = 1000 * (*digit++ - '0');
    else if (text.length < 2)
        return 0;
    if (digit == end)
        return weight;
    if (*digit++ != '.' || end - digit > 3)
        return 0;
    for (int unit = 100; digit < end; unit /= 10, digit++) {
        if (*digit < '0' || *digit > '9')
            return 0;
        weight += unit * (*digit - '0');
    }
    return weight <= 1000 ? weight : 0;
}

/* Reads the parameters behind a range, from its first semicolon on: the weight, and whether any other
 * stands before it. */
static int read_parameters(const char *text, const char *end, bool *others) {
    *others = false;
    while (text < end) {
        const char *stop = piece_end(text + 1, end, ';');
        struct span parameter = trim(text + 1, stop);
        const char *equals = memchr(parameter.start, '=', parameter.length);
        if (equals != NULL && span_is(trim(parameter.start, equals), "q"))
            return read_weight(trim(equals + 1, stop));
        *others = *others || parameter.length > 0;
        text = stop;
    }
    return 1000;
}

/* The types that we speak have no parameters, and callers who add one ("application/json;
 * charset=utf-8") mean the type: a range's parameters make it more specific, and are not compared. */
int mm_media_weight(const char *accept, const char *type) {
    if (accept == NULL)
        return 1000;
    const char *end = accept + strlen(accept);
    bool any_range = false;
    int best_fit = 0;
    int best_weight = 0;
    for (const char *text = accept; text < end;) {
        const char *stop = piece_end(text, end, ',');
        const char *head_end = piece_end(text, stop, ';');
        int fit = range_fit(trim(text, head_end), type, &any_range);
        bool others;
        int weight = read_parameters(head_end, stop, &others);
        if (fit == 3 && others)
            fit = 4;
        if (fit > best_fit || (fit == best_fit && fit > 0 && weight > best_weight)) {
            best_fit = fit;
            best_weight = weight;
        }
        text = stop + (stop < end);
    }
    return any_range ? best_weight : 1000;
}
