/* Lists of shapes: some are written out, and rules generate the others. */
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

void shapes_add(struct shape_list *list, size_t m, size_t n, size_t k) {
    if ((list->count & (list->count - 1)) == 0) { /* the array is full if count is 0 or a power of two */
        struct shape *grown = harness_allocate((list->count == 0 ? 1 : 2 * list->count) * sizeof *grown);
        if (list->count > 0)
            memcpy(grown, list->shapes, list->count * sizeof *grown);
        free(list->shapes);
        list->shapes = grown;
    }
    list->shapes[list->count++] = (struct shape){m, n, k};
}

void shapes_free(struct shape_list *list) {
    free(list->shapes);
    *list = (struct shape_list){0};
}

static const struct shape tiny[] = {
    {1, 1, 0}, {1, 1, 1},    {3, 5, 0},    {2, 3, 4},    {1, 7, 33},   {9, 1, 5},    {5, 4, 70},
    {8, 8, 8}, {16, 16, 16}, {17, 15, 16}, {31, 33, 32}, {32, 32, 32}, {33, 31, 34}, {40, 24, 9},
};

/* Shapes that the rules do not generate: vectors, dot products, k = 0, whole tiles, primes. In the last
 * shapes, k is a multiple of 16, because cuBLAS requires this for float8. */
static const struct shape small[] = {
    {1, 1, 0},      {1, 40, 0},     {40, 1, 0},     {17, 33, 0},   {1, 1, 1},      {1, 1, 2},
    {1, 1, 31},     {1, 1, 257},    {1, 1, 1024},   {1, 2, 40},    {1, 37, 1},     {1, 64, 64},
    {1, 97, 13},    {1, 129, 300},  {2, 1, 40},     {37, 1, 1},    {64, 1, 64},    {97, 1, 13},
    {129, 1, 300},  {2, 2, 500},    {3, 130, 5},    {130, 3, 5},   {8, 8, 8},      {8, 16, 24},
    {16, 16, 16},   {16, 32, 48},   {32, 32, 32},   {32, 64, 32},  {64, 32, 96},   {64, 64, 64},
    {128, 64, 32},  {11, 13, 17},   {19, 23, 29},   {31, 37, 41},  {43, 47, 53},   {59, 61, 67},
    {71, 73, 79},   {83, 89, 97},   {127, 3, 131},  {65, 63, 129}, {129, 127, 65}, {100, 52, 36},
    {130, 260, 50}, {257, 131, 17}, {160, 288, 64}, {63, 64, 65},  {96, 96, 96},   {95, 97, 193},
    {97, 191, 95},  {1, 4, 16},     {1, 8, 64},     {13, 20, 48},  {70, 68, 112},  {3, 260, 208},
};

/* Shapes for epilogues: vectors, k = 0, odd sizes, sizes slightly above those of tiles and blocks, and a k
 * that kernels split. The last shape exceeds cpu_cost_max in main.c. */
static const struct shape epilogues[] = {
    {1, 1, 1},     {1, 1, 0},      {17, 33, 0},  {1, 97, 13},    {97, 1, 13},       {1, 1, 257},
    {33, 31, 34},  {64, 64, 64},   {5, 6, 2000}, {130, 131, 65}, {1029, 6, 16},     {3, 1031, 5},
    {16, 32, 208}, {96, 128, 512}, {7, 48, 30},  {300, 260, 16}, {260, 301, 16384},
};

/* Long sums and narrow shapes. The last shape exceeds cpu_cost_max in main.c. */
static const struct shape large[] = {
    {1, 1, 131072},  {3, 5, 131072},  {16, 16, 131072},  {33, 17, 16384},    {1, 4096, 512},
    {4096, 1, 512},  {2048, 8, 300},  {8, 2048, 300},    {1000, 1000, 1},    {513, 255, 257},
    {228, 112, 240}, {256, 384, 512}, {1023, 1025, 129}, {4095, 4097, 4099},
};

/* Shapes of transpositions: sizes near the tile sizes 32 and 64, vectors, primes and whole tiles. */
static const struct shape tiny_transposes[] = {
    {1, 1, 0},   {1, 7, 0},   {9, 1, 0},   {2, 3, 0},   {5, 4, 0},   {8, 8, 0},    {17, 15, 0},  {31, 33, 0},
    {32, 32, 0}, {33, 31, 0}, {63, 65, 0}, {64, 64, 0}, {65, 63, 0}, {40, 130, 0}, {128, 64, 0},
};

