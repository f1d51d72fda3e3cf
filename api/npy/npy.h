/* NumPy's file format .npy, versions 1.0, 2.0 and 3.0, for matrices: reading a header and writing one
 * (NumPy's numpy/lib/format.py is the reference). It knows no requests: who sent the file, and how. Any
 * thread may call these functions. */
#pragma once

#include "gpu/matrix.h"

/* All that mm_npy_write_head writes, for any shape: twice the 64 bytes to which NumPy aligns its data. */
enum { MM_NPY_HEAD_BYTES = 128 };

#define MM_NPY_TYPE "application/x-npy"

/* What a header says. The dtype is not looked up in the domain, which may not have it. */
struct mm_npy_header {
    size_t bytes; /* the header's own, with the magic: the data begin here */
    char descr[4];
    const char *dtype_name; /* static: "float32" and the like */
    uint64_t rows;
    uint64_t cols;
    bool column_major; /* Fortran order */
};

/* The element types that are taken: little-endian floating-point numbers, or signed integers too. */
enum mm_npy_types { MM_NPY_FLOATS, MM_NPY_NUMBERS };

/* Reads the header of a file that begins at data and has bytes_max bytes. `field` names the matrix in errors.
 * MM_BAD_REQUEST: no .npy file, a malformed header, a type that is none of `types`, or a rank that is not 2.
 * MM_TOO_LARGE: a dimension past 2⁶⁴. *header is undefined on failure. */
enum mm_status mm_npy_read_header(const char *field, enum mm_npy_types types, const void *data,
                                  size_t bytes_max, struct mm_npy_header *header, struct mm_error *error);

/* Writes the version 1.0 header of a dense row-major matrix of this type and shape; its elements follow. */
void mm_npy_write_head(const struct mm_matrix *matrix, char head[MM_NPY_HEAD_BYTES]);
