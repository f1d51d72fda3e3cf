/* The keys in force behind one pointer, how their file is read, and how a set is put in another's place. */
#include "server/keys.h"

#include "server/key_set.h"
#include "server/log.h"
#include "server/secret_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LABELS_MAX = 4 * MM_KEYS_MAX, CACHE_LINE_BYTES = 64, WAIT_NS = 100000, SENTENCE_MAX = 256 };

struct counter {
    uint64_t requests; /* __atomic access only */
    char label[MM_KEY_NAME_MAX + 1];
};

struct in_force {
    struct mm_key_set *set;
    unsigned counters[MM_KEYS_MAX]; /* of each key */
};

struct judging {
    uint64_t count; /* __atomic access only */
    char apart[CACHE_LINE_BYTES];
};

/* Who judges is counted in one of `judging` from before it loads `current` to when it is done with the set.
 * So whoever holds a set that was replaced was counted before that, and once both counts have been seen at 0
 * since, in whichever order, nobody does. That those who come meanwhile count in the other one is for the
 * wait to end. */
struct mm_keys {
    const struct mm_options *options;
    struct in_force *current; /* __atomic access only */
    struct judging judging[2];
    unsigned side;      /* where the next are counted; __atomic access only */
    size_t label_count; /* of counters that are complete; __atomic access only */
    struct counter counters[LABELS_MAX];
};

static void free_in_force(struct in_force *keys) {
    if (keys != NULL)
        mm_key_set_close(keys->set);
    free(keys);
}

static bool add_file(struct mm_key_set *set, const char *path, char *problem, size_t size) {
    enum { MOST = MM_KEY_TEXT_BYTES_MAX + 1 }; /* a byte more than may be there tells that there is more */
    static const char what[] = "the key file";
    char sentence[SENTENCE_MAX];
    struct mm_secret_file file;
    if (!mm_secret_file_read(what, path, MOST, true, &file, problem, size))
        return false;
    const bool good = mm_key_set_add_text(set, file.text, file.bytes, sentence, sizeof sentence);
    mm_secret_file_wipe(&file);
    return good ? true : mm_secret_file_fail(what, path, sentence, problem, size);
}

static bool add_environment(struct mm_key_set *set, const char *list, char *problem, size_t size) {
    char sentence[SENTENCE_MAX];
    if (mm_key_set_add_list(set, list, sentence, sizeof sentence))
        return true;
    snprintf(problem, size, "MATMULD_API_KEY: %s", sentence);
    return false;
}

/* The counter of a label; LABELS_MAX where there is no room for another. */
static unsigned find_counter(struct mm_keys *keys, const char *label) {
    size_t count = mm_keys_label_count(keys);
    for (unsigned index = 0; index < count; index++)
        if (strcmp(keys->counters[index].label, label) == 0)
            return index;
    if (count == LABELS_MAX)
        return LABELS_MAX;
    memcpy(keys->counters[count].label, label, strlen(label));
    __atomic_store_n(&keys->label_count, count + 1, __ATOMIC_RELEASE);
    return (unsigned)count;
}

static bool find_counters(struct mm_keys *keys, struct in_force *made, char *problem, size_t size) {
    for (size_t index = 0; index < mm_key_set_count(made->set); index++) {
        made->counters[index] = find_counter(keys, mm_key_set_label(made->set, index));
        if (made->counters[index] == LABELS_MAX) {
            snprintf(problem, size, "over %d names of keys were in force since the start: start again",
                     LABELS_MAX);
            return false;
        }
    }
    return true;
}

/* What is to come into force; NULL with a sentence in problem. */
static struct in_force *read_keys(struct mm_keys *keys, char *problem, size_t size) {
    const struct mm_options *options = keys->options;
    struct in_force *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->set = mm_key_set_open();
    bool good = made != NULL && made->set != NULL;
    if (!good)
        snprintf(problem, size, "the system has no memory for API keys");
    if (good && options->api_key_file != NULL)
        good = add_file(made->set, options->api_key_file, problem, size);
    if (good && options->api_key != NULL)
        good = add_environment(made->set, options->api_key, problem, size);
    if (good && find_counters(keys, made, problem, size))
        return made;
    free_in_force(made);
    return NULL;
}

bool mm_keys_open(const struct mm_options *options, struct mm_keys **keys, char *problem,
                  size_t problem_size) {
    *keys = NULL;
    if (options->api_key_file == NULL && options->api_key == NULL)
        return true;
    struct mm_keys *opened = calloc(1, sizeof *opened);
    if (opened == NULL) {
        snprintf(problem, problem_size, "the system has no memory for API keys");
        return false;
    }
    opened->options = options;
    opened->current = read_keys(opened, problem, problem_size);
    if (opened->current == NULL) {
        free(opened);
        return false;
    }
    *keys = opened;
    return true;
}

void mm_keys_close(struct mm_keys *keys) {
    if (keys != NULL)
        free_in_force(keys->current);
    free(keys);
}

/* Returns once nobody judges by a set that was replaced before the call. */
static void await_judging(struct mm_keys *keys) {
    const struct timespec pause = {.tv_nsec = WAIT_NS};
    for (unsigned turn = 0; turn < 2; turn++) {
        unsigned side = __atomic_fetch_xor(&keys->side, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&keys->judging[side].count, __ATOMIC_SEQ_CST) > 0)
            nanosleep(&pause, NULL);
    }
}

void mm_keys_reload(struct mm_keys *keys) {
    char problem[640];
    struct in_force *made = read_keys(keys, problem, sizeof problem);
    if (made == NULL) {
        mm_log_error("the API keys stay as they were: %s", problem);
        return;
    }
    size_t count = mm_key_set_count(made->set);
    struct in_force *replaced = __atomic_exchange_n(&keys->current, made, __ATOMIC_SEQ_CST);
    await_judging(keys);
    free_in_force(replaced);
    mm_log_info("API keys in force: %zu", count);
}

bool mm_keys_admit(struct mm_keys *keys, const char *key, size_t bytes) {
    unsigned side = __atomic_load_n(&keys->side, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&keys->judging[side].count, 1, __ATOMIC_SEQ_CST);
    const struct in_force *in_force = __atomic_load_n(&keys->current, __ATOMIC_SEQ_CST);
    size_t found = mm_key_set_find(in_force->set, key, bytes);
    unsigned counter = found == MM_KEY_NONE ? LABELS_MAX : in_force->counters[found];
    __atomic_sub_fetch(&keys->judging[side].count, 1, __ATOMIC_SEQ_CST);
    if (counter == LABELS_MAX)
        return false;
    __atomic_add_fetch(&keys->counters[counter].requests, 1, __ATOMIC_RELAXED);
    return true;
}

size_t mm_keys_label_count(const struct mm_keys *keys) {
    return __atomic_load_n(&keys->label_count, __ATOMIC_ACQUIRE);
}

const char *mm_keys_label(const struct mm_keys *keys, size_t index) {
    return keys->counters[index].label;
}

uint64_t mm_keys_requests(const struct mm_keys *keys, size_t index) {
    return __atomic_load_n(&keys->counters[index].requests, __ATOMIC_RELAXED);
}
