/* Tests the store. A name stands for an immutable value. The bytes of a value count until its last reference
 * is released, for its namespace and for the whole store. */
#include "gpu/device/backend.h"
#include "gpu/clock.h"
#include "gpu/store/store.h"
#include "tests/unit/unit.h"

#include <pthread.h>

enum { ELEMENT = sizeof(float), ROW = 25, VALUE = ROW * ELEMENT, SECOND = 1000000000 };

/* Each test opens the budget and the store. The teardown closes both and asserts that nothing is left. */
static struct mm_budget budget;
static struct mm_store *store;
static uint64_t now_ns;

static void open_counting(size_t bytes_max, size_t space_bytes_max, size_t count_max, size_t space_count_max,
                          uint64_t ttl_ns_max) {
    const struct mm_store_limits limits = {bytes_max, space_bytes_max, bytes_max,
                                           count_max, space_count_max, ttl_ns_max};
    now_ns = 1000 * (uint64_t)SECOND;
    assert_true(mm_budget_open(&budget, 1 << 20));
    store = mm_store_open(&limits, &budget);
    assert_non_null(store);
}

static void open_store(size_t bytes_max, size_t space_bytes_max, size_t count_max, uint64_t ttl_ns_max) {
    open_counting(bytes_max, space_bytes_max, count_max, count_max, ttl_ns_max);
}

static int close_store(void **state) {
    mm_store_close(store);
    mm_budget_close(&budget); /* asserts that all memory was freed */
    return 0;
}

/* All elements of a value are `number`, so values can be told apart. */
static enum mm_status put_as(uint64_t space, const char *name, size_t rows, float number,
                             const char *expected, uint64_t ttl_ns, bool *is_new, struct mm_error *error) {
    struct mm_store_slot slot = {.space = space, .bytes = rows * VALUE};
    struct mm_reservation reservation = {.budget = &budget};
    struct mm_buffer memory = {0};
    struct mm_stored *value;
    bool unused;
    enum mm_status status = mm_store_reserve(store, &slot, name, now_ns, error);
    if (status != MM_OK)
        return status;
    assert_int_equal(mm_reservation_acquire(&reservation, rows * VALUE, &memory, NULL), MM_OK);
    for (size_t index = 0; index < rows * ROW; index++)
        ((float *)memory.data)[index] = number;
    const struct mm_store_content content = {.shape = mm_shape_of_matrix(rows, ROW),
                                             .data = memory.data,
                                             .memory = &memory,
                                             .reservation = &reservation,
                                             .ttl_ns = ttl_ns,
                                             .expected = expected};
    status =
        mm_store_put(store, &slot, name, &content, now_ns, &value, is_new == NULL ? &unused : is_new, error);
    if (status == MM_OK)
        mm_store_release(store, value);
    mm_store_unreserve(store, &slot);
    mm_reservation_free(&reservation, &memory);
    mm_reservation_close(&reservation);
    return status;
}

static enum mm_status put(const char *name, size_t rows) {
    return put_as(0, name, rows, 1, NULL, 0, NULL, NULL);
}

static struct mm_stored *hold(uint64_t space, const char *name) {
    return mm_store_acquire(store, space, name, true, now_ns);
}

static bool has(uint64_t space, const char *name) {
    struct mm_stored *value = hold(space, name);
    mm_store_release(store, value);
    return value != NULL;
}

static void expect_totals(size_t count, size_t stored, size_t reserved, size_t released) {
    const struct mm_store_totals totals = mm_store_totals(store);
    assert_int_equal(totals.count, count);
    assert_int_equal(totals.stored_bytes, stored);
    assert_int_equal(totals.reserved_bytes, reserved);
    assert_int_equal(totals.released_bytes, released);
}

static void expect_host(size_t bytes) {
    assert_int_equal(mm_store_totals(store).host_bytes, bytes);
}

