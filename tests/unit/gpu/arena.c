/* The arena's pieces: aligned, none upon another, at most a quarter larger than asked for, and lent again. */
#include "gpu/arena.h"

#include "gpu/poison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct lent {
    unsigned char *data;
    size_t bytes;
};

static int by_address(const void *a, const void *b) {
    const struct lent *left = a;
    const struct lent *right = b;
    return (left->data > right->data) - (left->data < right->data);
}

/* Some of every class, of the sizes about its borders. */
static void pieces_lie_apart(void **state) {
    enum { COUNT = 1500 };
    static struct lent lent[COUNT];
    struct mm_arena *arena = mm_arena_open(32 << 20);
    size_t bytes = 1;
    size_t count = 0;
    (void)state;
    while (bytes <= MM_ARENA_PIECE_MAX && count < COUNT) {
        lent[count].bytes = bytes;
        lent[count].data = mm_arena_take(arena, bytes);
        assert_non_null(lent[count].data);
        assert_true(mm_arena_has(arena, lent[count].data));
        assert_int_equal((uintptr_t)lent[count].data % 64, 0);
        memset(lent[count].data, (int)count % 251, bytes);
        count++;
        bytes += bytes < 1100 ? 1 : bytes % 64 == 1 ? 63 : bytes % 64 == 0 ? 1 : 64 - bytes % 64;
        bytes += bytes > 2000 ? bytes / 10 / 64 * 64 : 0;
    }
    assert_true(bytes > MM_ARENA_PIECE_MAX);
    for (size_t index = 0; index < count; index++)
        for (size_t byte = 0; byte < lent[index].bytes; byte++)
            assert_int_equal(lent[index].data[byte], index % 251);
    qsort(lent, count, sizeof lent[0], by_address);
    for (size_t index = 0; index + 1 < count; index++) {
        const size_t taken = (size_t)(lent[index + 1].data - lent[index].data);
        assert_true(taken >= lent[index].bytes);
        assert_true(taken <= lent[index].bytes + lent[index].bytes / 4 + 63);
    }
    for (size_t index = 0; index < count; index++)
        mm_arena_give(arena, lent[index].data, lent[index].bytes);
    mm_arena_close(arena);
}

static void an_empty_arena_refuses(void **state) {
    struct mm_arena *arena = mm_arena_open(1024);
    (void)state;
    void *first = mm_arena_take(arena, 512);
    void *second = mm_arena_take(arena, 512);
    char outside;
    assert_non_null(first);
    assert_non_null(second);
    assert_null(mm_arena_take(arena, 1));
    assert_false(mm_arena_has(arena, &outside));
    assert_false(mm_arena_has(arena, (char *)second + 512));
    mm_arena_give(arena, first, 512);
    assert_null(mm_arena_take(arena, 64)); /* of another class */
    assert_ptr_equal(mm_arena_take(arena, 449), first);
    mm_arena_give(arena, first, 449);
    mm_arena_give(arena, second, 512);
    mm_arena_close(arena);
}

#ifdef MM_HAS_ADDRESS_SANITIZER
static void what_was_not_asked_for_is_poisoned(void **state) {
    struct mm_arena *arena = mm_arena_open(4096);
    (void)state;
    char *piece = mm_arena_take(arena, 300);
    assert_false(__asan_address_is_poisoned(piece + 299));
    assert_true(__asan_address_is_poisoned(piece + 304));
    mm_arena_give(arena, piece, 300);
    assert_true(__asan_address_is_poisoned(piece));
    mm_arena_close(arena);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_lie_apart),
        cmocka_unit_test(an_empty_arena_refuses),
#ifdef MM_HAS_ADDRESS_SANITIZER
        cmocka_unit_test(what_was_not_asked_for_is_poisoned),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
