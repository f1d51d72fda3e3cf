/* The table of codecs, and how a request and its reply find theirs. */
#include "api/codec.h"

#include "api/formats.h"
#include "api/media.h"
#include "api/multipart.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char npy_type[] = "application/x-npy";

static const struct mm_codec codecs[] = {
    {
        .media_type = "application/json",
        .reply_type = "application/json",
        .decode = mm_json_decode,
        .reader = &mm_json_reader,
        .reply_bytes_max = mm_json_reply_bytes_max,
        .encode = mm_json_encode,
        .finish = mm_json_finish,
    },
    {
        .media_type = "application/octet-stream",
        .reply_type = "application/octet-stream",
        .takes_dimensions = true,
        .plan = mm_raw_plan,
        .decode = mm_raw_decode,
        .decodes_quickly = true,
        .views_body = true,
        .encode = mm_raw_encode,
    },
    {
        .reply_type = npy_type,
        .encode = mm_npy_encode,
    },
    {
        .media_type = "multipart/form-data",
        .natural_reply = npy_type,
        .judge_type = mm_multipart_judge_type,
        .decode = mm_form_decode,
        .reader = &mm_form_reader,
        .views_body = true,
    },
};

enum { CODEC_COUNT = sizeof codecs / sizeof codecs[0] };
static const struct mm_codec *const json_codec = &codecs[0];
static const struct mm_codec *const raw_codec = &codecs[1];

const struct mm_codec *mm_codecs(size_t *count) {
    *count = CODEC_COUNT;
    return codecs;
}

/* The types of all requests, or of all replies, as a list for people. */
static void list_types(bool replies, char *text, size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t index = 0; index < CODEC_COUNT; index++) {
        const char *type = replies ? codecs[index].reply_type : codecs[index].media_type;
        if (type != NULL)
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "", type);
        assert(used < text_bytes);
    }
}

static enum mm_status fail_type(const char *content_type, struct mm_error *error) {
    char types[128];
    list_types(false, types, sizeof types);
    mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                  "the body's type is '%.100s', but only these are spoken: %s", content_type, types);
    if (error != NULL)
        snprintf(error->got, sizeof error->got, "%s", content_type);
    return MM_UNSUPPORTED_MEDIA_TYPE;
}

/* What would have told the body's type, by operation: the dimensions, and examples of both. */
static const struct {
    const char *dimensions;
    const char *json;
    const char *file;
    const char *query;
} hints[MM_OP_COUNT] = {
    [MM_MATMUL] = {"m, k and n", "{\"a\": [[1,2]], \"b\": [[3],[4]]}", "ab.bin", "m=1&k=2&n=1"},
    [MM_TRANSPOSE] = {"m and n", "{\"a\": [[1,2]]}", "a.bin", "m=1&n=2"},
};

/* The body says nothing of itself: shows how it would have been understood. */
static enum mm_status fail_untyped(enum mm_op op, struct mm_error *error) {
    char types[128];
    list_types(false, types, sizeof types);
    return mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                         "the body has no type of its own, no '{' at its start, and no %s in the "
                         "query. Spoken are %s: for instance curl -d '%s' URL, or "
                         "curl --data-binary @%s -H 'Content-Type: application/octet-stream' 'URL?%s'",
                         hints[op].dimensions, types, hints[op].json, hints[op].file, hints[op].query);
}

enum mm_status mm_codec_for_request(const char *content_type, enum mm_op op, bool has_dimensions,
                                    bool body_seen, char first, const struct mm_codec **codec,
                                    struct mm_error *error) {
    bool untyped = content_type == NULL || content_type[strspn(content_type, " \t")] == '\0' ||
                   mm_media_is(content_type, "application/x-www-form-urlencoded");
    *codec = NULL;
    if (!untyped) {
        for (size_t index = 0; index < CODEC_COUNT && *codec == NULL; index++)
            if (codecs[index].media_type != NULL && mm_media_is(content_type, codecs[index].media_type))
                *codec = &codecs[index];
        return *codec != NULL ? MM_OK : fail_type(content_type, error);
    }
    if (has_dimensions)
        *codec = raw_codec;
    else if (body_seen && first == '{')
        *codec = json_codec;
    else if (body_seen)
        return fail_untyped(op, error);
    return MM_OK;
}

enum mm_status mm_codec_for_reply(const char *accept, const struct mm_codec *natural,
                                  const struct mm_codec **codec, struct mm_error *error) {
    const struct mm_codec *best = NULL;
    int best_weight = 0;
    const char *natural_type = NULL;
    if (natural != NULL)
        natural_type = natural->natural_reply != NULL ? natural->natural_reply : natural->reply_type;
    for (size_t index = 0; index < CODEC_COUNT; index++) {
        const struct mm_codec *row = &codecs[index];
        if (row->reply_type == NULL)
            continue;
        int weight = mm_media_weight(accept, row->reply_type);
        bool is_natural = natural_type != NULL && strcmp(row->reply_type, natural_type) == 0;
        if (weight > best_weight || (weight == best_weight && weight > 0 && is_natural)) {
            best = row;
            best_weight = weight;
        }
    }
    if (best == NULL) {
        char types[128];
        list_types(true, types, sizeof types);
        return mm_fail_field(error, MM_NOT_ACCEPTABLE, "Accept",
                             "Accept is '%.100s', but the reply can only be one of: %s",
                             accept != NULL ? accept : "", types);
    }
    *codec = best;
    return MM_OK;
}
