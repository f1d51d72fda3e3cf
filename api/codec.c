/* Chooses the codec for a request, a stored matrix or a reply. */
#include "api/codec.h"

#include "api/media.h"
#include "api/problem.h"

/* The preferred codecs come first. */
static const struct mm_codec *const codecs[] = {&mm_json_codec, &mm_raw_codec, &mm_npy_codec, &mm_form_codec,
                                                &mm_csv_codec};

enum { CODEC_COUNT = sizeof codecs / sizeof codecs[0] };

/* Collects each codec's Content-Type: of replies if `replies`, otherwise of requests. Entries may be NULL. */
static void collect_types(bool replies, const char *types[CODEC_COUNT]) {
    for (size_t index = 0; index < CODEC_COUNT; index++)
        types[index] = replies ? codecs[index]->reply_type : codecs[index]->media_type;
}

/* Fails because the body is a single file, but products need a form. */
static enum mm_status fail_file(const struct mm_codec *codec, enum mm_op op, struct mm_error *error) {
    return mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                         "the body is a %s file, but must be a form with .npy or .csv files; send: " MM_CURL
                         "/v1/%s %s",
                         codec->file_extension, mm_op_name(op), mm_form_codec.example[op]);
}

/* Fails because neither the headers nor the body show the format. The error shows a valid request. */
static enum mm_status fail_untyped(enum mm_op op, const char *const *types, struct mm_error *error) {
    char list[128];
    mm_media_list(types, CODEC_COUNT, list, sizeof list);
    return mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                         "the body has no Content-Type that names a format, no '{' at its start, and no %s "
                         "in the query, but must be one of %s; send: " MM_CURL
                         "/v1/%s -d '%s'; for raw elements add -H 'Content-Type: application/octet-stream' "
                         "and the query ?%s",
                         mm_raw_codec.dimensions[op], list, mm_op_name(op), mm_json_codec.example[op],
                         mm_raw_codec.example[op]);
}

static const struct mm_codec *find_untyped(enum mm_op op, bool has_dimensions, char first) {
    for (size_t index = 0; index < CODEC_COUNT; index++) {
        const struct mm_codec *codec = codecs[index];
        if (has_dimensions ? codec->dimensions[op] != NULL : first != 0 && codec->first == first)
            return codec;
    }
    return NULL;
}

static const struct mm_codec *find_file(const char *content_type) {
    for (size_t index = 0; index < CODEC_COUNT; index++)
        if (codecs[index]->file_extension != NULL && mm_media_is(content_type, codecs[index]->reply_type))
            return codecs[index];
    return NULL;
}

enum mm_status mm_codec_for_request(const char *content_type, enum mm_op op, bool has_dimensions,
                                    bool body_seen, char first, const struct mm_codec **codec,
                                    struct mm_error *error) {
    const char *types[CODEC_COUNT];
    const bool is_untyped = mm_media_untyped(content_type);
    const struct mm_codec *const untyped = is_untyped ? find_untyped(op, has_dimensions, first) : NULL;
    size_t found;
    collect_types(false, types);
    *codec = NULL;
    if (untyped != NULL && untyped->file_extension != NULL)
        return fail_file(untyped, op, error);
    *codec = untyped;
    if (is_untyped)
        return untyped != NULL || !body_seen ? MM_OK : fail_untyped(op, types, error);
    enum mm_status status = mm_media_find(content_type, types, CODEC_COUNT, &found, error);
    if (status == MM_OK)
        *codec = codecs[found];
    else if (find_file(content_type) != NULL)
        status = fail_file(find_file(content_type), op, error);
    return status;
}

static enum mm_status fail_stored(const char *content_type, const char *const *types,
                                  struct mm_error *error) {
    size_t found;
    if (!mm_media_untyped(content_type))
        return mm_media_find(content_type, types, CODEC_COUNT, &found, error);
    return mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                         "the body has no Content-Type that names a format, is no .npy file, does not begin "
                         "with '{', and the query has neither m and n nor shape; send: " MM_CURL
                         "/v1/matrices/NAME -T a.npy");
}

enum mm_status mm_codec_for_stored(const char *content_type, bool has_dimensions, bool body_seen, char first,
                                   const struct mm_codec **codec, struct mm_error *error) {
    const char *types[CODEC_COUNT];
    const bool is_untyped = mm_media_untyped(content_type);
    for (size_t index = 0; index < CODEC_COUNT; index++)
        types[index] =
            codecs[index]->media_type != NULL ? codecs[index]->media_type : codecs[index]->reply_type;
    *codec = NULL;
    for (size_t index = 0; index < CODEC_COUNT && !is_untyped; index++)
        if (mm_media_is(content_type, types[index]))
            *codec = codecs[index];
    const bool is_known = *codec != NULL && *codec != &mm_raw_codec;
    if (is_known || (has_dimensions && *codec != NULL))
        return MM_OK;
    if (has_dimensions && is_untyped)
        *codec = &mm_raw_codec;
    else if (first == mm_npy_codec.first)
        *codec = &mm_npy_codec;
    else if (is_untyped && first == mm_json_codec.first)
        *codec = &mm_json_codec;
    else if (!body_seen && !has_dimensions)
        *codec = NULL;
    else if (*codec == NULL)
        return fail_stored(content_type, types, error);
    return MM_OK;
}

enum mm_status mm_codec_for_reply(const char *accept, const struct mm_codec *natural,
                                  const struct mm_codec **codec, struct mm_error *error) {
    const char *types[CODEC_COUNT], *natural_type = NULL;
    size_t chosen = 0;
    if (natural != NULL)
        natural_type = natural->natural_reply != NULL ? natural->natural_reply : natural->reply_type;
    collect_types(true, types);
    const enum mm_status status = mm_media_choose(accept, types, CODEC_COUNT, natural_type, &chosen, error);
    if (status == MM_OK)
        *codec = codecs[chosen];
    return status;
}

const struct mm_codec *mm_codec_for_facts(const char *accept) {
    return mm_media_weight(accept, mm_json_codec.reply_type) > 0 ? &mm_json_codec : NULL;
}

enum mm_status mm_codec_fail_figures(struct mm_error *error) {
    return mm_fail_field(
        error, MM_BAD_REQUEST, "reduce",
        "reduce is given, but Accept excludes application/json, which alone can hold figures; "
        "allow it, or leave reduce out");
}

enum mm_status mm_codec_check_reply(const struct mm_codec *codec, const struct mm_shape *shape,
                                    struct mm_error *error) {
    char text[MM_SHAPE_TEXT_MAX];
    if (shape->rank <= codec->reply_rank_max)
        return MM_OK;
    mm_shape_text(shape, text);
    return mm_fail_field(
        error, MM_NOT_ACCEPTABLE, "Accept",
        "the result is %s, of rank %u, but %s supports rank %u at most; ask for %s, %s or %s by "
        "Accept",
        text, shape->rank, codec->reply_type, codec->reply_rank_max, mm_json_codec.reply_type,
        mm_raw_codec.reply_type, mm_npy_codec.reply_type);
}
