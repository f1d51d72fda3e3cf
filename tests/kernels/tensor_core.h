/* A model of Hopper's tensor cores: the bits of a float16 `wgmma` with sums in float32, one element of it at
 * a time. It is as published by P. Xie, Y. Wang, F. Yang and M. Yang, "MMA-Sim: Bit-Accurate Reference Model
 * of Tensor Cores and Matrix Cores" (arXiv 2511.10909, 2025): the 16 products of an instruction and the sum
 * so far are aligned to the largest exponent among them, each is cut to 25 bits behind the point, and what
 * they add up to is cut to 24 bits. A product's exponent is the sum of its factors' exponents. For C and for
 * CUDA; any thread. */
#pragma once

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* The exponent of a factor that is not normal. */
enum tensor_core_alignment {
    TENSOR_CORE_NORMALIZED, /* a subnormal's is that of its highest bit: what is kindest */
    TENSOR_CORE_AS_STORED,  /* a subnormal's is -14, as published; a product with a zero has none */
    TENSOR_CORE_WITH_ZEROS, /* a zero's is -14, too, so that it coarsens its partner's instruction */
    TENSOR_CORE_ALIGNMENTS
};

extern const char *const tensor_core_names[TENSOR_CORE_ALIGNMENTS];

enum { TENSOR_CORE_DEPTH = 16 };

/* c + a·b. The elements of a and b, TENSOR_CORE_DEPTH each, have the values of float16. */
float tensor_core_add(const float *a, const float *b, float c, enum tensor_core_alignment alignment);

__END_DECLS
