/* Fuzzes HTTP requests. The input is a byte of flags, the lengths of the writes, then the bytes to send. */
#include "tests/fuzz/in_process.h"
#include "tests/fuzz/replies.h"

enum { ASKS_KEYS = 1, HAS_CORS = 2, CUTS_SHIFT = 2, CUTS_MAX = 15 };

static void send_cut(struct talk *talk, struct slice sent, struct slice cuts) {
    for (size_t cut = 0; cut < cuts.bytes; cut++) {
        const struct slice write = fuzz_split_bytes(&sent, 1 + (size_t)(unsigned char)cuts.text[cut]);
        talk_send(talk, write.text, write.bytes);
    }
    talk_send(talk, sent.text, sent.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct slice sent = {(const char *)data, bytes};
    struct talk talk;
    const struct slice first = fuzz_split_bytes(&sent, 1);
    const unsigned flags = first.bytes > 0 ? (unsigned char)*first.text : 0;
    const struct slice cuts = fuzz_split_bytes(&sent, flags >> CUTS_SHIFT & CUTS_MAX);
    in_process_begin((flags & ASKS_KEYS) != 0, (flags & HAS_CORS) != 0);
    talk_begin(&talk);
    send_cut(&talk, sent, cuts);
    talk_end(&talk);
    replies_check(sent, (struct slice){talk.reply, talk.reply_bytes});
    talk_free(&talk);
    return 0;
}