static const struct shape small_transposes[] = {
    {1, 40, 0},    {40, 1, 0},   {1, 257, 0},   {257, 1, 0},  {1, 1024, 0},  {1024, 1, 0}, {2, 500, 0},
    {500, 2, 0},   {3, 130, 0},  {130, 3, 0},   {8, 300, 0},  {300, 8, 0},   {11, 13, 0},  {19, 23, 0},
    {59, 61, 0},   {73, 71, 0},  {127, 131, 0}, {83, 257, 0}, {64, 128, 0},  {192, 64, 0}, {128, 192, 0},
    {256, 256, 0}, {100, 52, 0}, {68, 132, 0},  {132, 68, 0}, {130, 260, 0}, {320, 72, 0},
};

/* The shape with 4200001 rows needs two launches. The last two shapes exceed cpu_cost_max in main.c. */
static const struct shape large_transposes[] = {
    {1, 100000, 0}, {100000, 1, 0}, {3, 70001, 0},  {70001, 3, 0},  {1000, 1000, 0}, {1023, 1025, 0},
    {1024, 768, 0}, {2048, 136, 0}, {136, 2048, 0}, {513, 2047, 0}, {4200001, 2, 0}, {4095, 4097, 0},
};

static void add_all(struct shape_list *list, const struct shape *shapes, size_t count) {
    for (size_t index = 0; index < count; index++)
        shapes_add(list, shapes[index].m, shapes[index].n, shapes[index].k);
}

static void add_small(struct shape_list *list, uint64_t seed) {
    /* Adds one in seven of all triples of sizes from 1 to 10. 7 and 10 are coprime, so every pair of sizes
     * occurs. */
    for (size_t index = 0; index < 1000; index += 7)
        shapes_add(list, index / 100 + 1, index / 10 % 10 + 1, index % 10 + 1);
    /* Adds one in eleven of all triples of sizes next to tile sizes. */
    static const size_t edges[] = {7, 8, 9, 15, 16, 17, 31, 32, 33};
    for (size_t index = 0; index < 729; index += 11)
        shapes_add(list, edges[index / 81], edges[index / 9 % 9], edges[index % 9]);
    struct random random = {random_mix(seed, 0x5a4e)};
    for (unsigned index = 0; index < 64; index++) {
        size_t m = 1 + random_below(&random, 40);
        size_t n = 1 + random_below(&random, 40);
        shapes_add(list, m, n, 1 + random_below(&random, 40));
    }
}

static void add_small_transposes(struct shape_list *list, uint64_t seed) {
    struct random random = {random_mix(seed, 0x5a4f)};
    /* Adds one in 37 of all pairs of sizes from 1 to 40. 37 and 40 are coprime, so every size occurs. */
    for (size_t index = 0; index < 1600; index += 37)
        shapes_add(list, index / 40 + 1, index % 40 + 1, 0);
    /* Adds one in five of all pairs of sizes next to multiples of the tile sizes. */
    static const size_t edges[] = {31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129};
    for (size_t index = 0; index < 144; index += 5)
        shapes_add(list, edges[index / 12], edges[index % 12], 0);
    for (unsigned index = 0; index < 32; index++) {
        size_t m = 1 + random_below(&random, 300);
        shapes_add(list, m, 1 + random_below(&random, 300), 0);
    }
}

#define COUNTED(shapes) (shapes), sizeof(shapes) / sizeof *(shapes)

bool shapes_named(enum mm_op op, const char *name, uint64_t seed, struct shape_list *list) {
    const struct {
        enum mm_op op;
        const char *name;
        const struct shape *shapes;
        size_t count;
        void (*add)(struct shape_list *list, uint64_t seed); /* adds generated shapes, or NULL */
    } sets[] = {
        {MM_MATMUL, "tiny", COUNTED(tiny), NULL},
        {MM_MATMUL, "small", COUNTED(small), add_small},
        {MM_MATMUL, "large", COUNTED(large), NULL},
        {MM_MATMUL, "epilogues", COUNTED(epilogues), NULL},
        {MM_TRANSPOSE, "tiny", COUNTED(tiny_transposes), NULL},
        {MM_TRANSPOSE, "small", COUNTED(small_transposes), add_small_transposes},
        {MM_TRANSPOSE, "large", COUNTED(large_transposes), NULL},
    };
    for (size_t index = 0; index < sizeof sets / sizeof *sets; index++) {
        if (sets[index].op != op || strcmp(sets[index].name, name) != 0)
            continue;
        add_all(list, sets[index].shapes, sets[index].count);
        if (sets[index].add != NULL)
            sets[index].add(list, seed);
        return true;
    }
    return false;
}
