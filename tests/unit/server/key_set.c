/* server/key_set: lines that are taken and refused, each limit on both sides, and what finds a key. */
#include "server/auth/keys.h"
#include "tests/unit/unit.h"

#define KEY "0123456789abcde!"  /* of the least length */
#define KEY2 "0123456789abcde?" /* differs in the last character alone */
#define NAME_15 "n12345678901234"

static struct mm_error error;

static bool add(struct mm_key_set *set, const char *text) {
    error.detail[0] = '\0';
    return mm_key_set_add_text(set, text, strlen(text), &error) == MM_OK;
}

static bool has(const struct mm_key_set *set, const char *key) {
    return mm_key_set_find(set, key, strlen(key)) != MM_KEY_NONE;
}

/* `bytes` times a letter, and then the rest. */
static const char *repeated(size_t bytes, const char *rest) {
    static char text[512];
    memset(text, 'k', bytes);
    snprintf(text + bytes, sizeof text - bytes, "%s", rest);
    return text;
}

static void lines_are_judged(void **state) {
    static const struct {
        const char *text;
        const char *words; /* of the refusal; NULL: it is taken */
    } cases[] = {
        {KEY},
        {KEY "\n"},
        {KEY "\r\n"},
        {"# comment\n\n \t \n  # another\n" KEY},
        {" \t" KEY " \t\n"},
        {"alice " KEY},
        {"a.B-c_9\t  " KEY},
        {NAME_15 " " KEY},
        {"alice " KEY "\nalice " KEY2},
        {"alice #123456789abcde!"},
        {"", "it has no key"},
        {"\n# none\n", "it has no key"},
        {"0123456789abcde", "line 1: a key must have 16 to 256 characters, and this one has 15"},
        {"\n\nalice short", "line 3: a key must have 16 to 256 characters, and this one has 5"},
        {NAME_15 "5 " KEY, "line 1: a name must be at most 15"},
        {KEY " production-frontend", "line 1: a name must be"}, /* else the key would be shown */
        {"9lives " KEY, "line 1: a name must be"},
        {"a\"b " KEY, "line 1: a name must be"},
        {"alice " KEY " x", "line 1: a line must be KEY or NAME KEY"},
        {"0123456789abcd\xc3\xa9", "line 1: a key must be printable"},
        {"0123456789abcde\x7f", "line 1: a key must be printable"},
        {"\xef\xbb\xbf" KEY, "line 1: a key must be printable"},
        {"a " KEY "\nb " KEY, "line 2: its key stands in another line"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_key_set *set = mm_key_set_open();
        bool good = add(set, cases[index].text);
        if (good != (cases[index].words == NULL) ||
            (!good && strncmp(error.detail, cases[index].words, strlen(cases[index].words)) != 0))
            fail_msg("case %zu: %s '%s'", index, good ? "was taken" : "was refused with", error.detail);
        if (strstr(error.detail, "0123456789abcd") != NULL || strstr(error.detail, "short") != NULL)
            fail_msg("case %zu: a key is shown: '%s'", index, error.detail);
        mm_key_set_close(set);
    }
}

static void zeros_are_no_text(void **state) {
    struct mm_key_set *set = mm_key_set_open();
    assert_false(mm_key_set_add_text(set, KEY "\0x", sizeof KEY + 1, &error) == MM_OK);
    mm_key_set_close(set);
}

static void labels_are_names_or_lines(void **state) {
    struct mm_key_set *set = mm_key_set_open();
    assert_true(add(set, "# first\nalice " KEY "\n\n" KEY2 "\n"));
    assert_true(mm_key_set_add_list(set, KEY ",0123456789abcdef", &error) == MM_OK);
    assert_int_equal(set->count, 3);
    assert_string_equal(set->keys[mm_key_set_find(set, KEY, strlen(KEY))].label, "alice");
    assert_string_equal(set->keys[mm_key_set_find(set, KEY2, strlen(KEY2))].label, "4");
    assert_string_equal(set->keys[mm_key_set_find(set, "0123456789abcdef", 16)].label, "env:2");
    mm_key_set_close(set);
}

static void lists_are_judged(void **state) {
    static const struct {
        const char *list;
        const char *words; /* of the refusal; NULL: it is taken */
    } cases[] = {
        {KEY},
        {KEY "," KEY2},
        {KEY "," KEY},
        {"", "key 1: a key must have 16 to 256 characters, and this one has 0"},
        {KEY ",", "key 2: a key must have 16 to 256 characters, and this one has 0"},
        {KEY ", " KEY2, "key 2: a key must be printable"},
        {KEY ",short", "key 2: a key must have"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_key_set *set = mm_key_set_open();
        bool good = mm_key_set_add_list(set, cases[index].list, &error) == MM_OK;
        if (good != (cases[index].words == NULL) ||
            (!good && strstr(error.detail, cases[index].words) == NULL))
            fail_msg("case %zu: %s '%s'", index, good ? "was taken" : "was refused with", error.detail);
        mm_key_set_close(set);
    }
}

/* Every byte of a key counts, and nothing beside it. */
static void keys_are_found_whole(void **state) {
    struct mm_key_set *set = mm_key_set_open();
    assert_true(add(set, repeated(MM_KEY_BYTES_MAX, "\n" KEY "\n" KEY "longer")));
    assert_true(has(set, KEY));
    assert_true(has(set, KEY "longer"));
    assert_true(has(set, repeated(MM_KEY_BYTES_MAX, "")));
    assert_false(has(set, KEY2));
    assert_false(has(set, ""));
    assert_false(has(set, KEY "longe"));
    assert_false(has(set, KEY "longer "));
    assert_false(has(set, repeated(MM_KEY_BYTES_MAX - 1, "")));
    assert_false(has(set, repeated(MM_KEY_BYTES_MAX + 1, "")));
    assert_true(mm_key_set_find(set, KEY "\0", sizeof KEY) == MM_KEY_NONE);
    char near[MM_KEY_BYTES_MAX];
    for (size_t index = 0; index < sizeof near; index++) {
        memset(near, 'k', sizeof near);
        near[index] = 'l';
        assert_true(mm_key_set_find(set, near, sizeof near) == MM_KEY_NONE);
    }
    mm_key_set_close(set);
}

static void longest_key(void **state) {
    struct mm_key_set *set = mm_key_set_open();
    assert_true(add(set, repeated(MM_KEY_BYTES_MAX, "")));
    assert_false(add(set, repeated(MM_KEY_BYTES_MAX + 1, "")));
    assert_non_null(strstr(error.detail, "this one has 257"));
    mm_key_set_close(set);
}

/* 1024 keys, all of which are found at their own index, and one more. */
static void most_keys(void **state) {
    char *text = malloc(32 * (MM_KEYS_MAX + 1));
    size_t length = 0;
    for (unsigned number = 0; number < MM_KEYS_MAX; number++)
        length += (size_t)sprintf(text + length, "key-number-%08u\n", number);
    struct mm_key_set *set = mm_key_set_open();
    assert_true(add(set, text));
    for (unsigned number = 0; number < MM_KEYS_MAX; number++) {
        char key[32];
        sprintf(key, "key-number-%08u", number);
        assert_int_equal(mm_key_set_find(set, key, strlen(key)), number);
    }
    mm_key_set_close(set);
    sprintf(text + length, "key-number-%08u\n", (unsigned)MM_KEYS_MAX);
    set = mm_key_set_open();
    assert_false(add(set, text));
    assert_string_equal(error.detail, "line 1025: there may be 1024 keys, and this is one more");
    mm_key_set_close(set);
    free(text);
}

RUN_TESTS(lines_are_judged, zeros_are_no_text, labels_are_names_or_lines, lists_are_judged,
          keys_are_found_whole, longest_key, most_keys)