static void names_are_checked(void **state) {
    char longest[MM_STORE_NAME_MAX + 2];
    EACH(name, "a|A9._-z|...|-|.a") assert_true(mm_store_is_name(name));
    EACH(name, "|.|..|a/b|a b|a%20|\xc3\xa9|a\n") assert_false(mm_store_is_name(name));
    memset(longest, 'x', sizeof longest);
    longest[MM_STORE_NAME_MAX + 1] = '\0';
    assert_false(mm_store_is_name(longest));
    longest[MM_STORE_NAME_MAX] = '\0';
    assert_true(mm_store_is_name(longest));
    open_store(1, 1, 1, 0);
}

static void a_value_is_what_was_stored(void **state) {
    char etag[MM_ETAG_MAX + 1];
    bool is_new = false;
    open_store(10 * VALUE, 10 * VALUE, 10, 0);
    assert_int_equal(put_as(0, "w", 2, 7, NULL, 0, &is_new, NULL), MM_OK);
    assert_true(is_new);
    struct mm_stored *value = hold(0, "w");
    assert_int_equal(value->bytes, 2 * VALUE);
    assert_true(((const float *)value->data)[2 * ROW - 1] == 7);
    assert_int_equal(strspn(value->etag + 1, "0123456789abcdef"), 32);
    strcpy(etag, value->etag);
    mm_store_release(store, value);
    assert_int_equal(put_as(0, "w", 2, 7, NULL, 0, &is_new, NULL), MM_OK);
    assert_false(is_new);
    value = hold(0, "w");
    assert_string_not_equal(value->etag, etag); /* equal contents have different ETags */
    mm_store_release(store, value);
    expect_totals(1, 2 * VALUE, 0, 0);
}

static void value_in_use_outlives_its_name(void **state) {
    open_store(3 * VALUE, 3 * VALUE, 10, 0);
    assert_int_equal(put_as(0, "w", 1, 1, NULL, 0, NULL, NULL), MM_OK);
    struct mm_stored *first = hold(0, "w");
    assert_int_equal(put_as(0, "w", 1, 2, NULL, 0, NULL, NULL), MM_OK);
    struct mm_stored *second = hold(0, "w");
    expect_host(VALUE);
    assert_true(mm_store_remove(store, 0, "w", NULL, now_ns));
    expect_host(0);
    assert_false(mm_store_remove(store, 0, "w", NULL, now_ns));
    assert_true(*(const float *)first->data == 1 && *(const float *)second->data == 2);
    expect_totals(0, 0, 0, 2 * VALUE);
    assert_int_equal(put("x", 2), MM_STORE_FULL); /* values in use still count */
    mm_store_release(store, first);
    expect_host(0);
    assert_int_equal(put("x", 2), MM_OK);
    mm_store_release(store, second);
    expect_totals(1, 2 * VALUE, 0, 0);
    expect_host(2 * VALUE);
}

static void limits_are_exact_to_the_byte(void **state) {
    struct mm_error error;
    open_store(2 * VALUE, 2 * VALUE, 10, 0);
    struct mm_store_slot slot = {.bytes = VALUE + 1};
    assert_int_equal(mm_store_reserve(store, &slot, "x", now_ns, NULL), MM_OK);
    assert_int_equal(put_as(0, "w", 1, 1, NULL, 0, NULL, &error), MM_STORE_FULL);
    assert_int_equal(error.needed_bytes, VALUE);
    assert_int_equal(error.free_bytes, VALUE - 1);
    assert_int_equal(error.limit, 2 * VALUE);
    expect_totals(0, 0, VALUE + 1, 0);
    mm_store_unreserve(store, &slot);
    slot.bytes = VALUE;
    assert_int_equal(mm_store_reserve(store, &slot, "x", now_ns, NULL), MM_OK);
    assert_int_equal(put("w", 1), MM_OK);
    assert_int_equal(put("w", 1), MM_STORE_FULL); /* the old value remains until the new one is complete */
    mm_store_unreserve(store, &slot);
    assert_int_equal(put("w", 1), MM_OK);
    expect_totals(1, VALUE, 0, 0);
}

