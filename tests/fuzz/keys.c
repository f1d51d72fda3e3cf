/* Fuzzes what API keys are read from: a key file's text, a list from the environment, and the header that
 * brings one. The input is a header's value, a line; the list, a line; and the file. Each is judged by its
 * rules as they are written here once more, and a key is let in where one of the readings has it. */
#include "server/auth/bearer.h"
#include "server/auth/keys.h"

#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEYS_MAX = 256 };

/* The keys that a text has by the rules, and what each is counted under. */
struct expected {
    bool is_good;
    size_t count;
    struct piece keys[KEYS_MAX];
    char labels[KEYS_MAX][MM_KEY_NAME_MAX + 1];
};

static bool same(struct piece x, struct piece y) {
    return x.bytes == y.bytes && (x.bytes == 0 || memcmp(x.text, y.text, x.bytes) == 0);
}

static bool is_one_of(struct piece piece, const char *first, const char *last) {
    for (size_t index = 0; index < piece.bytes; index++)
        if (piece.text[index] < *first || piece.text[index] > *last)
            return false;
    return true;
}

static bool is_key(struct piece piece) {
    return piece.bytes >= 16 && piece.bytes <= 256 && is_one_of(piece, "!", "~");
}

static bool is_name(struct piece piece) {
    char text[16];
    if (piece.bytes < 1 || piece.bytes > 15 || memchr(piece.text, '\0', piece.bytes) != NULL)
        return false;
    memcpy(text, piece.text, piece.bytes);
    text[piece.bytes] = '\0';
    return ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z') &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0';
}

static bool has(const struct expected *expected, struct piece key) {
    for (size_t index = 0; index < expected->count; index++)
        if (same(expected->keys[index], key))
            return true;
    return false;
}

static void add(struct expected *expected, struct piece key, const char *label, size_t label_bytes) {
    REQUIRE(expected->count < KEYS_MAX);
    snprintf(expected->labels[expected->count], sizeof expected->labels[0], "%.*s", (int)label_bytes, label);
    expected->keys[expected->count++] = key;
}

/* The line's words, of which the first three are kept. */
static size_t split(struct piece line, struct piece *words) {
    size_t count = 0;
    bool in_word = false;
    for (size_t index = 0; index < line.bytes; index++) {
        const bool is_space = line.text[index] == ' ' || line.text[index] == '\t' || line.text[index] == '\r';
        if (!is_space && !in_word && count < 3)
            words[count++] = (struct piece){line.text + index, 0};
        in_word = !is_space;
        if (in_word && count > 0)
            words[count - 1].bytes = (size_t)(line.text + index + 1 - words[count - 1].text);
    }
    return count;
}

static bool expect_line(struct expected *expected, struct piece line, size_t number) {
    struct piece words[3];
    char digits[24];
    const size_t count = split(line, words);
    if (count == 0 || words[0].text[0] == '#')
        return true;
    const struct piece key = words[count == 2];
    if (count > 2 || !is_key(key) || has(expected, key) || (count == 2 && !is_name(words[0])))
        return false;
    const int length = snprintf(digits, sizeof digits, "%zu", number);
    if (count == 2)
        add(expected, key, words[0].text, words[0].bytes);
    else
        add(expected, key, digits, (size_t)length);
    return true;
}

static struct expected expect_text(struct piece text) {
    struct expected expected = {.is_good = true};
    for (size_t number = 1; text.bytes > 0 && expected.is_good; number++)
        expected.is_good = expect_line(&expected, fuzz_take(&text, '\n'), number);
    expected.is_good &= expected.count > 0;
    return expected;
}

static struct expected expect_list(const char *list) {
    struct expected expected = {.is_good = true};
    for (size_t number = 1; expected.is_good && list != NULL; number++) {
        char label[32];
        const char *comma = strchr(list, ',');
        const struct piece key = {list, comma == NULL ? strlen(list) : (size_t)(comma - list)};
        const int length = snprintf(label, sizeof label, "env:%zu", number);
        list = comma == NULL ? NULL : comma + 1;
        if (has(&expected, key))
            continue;
        expected.is_good = is_key(key);
        if (expected.is_good)
            add(&expected, key, label, (size_t)length);
    }
    return expected;
}

