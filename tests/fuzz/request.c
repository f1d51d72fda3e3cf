/* Fuzzes whole requests through the service in this process (in_process.h): the input is what one connection
 * sends, behind a byte of flags and the lengths of the writes that it is cut into. All that comes back is
 * judged by replies.h; and when the connection is over the service holds nothing for it any more. */
#include "tests/fuzz/in_process.h"
#include "tests/fuzz/replies.h"

enum { ASKS_KEYS = 1, HAS_CORS = 2, CUTS_SHIFT = 2, CUTS_MAX = 15 };

/* The writes after the cuts take all that is left. */
static void send_cut(struct talk *talk, struct piece sent, struct piece cuts) {
    for (size_t cut = 0; cut < cuts.bytes; cut++) {
        const struct piece write = fuzz_take_bytes(&sent, 1 + (size_t)(unsigned char)cuts.text[cut]);
        talk_send(talk, write.text, write.bytes);
    }
    talk_send(talk, sent.text, sent.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct piece sent = {(const char *)data, bytes};
    struct talk talk;
    const struct piece first = fuzz_take_bytes(&sent, 1);
    const unsigned flags = first.bytes > 0 ? (unsigned char)*first.text : 0;
    const struct piece cuts = fuzz_take_bytes(&sent, flags >> CUTS_SHIFT & CUTS_MAX);
    in_process_begin((flags & ASKS_KEYS) != 0, (flags & HAS_CORS) != 0);
    talk_begin(&talk);
    send_cut(&talk, sent, cuts);
    talk_end(&talk);
    replies_check(sent, (struct piece){talk.reply, talk.reply_bytes});
    talk_free(&talk);
    return 0;
}
