/* NumPy's file format .npy, versions 1.0, 2.0 and 3.0, for matrices: reading a header and writing one
 * (NumPy's numpy/lib/format.py is the reference). It knows no requests: who sent the file, and how. Any
 * thread may call these functions. */
#pragma once

#include "gpu/matrix.h"

/* All that mm_npy_write_head writes, for any shape: twice the 64 bytes to which NumPy aligns its data. */
enum { MM_NPY_HEAD_BYTES = 128 };

#define MM_NPY_TYPE "application/x-npy"

/* What a header says. */
struct mm_npy_header {
    size_t bytes; /* the header's own, with the magic: the data begin here */
    char descr[4];
    enum mm_dtype dtype;
    bool is_void; /* NumPy does not know the type and wrote its size alone: the client must name it */
    uint64_t rows;
    uint64_t cols;
    bool column_major; /* Fortran order */
};

/* Reads the header of a file that begins at data and has bytes_max bytes. `field` names the matrix in errors.
 * MM_BAD_REQUEST: no .npy file, a malformed header, or a rank that is not 2. MM_UNSUPPORTED: a type that the
 * server does not have. MM_TOO_LARGE: a dimension past 2⁶⁴. *header is undefined on failure. */
enum mm_status mm_npy_read_header(const char *field, const void *data, size_t bytes_max,
                                  struct mm_npy_header *header, struct mm_error *error);

/* Writes the version 1.0 header of a dense row-major matrix of this type and shape; its elements follow. */
void mm_npy_write_head(const struct mm_matrix *matrix, char head[MM_NPY_HEAD_BYTES]);