/* That no word of what came, which may be a key or the half of one, stands in the sentence. */
static void require_sentence(const struct mm_error *error, struct piece text) {
    static const char known[] =
        " a key must have be to characters printable of ascii and this one has others "
        "line its stands in another already more words or name ";
    REQUIRE(memchr(error->detail, '\0', sizeof error->detail) != NULL && error->detail[0] != '\0');
    for (size_t index = 0; index + 12 <= text.bytes; index++) {
        char part[13];
        memcpy(part, text.text + index, 12);
        part[12] = '\0';
        REQUIRE(strlen(part) < 12 || strchr(part, ' ') != NULL || strstr(known, part) != NULL ||
                strstr(error->detail, part) == NULL);
    }
}

static void judge(struct mm_key_set *set, bool good, const struct expected *expected,
                  const struct mm_error *error, struct piece text) {
    REQUIRE(good == expected->is_good);
    if (!good) {
        require_sentence(error, text);
        return;
    }
    REQUIRE(set->count == expected->count);
    for (size_t index = 0; index < expected->count; index++) {
        const struct piece key = expected->keys[index];
        char *copy = fuzz_copy_bytes(key);
        REQUIRE(mm_key_set_find(set, copy, key.bytes) == index);
        REQUIRE(mm_key_set_find(set, copy, key.bytes - 1) == MM_KEY_NONE ||
                has(expected, (struct piece){key.text, key.bytes - 1}));
        REQUIRE(strcmp(set->keys[index].label, expected->labels[index]) == 0);
        free(copy);
    }
}

/* RFC 6750, 2.1, and RFC 9110, 5.5: the scheme in any case, spaces, the key, and spaces that do not count. */
static void judge_header(const struct mm_key_set *set, struct piece value, const struct expected *expected) {
    const char *key = NULL;
    char *copy = fuzz_copy_bytes(value);
    const size_t bytes = mm_bearer_key(copy, value.bytes, &key);
    struct piece wanted = {NULL, 0};
    if (value.bytes > 7 && strncasecmp(value.text, "bearer ", 7) == 0) {
        wanted = (struct piece){value.text + 7, value.bytes - 7};
        while (wanted.bytes > 0 && (*wanted.text == ' ' || *wanted.text == '\t'))
            wanted = (struct piece){wanted.text + 1, wanted.bytes - 1};
        while (wanted.bytes > 0 &&
               (wanted.text[wanted.bytes - 1] == ' ' || wanted.text[wanted.bytes - 1] == '\t'))
            wanted.bytes--;
    }
    REQUIRE(same((struct piece){key, bytes}, wanted));
    if (bytes > 0 && expected->is_good)
        REQUIRE((mm_key_set_find(set, key, bytes) != MM_KEY_NONE) == has(expected, wanted));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct mm_error error;
    struct piece rest = {(const char *)data, bytes};
    const struct piece header = fuzz_take(&rest, '\n');
    char *list = fuzz_copy_text(fuzz_take(&rest, '\n'));
    char *text = fuzz_copy_bytes(rest);
    struct mm_key_set *of_list = mm_key_set_open(), *of_text = mm_key_set_open();
    REQUIRE(of_list != NULL && of_text != NULL);
    const struct expected by_list = expect_list(list), by_text = expect_text(rest);
    memset(&error, 0x7f, sizeof error);
    const bool good = mm_key_set_add_list(of_list, list, &error) == MM_OK;
    judge(of_list, good, &by_list, &error, (struct piece){list, strlen(list)});
    memset(&error, 0x7f, sizeof error);
    const bool good_text = mm_key_set_add_text(of_text, text, rest.bytes, &error) == MM_OK;
    judge(of_text, good_text, &by_text, &error, rest);
    judge_header(of_text, header, &by_text);
    judge_header(of_list, header, &by_list);
    mm_key_set_close(of_text);
    mm_key_set_close(of_list);
    free(text);
    free(list);
    return 0;
}
