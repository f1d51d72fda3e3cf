/* Fuzzes what API keys are read from: a key file's text, a list from the environment, and the header that
 * brings one. The input is a header's value, a line; the list, a line; and the file. Each is judged by its
 * rules as they are written here once more, and a key is let in where one of the readings has it. */
#include "server/auth/bearer.h"
#include "server/auth/keys.h"

#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEYS_MAX = 256 };

/* The keys that a text has by the rules, and what each is counted under. */
struct expected {
    bool is_good;
    size_t count;
    const char *keys[KEYS_MAX];
    char labels[KEYS_MAX][MM_KEY_NAME_MAX + 1];
};

static bool is_key(const char *text) {
    const size_t bytes = strlen(text);
    for (size_t index = 0; index < bytes; index++)
        if (text[index] < '!' || text[index] > '~')
            return false;
    return bytes >= 16 && bytes <= 256;
}

static bool is_name(const char *text) {
    return isalpha((unsigned char)text[0]) && strlen(text) <= 15 &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0';
}

static bool has(const struct expected *expected, const char *key, size_t bytes) {
    for (size_t index = 0; index < expected->count; index++)
        if (strlen(expected->keys[index]) == bytes && memcmp(expected->keys[index], key, bytes) == 0)
            return true;
    return false;
}

static char *add(struct expected *expected, const char *key) {
    REQUIRE(expected->count < KEYS_MAX);
    expected->keys[expected->count] = key;
    return expected->labels[expected->count++];
}

static bool expect_line(struct expected *expected, char *line, size_t number) {
    char *words[3] = {NULL}, *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word != NULL && count < 3;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    if (count == 0 || words[0][0] == '#')
        return true;
    const char *key = words[count == 2];
    if (count > 2 || !is_key(key) || has(expected, key, strlen(key)) || (count == 2 && !is_name(words[0])))
        return false;
    char *label = add(expected, key);
    if (count == 2)
        snprintf(label, MM_KEY_NAME_MAX + 1, "%s", words[0]);
    else
        snprintf(label, MM_KEY_NAME_MAX + 1, "%zu", number);
    return true;
}

/* Takes the text apart. */
static struct expected expect_text(char *text) {
    struct expected expected = {.is_good = true};
    for (size_t number = 1; text != NULL && expected.is_good; number++)
        expected.is_good = expect_line(&expected, strsep(&text, "\n"), number);
    expected.is_good &= expected.count > 0;
    return expected;
}

static struct expected expect_list(char *list) {
    struct expected expected = {.is_good = true};
    for (size_t number = 1; list != NULL && expected.is_good; number++) {
        const char *key = strsep(&list, ",");
        if (has(&expected, key, strlen(key)))
            continue;
        expected.is_good = is_key(key);
        if (expected.is_good)
            snprintf(add(&expected, key), MM_KEY_NAME_MAX + 1, "env:%zu", number);
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

/* `text` is what came; `expected` is taken from a copy of it. */
static void judge(struct mm_key_set *set, enum mm_status status, const struct expected *expected,
                  const struct mm_error *error, struct piece text) {
    REQUIRE((status == MM_OK) == expected->is_good);
    if (status != MM_OK) {
        require_sentence(error, text);
        return;
    }
    REQUIRE(set->count == expected->count);
    for (size_t index = 0; index < expected->count; index++) {
        const size_t bytes = strlen(expected->keys[index]);
        char *copy = fuzz_copy_bytes((struct piece){expected->keys[index], bytes});
        REQUIRE(mm_key_set_find(set, copy, bytes) == index);
        REQUIRE(mm_key_set_find(set, copy, bytes - 1) == MM_KEY_NONE || has(expected, copy, bytes - 1));
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
    REQUIRE(bytes == wanted.bytes && (bytes == 0 || memcmp(key, wanted.text, bytes) == 0));
    if (bytes > 0 && expected->is_good)
        REQUIRE((mm_key_set_find(set, key, bytes) != MM_KEY_NONE) == has(expected, key, bytes));
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
    memset(&error, 0x7f, sizeof error);
    const enum mm_status status = mm_key_set_add_text(of_text, text, rest.bytes, &error);
    /* A zero byte is as little of a key as another control character. */
    for (size_t index = 0; index < rest.bytes; index++)
        if (text[index] == '\0')
            text[index] = '\x01';
    char *apart = fuzz_copy_text((struct piece){text, rest.bytes});
    const struct expected by_text = expect_text(apart);
    judge(of_text, status, &by_text, &error, rest);
    judge_header(of_text, header, &by_text);

    memset(&error, 0x7f, sizeof error);
    const enum mm_status list_status = mm_key_set_add_list(of_list, list, &error);
    char *list_apart = fuzz_copy_text((struct piece){list, strlen(list)});
    const struct expected by_list = expect_list(list_apart);
    judge(of_list, list_status, &by_list, &error, (struct piece){list, strlen(list)});
    judge_header(of_list, header, &by_list);
    mm_key_set_close(of_text);
    mm_key_set_close(of_list);
    free(list_apart);
    free(apart);
    free(text);
    free(list);
    return 0;
}
