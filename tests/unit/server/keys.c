/* Tests API keys: the syntax of key files, limits, lookup, concurrent reloading, and counters. */
#include "server/auth/keys.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "0123456789abcde!"  /* the shortest allowed key */
#define KEY2 "0123456789abcde?" /* differs in the last character only */
#define NAME_15 "n12345678901234"

#define STAYS "this-key-stays-0"
#define GOES "this-key-goes-01"
#define COMES "this-key-comes-2"

enum { THREADS = 4, RELOADS = 200 };

static char path[] = "keys.XXXXXX";
static struct mm_error error;

/* The copy has exactly the text's size, so a sanitizer reports reads past its end. */
static bool add(struct mm_key_set *set, const char *text) {
    const size_t bytes = strlen(text);
    char *exact = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    error.detail[0] = '\0';
    const bool is_good = mm_key_set_add_text(set, exact, bytes, &error) == MM_OK;
    free(exact);
    return is_good;
}

static bool has(const struct mm_key_set *set, const char *key) {
    return mm_key_set_find(set, key, strlen(key)) != MM_KEY_NONE;
}

/* Returns `bytes` copies of a letter, followed by `rest`. */
static const char *repeated(size_t bytes, const char *rest) {
    static char text[512];
    memset(text, 'k', bytes);
    snprintf(text + bytes, sizeof text - bytes, "%s", rest);
    return text;
}

struct key_case {
    const char *text;
    const char *words; /* first words of the error; NULL if the text is accepted */
};

static void check(const struct key_case *row, bool is_list) {
    struct mm_key_set *set = mm_key_set_open();
    error.detail[0] = '\0';
    const bool good = is_list ? mm_key_set_add_list(set, row->text, &error) == MM_OK : add(set, row->text);
    if (good != (row->words == NULL) || (!good && strncmp(error.detail, row->words, strlen(row->words)) != 0))
        fail_msg("'%s': %s '%s'", row->text, good ? "was accepted" : "was refused with", error.detail);
    if (strstr(error.detail, "0123456789abcd") != NULL || strstr(error.detail, "short") != NULL)
        fail_msg("'%s': a key is shown: '%s'", row->text, error.detail);
    mm_key_set_close(set);
}

static void key_files_and_lists_are_checked(void **state) {
    static const struct key_case texts[] = {
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
        {KEY " production-frontend", "line 1: a name must be"}, /* the error must not show the key */
        {"unnamed " KEY, "line 1: a name must be"},
        {"other " KEY, "line 1: a name must be"},
        {"9lives " KEY, "line 1: a name must be"},
        {"a\"b " KEY, "line 1: a name must be"},
        {"alice " KEY " x", "line 1: a line must be KEY or NAME KEY"},
        {"0123456789abcd\xc3\xa9", "line 1: a key must be printable"},
        {"0123456789abcde\x7f", "line 1: a key must be printable"},
        {"\xef\xbb\xbf" KEY, "line 1: a key must be printable"},
        {"a " KEY "\nb " KEY, "line 2: the key is already on another line"},
    };
    static const struct key_case lists[] = {
        {KEY},
        {KEY "," KEY2},
        {KEY "," KEY},
        {"", "key 1: a key must have 16 to 256 characters, and this one has 0"},
        {KEY ",", "key 2: a key must have 16 to 256 characters, and this one has 0"},
        {KEY ", " KEY2, "key 2: a key must be printable"},
        {KEY ",short", "key 2: a key must have"},
    };
    for (size_t index = 0; index < COUNT(texts); index++)
        check(&texts[index], false);
    for (size_t index = 0; index < COUNT(lists); index++)
        check(&lists[index], true);
    struct mm_key_set *set = mm_key_set_open();
    assert_false(mm_key_set_add_text(set, KEY "\0x", sizeof KEY + 1, &error) == MM_OK);
    mm_key_set_close(set);
}

/* A key is compared as a whole, with no byte missing or added. */
static void only_whole_keys_match(void **state) {
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
    assert_false(add(set, repeated(MM_KEY_BYTES_MAX + 1, "")));
    assert_non_null(strstr(error.detail, "this one has 257"));
    assert_true(mm_key_set_find(set, KEY "\0", sizeof KEY) == MM_KEY_NONE);
    char near[MM_KEY_BYTES_MAX];
    for (size_t index = 0; index < sizeof near; index++) {
        memset(near, 'k', sizeof near);
        near[index] = 'l';
        assert_true(mm_key_set_find(set, near, sizeof near) == MM_KEY_NONE);
    }
    mm_key_set_close(set);
}

