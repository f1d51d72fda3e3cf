/* server/keys: keys that are replaced while threads ask for them, and the counts, which outlive that. */
#include "server/auth/keys.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAYS "this-key-stays-0"
#define GOES "this-key-goes-01"
#define COMES "this-key-comes-2"

enum { THREADS = 4, RELOADS = 200 };

static char path[] = "keys.XXXXXX";
static struct mm_error error;

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
    return mm_keys_admit(keys, key, strlen(key));
}

/* The count of a label; there must be exactly one of it. */
static uint64_t requests_of(const struct mm_keys *keys, const char *label) {
    uint64_t requests = 0;
    unsigned seen = 0;
    for (size_t index = 0; index < mm_keys_label_count(keys); index++) {
        if (strcmp(mm_keys_label(keys, index), label) == 0) {
            requests = mm_keys_requests(keys, index);
            seen++;
        }
    }
    assert_int_equal(seen, 1);
    return requests;
}

static void none_are_asked_for(void **state) {
    const struct mm_options options = {0};
    assert_null(open_keys(&options));
    mm_keys_close(NULL);
}

static void file_and_environment_are_one(void **state) {
    const struct mm_options options = {.api_key_file = path, .api_key = COMES "," STAYS};
    write_file("alice " STAYS "\n");
    struct mm_keys *keys = open_keys(&options);
    assert_true(admits(keys, STAYS));
    assert_true(admits(keys, COMES));
    assert_false(admits(keys, GOES));
    assert_int_equal(requests_of(keys, "alice"), 1);
    assert_int_equal(requests_of(keys, "env:1"), 1);
    mm_keys_close(keys);
}

static void bad_files_are_refused(void **state) {
    static const struct {
        const char *file;
        const char *words;
    } cases[] = {
        {"there-is-none", "the key file there-is-none: No such file"},
        {"/dev/null", "no regular file"},
        {".", "no regular file"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_options options = {.api_key_file = cases[index].file};
        struct mm_keys *keys;
        assert_int_equal(mm_keys_open(&options, &keys, &error), MM_BAD_REQUEST);
        if (strstr(error.detail, cases[index].words) == NULL)
            fail_msg("%s: '%s'", cases[index].file, error.detail);
    }
}

static void files_have_a_limit(void **state) {
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
}

static void a_bad_file_changes_nothing(void **state) {
    const struct mm_options options = {.api_key_file = path};
    write_file("a " STAYS "\nb " GOES "\n");
    struct mm_keys *keys = open_keys(&options);
    write_file("c " COMES "\nshort\n");
    mm_keys_reload(keys);
    assert_true(admits(keys, STAYS));
    assert_true(admits(keys, GOES));
    assert_false(admits(keys, COMES));
    write_file("a " STAYS "\nc " COMES "\n");
    mm_keys_reload(keys);
    assert_true(admits(keys, STAYS));
    assert_false(admits(keys, GOES));
    assert_true(admits(keys, COMES));
    assert_int_equal(requests_of(keys, "a"), 2);
    assert_int_equal(requests_of(keys, "b"), 1);
    mm_keys_close(keys);
}

/* A file of as many keys as there may be, whose names no other such file has. */
static void write_names(unsigned first) {
    enum { KEYS = 1024 };
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    for (unsigned name = first; name < first + KEYS; name++)
        fprintf(file, "name-%u key-of-this-name-%08u\n", name, name);
    assert_int_equal(fclose(file), 0);
}

/* Over all names that one process can count. */
static void names_run_out(void **state) {
    const struct mm_options options = {.api_key_file = path};
    write_names(0);
    struct mm_keys *keys = open_keys(&options);
    for (unsigned reload = 1; reload < 4; reload++) {
        write_names(1024 * reload);
        mm_keys_reload(keys);
    }
    assert_int_equal(mm_keys_label_count(keys), 4096);
    assert_true(admits(keys, "key-of-this-name-00004095"));
    write_file("one-more " STAYS "\n");
    mm_keys_reload(keys);
    assert_int_equal(mm_keys_label_count(keys), 4096);
    assert_false(admits(keys, STAYS));
    assert_true(admits(keys, "key-of-this-name-00004095"));
    assert_int_equal(requests_of(keys, "name-4095"), 2);
    mm_keys_close(keys);
}

struct asking {
    struct mm_keys *keys;
    int stop; /* __atomic access only */
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

/* The sanitizers see whether a set is used after its end. */
static void keys_change_while_they_are_asked(void **state) {
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

RUN_TESTS_BETWEEN(make_file, remove_file, none_are_asked_for, file_and_environment_are_one,
                  files_have_a_limit, bad_files_are_refused, a_bad_file_changes_nothing, names_run_out,
                  keys_change_while_they_are_asked)
