/* Tests the buffer pool, which reuses freed blocks up to its limit, and buffers that grow. */
#include "gpu/clock.h"
#include "gpu/memory/buffer.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, LARGE = 100 * KIB };

static struct mm_buffers *buffers;

static int close_buffers(void **state) {
    mm_buffers_close(buffers);
    buffers = NULL;
    return 0;
}

static void expect_kept(size_t kept) {
    assert_int_equal(mm_buffers_kept(buffers), kept);
}

static void give(struct mm_buffer *buffer) {
    mm_buffers_release(buffers, buffer);
}

static void trim(void) {
    mm_buffers_trim(buffers, UINT64_MAX);
}

static void *lend(size_t bytes, struct mm_buffer *buffer) {
    *buffer = (struct mm_buffer){0};
    assert_int_equal(mm_buffers_acquire(buffers, bytes, buffer, NULL), MM_OK);
    assert_int_equal(buffer->bytes, bytes);
    assert_int_equal((uintptr_t)buffer->data % 64, 0);
    memset(buffer->data, 0x5a, buffer->bytes);
    return buffer->data;
}

/* Allocates a block, frees it, and returns its address. */
static void *pass(size_t bytes) {
    struct mm_buffer buffer;
    void *data = lend(bytes, &buffer);
    give(&buffer);
    return data;
}

/* Grows the buffer to `bytes` of `bytes_max`. Checks that the old content is unchanged. */
static void grow(size_t bytes, size_t bytes_max, struct mm_buffer *buffer) {
    const size_t before = buffer->bytes;
    const void *data = buffer->data;
    struct mm_error error = {0};
    assert_int_equal(mm_buffers_grow(buffers, bytes, bytes_max, buffer, &error), MM_OK);
    assert_int_equal(error.status, MM_OK);
    assert_int_equal(buffer->bytes, bytes);
    assert_true(data == NULL || buffer->data == data);
    for (size_t index = 0; index < before; index += 997)
        assert_int_equal(((unsigned char *)buffer->data)[index], index % 251);
    for (size_t index = before; index < buffer->bytes; index++)
        ((unsigned char *)buffer->data)[index] = (unsigned char)(index % 251);
}

static void freed_blocks_are_reused(void **state) {
    struct mm_buffer first, second;
    buffers = mm_buffers_open(MIB);
    void *small = pass(300);
    assert_ptr_equal(pass(310), small); /* its size class is 320 */
    assert_ptr_not_equal(pass(200), small);
    expect_kept(0); /* blocks of the arena do not count */

    void *large = pass(LARGE);
    expect_kept(LARGE);
    assert_ptr_equal(pass(LARGE), large);
    assert_ptr_equal(pass(LARGE * 4 / 5), large); /* the block is a quarter larger than requested */
    assert_ptr_not_equal(pass(LARGE * 4 / 5 - 1), large);
    expect_kept(LARGE + LARGE * 4 / 5 - 1);
    assert_ptr_not_equal(pass(LARGE + 1), large);

    trim();
    large = pass(95 * KIB);
    assert_ptr_not_equal(pass(65 * KIB),
                         large); /* the kept block has another size class, and is over a quarter too large */
    assert_ptr_equal(lend(81 * KIB, &first), large);
    lend(81 * KIB, &second);
    give(&first);
    give(&second);
    assert_ptr_equal(pass(90 * KIB), large); /* the first block of the class is too small */

    assert_ptr_not_equal(lend(LARGE, &first), lend(LARGE, &second));
    give(&first);
    give(&second);
}

/* The pool keeps freed blocks up to its limit. To allocate a new block, the pool frees kept blocks. */
static void kept_blocks_are_freed_for_new_ones(void **state) {
    struct mm_buffer first, second;
    buffers = mm_buffers_open(3 * LARGE);
    pass(LARGE);
    void *newest = pass(LARGE / 2);
    expect_kept(LARGE + LARGE / 2);
    lend(2 * LARGE, &first); /* fits because the oldest block is freed */
    expect_kept(LARGE / 2);
    assert_ptr_equal(pass(LARGE / 2), newest);
    lend(300, &second); /* memory of the arena also counts */
    expect_kept(LARGE / 2);
    give(&second);
    lend(LARGE - 300, &second);
    expect_kept(0);
    give(&second);
    lend(2 * LARGE, &second);
    expect_kept(0);
    give(&second);
    expect_kept(0);
    give(&first);
    expect_kept(2 * LARGE);
    pass(3 * LARGE);
    expect_kept(3 * LARGE);
}

