/* Tests the arena. Blocks are aligned, do not overlap, are at most a quarter larger than requested, and are
 * reused. Pages are mapped only when a block needs them. */
#include "gpu/memory/arena.h"
#include "tests/unit/unit.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

struct lent {
    unsigned char *data;
    size_t bytes;
};

static int by_address(const void *a, const void *b) {
    const struct lent *left = a;
    const struct lent *right = b;
    return (left->data > right->data) - (left->data < right->data);
}

/* Tests sizes next to the limits of every size class. */
static void blocks_do_not_overlap(void **state) {
    enum { COUNT = 1500 };
    static struct lent lent[COUNT];
    struct mm_arena *arena = mm_arena_open(32 << 20);
    size_t bytes = 1;
    size_t count = 0;
    while (bytes <= MM_ARENA_BLOCK_MAX && count < COUNT) {
        lent[count].bytes = bytes;
        lent[count].data = mm_arena_acquire(arena, bytes);
        assert_non_null(lent[count].data);
        assert_true(mm_arena_has(arena, lent[count].data));
        assert_int_equal((uintptr_t)lent[count].data % 64, 0);
        memset(lent[count].data, (int)count % 251, bytes);
        count++;
        bytes += bytes < 1100 ? 1 : bytes % 64 == 1 ? 63 : bytes % 64 == 0 ? 1 : 64 - bytes % 64;
        bytes += bytes > 2000 ? bytes / 10 / 64 * 64 : 0;
    }
    assert_true(bytes > MM_ARENA_BLOCK_MAX);
    for (size_t index = 0; index < count; index++)
        for (size_t byte = 0; byte < lent[index].bytes; byte++)
            assert_int_equal(lent[index].data[byte], index % 251);
    qsort(lent, count, sizeof lent[0], by_address);
    for (size_t index = 0; index + 1 < count; index++) {
        const size_t taken = (size_t)(lent[index + 1].data - lent[index].data);
        assert_true(taken >= lent[index].bytes);
        if (taken > (lent[index].bytes + 63) / 64 * 64)
            assert_true(taken <= lent[index].bytes + lent[index].bytes / 4);
    }
    for (size_t index = 0; index < count; index++)
        mm_arena_free(arena, lent[index].data, lent[index].bytes);
    mm_arena_close(arena);
}

static void an_empty_arena_refuses(void **state) {
    struct mm_arena *arena = mm_arena_open(1024);
    void *first = mm_arena_acquire(arena, 512);
    void *second = mm_arena_acquire(arena, 512);
    char outside = 0;
    assert_non_null(first);
    assert_non_null(second);
    assert_null(mm_arena_acquire(arena, 1));
    assert_false(mm_arena_has(arena, &outside));
    assert_false(mm_arena_has(arena, (char *)second + 512));
    mm_arena_free(arena, first, 512);
    assert_null(mm_arena_acquire(arena, 64)); /* another size class */
    assert_ptr_equal(mm_arena_acquire(arena, 449), first);
    mm_arena_free(arena, first, 449);
    mm_arena_free(arena, second, 512);
    mm_arena_close(arena);
    mm_arena_close(NULL);
}

static void pages_are_mapped_when_used(void **state) {
    enum { BYTES = 32 << 20, PAGE = 4096 };
    static unsigned char resident[BYTES / PAGE];
    struct mm_arena *arena = mm_arena_open(BYTES);
    size_t count = 0;
    char *first = mm_arena_acquire(arena, PAGE);
    assert_int_equal(mincore(first, BYTES, resident), 0);
    for (size_t page = 0; page < sizeof resident; page++)
        count += resident[page] & 1;
    assert_true(count <= (2 << 20) / PAGE); /* one page, or one huge page */
    mm_arena_free(arena, first, PAGE);
    mm_arena_close(arena);
}

static void unused_bytes_are_poisoned(void **state) {
#ifdef __SANITIZE_ADDRESS__
    struct mm_arena *arena = mm_arena_open(4096);
    char *block = mm_arena_acquire(arena, 300);
    assert_false(__asan_address_is_poisoned(block + 299));
    assert_true(__asan_address_is_poisoned(block + 304));
    mm_arena_free(arena, block, 300);
    assert_true(__asan_address_is_poisoned(block));
    mm_arena_close(arena);
#endif
}

RUN_TESTS(blocks_do_not_overlap, an_empty_arena_refuses, pages_are_mapped_when_used,
          unused_bytes_are_poisoned)
