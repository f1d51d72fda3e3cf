/* Which shapes are tried: named lists, from fixed rows and from rules. */
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

void shapes_add(struct shape_list *list, size_t m, size_t n, size_t k) {
    if ((list->count & (list->count - 1)) == 0) { /* full at every power of two */
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

/* Shapes that rules would miss: vectors, dots, no depth, whole tiles, primes, a teaching text's. */
static const struct shape small[] = {
    {1, 1, 0},      {1, 40, 0},     {40, 1, 0},     {17, 33, 0},   {1, 1, 1},      {1, 1, 2},
    {1, 1, 31},     {1, 1, 257},    {1, 1, 1024},   {1, 2, 40},    {1, 37, 1},     {1, 64, 64},
    {1, 97, 13},    {1, 129, 300},  {2, 1, 40},     {37, 1, 1},    {64, 1, 64},    {97, 1, 13},
    {129, 1, 300},  {2, 2, 500},    {3, 130, 5},    {130, 3, 5},   {8, 8, 8},      {8, 16, 24},
    {16, 16, 16},   {16, 32, 48},   {32, 32, 32},   {32, 64, 32},  {64, 32, 96},   {64, 64, 64},
    {128, 64, 32},  {11, 13, 17},   {19, 23, 29},   {31, 37, 41},  {43, 47, 53},   {59, 61, 67},
    {71, 73, 79},   {83, 89, 97},   {127, 3, 131},  {65, 63, 129}, {129, 127, 65}, {100, 52, 36},
    {130, 260, 50}, {257, 131, 17}, {160, 288, 64}, {63, 64, 65},  {96, 96, 96},   {95, 97, 193},
    {97, 191, 95},
};

/* Long sums, skinny and awkward ones. The last is past what the CPU is asked to do (main.c). */
static const struct shape large[] = {
    {1, 1, 131072},  {3, 5, 131072},  {16, 16, 131072},  {33, 17, 16384},    {1, 4096, 512},
    {4096, 1, 512},  {2048, 8, 300},  {8, 2048, 300},    {1000, 1000, 1},    {513, 255, 257},
    {228, 112, 240}, {256, 384, 512}, {1023, 1025, 129}, {4095, 4097, 4099},
};

static void add_all(struct shape_list *list, const struct shape *shapes, size_t count) {
    for (size_t index = 0; index < count; index++)
        shapes_add(list, shapes[index].m, shapes[index].n, shapes[index].k);
}

static void add_small(struct shape_list *list, uint64_t seed) {
    add_all(list, small, sizeof small / sizeof *small);
    /* 1 … 10 cubed, one in seven: 7 and 10 share no factor, so that every pair of edges is met. */
    for (size_t index = 0; index < 1000; index += 7)
        shapes_add(list, index / 100 + 1, index / 10 % 10 + 1, index % 10 + 1);
    /* Around the tiles' edges, one in eleven of all triples. */
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

bool shapes_named(const char *name, uint64_t seed, struct shape_list *list) {
    if (strcmp(name, "tiny") == 0)
        add_all(list, tiny, sizeof tiny / sizeof *tiny);
    else if (strcmp(name, "small") == 0)
        add_small(list, seed);
    else if (strcmp(name, "large") == 0)
        add_all(list, large, sizeof large / sizeof *large);
    else
        return false;
    return true;
}