static bool is_mapped(const void *memory) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore((void *)((uintptr_t)memory / page * page), 1, &resident) == 0;
}

static void unused_blocks_are_unmapped(void **state) {
    buffers = mm_buffers_open(MIB);
    const uint64_t before_ns = mm_clock_ns();
    pass(LARGE);
    mm_buffers_trim(buffers, before_ns);
    expect_kept(LARGE);
    const uint64_t between_ns = mm_clock_ns() + 1;
    while (mm_clock_ns() <= between_ns)
        continue;
    pass(2 * LARGE);
    mm_buffers_trim(buffers, between_ns);
    expect_kept(2 * LARGE);
    const void *kept = pass(2 * LARGE);
    assert_true(is_mapped(kept));
    trim();
    expect_kept(0);
    assert_false(is_mapped(kept));
}

static void failed_acquire_leaves_the_buffer_unchanged(void **state) {
    const size_t more_than_there_is = (size_t)1 << 60;
    struct mm_buffer buffer = {.bytes = 7};
    struct mm_error error;
    buffers = mm_buffers_open(SIZE_MAX / 2);
    pass(LARGE);
    assert_int_equal(mm_buffers_acquire(buffers, more_than_there_is, &buffer, &error), MM_INTERNAL);
    assert_int_equal(error.status, MM_INTERNAL);
    assert_true(buffer.data == NULL && buffer.bytes == 7);
    expect_kept(0); /* the kept block was freed before the second attempt */
    lend(LARGE, &buffer);
    assert_int_equal(mm_buffers_acquire(buffers, more_than_there_is, &buffer, &error), MM_BUSY);
    assert_int_equal(error.busy, MM_BUSY_SYSTEM_MEMORY);
    give(&buffer);
}

/* Replaces the function that locks pages. Counts its calls, and fails if `refuses`. */
static struct {
    int locks, unlocks; /* atomic */
    size_t bytes;       /* bytes of the last lock; atomic */
    bool refuses;
} pages;

static bool lock_pages(void *memory, size_t bytes) {
    if (!pages.refuses)
        __atomic_add_fetch(&pages.locks, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&pages.bytes, bytes, __ATOMIC_RELAXED);
    return !pages.refuses;
}

static void unlock_pages(void *memory) {
    __atomic_add_fetch(&pages.unlocks, 1, __ATOMIC_RELAXED);
}

static void lock(bool refuses) {
    static const struct mm_page_locking locking = {lock_pages, unlock_pages};
    memset(&pages, 0, sizeof pages);
    pages.refuses = refuses;
    mm_buffers_lock(buffers, &locking);
}

static void expect_locks(int locks, int unlocks) {
    assert_int_equal(__atomic_load_n(&pages.locks, __ATOMIC_RELAXED), locks);
    assert_int_equal(__atomic_load_n(&pages.unlocks, __ATOMIC_RELAXED), unlocks);
}

static void expect_locked(size_t bytes, bool is_locked) {
    struct mm_buffer buffer;
    lend(bytes, &buffer);
    assert_true(buffer.is_locked == is_locked);
    give(&buffer);
}

static void pages_are_locked_once(void **state) {
    buffers = mm_buffers_open(MIB);
    pass(LARGE);
    lock(false);
    expect_locks(1, 0); /* the arena is locked */
    assert_int_equal(pages.bytes, 16 * MIB);
    expect_locked(100, true);
    expect_locked(LARGE, true); /* frees the blocks that were kept */
    expect_locked(LARGE, true);
    expect_locks(2, 0);
    pages.refuses = true;
    expect_locked(3 * LARGE, false);
    close_buffers(state);
    expect_locks(2, 2);

    buffers = mm_buffers_open(MIB);
    lock(true);
    expect_locked(100, false);
    close_buffers(state);
    expect_locks(0, 0);
}

