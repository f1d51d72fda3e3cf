/* Tests how compressed bodies are inflated: formats, limits at their edge, damaged bodies, and memory. */
#include "server/http/inflation.h"
#include "tests/unit/unit.h"

enum { KIB = 1 << 10, MIB = 1 << 20, PLAIN_MAX = 8 * MIB, STEPS_MAX = 64 };

static struct mm_budget budget;
static struct mm_reservation memory;
static struct mm_inflation inflation;
static unsigned char *plain;
static char *packed;
static unsigned steps;

/* Fills `plain` with bytes that hardly compress, so the ratio limits nothing. */
static int open_all(void **state) {
    uint32_t random = 1;
    assert_true(mm_budget_open(&budget, 64 * MIB));
    memory = (struct mm_reservation){.budget = &budget};
    plain = malloc(PLAIN_MAX);
    packed = malloc(PLAIN_MAX + MIB);
    for (size_t index = 0; index < PLAIN_MAX; index++)
        plain[index] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
    return 0;
}

static int close_all(void **state) {
    mm_inflation_close(&inflation, &memory);
    mm_reservation_close(&memory);
    mm_budget_close(&budget);
    free(plain);
    free(packed);
    return 0;
}

static int coding(const char *name) {
    return mm_inflation_coding((struct mm_slice){name, strlen(name)});
}

/* Compresses the first `bytes` of `plain` to `packed`. */
static struct mm_slice pack(const char *name, size_t bytes, int level) {
    z_stream stream = {.next_in = plain, .avail_in = (uInt)bytes};
    stream.next_out = (Bytef *)packed;
    stream.avail_out = PLAIN_MAX + MIB;
    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, coding(name), 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return (struct mm_slice){packed, stream.total_out};
}

/* Inflates until the end or an error. */
static enum mm_status go_on(struct mm_slice compressed, size_t lead_bytes, size_t bytes_max,
                            struct mm_error *error) {
    enum mm_status status = MM_OK;
    while (status == MM_OK && inflation.coding != 0) {
        status = mm_inflation_step(&inflation, compressed, lead_bytes, bytes_max, &memory, error);
        assert_true(++steps < STEPS_MAX);
        assert_true(inflation.stream.total_out <= bytes_max);
    }
    return status;
}

static enum mm_status inflate_all(const char *name, struct mm_slice compressed, size_t lead_bytes,
                                  size_t bytes_max, struct mm_error *error) {
    mm_inflation_close(&inflation, &memory);
    mm_reservation_trim(&memory);
    inflation = (struct mm_inflation){.coding = coding(name)};
    steps = 0;
    return go_on(compressed, lead_bytes, bytes_max, error);
}

static void expect_plain(size_t lead_bytes, size_t bytes) {
    assert_int_equal(inflation.stream.total_out, bytes);
    assert_memory_equal((char *)inflation.body.data + lead_bytes, plain, bytes);
    assert_int_equal(memory.used_bytes, inflation.body.bytes);
}

