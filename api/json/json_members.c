/* Reads short complete JSON texts member by member. */
#include "api/json/json_text.h"

enum mm_status mm_json_check(const char *text, size_t bytes, const char *example, struct mm_error *error) {
    struct mm_json_reader reader = {0};
    enum mm_json_event event;
    if (bytes == 0)
        return mm_json_fail_empty(example, error);
    do
        event = mm_json_next(&reader, text, bytes, true);
    while (event < MM_JSON_END);
    return event == MM_JSON_END ? MM_OK : mm_json_fail(&reader, text, example, error);
}

struct mm_json_reader mm_json_within(const struct mm_value *value) {
    const bool is_object = value->kind == MM_VALUE_OBJECT;
    return (struct mm_json_reader){.at = 1,
                                   .place = is_object ? MM_JSON_FIRST_NAME : MM_JSON_FIRST_ELEMENT,
                                   .depth = 1,
                                   .objects = is_object};
}

bool mm_json_step(struct mm_json_reader *reader, const char *text, size_t bytes,
                  struct mm_json_member *member) {
    if (bytes == 0)
        return false;
    enum mm_json_event event = mm_json_next(reader, text, bytes, true);
    if (event == MM_JSON_OPEN && reader->depth == 1)
        event = mm_json_next(reader, text, bytes, true);
    member->name = (struct mm_value){.kind = MM_VALUE_TEXT, .text = ""};
    if (event == MM_JSON_NAME) {
        member->name = mm_json_value(text, reader->token, member->name_buffer);
        event = mm_json_next(reader, text, bytes, true);
    }
    if (event != MM_JSON_VALUE && event != MM_JSON_OPEN)
        return false;
    member->token = reader->token;
    if (event == MM_JSON_OPEN) {
        for (const unsigned depth = reader->depth; reader->depth >= depth;)
            (void)mm_json_next(reader, text, bytes, true);
        member->token.bytes = reader->at - member->token.at;
    }
    member->value = mm_json_value(text, member->token, member->buffer);
    return true;
}