/* If the arena is full, small blocks come from the C library or, if pages are locked, from new pages. */
static void small_blocks_beyond_the_arena(void **state) {
    enum { MANY = 600, BYTES = 31 * KIB }; /* the arena has room for 512 */
    static struct mm_buffer lent[MANY];
    for (int is_locked = 0; is_locked < 2; is_locked++) {
        const size_t mapped = is_locked ? MANY - 512 : 0;
        buffers = mm_buffers_open((size_t)MANY * BYTES);
        if (is_locked)
            lock(false);
        for (int index = 0; index < MANY; index++) {
            lend(BYTES, &lent[index]);
            assert_int_equal(lent[index].is_locked, is_locked);
        }
        for (int index = 0; index < MANY; index++)
            for (int byte = 0; byte < BYTES; byte += 97)
                assert_int_equal(((char *)lent[index].data)[byte], 0x5a);
        for (int index = 0; index < MANY; index++)
            give(&lent[index]);
        expect_kept(mapped * BYTES);
        close_buffers(state);
    }
}

static void growing_buffer_is_not_moved(void **state) {
    struct mm_buffer buffer = {0}, none = {0};
    buffers = mm_buffers_open(16 * MIB);
    for (size_t bytes = 1; bytes <= 15 * MIB; bytes += bytes / 3 + 1)
        grow(bytes, 15 * MIB, &buffer);
    grow(15 * MIB, 15 * MIB, &buffer);
    mm_buffers_settle(buffers, &buffer);
    expect_kept(0);
    mm_buffers_shrink(buffers, &buffer, 9 * MIB + 1);
    assert_int_equal(buffer.bytes, 9 * MIB + 1);
    expect_kept(6 * MIB - mm_pages_round_up(1));
    mm_buffers_shrink(buffers, &buffer, 10 * MIB);
    assert_int_equal(buffer.bytes, 9 * MIB + 1);
    give(&buffer);
    expect_kept(15 * MIB);
    mm_buffers_shrink(buffers, &none, 1);
    assert_null(none.data);

    grow(100, 1000, &buffer); /* a buffer that would fit into the arena can grow too */
    grow(1000, 1000, &buffer);
    give(&buffer);
    grow(1000, 1000, &buffer);
    mm_buffers_shrink(buffers, &buffer, 10);
    assert_int_equal(buffer.bytes, 1000);
    give(&buffer);
}

/* The pool keeps mapped memory behind a buffer until the buffer grows or another buffer needs it. */
static void growing_buffer_reuses_mapped_memory(void **state) {
    struct mm_buffer buffer = {0}, other;
    buffers = mm_buffers_open(16 * MIB);
    const void *large = pass(12 * MIB);
    grow(100, 12 * MIB, &buffer);
    assert_ptr_equal(buffer.data, large);
    expect_kept(12 * MIB - 100);
    lend(5 * MIB, &other);
    expect_kept(0);
    grow(12 * MIB, 12 * MIB, &buffer);
    give(&other);
    expect_kept(0);
    give(&buffer);
    grow(3 * MIB, 12 * MIB, &buffer);
    assert_ptr_equal(buffer.data, large);
    trim();
    expect_kept(0);
    grow(12 * MIB, 12 * MIB, &buffer);
    give(&buffer);
}

/* The pages of a buffer are locked when all of its pages are mapped. After the buffer has grown, its pages
 * are locked again. */
