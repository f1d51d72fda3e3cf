/* Fuzzes the guard, and what judges Host and Origin. The input's first line is the version, the second the
 * path, each further one a header, name:value. A head that is taken has to satisfy the rules as they are
 * written here once more. */
#include "server/http/guard.h"
#include "server/http/origin.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a head holds, counted without the guard. */
struct head {
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
};

static bool is_named(struct piece name, const char *word) {
    return name.bytes == strlen(word) && strncasecmp(name.text, word, name.bytes) == 0;
}

/* Control characters but the tab: those are what makes one line look like two. */
static bool has_control(struct piece text) {
    for (size_t index = 0; index < text.bytes; index++) {
        unsigned char byte = (unsigned char)text.text[index];
        if ((byte < 32 && byte != '\t') || byte == 127)
            return true;
    }
    return false;
}

static void require_digits(struct piece value) {
    char *text = fuzz_copy_text(value);
    REQUIRE(value.bytes > 0 && strspn(text, "0123456789") == value.bytes);
    REQUIRE(strlen(text + strspn(text, "0")) <= 19);
    REQUIRE(strtoull(text, NULL, 10) <= INT64_MAX);
    free(text);
}

/* Of the hosts that pass unlisted, none is a name that DNS could lead here. */
static void require_own(struct piece value) {
    char *host = fuzz_copy_text(value);
    struct mm_error error = {0};
    const size_t address = strspn(host, "0123456789.");
    const bool is_own = mm_origin_judge_host(NULL, host, &error) == MM_OK;
    REQUIRE(!is_own || host[0] == '[' || (address >= 7 && strchr(": \t", host[address]) != NULL) ||
            (strncasecmp(host, "localhost", 9) == 0 && strchr(".: \t", host[9]) != NULL));
    free(host);
}

/* An origin that passes ends with the host, or a port, a dot or both behind it. */
static void require_same_site(struct piece value) {
    char *origin = fuzz_copy_text(value);
    const char *host = strstr(origin, "://");
    struct mm_error error = {0};
    if (mm_origin_judge("POST", origin, "a.b", &error) == MM_OK)
        REQUIRE(host != NULL && strncasecmp(host + 3, "a.b", 3) == 0 &&
                strspn(host + 6, ".:0123456789 \t") == strlen(host + 6));
    free(origin);
}

/* That a header which the guard takes is harmless. */
static void require_harmless(struct head *head, struct piece name, struct piece value) {
    static const char separators[] = "()<>@,;:\\\"/[]?={} \t";
    REQUIRE(name.bytes > 0 && !has_control(name) && !has_control(value));
    for (size_t index = 0; index < name.bytes; index++)
        REQUIRE((unsigned char)name.text[index] < 127 && strchr(separators, name.text[index]) == NULL);
    head->hosts += is_named(name, "host");
    head->codings += is_named(name, "transfer-encoding");
    if (is_named(name, "transfer-encoding"))
        REQUIRE(is_named(value, "chunked"));
    if (is_named(name, "host")) {
        require_own(value);
        for (size_t index = 0; index < value.bytes; index++)
            REQUIRE(strchr("/@?#,\\\"<>{}|^`", value.text[index]) == NULL);
    }
    if (is_named(name, "origin"))
        require_same_site(value);
    if (is_named(name, "content-length")) {
        head->lengths++;
        require_digits(value);
    }
}

static enum mm_status judge_header(struct mm_guard *guard, struct piece name, struct piece value) {
    char *name_copy = fuzz_copy_bytes(name);
    char *value_copy = fuzz_copy_bytes(value);
    enum mm_status status = mm_guard_header(guard, name_copy, name.bytes, value_copy, value.bytes);
    free(name_copy);
    free(value_copy);
    return status;
}

static enum mm_status judge(const char *version, const char *path, struct piece headers,
                            struct mm_error *error) {
    struct mm_guard guard;
    struct head head = {0};
    bool http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    enum mm_status status = mm_guard_begin(&guard, version, path, error);
    REQUIRE((status != MM_OK) == has_control((struct piece){path, strlen(path)}));
    while (status == MM_OK && headers.bytes > 0) {
        struct piece value = fuzz_take(&headers, '\n');
        struct piece name = fuzz_take(&value, ':');
        status = judge_header(&guard, name, value);
        if (status == MM_OK)
            require_harmless(&head, name, value);
    }
    if (status != MM_OK)
        return status;
    status = mm_guard_end(&guard);
    REQUIRE(head.hosts <= 1 && head.lengths <= 1 && head.codings <= 1 && (!http_1_0 || head.codings == 0));
    REQUIRE((status == MM_OK) == ((head.hosts == 1 || http_1_0) && head.lengths + head.codings <= 1));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct piece rest = {(const char *)data, bytes};
    char *version = fuzz_copy_text(fuzz_take(&rest, '\n'));
    char *path = fuzz_copy_text(fuzz_take(&rest, '\n'));
    struct mm_error error = {0};
    enum mm_status status = judge(version, path, rest, &error);
    REQUIRE(status == MM_OK || status == MM_BAD_REQUEST);
    if (status == MM_OK)
        REQUIRE(error.status == MM_OK);
    else
        fuzz_require_error(status, &error);
    free(path);
    free(version);
    return 0;
}
