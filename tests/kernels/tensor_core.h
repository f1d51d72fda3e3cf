/* A bit-accurate model of Hopper's `wgmma` with float32 sums, one element at a time, after MMA-Sim (P. Xie et
 * al., arXiv 2511.10909, 2025). Addends are aligned to the largest exponent and truncated; so is their sum.
 * Any thread may call. */
#pragma once

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* Which exponent the model gives to a factor that is subnormal or zero. */
enum tensor_core_alignment {
    TENSOR_CORE_NORMALIZED, /* exponent of the highest set bit of a subnormal; the least loss */
    TENSOR_CORE_AS_STORED,  /* exponent_min for a subnormal, as published; products with a zero have no
                               exponent */
    TENSOR_CORE_WITH_ZEROS, /* as TENSOR_CORE_AS_STORED, and a zero has exponent -14 */
    TENSOR_CORE_ALIGNMENTS
};

extern const char *const tensor_core_names[TENSOR_CORE_ALIGNMENTS];

/* How one tensor core instruction adds its products. */
struct tensor_core {
    unsigned depth;     /* number of products */
    int fraction_bits;  /* bits behind the point that each addend keeps */
    int sum_bits;       /* significant bits of the sum */
    int exponent_min_a; /* least exponent of normal numbers of A's type */
    int exponent_min_b;
};

enum { TENSOR_CORE_DEPTH = 16 }; /* products of one float16 instruction */
extern const struct tensor_core tensor_core_float16;

/* Returns c + a·b. The arrays a and b have core->depth elements, exactly representable in the operands'
 * types. */
float tensor_core_add(const struct tensor_core *core, const float *a, const float *b, float c,
                      enum tensor_core_alignment alignment);

__END_DECLS
