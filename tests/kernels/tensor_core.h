/* A model of Hopper's tensor cores: the bits of a `wgmma` with sums in float32, one element of it at a time.
 * It is as published by P. Xie, Y. Wang, F. Yang and M. Yang, "MMA-Sim: Bit-Accurate Reference Model of
 * Tensor Cores and Matrix Cores" (arXiv 2511.10909, 2025): the products of an instruction and the sum so far
 * are aligned to the largest exponent among them, each is cut to some bits behind the point, and what they
 * add up to is cut again. A product's exponent is the sum of its factors' exponents. For C and for CUDA; any
 * thread. */
#pragma once

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* The exponent of a factor that is not normal. */
enum tensor_core_alignment {
    TENSOR_CORE_NORMALIZED, /* a subnormal's is that of its highest bit: what is kindest */
    TENSOR_CORE_AS_STORED,  /* a subnormal's is exponent_min, as published; a product with a zero has none */
    TENSOR_CORE_WITH_ZEROS, /* a zero's is -14, too, so that it coarsens its partner's instruction */
    TENSOR_CORE_ALIGNMENTS
};

extern const char *const tensor_core_names[TENSOR_CORE_ALIGNMENTS];

/* How one instruction adds. */
struct tensor_core {
    unsigned depth;     /* products */
    int fraction_bits;  /* that an addend keeps behind the point */
    int sum_bits;       /* significant ones of the sum */
    int exponent_min_a; /* of normal numbers of A's type */
    int exponent_min_b;
};

enum { TENSOR_CORE_DEPTH = 16 }; /* of float16 */
extern const struct tensor_core tensor_core_float16;

/* c + a·b. The elements of a and b, core->depth each, have values of the operands' types. */
float tensor_core_add(const struct tensor_core *core, const float *a, const float *b, float c,
                      enum tensor_core_alignment alignment);

__END_DECLS
