/* Reads media types and Accept. Skips a malformed part of a header, and reads the other parts. */
#include "api/media.h"

#include "api/slice.h"
#include "api/text.h"

/* Returns the end of the first part: the next `separator` outside of quotes, or `end`. */
static const char *part_end(const char *text, const char *end, char separator) {
    bool quoted = false;
    for (; text < end && (quoted || *text != separator); text++) {
        if (*text == '"')
            quoted = !quoted;
        else if (quoted && *text == '\\' && text + 1 < end)
            text++;
    }
    return text;
}

bool mm_media_is(const char *content_type, const char *type) {
    if (content_type == NULL)
        return false;
    return mm_slice_is_any_case(mm_slice_trim(content_type, content_type + strcspn(content_type, ";")), type);
}

/* Returns how exactly a media range names the type: 0 if it does not match, 1 if it names any type, 2 if it
 * names only the main type, 3 if it names the whole type. If the range is well-formed, sets *valid to true. A
 * range such as "json" is malformed. */
static int range_fit(struct mm_slice range, const char *type, bool *valid) {
    const char *slash = memchr(range.start, '/', range.length);
    if (slash == NULL || slash == range.start || slash + 1 == range.start + range.length)
        return 0;
    struct mm_slice main = {range.start, (size_t)(slash - range.start)};
    struct mm_slice sub = {slash + 1, range.length - main.length - 1};
    bool any_main = mm_slice_is_any_case(main, "*");
    bool any_sub = mm_slice_is_any_case(sub, "*");
    if (any_main && !any_sub)
        return 0;
    *valid = true;
    if (any_main)
        return 1;
    if (strncasecmp(range.start, type, main.length + 1) != 0)
        return 0;
    if (any_sub)
        return 2;
    return mm_slice_is_any_case(range, type) ? 3 : 0;
}

/* Returns a weight such as "0.5" in thousandths, or 0 if the text is malformed. A weight is at most 1 and has
 * at most three decimals. The leading 0 may be missing, because Java's HttpURLConnection sends "q=.2". */
static int read_weight(struct mm_slice text) {
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
        if (!mm_is_digit(*digit))
            return 0;
        weight += unit * (*digit - '0');
    }
    return weight <= 1000 ? weight : 0;
}

/* Returns the weight of a range. *others becomes true if the range has other parameters before q. */
static int read_parameters(const char *text, const char *end, bool *others) {
    *others = false;
    while (text < end) {
        const char *stop = part_end(text + 1, end, ';');
        struct mm_slice parameter = mm_slice_trim(text + 1, stop);
        const char *equals = memchr(parameter.start, '=', parameter.length);
        if (equals != NULL && mm_slice_is_any_case(mm_slice_trim(parameter.start, equals), "q"))
            return read_weight(mm_slice_trim(equals + 1, stop));
        *others = *others || parameter.length > 0;
        text = stop;
    }
    return 1000;
}

/* Parameters of a range, such as charset, are not compared, because the server's types have none. But if two
 * ranges name the whole type, the range that has parameters counts as more specific. */
int mm_media_weight(const char *accept, const char *type) {
    if (accept == NULL)
        return 1000;
    const char *end = accept + strlen(accept);
    bool any_range = false;
    int best_fit = 0;
    int best_weight = 0;
    for (const char *text = accept; text < end;) {
        const char *stop = part_end(text, end, ',');
        const char *head_end = part_end(text, stop, ';');
        int fit = range_fit(mm_slice_trim(text, head_end), type, &any_range);
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

bool mm_media_untyped(const char *content_type) {
    return content_type == NULL || content_type[strspn(content_type, " \t")] == '\0' ||
           mm_media_is(content_type, "application/x-www-form-urlencoded") ||
           mm_media_is(content_type, "text/plain");
}

void mm_media_list(const char *const *types, size_t count, char *text, size_t text_bytes) {
    text[0] = '\0';
    for (size_t index = 0; index < count; index++)
        if (types[index] != NULL)
            mm_list_add(text, text_bytes, types[index]);
}

enum mm_status mm_media_find(const char *content_type, const char *const *types, size_t count, size_t *found,
                             struct mm_error *error) {
    char list[128];
    for (*found = 0; *found < count; ++*found)
        if (types[*found] != NULL && mm_media_is(content_type, types[*found]))
            return MM_OK;
    mm_media_list(types, count, list, sizeof list);
    mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                  "the body's type is '%.100s', but must be one of: %s", content_type, list);
    mm_fail_got(error, "%s", content_type);
    return MM_UNSUPPORTED_MEDIA_TYPE;
}

enum mm_status mm_media_choose(const char *accept, const char *const *types, size_t count,
                               const char *natural, size_t *chosen, struct mm_error *error) {
    int best_weight = 0;
    for (size_t index = 0; index < count; index++) {
        const int weight = types[index] == NULL ? 0 : mm_media_weight(accept, types[index]);
        const bool is_natural = natural != NULL && weight > 0 && strcmp(types[index], natural) == 0;
        if (weight > best_weight || (weight == best_weight && is_natural)) {
            best_weight = weight;
            *chosen = index;
        }
    }
    if (best_weight > 0)
        return MM_OK;
    char list[128];
    mm_media_list(types, count, list, sizeof list);
    return mm_fail_field(error, MM_NOT_ACCEPTABLE, "Accept",
                         "Accept is '%.100s', but the reply can only be one of: %s",
                         accept != NULL ? accept : "", list);
}
