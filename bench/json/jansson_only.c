/* A codec by Jansson's tree alone, without any of the contract's rules. */
#include "bench/json/jansson_only.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static void require(int condition) {
    if (condition)
        return;
    fputs("the JSON is not what it should be\n", stderr);
    exit(1);
}

void jansson_only_begin(void) {
    json_set_alloc_funcs(malloc, free);
}

static void read_rows(const json_t *rows, size_t edge, float *elements) {
    require(json_array_size(rows) == edge);
    for (size_t row = 0; row < edge; row++) {
        const json_t *numbers = json_array_get(rows, row);
        require(json_array_size(numbers) == edge);
        for (size_t col = 0; col < edge; col++)
            elements[row * edge + col] = (float)json_number_value(json_array_get(numbers, col));
    }
}

void jansson_only_decode(const char *text, size_t bytes, size_t edge, float *a, float *b) {
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    require(root != NULL);
    read_rows(json_object_get(root, "a"), edge, a);
    read_rows(json_object_get(root, "b"), edge, b);
    json_decref(root);
}

size_t jansson_only_encode(const float *c, size_t edge, char *text, size_t room) {
    json_t *rows = json_array();
    for (size_t row = 0; row < edge; row++) {
        json_t *numbers = json_array();
        for (size_t col = 0; col < edge; col++)
            require(json_array_append_new(numbers, json_real((double)c[row * edge + col])) == 0);
        require(json_array_append_new(rows, numbers) == 0);
    }
    json_t *root = json_pack("{s:o}", "c", rows);
    size_t bytes = json_dumpb(root, text, room, JSON_COMPACT | JSON_REAL_PRECISION(9));
    require(bytes > 0 && bytes <= room);
    json_decref(root);
    return bytes;
}