static void value_count_is_limited(void **state) {
    struct mm_error error;
    open_counting(9 * VALUE, 8 * VALUE, 3, 2, 0);
    assert_int_equal(put("a", 1), MM_OK);
    assert_int_equal(put("b", 1), MM_OK);
    assert_int_equal(put_as(0, "c", 1, 1, NULL, 0, NULL, &error), MM_STORE_FULL);
    assert_non_null(strstr(error.detail, "half of --store-count"));
    assert_int_equal(error.needed_bytes, VALUE);
    assert_int_equal(error.free_bytes, 6 * VALUE); /* bytes of this namespace only */
    assert_int_equal(error.limit, 8 * VALUE);
    assert_int_equal(put("b", 2), MM_OK);
    assert_int_equal(put_as(1, "c", 1, 1, NULL, 0, NULL, NULL),
                     MM_OK); /* another namespace has its own limit */
    assert_int_equal(put_as(1, "d", 1, 1, NULL, 0, NULL, &error), MM_STORE_FULL);
    assert_non_null(strstr(error.detail, "(--store-count)"));
    expect_totals(3, 4 * VALUE, 0, 0);
}

/* Bytes of an upload count from its start, before the value is complete. */
static void reserved_bytes_of_an_upload_count(void **state) {
    struct mm_error error;
    open_counting(9 * VALUE, 9 * VALUE, 3, 2, 0);
    const size_t arrived = 0;
    struct mm_store_slot slot = {.bytes = VALUE,
                                 .arrived_bytes = &arrived,
                                 .upload_bytes = VALUE,
                                 .started_ns = now_ns,
                                 .deadline_ns = now_ns + 10 * (uint64_t)SECOND};
    struct mm_store_slot refused = {.bytes = VALUE}, other = refused;
    assert_int_equal(put("a", 1), MM_OK);
    assert_int_equal(mm_store_reserve(store, &slot, "b", now_ns, NULL), MM_OK);
    assert_int_equal(mm_store_reserve(store, &refused, "c", now_ns, &error), MM_STORE_FULL);
    assert_non_null(strstr(error.detail, "half of --store-count"));
    assert_int_equal(error.needed_bytes, VALUE);
    assert_int_equal(error.free_bytes, 7 * VALUE);
    expect_totals(1, VALUE, VALUE, 0);
    assert_int_equal(put("a", 1), MM_OK); /* the name exists already */
    assert_int_equal(put_as(1, "c", 1, 1, NULL, 0, NULL, NULL), MM_OK);
    assert_int_equal(put_as(1, "d", 1, 1, NULL, 0, NULL, &error), MM_STORE_FULL);
    assert_non_null(strstr(error.detail, "(--store-count)"));
    now_ns += 2 * (uint64_t)SECOND;
    assert_int_equal(mm_store_reserve(store, &other, "c", now_ns, NULL), MM_OK);
    expect_totals(2, 2 * VALUE, 2 * VALUE, 0);
    mm_store_unreserve(store, &slot);
    assert_int_equal(mm_store_reserve(store, &refused, "b", now_ns, NULL), MM_STORE_FULL);
    mm_store_unreserve(store, &other);
    expect_totals(2, 2 * VALUE, 0, 0);
}

/* A value expires exactly after its time to live, however often it is used. */
static void values_expire(void **state) {
    open_store(9 * VALUE, 9 * VALUE, 10, 10 * (uint64_t)SECOND);
    assert_int_equal(put_as(0, "short", 1, 1, NULL, 5 * (uint64_t)SECOND, NULL, NULL), MM_OK);
    assert_int_equal(put_as(0, "long", 1, 1, NULL, 50 * (uint64_t)SECOND, NULL, NULL), MM_OK);
    assert_int_equal(put("plain", 1), MM_OK);
    now_ns += 5 * (uint64_t)SECOND - 1;
    assert_true(has(0, "short"));
    now_ns++;
    assert_false(has(0, "short"));
    assert_false(mm_store_remove(store, 0, "short", NULL, now_ns));
    expect_totals(2, 2 * VALUE, 0, 0);
    now_ns += 5 * (uint64_t)SECOND - 1;
    assert_true(has(0, "long") && has(0, "plain"));
    now_ns++;
    mm_store_expire(store, now_ns);
    expect_totals(0, 0, 0, 0);
}

