/* Runs every variant of transpositions with all shapes, element types, layouts and alignments. The bits of C
 * must equal those of op(A). */
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

/* A kind of random element. */
struct pattern {
    const char *name;
    uint64_t (*element)(struct random *random, size_t element_bytes);
};

static uint64_t any_bits(struct random *random, size_t element_bytes) {
    (void)element_bytes;
    return random_next(random);
}

/* Returns bits that arithmetic or a conversion would change: NaNs, signed zeros, subnormals, infinities. A
 * type below 4 bytes gets the upper bytes of a float32. */
static uint64_t special_bits(struct random *random, size_t element_bytes) {
    static const uint32_t narrow[] = {0x7f800001, 0xffa5a5a5, 0x7fc0dead, 0x80000000, 0x00000000,
                                      0x00000001, 0x807fffff, 0x7f800000, 0xff800000, 0xffffffff};
    static const uint64_t wide[] = {
        0x7ff0000000000001, 0xfff4a5a5a5a5a5a5, 0x7ff8000000c0dead, 0x8000000000000000, 0x0000000000000000,
        0x0000000000000001, 0x800fffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0xffffffffffffffff};
    _Static_assert(sizeof narrow / sizeof *narrow == sizeof wide / sizeof *wide, "the same kinds of both");
    const size_t which = random_below(random, sizeof wide / sizeof *wide);
    return element_bytes == sizeof *wide ? wide[which]
                                         : narrow[which] >> 8 * (sizeof *narrow - element_bytes);
}

static const struct pattern patterns[] = {{"any bits", any_bits}, {"NaN, zeros, subnormals", special_bits}};
enum { PATTERN_COUNT = sizeof patterns / sizeof *patterns };

/* There are 2^5 layouts, one for each combination of five flags: A is transposed, A has padding, C has
 * padding, A is aligned, C is aligned. */
static struct layout layout_of(unsigned index, uint64_t seed) {
    /* Odd numbers of extra elements break the alignment of rows. Multiples of 4 keep 16-byte alignment. */
    static const size_t extras[] = {1, 2, 3, 4, 5, 8, 16, 31};
    struct random random = {random_mix(seed, index)};
    struct layout layout = {.transpose_a = !(index & 1)};
    if (index & 2)
        layout.a_extra = extras[random_below(&random, sizeof extras / sizeof *extras)];
    if (index & 4)
        layout.c_extra = extras[random_below(&random, sizeof extras / sizeof *extras)];
    if (index & 8)
        layout.a_shift = 1 + random_below(&random, 3);
    if (index & 16)
        layout.c_shift = 1 + random_below(&random, 3);
    return layout;
}

/* Returns a case with a dense layout. The caller frees `a`. */
static struct one_case make(const struct shape_list *shapes, size_t piece, uint64_t seed) {
    const struct pattern *pattern = &patterns[seed % PATTERN_COUNT];
    struct one_case one = {.data = pattern->name,
                           .shape = shapes->shapes[piece / MM_DTYPE_COUNT],
                           .dtype = (enum mm_dtype)(piece % MM_DTYPE_COUNT)};
    one.c_dtype = one.dtype;
    const size_t element_bytes = mm_dtype_bytes(one.dtype);
    const size_t count = one.shape.m * one.shape.n;
    struct random random = {seed};
    unsigned char *moved = one.a = harness_allocate(count * element_bytes);
    for (size_t index = 0; index < count; index++) {
        /* copies the lowest bytes, because the host is little-endian */
        uint64_t element = pattern->element(&random, element_bytes);
        memcpy(moved + index * element_bytes, &element, element_bytes);
    }
    return one;
}

static bool is_thinned_out(const struct plan *plan, uint64_t seed, unsigned layout) {
    return random_mix(seed, 0x91ace + layout) % plan->thin != 0;
}

static bool is_wanted(const struct plan *plan, size_t piece) {
    return (plan->dtypes & MM_DTYPE_BIT(piece % MM_DTYPE_COUNT)) != 0;
}

void transposes_check(struct subject *subjects, size_t count, const struct plan *plan) {
    const size_t pieces = plan->shapes.count * MM_DTYPE_COUNT;
    for (size_t piece = plan_next_unit(plan); piece < pieces; piece = plan_next_unit(plan)) {
        const uint64_t seed = random_mix(plan->seed, 0x7a5e + piece);
        if (!is_wanted(plan, piece))
            continue;
        /* This layout runs whatever `thin` is. */
        const unsigned sure = (unsigned)(random_mix(seed, 0x5afe) % LAYOUT_COUNT);
        struct one_case one = make(&plan->shapes, piece, seed);
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
            if (layout != sure && is_thinned_out(plan, seed, layout))
                continue;
            one.layout = layout_of(layout, seed);
            check_case(subjects, count, plan, &one);
        }
        free(one.a);
    }
}

void transposes_run_jobs(struct subject *subjects, size_t count, const struct plan *plan) {
    struct shape_list shapes = {0};
    shapes_named(MM_TRANSPOSE, "tiny", plan->seed, &shapes);
    for (size_t piece = 0; piece < shapes.count * MM_DTYPE_COUNT; piece++) {
        const uint64_t seed = random_mix(plan->seed, 0x10b57 + piece);
        if (!is_wanted(plan, piece))
            continue;
        struct one_case one = make(&shapes, piece, seed);
        for (unsigned layout = piece % 5; layout < LAYOUT_COUNT; layout += 5) {
            if (layout >= 5 && is_thinned_out(plan, seed, layout))
                continue;
            one.layout = layout_of(layout, seed);
            jobs_case(subjects, count, plan, &one);
        }
        free(one.a);
    }
    shapes_free(&shapes);
}
