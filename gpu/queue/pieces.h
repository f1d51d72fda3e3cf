/* A product of the host that is computed a piece of C at a time; of a stack, one product after another.
 * Between two pieces other jobs get their turn, and the product can be cancelled. The pieces' sizes follow
 * from the time that the last one took. Any thread may call these functions, one at a time for each product.
 */
#pragma once

#include "gpu/check/reduce.h"
#include "gpu/plan/variant.h"

/* What a piece should take at most. It is less than a task's slice, since sizes are rounded. */
#define MM_PIECE_NS UINT64_C(40000000)

/* All 0: no piece has begun. */
struct mm_pieces {
    size_t made;       /* elements of operands that are made, of A and then of B, up to here are there */
    uint64_t made_ns;  /* on making them */
    size_t item;       /* of a stack: the products before this one are complete */
    size_t row;        /* the rows of its C above this one are complete */
    size_t rows;       /* of the band at hand, which begins there */
    size_t col;        /* the columns of the band left of this one are complete */
    size_t cols;       /* of the piece at hand */
    size_t checked;    /* products whose check is over */
    uint64_t spent_ns; /* on all pieces so far */
    double element_ns; /* that an element of C took in the last piece; 0: there was none */
    struct mm_reduced reduced;
};

/* The product that computes `rows` × `cols` elements of C from (row, col) on. It has no memory of its own. */
struct mm_product mm_product_piece(const struct mm_product *product, enum mm_op op, size_t row, size_t rows,
                                   size_t col, size_t cols);

/* The next piece; some of C is left. The first is sized by the device's forecast; without one, or if the
 * variant's `cut` is 0, it is all of C. */
struct mm_product mm_pieces_next(struct mm_pieces *pieces, const struct mm_device *device,
                                 const struct mm_variant *ran, const struct mm_product *product);

/* The piece is complete, and took so long. Whether there is another one. */
bool mm_pieces_end(struct mm_pieces *pieces, const struct mm_product *product, uint64_t took_ns);