/* The largest set is accepted, and one more key is rejected. */
static void largest_key_set_is_accepted(void **state) {
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

static void write_file(const char *text) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct mm_keys *open_keys(const struct mm_options *options) {
    struct mm_keys *keys = NULL;
    if (mm_keys_open(options, &keys, &error) != MM_OK)
        fail_msg("%s", error.detail);
    return keys;
}

static bool admits(struct mm_keys *keys, const char *key) {
    struct mm_key_owner owner;
    return mm_keys_admit(keys, key, strlen(key), &owner);
}

/* Returns the number of requests under the name, which must have only one account. */
static uint64_t requests_of(const struct mm_keys *keys, const char *name) {
    const struct mm_account *found = NULL;
    for (size_t index = 0; index < mm_keys_account_count(keys); index++) {
        const struct mm_account *account = mm_keys_account(keys, index);
        if (strcmp(account->name, name) == 0) {
            assert_null(found);
            found = account;
        }
    }
    assert_non_null(found);
    return found->requests;
}

static void files_are_regular_and_have_a_limit(void **state) {
    enum { BYTES_MAX = 1 << 20 };
    static char text[BYTES_MAX + 2] = STAYS;
    const struct mm_options options = {.api_key_file = path};
    struct mm_keys *keys;
    memset(text + strlen(STAYS), '\n', BYTES_MAX - strlen(STAYS));
    write_file(text);
    mm_keys_close(open_keys(&options));
    text[BYTES_MAX] = '\n';
    write_file(text);
    assert_int_equal(mm_keys_open(&options, &keys, &error), MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "it may have 1048576 bytes, and has more"));
    EACH(no_file, "/dev/null|.") {
        const struct mm_options bad = {.api_key_file = no_file};
        assert_int_equal(mm_keys_open(&bad, &keys, &error), MM_BAD_REQUEST);
        assert_non_null(strstr(error.detail, "no regular file"));
    }
}

/* Writes a file with the largest number of keys. Each file has other names. */
static void write_names(unsigned first) {
    enum { KEYS = 1024 };
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    for (unsigned name = first; name < first + KEYS; name++)
        fprintf(file, "name-%u key-of-this-name-%08u\n", name, name);
    assert_int_equal(fclose(file), 0);
}

/* The first 256 names since the start have accounts, which a reload does not take away. Later names share the
 * account "other", but keep their name for the log. Keys without a name share the account "unnamed". */
static void count_of_accounts_is_limited(void **state) {
    const struct mm_options options = {.api_key_file = path};
    struct mm_key_owner owner;
    write_names(0);
    struct mm_keys *keys = open_keys(&options);
    assert_int_equal(mm_keys_account_count(keys), 258);
    assert_true(admits(keys, "key-of-this-name-00000255"));
    assert_true(admits(keys, "key-of-this-name-00000256"));
    assert_true(mm_keys_admit(keys, "key-of-this-name-00001023", 25, &owner));
    assert_string_equal(owner.name, "name-1023");
    write_file("one-more " STAYS "\n" GOES "\n" COMES "\nname-255 key-of-this-name-00000255\n");
    mm_keys_reload(keys);
    assert_int_equal(mm_keys_account_count(keys), 258);
    assert_true(admits(keys, "key-of-this-name-00000255") && admits(keys, STAYS));
    assert_true(admits(keys, COMES) && mm_keys_admit(keys, GOES, strlen(GOES), &owner));
    assert_string_equal(owner.name, "unnamed");
    assert_int_equal(requests_of(keys, "name-255"), 2);
    assert_int_equal(requests_of(keys, "other"), 3);
    assert_int_equal(requests_of(keys, "unnamed"), 2);
    mm_keys_close(keys);
}

static uint64_t space_of(struct mm_keys *keys, const char *key) {
    struct mm_key_owner owner = {.space = 0};
    assert_true(mm_keys_admit(keys, key, strlen(key), &owner));
    assert_true(owner.space > 0);
    return owner.space;
}

