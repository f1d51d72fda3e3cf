/* NumPy's file format .npy, versions 1.0, 2.0 and 3.0: reading a header and writing one (NumPy's
 * numpy/lib/format.py is the reference), and the order of elements. It knows no requests: who sent the file,
 * and how. Any thread may call these functions. */
#pragma once

#include "gpu/product/shape.h"

/* NumPy aligns its data to 64 bytes. A head has 128 if they are enough, as they are up to rank 2, else a
 * multiple of 64. */
enum { MM_NPY_HEAD_BYTES = 128, MM_NPY_HEAD_BYTES_MAX = 256, MM_NPY_SHAPE_TEXT_MAX = 22 * MM_RANK_MAX + 4 };

#define MM_NPY_TYPE "application/x-npy"

/* What a header says. */
struct mm_npy_header {
    size_t bytes; /* the header's own, with the magic: the data begin here */
    char descr[4];
    enum mm_dtype dtype;
    bool is_void; /* NumPy does not know the type and wrote its size alone: the client must name it */
    struct mm_shape shape;
    bool is_fortran; /* the first index runs fastest */
};

/* Reads the header of a file that begins at data and has bytes_max bytes. `field` names the array in errors.
 * MM_BAD_REQUEST: no .npy file, a malformed header, or a rank over MM_RANK_MAX. MM_UNSUPPORTED: a type that
 * the server does not have. MM_TOO_LARGE: a dimension past 2⁶⁴. *header is undefined on failure. */
enum mm_status mm_npy_read_header(const char *field, const void *data, size_t bytes_max,
                                  struct mm_npy_header *header, struct mm_error *error);

/* The shape as a tuple of Python: "(2, 3)", "(3,)", "()". Returns its end, where a NUL is. */
char *mm_npy_shape_text(const struct mm_shape *shape, char text[MM_NPY_SHAPE_TEXT_MAX]);

/* Writes the version 1.0 header of a file of this type and shape in C order, and returns its bytes; the
 * elements follow. */
size_t mm_npy_write_head(const struct mm_shape *shape, enum mm_dtype dtype, char head[MM_NPY_HEAD_BYTES_MAX]);

/* Copies the elements of an array of rank 2 or more from Fortran order to C order. `from` need not be
 * aligned; the two do not overlap. */
void mm_npy_reorder(const struct mm_shape *shape, enum mm_dtype dtype, const void *from, void *to);
