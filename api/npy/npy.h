/* Reads and writes headers of NumPy's .npy files, versions 1.0, 2.0 and 3.0 (reference: numpy/lib/format.py),
 * and reorders elements. Any thread may call these functions. */
#pragma once

#include "gpu/product/shape.h"

/* Sizes in bytes of the headers that the server writes. The sizes are multiples of 64, because NumPy aligns
 * elements to 64 bytes. The header of an array up to rank 2 has MM_NPY_HEAD_BYTES. */
enum { MM_NPY_HEAD_BYTES = 128, MM_NPY_HEAD_BYTES_MAX = 256, MM_NPY_SHAPE_TEXT_MAX = 22 * MM_RANK_MAX + 4 };

#define MM_NPY_TYPE "application/x-npy"

struct mm_npy_header {
    size_t bytes; /* length of the header, which is the offset of the elements */
    char descr[4];
    enum mm_dtype dtype;
    bool is_void; /* NumPy lacks the type and wrote only its size; the client must name the type */
    struct mm_shape shape;
    bool is_fortran; /* the first index changes fastest */
};

/* Reads the header from the first bytes_max bytes of a file, which are at `data`. `field` names the array in
 * errors. Fails with MM_BAD_REQUEST if the file is no .npy file, the header is malformed, or the rank exceeds
 * MM_RANK_MAX. Fails with MM_UNSUPPORTED if the server lacks the element type. A dimension above 2⁶⁴−1
 * becomes 2⁶⁴−1. *header is undefined on failure. */
enum mm_status mm_npy_read_header(const char *field, const void *data, size_t bytes_max,
                                  struct mm_npy_header *header, struct mm_error *error);

/* Writes the shape as a Python tuple: "(2, 3)", "(3,)", "()". Returns the address of the NUL at the end. */
char *mm_npy_shape_text(const struct mm_shape *shape, char text[MM_NPY_SHAPE_TEXT_MAX]);

/* Writes a version 1.0 header for elements in C order. Returns the header's size. */
size_t mm_npy_write_head(const struct mm_shape *shape, enum mm_dtype dtype, char head[MM_NPY_HEAD_BYTES_MAX]);

/* Copies the elements of an array of rank 2 or more from Fortran order to C order. `from` may be unaligned.
 * `from` and `to` must not overlap. */
void mm_npy_reorder(const struct mm_shape *shape, enum mm_dtype dtype, const void *from, void *to);
