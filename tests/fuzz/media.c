/* Fuzzes the choice of codecs by Content-Type and Accept: the input, up to a zero byte, is taken for each.
 * Letter case decides nothing, and the type of the reply is one of the greatest weight. */
#include "tests/fuzz/fuzz.h"

#include "api/media.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The same text in the other case. */
static char *swap_case(const char *text) {
    char *swapped = fuzz_copy_text((struct piece){text, strlen(text)});
    for (char *letter = swapped; *letter != '\0'; letter++)
        if (isalpha((unsigned char)*letter))
            *letter ^= 'a' ^ 'A';
    return swapped;
}

static void judge_accept(const char *accept, const char *swapped) {
    const struct mm_codec *const codecs[] = {&mm_json_codec, &mm_raw_codec, &mm_npy_codec, &mm_form_codec};
    const size_t count = sizeof codecs / sizeof codecs[0];
    int most = 0;
    for (size_t index = 0; index < count; index++) {
        if (codecs[index]->reply_type == NULL)
            continue;
        int weight = mm_media_weight(accept, codecs[index]->reply_type);
        REQUIRE(weight >= 0 && weight <= 1000);
        REQUIRE(weight == mm_media_weight(swapped, codecs[index]->reply_type));
        most = weight > most ? weight : most;
    }
    for (size_t index = 0; index <= count; index++) {
        const struct mm_codec *natural = index < count ? codecs[index] : NULL;
        const struct mm_codec *chosen = NULL;
        struct mm_error error = {0};
        enum mm_status status = mm_codec_for_reply(accept, natural, &chosen, &error);
        REQUIRE(status == (most > 0 ? MM_OK : MM_NOT_ACCEPTABLE));
        if (status == MM_OK)
            REQUIRE(chosen->encode != NULL && mm_media_weight(accept, chosen->reply_type) == most);
        else if (natural == NULL) /* the others say the same */
            fuzz_require_error(status, &error);
    }
}

static void judge_content_type(enum mm_op op, const char *content_type, const char *swapped) {
    for (unsigned flags = 0; flags < 8; flags++) {
        const struct mm_codec *codec, *swapped_codec;
        struct mm_error error = {0};
        bool body_seen = (flags & 2) != 0;
        char first = body_seen && (flags & 4) != 0 ? '{' : 0;
        enum mm_status status =
            mm_codec_for_request(content_type, op, (flags & 1) != 0, body_seen, first, &codec, &error);
        REQUIRE(status == MM_OK || status == MM_UNSUPPORTED_MEDIA_TYPE);
        if (status != MM_OK && flags == 2) /* a body was seen that says nothing */
            fuzz_require_error(status, &error);
        REQUIRE(status == MM_OK ? codec != NULL || !body_seen : codec == NULL);
        REQUIRE(codec == NULL || codec->decode != NULL || codec->reader != NULL);
        REQUIRE(mm_codec_for_request(swapped, op, (flags & 1) != 0, body_seen, first, &swapped_codec, NULL) ==
                    status &&
                codec == swapped_codec);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = fuzz_copy_text((struct piece){(const char *)data, bytes});
    char *swapped = swap_case(text);
    judge_accept(text, swapped);
    FUZZ_EACH_OP(op) {
        judge_content_type(op, text, swapped);
    }
    free(swapped);
    free(text);
    return 0;
}