static void grown_buffer_is_locked_again(void **state) {
    struct mm_buffer buffer = {0};
    buffers = mm_buffers_open(16 * MIB);
    lock(false);
    for (int round = 1; round <= 3; round++) {
        const size_t bytes = (size_t)round * 2 * MIB;
        grow(bytes, 12 * MIB, &buffer);
        assert_false(buffer.is_locked);
        mm_buffers_settle(buffers, &buffer);
        assert_true(buffer.is_locked);
        expect_kept(0);
        mm_buffers_settle(buffers, &buffer);
        expect_locks(1 + round, round - 1);
        give(&buffer);
    }
    grow(6 * MIB - 256 * KIB, 12 * MIB, &buffer); /* reuses slightly more mapped memory than requested */
    assert_false(buffer.is_locked);
    mm_buffers_settle(buffers, &buffer);
    assert_true(buffer.is_locked);
    expect_locks(4, 2);
    give(&buffer);
    grow(MIB, 12 * MIB, &buffer); /* requests much less, so the other mapped memory is freed */
    mm_buffers_settle(buffers, &buffer);
    assert_true(buffer.is_locked);
    expect_locks(5, 3);
    expect_kept(0);
    give(&buffer);
    close_buffers(state);
    expect_locks(5, 5); /* includes the lock of the arena */
}

/* A request larger than the address space still gets the little memory that it uses at first. */
static void huge_limit_needs_little_address_space(void **state) {
    struct mm_buffer buffer = {0};
    buffers = mm_buffers_open(MIB);
    grow(100 * KIB, (size_t)1 << 47, &buffer);
    give(&buffer);
}

/* A thread uses buffers of `bytes` to `bytes + more` bytes, which grow or are allocated at once. */
struct taking {
    size_t bytes, more;
    bool grows;
};

/* Each thread writes its own marks into its buffers. No other thread may overwrite them. */
static void *take_and_give(void *argument) {
    static int marks; /* atomic */
    const struct taking *taking = argument;
    const char mark = (char)__atomic_add_fetch(&marks, 1, __ATOMIC_RELAXED);
    for (size_t round = 0; round < 10000; round++) {
        struct mm_buffer buffer = {0};
        const size_t bytes = taking->bytes + (taking->more == 0 ? 0 : round * KIB % taking->more);
        if (!taking->grows)
            assert_int_equal(mm_buffers_acquire(buffers, bytes, &buffer, NULL), MM_OK);
        for (size_t part = 2; taking->grows && part > 0; part--)
            assert_int_equal(mm_buffers_grow(buffers, bytes / part, bytes, &buffer, NULL), MM_OK);
        volatile char *const data = buffer.data;
        data[0] = data[buffer.bytes - 1] = mark;
        assert_true(data[0] == mark && data[buffer.bytes - 1] == mark);
        give(&buffer);
        if (round % 100 == 0)
            trim();
    }
    return NULL;
}

/* The sizes in this test use the arena, reused blocks, unused memory, and locked pages. */
static void threads_share_the_pool(void **state) {
    static struct taking takings[] = {
        {300, 600, false}, {40 * KIB, 20 * KIB, false}, {80 * KIB, 40 * KIB, true}};
    static const size_t limits[] = {3000, 200 * KIB, 300 * KIB};
    for (size_t way = 0; way < COUNT(takings); way++) {
        pthread_t threads[4];
        buffers = mm_buffers_open(limits[way]);
        lock(false);
        for (size_t index = 0; index < COUNT(threads); index++)
            assert_int_equal(pthread_create(&threads[index], NULL, take_and_give, &takings[way]), 0);
        for (size_t index = 0; index < COUNT(threads); index++)
            pthread_join(threads[index], NULL);
        assert_true(mm_buffers_kept(buffers) <= limits[way]);
        close_buffers(state);
        assert_int_equal(pages.locks, pages.unlocks);
    }
}

RUN_TESTS_BETWEEN(NULL, close_buffers, freed_blocks_are_reused, kept_blocks_are_freed_for_new_ones,
                  unused_blocks_are_unmapped, failed_acquire_leaves_the_buffer_unchanged,
                  pages_are_locked_once, small_blocks_beyond_the_arena, growing_buffer_is_not_moved,
                  growing_buffer_reuses_mapped_memory, grown_buffer_is_locked_again,
                  huge_limit_needs_little_address_space, threads_share_the_pool)
