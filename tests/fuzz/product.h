/* A small product or transposition that a fuzz target asks for, well-formed, and knows the result of: whole
 * numbers so small that float32 is exact in any order. */
#ifndef MM_TESTS_FUZZ_PRODUCT_H
#define MM_TESTS_FUZZ_PRODUCT_H

#include "tests/fuzz/replies.h"

enum { PRODUCT_EDGE_MAX = 5 };
enum product_format { PRODUCT_JSON, PRODUCT_RAW, PRODUCT_FORM, PRODUCT_FORMAT_COUNT };

struct product {
    enum product_format format;
    bool is_transposition;
    bool transpose_a, transpose_b;
    bool is_fortran; /* the files of a form, of both operands */
    bool is_chunked;
    const char *accept; /* NULL: none */
    const char *variant;
    size_t m, k, n;
    float a[PRODUCT_EDGE_MAX * PRODUCT_EDGE_MAX]; /* as stored: m×k, or k×m where transpose_a */
    float b[PRODUCT_EDGE_MAX * PRODUCT_EDGE_MAX]; /* k×n, or n×k */
};

/* Decides on everything by the input. */
void product_make(struct product *product, struct input *input);

/* What the request is made of. The body is malloc'ed, the caller's. */
void product_target(const struct product *product, char *target, size_t size);
const char *product_type(const struct product *product);
void product_body(const struct product *product, char **body, size_t *bytes);

/* That the reply has the exact result. */
void product_judge(const struct product *product, const struct reply *reply);

#endif
