/* Fuzzes whole requests through the service in this process (in_process.h): one connection, on which the
 * input's pieces are sent one behind the other, cut into writes as the input says. A piece is
 *
 *   a product or transposition of product.h's: the reply must be the exact result
 *   a request of the other routes, well-formed: the reply must have the status that it is known to have
 *   all that is left of the input, as it is
 *
 * Up to the last of these each is answered in its turn. All that comes back is judged by replies.h; and when
 * the connection is over the service holds nothing for it any more. */
#include "tests/fuzz/in_process.h"
#include "tests/fuzz/product.h"
#include "tests/fuzz/replies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 8, CUTS_MAX = 15 };

/* What is known of the reply to a well-formed piece. */
struct expected {
    unsigned status;
    bool head_only;
    const struct product *product; /* NULL: no product */
    const struct product_accept *accept;
    bool is_chunked;
};

struct session {
    struct input input;
    FILE *out; /* all that is sent */
    bool has_keys;
    bool is_well_formed; /* each piece is */
    size_t count;
    struct expected expected[PIECES_MAX];
};

/* How a request shows its key, and whether that lets it in. */
static const struct {
    const char *lines;
    bool is_good;
} keys[] = {
    {"Authorization: Bearer " IN_PROCESS_KEY "\r\n", true},
    {"authorization: bearer   " IN_PROCESS_KEY " \r\n", true},
    {"", false},
    {"Authorization: Bearer " IN_PROCESS_KEY "s\r\n", false},
    {"Authorization: Bearer 0123456789abcdef\r\n", false},
    {"Authorization: Basic " IN_PROCESS_KEY "\r\n", false},
    {"Authorization: Bearer\t" IN_PROCESS_KEY "\r\n", false},
    {"Authorization: Bearer " IN_PROCESS_KEY "\r\nAuthorization: Bearer " IN_PROCESS_KEY "\r\n", false},
};
enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

static void put_common(struct session *session, const char *method, const char *target, unsigned key) {
    fprintf(session->out, "%s %s HTTP/1.1\r\nHost: fuzz\r\nX-Request-Id: fuzz-%zu\r\n", method, target,
            session->count);
    if (session->has_keys)
        fputs(keys[key].lines, session->out);
}

/* In chunks of a size that the input says, or with its length. */
static void put_body(struct session *session, const char *body, size_t bytes, bool is_chunked) {
    const size_t chunk = is_chunked ? 1 + input_byte(&session->input) : 0;
    if (!is_chunked) {
        fprintf(session->out, "Content-Length: %zu\r\n\r\n", bytes);
        fwrite(body, 1, bytes, session->out);
        return;
    }
    fputs("Transfer-Encoding: chunked\r\n\r\n", session->out);
    for (size_t at = 0; at < bytes; at += chunk) {
        const size_t size = bytes - at < chunk ? bytes - at : chunk;
        fprintf(session->out, "%zx\r\n", size);
        fwrite(body + at, 1, size, session->out);
        fputs("\r\n", session->out);
    }
    fputs("0\r\n\r\n", session->out);
}

static void put_product(struct session *session) {
    struct expected *expected = &session->expected[session->count];
    expected->status = 200;
    expected->product = product_take(&session->input);
    expected->accept = product_take_accept(&session->input);
    expected->is_chunked = (input_byte(&session->input) & 1) != 0;
    put_common(session, "POST", expected->product->target, 0);
    fprintf(session->out, "Content-Type: %s\r\n", expected->product->type);
    if (expected->accept->accept != NULL)
        fprintf(session->out, "Accept: %s\r\n", expected->accept->accept);
    put_body(session, expected->product->body, expected->product->bytes, expected->is_chunked);
}

