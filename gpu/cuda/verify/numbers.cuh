/* The arithmetic with which kernels check a product (gpu/check/verify.h), for each type of sums. */
#pragma once

#include "gpu/check/verify.h"

namespace {

constexpr unsigned VECTORS = MM_VERIFY_VECTORS;

/* For each element type: the type in C++, the type in which elements are summed, and the conversion of an
 * element from the first type to the second. */
template <enum mm_dtype DTYPE> struct element;
#define X(constant, name, TYPE, word, SUM, value, ...)                                                       \
    template <> struct element<constant> {                                                                   \
        using type = TYPE;                                                                                   \
        using sum = SUM;                                                                                     \
        static __device__ SUM worth(TYPE x) {                                                                \
            return static_cast<SUM>(value(x));                                                               \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

/* Each of the structs real, precise and words defines which sums are computed for each row of a matrix.
 * SUMS is the number of sums for a row. Each struct has these members:
 *     number            the type of a sum
 *     merge             adds the sums of another part of the row
 *     make_norms        computes the norm of a row of B from its sums
 *     difference        subtracts a sum of op(A)·op(B) from a sum of C; not in `words`
 *     of_a, of_b, of_c  the vectors; `add` multiplies an element of a row by an element of a vector
 * B and C are multiplied by the random vectors x, which `add` computes from the seed. A is multiplied by the
 * sums of B. */

/* Sums in float64, for floating-point elements that are narrower than float64. */
struct real {
    using number = double;
    static constexpr unsigned SUMS = MM_VERIFY_SUMS;
    static constexpr unsigned LAST = SUMS - 1;

    static __device__ void merge(double (&sums)[SUMS], const double (&others)[SUMS]) {
#pragma unroll
        for (unsigned s = 0; s < SUMS; s++)
            sums[s] += others[s];
    }

    static __device__ void make_norms(double (&sums)[SUMS]) {
        sums[LAST] = sqrt(sums[LAST]);
    }

    static __device__ double difference(const double (&c)[SUMS], const double (&a)[SUMS], unsigned v) {
        return c[v] - a[v];
    }

    struct of_b {
        uint64_t seed;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
            const uint64_t bits = mm_random_bits(seed, index);
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++)
                sums[v] += (bits >> v & 1) != 0 ? -wide : wide;
            sums[LAST] += wide * wide;
        }
    };
    using of_c = of_b;

    struct of_a {
        const double *data;
        size_t length;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++)
                sums[v] += wide * data[v * length + index];
            sums[LAST] += fabs(wide) * data[LAST * length + index];
        }
    };
};

/* Sums of float64 elements, in twice the precision of float64. */
struct precise {
    using number = double;
    static constexpr unsigned SUMS = MM_VERIFY_PRECISE_SUMS;
    static constexpr unsigned LARGEST = SUMS - 2;
    static constexpr unsigned LAST = SUMS - 1;

    static __device__ void merge(double (&sums)[SUMS], const double (&others)[SUMS]) {
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++) {
            mm_exact_add(&sums[v], &sums[VECTORS + v], others[v]);
            sums[VECTORS + v] += others[VECTORS + v];
        }
        sums[LARGEST] = fmax(sums[LARGEST], others[LARGEST]);
        sums[LAST] += others[LAST];
    }

    static __device__ void make_norms(double (&sums)[SUMS]) {
        sums[LAST] = sqrt(sums[LARGEST]) * sqrt(sums[LAST]);
    }

    static __device__ double difference(const double (&c)[SUMS], const double (&a)[SUMS], unsigned v) {
        return (c[v] - a[v]) + (c[VECTORS + v] - a[VECTORS + v]);
    }

    static __device__ void add_signed(double (&sums)[SUMS], double wide, uint64_t bits) {
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++)
            mm_exact_add(&sums[v], &sums[VECTORS + v], (bits >> v & 1) != 0 ? -wide : wide);
    }

    struct of_b {
        uint64_t seed;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
            add_signed(sums, wide, mm_random_bits(seed, index));
            sums[LARGEST] = fmax(sums[LARGEST], fabs(wide));
            sums[LAST] += fabs(wide);
        }
    };

    struct of_c {
        uint64_t seed;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
            add_signed(sums, wide, mm_random_bits(seed, index));
            sums[LAST] += wide * wide;
        }
    };

    struct of_a {
        const double *data;
        size_t length;

        __device__ void add(double (&sums)[SUMS], double wide, size_t index) const {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++)
                mm_exact_add_product(&sums[v], &sums[VECTORS + v], wide, data[v * length + index],
                                     data[(VECTORS + v) * length + index]);
            sums[LAST] += fabs(wide) * data[LAST * length + index];
        }
    };
};

/* Sums of integers, modulo 2^32 or 2^64. */
template <typename WORD> struct words {
    using number = WORD;
    static constexpr unsigned SUMS = MM_VERIFY_WORDS;

    static __device__ void merge(WORD (&sums)[SUMS], const WORD (&others)[SUMS]) {
#pragma unroll
        for (unsigned s = 0; s < SUMS; s++)
            sums[s] += others[s];
    }

    static __device__ void make_norms(WORD (&)[SUMS]) {
    }

    struct of_b {
        uint64_t seed;

        __device__ void add(WORD (&sums)[SUMS], WORD wide, size_t index) const {
#pragma unroll
            for (unsigned s = 0; s < SUMS; s++)
                sums[s] += wide * static_cast<WORD>(mm_verify_word(seed, s, index));
        }
    };
    using of_c = of_b;

    struct of_a {
        const WORD *data;
        size_t length;

        __device__ void add(WORD (&sums)[SUMS], WORD wide, size_t index) const {
#pragma unroll
            for (unsigned s = 0; s < SUMS; s++)
                sums[s] += wide * data[s * length + index];
        }
    };
};

template <typename SUM> struct kind_of;
template <> struct kind_of<float> { using type = real; };
template <> struct kind_of<double> { using type = precise; };
template <> struct kind_of<uint32_t> { using type = words<uint32_t>; };
template <> struct kind_of<uint64_t> { using type = words<uint64_t>; };

} // namespace