static void namespaces_are_apart(void **state) {
    struct mm_stored *values[4];
    struct mm_error error;
    const uint64_t kept[] = {2, 2, 2, 2}; /* namespaces may repeat, because keys can share one */
    open_store(3 * VALUE, 2 * VALUE, 10, 0);
    assert_int_equal(put_as(1, "w", 1, 1, NULL, 0, NULL, NULL), MM_OK);
    assert_int_equal(put_as(1, "x", 1, 1, NULL, 0, NULL, NULL), MM_OK);
    assert_int_equal(put_as(1, "y", 1, 1, NULL, 0, NULL, &error), MM_STORE_FULL);
    assert_int_equal(error.limit, 2 * VALUE);
    assert_false(has(2, "w"));
    assert_false(mm_store_remove(store, 2, "w", NULL, now_ns));
    assert_int_equal(put_as(2, "w", 1, 2, NULL, 0, NULL, NULL), MM_OK);
    assert_int_equal(mm_store_list(store, 2, "", values, COUNT(values), now_ns), 1);
    assert_true(*(const float *)values[0]->data == 2);
    mm_store_release(store, values[0]);
    assert_int_equal(mm_store_usage(store, 2).bytes, VALUE);
    assert_int_equal(put_as(2, "v", 1, 1, NULL, 0, NULL, &error), MM_STORE_FULL);
    assert_int_equal(error.free_bytes, VALUE); /* the error tells nothing about other namespaces */

    /* If a reload drops a namespace, its values are removed. Then the namespace accepts no values, even from
     * uploads that have begun. */
    struct mm_stored *held = hold(1, "w");
    mm_store_set_spaces(store, kept, COUNT(kept), 3);
    assert_true(has(2, "w"));
    assert_int_equal(mm_store_usage(store, 2).bytes, VALUE);
    assert_false(has(1, "w") || has(1, "x"));
    assert_int_equal(put_as(1, "w", 1, 1, NULL, 0, NULL, NULL), MM_UNAUTHORIZED);
    expect_totals(1, VALUE, 0, VALUE);
    mm_store_release(store, held);
    assert_int_equal(put_as(3, "w", 1, 1, NULL, 0, NULL, NULL),
                     MM_UNAUTHORIZED); /* this namespace was never used */
    assert_int_equal(put_as(4, "w", 1, 1, NULL, 0, NULL, NULL), MM_OK);
    assert_int_equal(mm_store_usage(store, 4).bytes, VALUE);
}

static void lists_are_sorted_and_have_pages(void **state) {
    struct mm_stored *values[2];
    open_store(9 * VALUE, 9 * VALUE, 10, 0);
    EACH(name, "b|c|B|a|b1") assert_int_equal(put(name, 1), MM_OK);
    char seen[16] = "";
    const char *after = "";
    for (size_t count; (count = mm_store_list(store, 0, after, values, 2, now_ns)) > 0;) {
        for (size_t index = 0; index < count; index++) {
            strcat(strcat(seen, values[index]->name), " ");
            after = values[index]->name;
        }
        for (size_t index = 0; index < count; index++)
            mm_store_release(store, values[index]); /* the names remain */
    }
    assert_string_equal(seen, "B a b b1 c ");
}