static void put_plain(struct session *session) {
    static const struct {
        const char *method;
        const char *target;
        unsigned status;
        bool is_open; /* to who has no key, or no other than 404 and 405, which come first */
    } plain[] = {
        {"GET", "/healthz", 200, true},
        {"HEAD", "/healthz", 200, true},
        {"GET", "/readyz", 200, true},
        {"GET", "/v1/variants", 200, false},
        {"GET", "/v1/devices", 200, false},
        {"HEAD", "/v1/devices", 200, false},
        {"GET", "/openapi.json", 200, true},
        {"GET", "/metrics", 200, false},
        {"OPTIONS", "/v1/matmul", 204, true},
        {"OPTIONS", "*", 204, true},
        {"OPTIONS", "/metrics", 204, true},
        {"GET", "/", 200, true},
        {"GET", "/v1/matmul/", 404, true},
        {"HEAD", "/v2", 404, true},
        {"GET", "/v1/matmul", 405, true},
        {"PUT", "/v1/matmul", 405, true},
        {"DELETE", "/healthz", 405, true},
        {"POST", "/v1/devices", 405, true},
        {"POST", "/v1/matmul", 411, false},
        {"POST", "/v1/benchmark", 411, false},
        {"GET", "http://fuzz/healthz", 200, true},
    };
    const unsigned choice = input_byte(&session->input);
    const size_t index = choice % (sizeof plain / sizeof plain[0]);
    const unsigned key = choice / (sizeof plain / sizeof plain[0]) % KEY_COUNT;
    struct expected *expected = &session->expected[session->count];
    put_common(session, plain[index].method, plain[index].target, key);
    fputs("\r\n", session->out);
    expected->status = plain[index].status;
    if (session->has_keys && !keys[key].is_good && !plain[index].is_open)
        expected->status = 401;
    expected->head_only = strcmp(plain[index].method, "HEAD") == 0;
}

/* --- the connection */

static void make(struct session *session) {
    session->is_well_formed = true;
    for (size_t left = PIECES_MAX; left > 0 && session->input.at < session->input.end; left--) {
        const unsigned kind = input_byte(&session->input) % 8;
        if (kind < 3) {
            put_product(session);
        } else if (kind < 5) {
            put_plain(session);
        } else {
            const struct piece rest = input_piece(&session->input, SIZE_MAX);
            fwrite(rest.text, 1, rest.bytes, session->out);
            session->is_well_formed = false;
            return;
        }
        session->count++;
    }
}

static void converse(struct talk *talk, const char *text, size_t bytes, struct piece cuts) {
    size_t at = 0;
    talk_begin(talk);
    for (size_t cut = 0; cut < cuts.bytes && at < bytes; cut++) {
        const size_t wanted = 1 + (unsigned char)cuts.text[cut], left = bytes - at;
        talk_send(talk, text + at, wanted < left ? wanted : left);
        at += wanted < left ? wanted : left;
    }
    talk_send(talk, text + at, bytes - at);
    talk_end(talk);
}

static void judge_expected(const struct reply *reply, const struct expected *expected, size_t index) {
    char id[32];
    snprintf(id, sizeof id, "fuzz-%zu", index);
    REQUIRE(piece_is(reply_header(reply, "X-Request-Id"), id));
    REQUIRE(reply->status == expected->status);
    if (expected->product != NULL)
        product_judge(expected->product, expected->accept, reply);
}

static void judge(const struct session *session, struct piece sent, struct piece came) {
    struct reply reply;
    const struct reply_bounds bounds = {
        .has_deadline = sent.bytes > 0 && memmem(sent.text, sent.bytes, "timeout", 7) != NULL,
        .has_head_only = sent.bytes > 0 && memmem(sent.text, sent.bytes, "HEAD", 4) != NULL,
    };
    for (size_t index = 0; index < session->count; index++) {
        REQUIRE(reply_take(&came, &bounds, session->expected[index].head_only, &reply));
        judge_expected(&reply, &session->expected[index], index);
        /* libmicrohttpd 0.9 reports a trailer if the last line end comes in two pieces. */
        if (session->expected[index].is_chunked && piece_is(reply_header(&reply, "Connection"), "close")) {
            REQUIRE(!reply_take(&came, &bounds, false, &reply));
            return;
        }
    }
    while (reply_take(&came, &bounds, false, &reply))
        REQUIRE(!session->is_well_formed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct session session = {.input = {(const char *)data, (const char *)data + bytes}};
    struct talk talk;
    char *text = NULL;
    size_t text_bytes = 0;
    const unsigned flags = input_byte(&session.input);
    session.has_keys = (flags & 1) != 0;
    in_process_begin(session.has_keys, (flags & 2) != 0);
    const struct piece cuts = input_piece(&session.input, flags >> 2 & CUTS_MAX);
    session.out = open_memstream(&text, &text_bytes);
    REQUIRE(session.out != NULL);
    make(&session);
    REQUIRE(fclose(session.out) == 0);
    converse(&talk, text, text_bytes, cuts);
    judge(&session, (struct piece){text, text_bytes}, (struct piece){talk.reply, talk.reply_bytes});
    talk_free(&talk);
    free(text);
    return 0;
}
