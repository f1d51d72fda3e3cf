/* Fuzzes whole requests through the service in this process (in_process.h): one connection, on which the
 * input's pieces are sent one behind the other, cut into writes as the input says. A piece is
 *
 *   a product or transposition of product.h's: the reply must be the exact result
 *   a request of the other routes, well-formed: the reply must have the status that it is known to have
 *   a request put together from tables and from bytes of the input, with or without faults
 *   bytes of the input as they are
 *
 * Up to the first piece of the latter two, each is answered in its turn. All that comes back is judged by
 * replies.h; and when the connection is over the service holds nothing for it any more. */
#include "tests/fuzz/in_process.h"
#include "tests/fuzz/product.h"
#include "tests/fuzz/replies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 8, CUTS_MAX = 15, HEADERS_MAX = 7 };

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
    bool is_well_formed; /* each piece so far is */
    size_t count;
    struct expected expected[PIECES_MAX];
};

/* --- pieces that are well-formed */

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

/* --- pieces that need not be */

static const char *choose(struct input *input, const char *const *table, size_t count) {
    return table[input_byte(input) % count];
}
#define CHOOSE(input, table) choose(input, table, sizeof(table) / sizeof(table)[0])

static void put_header(struct session *session) {
    /* clang-format off */
    static const char *const headers[] = {
        "Content-Type: application/json", "Content-Type: application/octet-stream",
        "Content-Type: multipart/form-data; boundary=x", "Content-Type: multipart/form-data",
        "Content-Type: application/x-www-form-urlencoded", "Content-Type: text/plain",
        "Content-Type: application/json; charset=utf-16", "Accept: application/json",
        "Accept: application/octet-stream", "Accept: application/x-npy;q=0.5, text/plain",
        "Accept: text/plain", "Accept: */*;q=0", "Expect: 100-continue", "Expect: 200-ok",
        "Connection: close", "Connection: keep-alive", "Connection: upgrade", "Upgrade: h2c", "Host: fuzz",
        "Host:", "Host: a b", ("Authorization: Bearer " IN_PROCESS_KEY),
        "Authorization: Bearer 0123456789abcdef-none", "Authorization: Basic eDp5", "X-Request-Id: mine",
        "X-Request-Id: not/mine", "Origin: https://example.org", "Access-Control-Request-Method: POST",
        "Content-Length: 0", "Content-Length: 5", "Content-Length: +5", "Content-Length: 65537",
        "Content-Length: 99999999999999999999", "Content-Length: 18446744073709551615",
        "Content-Length: 5, 5", "Content-Length : 5", "Transfer-Encoding: chunked",
        "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding:\tchunked",
        " folded", "no colon", ": no name", "Range: bytes=0-1", "If-None-Match: *", "Cookie: a=b",
        "Cookie: a=\"b"};
    /* clang-format on */
    fprintf(session->out, "%s\r\n", CHOOSE(&session->input, headers));
}

static void put_line(struct session *session) {
    static const char *const methods[] = {"POST", "POST", "POST",  "GET",     "HEAD", "OPTIONS",
                                          "PUT",  "get",  "TRACE", "CONNECT", "",     "PO\tST"};
    /* clang-format off */
    static const char *const targets[] = {
        "/v1/matmul", "/v1/matmul?m=2&k=2&n=2", "/v1/matmul?m=1&k=0&n=3&variant=naive",
        "/v1/matmul?m=2&k=2&n=2&lda=3&ldb=4&transpose_a=1",
        "/v1/matmul?variant=tiled_16&dtype=float32&backend=cpu&timeout_ms=1",
        "/v1/matmul?verify=1&vendor=never&tile=16", "/v1/matmul?m=256&k=1&n=256",
        "/v1/matmul?m=-1&k=2&n=99999999999999999999999", "/v1/matmul?%00=1&=&&a", "/v1/matmul?m=2&m=3",
        "/v1/transpose", "/v1/transpose?m=2&n=3", "/v1/transpose?m=2&n=3&dtype=int64",
        "/v1/transpose?m=1&n=1&dtype=float64&variant=shared", "/v1/benchmark", "/v1/benchmark?m=1",
        "/v1/variants", "/healthz%00", "/healthz?x=%zz", "/%68ealthz", "http://fuzz/v1/matmul",
        "HTTP://fuzz", "//healthz", "*", "", "fuzz:80"};
    /* clang-format on */
    static const char *const versions[] = {"HTTP/1.1", "HTTP/1.1", "HTTP/1.1",  "HTTP/1.0",
                                           "HTTP/1.2", "HTTP/2.0", "HTTP/1.1 ", ""};
    fprintf(session->out, "%s ", CHOOSE(&session->input, methods));
    fprintf(session->out, "%s ", CHOOSE(&session->input, targets));
    fprintf(session->out, "%s\r\n", CHOOSE(&session->input, versions));
}