static void only_the_expected_value_is_replaced(void **state) {
    char etag[MM_ETAG_MAX + 1];
    open_store(9 * VALUE, 9 * VALUE, 10, 0);
    assert_int_equal(put_as(0, "w", 1, 1, "\"other\"", 0, NULL, NULL), MM_PRECONDITION_FAILED);
    assert_int_equal(put_as(0, "w", 1, 1, "", 0, NULL, NULL), MM_OK);
    assert_int_equal(put_as(0, "w", 1, 2, "", 0, NULL, NULL), MM_PRECONDITION_FAILED);
    struct mm_stored *value = hold(0, "w");
    assert_true(*(const float *)value->data == 1);
    strcpy(etag, value->etag);
    mm_store_release(store, value);
    assert_int_equal(put_as(0, "w", 1, 2, etag, 0, NULL, NULL), MM_OK);
    assert_false(mm_store_remove(store, 0, "w", etag, now_ns));
    expect_totals(1, VALUE, 0, 0);
}

/* The upload should take 10 s. Half of it arrives one second late, then nothing more. */
static void slow_upload_loses_its_reservation(void **state) {
    struct mm_stored *value;
    struct mm_reservation reservation = {.budget = &budget};
    struct mm_buffer memory = {0};
    struct mm_error error;
    bool is_new;
    open_store(2 * VALUE, 2 * VALUE, 10, 0);
    size_t arrived = VALUE;
    struct mm_store_slot slot = {.bytes = 2 * VALUE,
                                 .arrived_bytes = &arrived,
                                 .upload_bytes = 2 * VALUE,
                                 .started_ns = now_ns,
                                 .deadline_ns = now_ns + 10 * (uint64_t)SECOND};
    assert_int_equal(mm_store_reserve(store, &slot, "x", now_ns, NULL), MM_OK);
    now_ns += 6 * (uint64_t)SECOND;
    assert_int_equal(put("w", 1), MM_STORE_FULL);
    expect_totals(0, 0, 2 * VALUE, 0);
    now_ns++;
    assert_int_equal(put("w", 1), MM_OK);
    assert_true(slot.is_lost);
    expect_totals(1, VALUE, 0, 0);

    /* The store has memory for one row, but not for two. */
    assert_int_equal(mm_reservation_acquire(&reservation, 2 * VALUE, &memory, NULL), MM_OK);
    struct mm_store_content content = {.shape = mm_shape_of_matrix(2, ROW),
                                       .data = memory.data,
                                       .memory = &memory,
                                       .reservation = &reservation};
    assert_int_equal(mm_store_put(store, &slot, "x", &content, now_ns, &value, &is_new, &error),
                     MM_STORE_FULL);
    assert_non_null(strstr(error.detail, "too slow"));
    content.shape.dims[0] = 1;
    assert_int_equal(mm_store_put(store, &slot, "x", &content, now_ns, &value, &is_new, &error), MM_OK);
    mm_store_release(store, value);
    mm_reservation_close(&reservation);
    expect_totals(2, 2 * VALUE, 0, 0);
}

static void *use_one_name(void *argument) {
    const unsigned thread = *(const unsigned *)argument;
    for (unsigned round = 0; round < 2000; round++) {
        struct mm_stored *value = hold(thread % 2, "w");
        if (value != NULL) {
            const float *numbers = value->data;
            for (size_t index = 1; index < ROW; index++)
                assert_true(numbers[index] == numbers[0]);
        }
        mm_store_release(store, value);
        if (round % 3 == 0)
            (void)put_as(thread % 2, "w", 1, (float)(thread * 10000 + round), NULL, round % 2, NULL, NULL);
        else if (round % 7 == 0)
            (void)mm_store_remove(store, thread % 2, "w", NULL, now_ns);
    }
    return NULL;
}

