/* The arguments of fp64_tensor's kernels, for the kernels and the host. A line is a row of op(A) or a column
 * of op(B). */
#pragma once

#include "gpu/product/path.h"
#include "gpu/product/product.h"
#include "gpu/cuda/variants/wgmma/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

enum {
    MM_FP64_THREADS = 256,
    MM_FP64_CERTIFY_THREADS = 1024,
    MM_FP64_PRODUCT_THREADS = 384,
    MM_FP64_CLUSTER = 2, /* blocks of the product of residues that form a cluster */
    MM_FP64_ROWS = 128,  /* a block's tile of C in the product of residues */
    MM_FP64_COLS = 256,
    MM_FP64_STEP = 128,      /* elements of k in a step of the product of residues */
    MM_FP64_CHUNK = 512,     /* elements of k whose squares are added up to one number */
    MM_FP64_TURN_K = 128,    /* elements of k that a block turns, if a line's elements are no neighbours */
    MM_FP64_K_MAX = 1 << 21, /* the proof in docs/accuracy.md needs a limit */
    MM_FP64_MODULI = 15
};

/* What is known of all elements of an operand. The caller zeroes it. */
struct mm_fp64_seen {
    unsigned long long bits; /* the scaled, rounded elements, combined by OR */
    unsigned inexact;        /* 1 if rounding changed an element */
    unsigned rejected;       /* 1 if an element is NaN or infinite, or a line too large or too small */
};

/* Who computes the product, and how C is rounded. The other kernel is enqueued too, and does nothing. */
struct mm_fp64_flags {
    unsigned moduli;  /* how many residues of C to compute; 0 if the native kernel computes C */
    unsigned natives; /* how many products the native kernel computes: 1 or 0 */
    double grid;      /* a power of two that divides all integers of C: 1, or over 4·reconstruction */
};

struct mm_fp64_operand {
    const double *from;
    size_t ld;
    unsigned lines;
    unsigned k;
    bool k_contiguous; /* a line's elements are neighbours in memory */
    unsigned k_bytes;  /* bytes of a line in a plane: k rounded up to MM_FP64_STEP */
    int8_t *planes;    /* for each modulus, lines × k_bytes residues */
    double *squares;   /* for each chunk of k, each line's sum of squares */
    double *scales;    /* for each line a power of two; 0 if the line is zero */
    unsigned *counts;  /* for each line, how many elements are large; the caller zeroes it */
    struct mm_fp64_seen *seen;
};

/* The argument of fp64_tensor's kernels, except the product of residues. */
struct mm_fp64_plan {
    struct mm_fp64_operand a;
    struct mm_fp64_operand b;
    unsigned blocks_of_a; /* blocks of the kernel that work on A; the others work on B */
    struct mm_product product;
    struct mm_schedule schedule; /* of the product of residues */
    const uint8_t *planes;       /* residues of C, in the order of the consumers' sums (modular.cu) */
    struct mm_fp64_flags *flags; /* set by the kernel `certify` */
    struct mm_path *path;
    bool merges_path;      /* the reported path must also cover the job's earlier launches */
    double limit;          /* the largest scaled norm of a line */
    double reconstruction; /* bound of the Chinese remainders' error: 2^-79 of the moduli's product */
    unsigned large; /* elements of at least large·2^32 are large: 1/16 of the limit's root mean square */
};

/* Sets the plan's limits from k. */
void mm_fp64_set_limits(struct mm_fp64_plan *plan);

/* The kernels take a struct mm_fp64_plan, except the product. The grids of the first three have blocks for A,
 * then blocks for B. */

/* Adds up the squares of each line. */
extern const void *const mm_fp64_scan_kernel;

/* Finds each line's scale. */
extern const void *const mm_fp64_scale_kernel;

/* Computes residues. */
extern const void *const mm_fp64_residue_kernel;
extern const size_t mm_fp64_residue_shared_bytes;

/* Decides whether every element keeps float64's bound, and reports the path. One block. */
extern const void *const mm_fp64_certify_kernel;

/* Multiplies residues. Argument: struct mm_tensor_plan, with the planes of C in `sums`. */
extern const void *const mm_fp64_product_kernel;
extern const size_t mm_fp64_product_shared_bytes;

/* Computes C from its residues. A block for each tile of one modulus. */
extern const void *const mm_fp64_chinese_kernel;

__END_DECLS
