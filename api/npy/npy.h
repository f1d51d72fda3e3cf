/* NumPy's file format .npy, versions 1.0, 2.0 and 3.0: reads and writes headers (NumPy's numpy/lib/format.py
 * is the reference), and reorders elements. It knows nothing of requests. Any thread may call these
 * functions. */
#pragma once

#include "gpu/product/shape.h"

/* The size of a header that the server writes. It is a multiple of 64, because NumPy aligns elements to 64
 * bytes; up to rank 2 it is MM_NPY_HEAD_BYTES. */
enum { MM_NPY_HEAD_BYTES = 128, MM_NPY_HEAD_BYTES_MAX = 256, MM_NPY_SHAPE_TEXT_MAX = 22 * MM_RANK_MAX + 4 };

#define MM_NPY_TYPE "application/x-npy"

/* What a header says. */
struct mm_npy_header {
    size_t bytes; /* of the header with its magic, so the offset of the elements */
    char descr[4];
    enum mm_dtype dtype;
    bool is_void; /* NumPy does not know the type and wrote only its size: the client must name it */
    struct mm_shape shape;
    bool is_fortran; /* Fortran order: the first index changes fastest */
};

/* Reads the header of a file. The first bytes_max bytes of the file are at `data`. `field` names the array in
 * errors. MM_BAD_REQUEST: no .npy file, a malformed header, or a rank over MM_RANK_MAX. MM_UNSUPPORTED: an
 * element type that the server lacks. MM_TOO_LARGE: a dimension of 2⁶⁴ or more. *header is undefined on
 * failure. */
enum mm_status mm_npy_read_header(const char *field, const void *data, size_t bytes_max,
                                  struct mm_npy_header *header, struct mm_error *error);

/* Writes the shape as a Python tuple: "(2, 3)", "(3,)", "()". Returns where its NUL is. */
char *mm_npy_shape_text(const struct mm_shape *shape, char text[MM_NPY_SHAPE_TEXT_MAX]);

/* Writes the version 1.0 header of a file in C order, and returns its size. The elements follow it. */
size_t mm_npy_write_head(const struct mm_shape *shape, enum mm_dtype dtype, char head[MM_NPY_HEAD_BYTES_MAX]);

/* Copies the elements of an array of rank 2 or more from Fortran order to C order. `from` need not be
 * aligned. `from` and `to` do not overlap. */
void mm_npy_reorder(const struct mm_shape *shape, enum mm_dtype dtype, const void *from, void *to);