/* All keys with one name use the same namespace. A key without a name has a namespace of its own. If a reload
 * drops a namespace, the namespace is never used again. */
static void namespaces_belong_to_names_or_keys(void **state) {
    const struct mm_options options = {.api_key_file = path};
    uint64_t spaces[MM_KEYS_MAX], newest;
    write_file("a " STAYS "\n" GOES "\n");
    struct mm_keys *keys = open_keys(&options);
    const uint64_t named = space_of(keys, STAYS), nameless = space_of(keys, GOES);
    assert_true(named != nameless);
    write_file("# first\n" GOES "\na " COMES "\na " STAYS "\n");
    mm_keys_reload(keys);
    assert_int_equal(space_of(keys, COMES), named);
    assert_int_equal(space_of(keys, STAYS), named);
    assert_int_equal(space_of(keys, GOES), nameless);
    assert_int_equal(mm_keys_spaces(keys, spaces, &newest), 3);
    assert_int_equal(newest, 2);
    write_file("b " STAYS "\nc " GOES "\n");
    mm_keys_reload(keys);
    const uint64_t renamed = space_of(keys, STAYS), got_name = space_of(keys, GOES);
    assert_true(renamed != named && got_name != nameless && renamed != got_name);
    write_file("a " STAYS "\n" GOES "\n");
    mm_keys_reload(keys);
    assert_true(space_of(keys, STAYS) > got_name && space_of(keys, GOES) > got_name);
    write_file("a " STAYS "\n");
    mm_keys_reload(keys);
    assert_int_equal(mm_keys_spaces(keys, spaces, &newest), 1);
    assert_int_equal(newest, 6); /* includes keys that were removed */
    mm_keys_close(keys);
}

struct asking {
    struct mm_keys *keys;
    int stop; /* atomic */
    uint64_t admitted;
    uint64_t refused;
};

static void *ask(void *argument) {
    struct asking *asking = argument;
    do {
        if (admits(asking->keys, STAYS))
            asking->admitted++;
        else
            asking->refused++;
        (void)admits(asking->keys, GOES);
    } while (__atomic_load_n(&asking->stop, __ATOMIC_RELAXED) == 0);
    return NULL;
}

/* If a thread used a set of keys after it is freed, a sanitizer would report it. */
static void keys_can_be_reloaded_during_checks(void **state) {
    const struct mm_options options = {.api_key_file = path};
    struct asking asking[THREADS];
    pthread_t threads[THREADS];
    uint64_t admitted = 0;
    write_file("a " STAYS "\nb " GOES "\n");
    struct mm_keys *keys = open_keys(&options);
    for (size_t index = 0; index < THREADS; index++) {
        asking[index] = (struct asking){.keys = keys};
        assert_int_equal(pthread_create(&threads[index], NULL, ask, &asking[index]), 0);
    }
    for (unsigned reload = 0; reload < RELOADS; reload++) {
        write_file(reload % 2 == 0 ? "c " COMES "\na " STAYS "\n" : "a " STAYS "\nb " GOES "\n");
        mm_keys_reload(keys);
        assert_int_equal(admits(keys, GOES), reload % 2 == 1);
    }
    for (size_t index = 0; index < THREADS; index++) {
        __atomic_store_n(&asking[index].stop, 1, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(threads[index], NULL), 0);
        assert_int_equal(asking[index].refused, 0);
        admitted += asking[index].admitted;
    }
    assert_int_equal(requests_of(keys, "a"), admitted);
    mm_keys_close(keys);
}

static int make_file(void **state) {
    strcpy(path, "keys.XXXXXX");
    int file = mkstemp(path);
    return file >= 0 && close(file) == 0 && chmod(path, 0600) == 0 ? 0 : -1;
}

static int remove_file(void **state) {
    return unlink(path);
}

RUN_TESTS_BETWEEN(make_file, remove_file, key_files_and_lists_are_checked, only_whole_keys_match,
                  largest_key_set_is_accepted, files_are_regular_and_have_a_limit,
                  count_of_accounts_is_limited, namespaces_belong_to_names_or_keys,
                  keys_can_be_reloaded_during_checks)
