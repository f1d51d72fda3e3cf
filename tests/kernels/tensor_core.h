/* A bit-accurate model of Hopper's `wgmma` with float32 sums, for one element of C, after MMA-Sim (P. Xie et
 * al., arXiv 2511.10909, 2025). All addends are aligned to the largest exponent and truncated. Their sum is
 * truncated too. Any thread may call. */
#pragma once

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* The exponent by which the model aligns a product with a subnormal or zero factor. */
enum tensor_core_alignment {
    TENSOR_CORE_NORMALIZED, /* exponent of the subnormal's highest bit; loses the fewest bits */
    TENSOR_CORE_AS_STORED,  /* exponent_min, as published; ignores products with a factor of 0 */
    TENSOR_CORE_WITH_ZEROS, /* exponent_min, also for a factor of 0 */
    TENSOR_CORE_ALIGNMENTS
};

extern const char *const tensor_core_names[TENSOR_CORE_ALIGNMENTS];

/* Describes how one instruction adds its products. */
struct tensor_core {
    unsigned depth;     /* number of products that one instruction adds */
    int fraction_bits;  /* bits behind the binary point that an addend keeps after truncation */
    int sum_bits;       /* significant bits of the truncated sum */
    int exponent_min_a; /* smallest exponent of normal numbers of A's type */
    int exponent_min_b;
};

enum { TENSOR_CORE_DEPTH = 16 }; /* products that one float16 instruction adds */
extern const struct tensor_core tensor_core_float16;

/* Returns c + a·b. a and b have core->depth elements, which the operand types represent exactly. */
float tensor_core_add(const struct tensor_core *core, const float *a, const float *b, float c,
                      enum tensor_core_alignment alignment);

__END_DECLS