/* No reader may see a mix of two values, and no byte may leak. */
static void threads_share_a_name(void **state) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    open_store(3 * VALUE, 3 * VALUE, 2, 0);
    for (unsigned index = 0; index < THREADS; index++) {
        numbers[index] = index;
        assert_int_equal(pthread_create(&threads[index], NULL, use_one_name, &numbers[index]), 0);
    }
    for (unsigned index = 0; index < THREADS; index++)
        pthread_join(threads[index], NULL);
    (void)mm_store_remove(store, 0, "w", NULL, now_ns);
    (void)mm_store_remove(store, 1, "w", NULL, now_ns);
    mm_store_expire(store, UINT64_MAX - 1);
    expect_totals(0, 0, 0, 0);
}

static unsigned released;

static void release_copy(struct mm_device_copy *copy) {
    released++;
}

static enum mm_status read_copy(struct mm_device_copy *copy, const struct mm_window *part,
                                enum mm_dtype dtype, void *to, struct mm_error *error) {
    mm_window_pack(part, dtype, copy->data, to);
    return MM_OK;
}

static void value_only_in_device_memory(void **state) {
    static float elements[ROW] = {3, 1, 4};
    struct mm_device device = {.backend = &mm_cpu_backend, .index = 7};
    struct mm_device_copy copy = {
        .device = &device, .data = elements, .release = release_copy, .read = read_copy};
    struct mm_reservation reservation = {.budget = &budget};
    struct mm_buffer none = {0};
    const struct mm_store_content content = {.shape = mm_shape_of_matrix(1, ROW),
                                             .memory = &none,
                                             .reservation = &reservation,
                                             .only_copy = &copy};
    const struct mm_window part = {
        .count = 1, .all_rows = 1, .all_cols = ROW, .rows = 1, .col = 1, .cols = 2};
    struct mm_store_slot slot = {.bytes = VALUE};
    struct mm_stored *value;
    struct mm_error error;
    float read[2] = {0};
    bool is_new;
    open_store(VALUE, VALUE, 1, 0);
    const struct mm_store_limits limits = {VALUE, VALUE, VALUE - 1, 1, 1, 0};
    mm_store_limit(store, &limits);
    assert_int_equal(mm_store_reserve(store, &slot, "h", now_ns, &error), MM_OK);
    assert_int_equal(mm_store_put(store, &slot, "h", &content, now_ns, &value, &is_new, &error), MM_OK);
    assert_ptr_equal(mm_stored_find_copy(value, &device), &copy);
    assert_int_equal(mm_stored_read(value, &part, read, &error), MM_OK);
    assert_memory_equal(read, elements + 1, sizeof read);
    device.failed = 1;
    assert_int_equal(mm_stored_read(value, &part, read, &error), MM_DEVICE_FAILED);
    assert_non_null(strstr(error.detail, "cpu:7"));
    assert_true(mm_store_remove(store, 0, "h", NULL, now_ns));
    assert_int_equal(released, 0);
    mm_store_release(store, value);
    assert_int_equal(released, 1);
    expect_totals(0, 0, 0, 0);
    struct mm_store_content on_host = content; /* exceeds the limit of host memory by one byte */
    on_host.only_copy = NULL;
    slot = (struct mm_store_slot){.bytes = VALUE};
    assert_int_equal(mm_store_reserve(store, &slot, "h", now_ns, &error), MM_OK);
    assert_int_equal(mm_store_put(store, &slot, "h", &on_host, now_ns, &value, &is_new, &error),
                     MM_STORE_FULL);
    assert_non_null(strstr(error.detail, "host memory"));
    mm_store_unreserve(store, &slot);
    expect_totals(0, 0, 0, 0);
}

RUN_TESTS_BETWEEN(NULL, close_store, names_are_checked, a_value_is_what_was_stored,
                  value_in_use_outlives_its_name, limits_are_exact_to_the_byte, value_count_is_limited,
                  reserved_bytes_of_an_upload_count, values_expire, namespaces_are_apart,
                  lists_are_sorted_and_have_pages, only_the_expected_value_is_replaced,
                  slow_upload_loses_its_reservation, threads_share_a_name, value_only_in_device_memory)