/* From a table, or bytes of the input. */
static struct piece take_body(struct input *input) {
    static const char *const bodies[] = {
        "{\"a\":[[1,2],[3,4]],\"b\":[[5,6],[7,8]]}",
        "{\"a\":[[1,2]],\"b\":[[3],[4]],\"variant\":\"tiled_8\",\"timeout_ms\":1}",
        "{\"a\":[[1,2],[3]],\"b\":[]}",
        "{\"a\":[[\"NaN\",-0]],\"b\":[[1e38],[\"-Infinity\"]],\"verify\":true}",
        "{\"a\":[[1,2,3]],\"dtype\":\"int32\"}",
        "{\"m\":4,\"k\":4,\"n\":4,\"repeats\":2}",
        "{\"m\":8,\"n\":8,\"op\":\"transpose\",\"variants\":[\"cpu:naive\"],\"repeats\":1}",
        "{\"op\":\"shared_access\"}",
        "{\"m\":256,\"k\":256,\"n\":256}",
        "--x\r\nContent-Disposition: form-data; name=\"variant\"\r\n\r\nnaive\r\n--x--\r\n",
        "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.npy\"\r\n\r\n\x93NUMPY\r\n--x--\r\n",
        "",
        "12345678901234567890123456789012",
    };
    const unsigned kind = input_byte(input);
    if (kind >= 128)
        return input_piece(input, input_byte(input) * 8u);
    const char *text = bodies[kind % (sizeof bodies / sizeof bodies[0])];
    return (struct piece){text, strlen(text)};
}

static void put_chunks(struct session *session, struct piece body, bool is_broken) {
    fputs("Transfer-Encoding: chunked\r\n\r\n", session->out);
    if (body.bytes > 0) {
        fprintf(session->out, "%zx%s\r\n", body.bytes + is_broken,
                body.bytes % 3 == 0 ? ";name=\"value\"" : "");
        fwrite(body.text, 1, body.bytes, session->out);
        fputs(is_broken ? "\n" : "\r\n", session->out);
    }
    fputs(body.bytes % 5 == 0 ? "0\r\nTrailer: t\r\n\r\n" : "0\r\n\r\n", session->out);
}

static void put_faulty(struct session *session) {
    struct input *input = &session->input;
    put_line(session);
    const unsigned flags = input_byte(input);
    if ((flags & 1) == 0)
        fputs("Host: fuzz\r\n", session->out);
    if ((flags & 2) == 0 && session->has_keys)
        fputs("Authorization: Bearer " IN_PROCESS_KEY "\r\n", session->out);
    for (size_t left = input_byte(input) % (HEADERS_MAX + 1); left > 0; left--)
        put_header(session);
    const struct piece body = take_body(input);
    switch (flags >> 2 & 7) {
    case 0:
    case 1:
    case 2:
        fprintf(session->out, "Content-Length: %zu\r\n\r\n", body.bytes);
        break;
    case 3:
        fprintf(session->out, "Content-Length: %zu\r\n\r\n", body.bytes + 1);
        break;
    case 4:
        fprintf(session->out, "Content-Length: %zu\r\n\r\n", body.bytes - (body.bytes > 0));
        break;
    case 5:
    case 6:
        put_chunks(session, body, (flags >> 2 & 7) == 6);
        return;
    default:
        fputs("\r\n", session->out);
    }
    fwrite(body.text, 1, body.bytes, session->out);
}

static void put_bytes(struct session *session) {
    const struct piece piece = input_piece(&session->input, input_byte(&session->input) * 4u);
    fwrite(piece.text, 1, piece.bytes, session->out);
}

/* --- the connection */

static void make(struct session *session) {
    session->is_well_formed = true;
    for (size_t left = PIECES_MAX; left > 0 && session->input.at < session->input.end; left--) {
        const unsigned kind = input_byte(&session->input) % 8;
        if (kind >= 5)
            session->is_well_formed = false;
        if (kind < 3)
            put_product(session);
        else if (kind < 5)
            put_plain(session);
        else if (kind < 7)
            put_faulty(session);
        else
            put_bytes(session);
        session->count += session->is_well_formed;
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
