/* Well-formed products and transpositions in all formats, whose result is known: whole numbers so small that
 * float32 is exact in any order. */
#ifndef MM_TESTS_FUZZ_PRODUCT_H
#define MM_TESTS_FUZZ_PRODUCT_H

#include "tests/fuzz/replies.h"

struct product {
    const char *target;
    const char *type;
    const char *natural_type; /* of a reply, if Accept leaves the choice */
    const char *variant;      /* that runs; NULL: whichever the server chooses */
    const char *body;
    size_t bytes;
};

struct product_accept {
    const char *accept; /* NULL: none */
    const char *type;   /* NULL: it leaves the choice */
};

/* Rows of the tables, which the input chooses. */
const struct product *product_take(struct input *input);
const struct product_accept *product_take_accept(struct input *input);

/* That the reply has the exact result in the right format. */
void product_judge(const struct product *product, const struct product_accept *accept,
                   const struct reply *reply);

#endif
