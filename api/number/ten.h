/* Powers of ten with 64 bits of precision, to read and write numbers. */
#pragma once

#include <stdint.h>

enum { MM_TEN_MIN = -65, MM_TEN_MAX = 53 };

/* 10^power is (mm_tens[power − MM_TEN_MIN] + d)·2^mm_ten_exponent(power), with 0 ≤ d < 1. Each entry has its
 * highest bit set. For powers from 0 to 27, d is 0, because 5²⁷ < 2⁶⁴. */
extern const uint64_t mm_tens[MM_TEN_MAX - MM_TEN_MIN + 1];

/* Returns floor(power·log2(10)) − 63. 217706/2¹⁶ is log2(10), precise enough for all entries of mm_tens. */
static inline int mm_ten_exponent(int power) {
    return (power * 217706 >> 16) - 63;
}