static void expect_failure(const char *name, struct mm_slice compressed, size_t bytes_max,
                           enum mm_status status, const char *words) {
    struct mm_error error;
    assert_int_equal(inflate_all(name, compressed, 0, bytes_max, &error), status);
    if (strstr(error.detail, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, error.detail);
}

static void formats_and_sizes(void **state) {
    static const size_t sizes[] = {0, 1, 100, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 3 * MIB, PLAIN_MAX};
    EACH(name, "gzip|x-gzip|deflate|GZip") {
        for (size_t index = 0; index < COUNT(sizes); index++) {
            const struct mm_slice compressed = pack(name, sizes[index], 1);
            for (size_t lead_bytes = 0; lead_bytes < 64; lead_bytes += 63) {
                assert_int_equal(inflate_all(name, compressed, lead_bytes, PLAIN_MAX, NULL), MM_OK);
                expect_plain(lead_bytes, sizes[index]);
            }
        }
    }
    assert_true(steps > PLAIN_MAX / (2 * MIB)); /* a slice has at most 2 MiB */
    EACH(name, "|br|gzipp|gzi|identity|compress|zstd") {
        assert_int_equal(coding(name), 0);
    }
}

static void limits(void **state) {
    static const size_t sizes[] = {1, 300, 64 * KIB, 5 * MIB};
    for (size_t index = 0; index < COUNT(sizes); index++) {
        const struct mm_slice compressed = pack("gzip", sizes[index], 1);
        assert_int_equal(inflate_all("gzip", compressed, 0, sizes[index], NULL), MM_OK);
        expect_plain(0, sizes[index]);
        if (sizes[index] > 1)
            expect_failure("gzip", compressed, sizes[index] - 1, MM_TOO_LARGE,
                           "the limit (the smaller of --max-body");
    }
    memset(plain, 0, PLAIN_MAX);
    const struct mm_slice bomb = pack("deflate", PLAIN_MAX, 9);
    expect_failure("deflate", bomb, MM_INFLATION_RATIO_MAX * bomb.length, MM_TOO_LARGE,
                   "hundred times its compressed");
    assert_true(memory.bytes <= MM_INFLATION_RATIO_MAX * bomb.length);
}

static void damaged_bodies(void **state) {
    struct mm_slice compressed = pack("gzip", 5 * KIB, 9);
    const size_t length = compressed.length;
    for (compressed.length = 1; compressed.length < length; compressed.length++)
        expect_failure("gzip", compressed, 5 * KIB, MM_BAD_REQUEST, "ends too early");
    expect_failure("gzip", (struct mm_slice){packed, 0}, 100, MM_BAD_REQUEST, "is empty");
    expect_failure("deflate", (struct mm_slice){packed, length}, MIB, MM_BAD_REQUEST, "is not valid");
    expect_failure("gzip", (struct mm_slice){packed, length + 1}, 5 * KIB, MM_BAD_REQUEST, "after its end");
    packed[length - 5] ^= 1; /* the checksum */
    expect_failure("gzip", (struct mm_slice){packed, length}, MIB, MM_BAD_REQUEST, "is not valid");
    compressed = pack("gzip", 10, 9);
    memcpy(packed + compressed.length, packed, compressed.length);
    compressed.length *= 2; /* two members */
    expect_failure("gzip", compressed, MIB, MM_BAD_REQUEST, "after its end");
    expect_failure("deflate", (struct mm_slice){"\x78\xbb\0\0\0\1\0\0", 8}, MIB, MM_BAD_REQUEST,
                   "is not valid"); /* asks for a dictionary */
    compressed = pack("deflate", 100, 9);
    expect_failure("deflate", (struct mm_slice){packed + 2, compressed.length - 6}, MIB, MM_BAD_REQUEST,
                   "is not valid"); /* without zlib's header */
}

/* A body of empty blocks inflates to nothing, so the input must be sliced too. */
static void empty_blocks(void **state) {
    static const char head[] = "\x78\x01", block[] = {0, 0, 0, '\xff', '\xff'},
                      end[] = {1, 0, 0, '\xff', '\xff', 0, 0, 0, 1};
    size_t length = 2;
    memcpy(packed, head, length);
    for (; length < PLAIN_MAX; length += sizeof block)
        memcpy(packed + length, block, sizeof block);
    memcpy(packed + length, end, sizeof end);
    length += sizeof end;
    assert_int_equal(inflate_all("deflate", (struct mm_slice){packed, length}, 0, PLAIN_MAX, NULL), MM_OK);
    assert_int_equal(steps, PLAIN_MAX / (2 * MIB) + 1);
    expect_plain(0, 0);
}

/* If memory is short, the caller waits until error.needed_bytes are reserved, and goes on. */
static void short_memory(void **state) {
    struct mm_reservation others = {.budget = &budget};
    struct mm_error error;
    const struct mm_slice compressed = pack("gzip", PLAIN_MAX, 1);
    assert_true(mm_reservation_extend(&others, 56 * MIB));
    assert_int_equal(inflate_all("gzip", compressed, 5, PLAIN_MAX, &error), MM_BUSY);
    assert_true(error.needed_bytes > 0 && inflation.stream.total_out > 0);
    mm_reservation_close(&others);
    assert_true(mm_reservation_extend(&memory, error.needed_bytes));
    assert_int_equal(go_on(compressed, 5, PLAIN_MAX, NULL), MM_OK);
    expect_plain(5, PLAIN_MAX);
}

RUN_TESTS_BETWEEN(open_all, close_all, formats_and_sizes, limits, damaged_bodies, empty_blocks, short_memory)
