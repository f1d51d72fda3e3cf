/* Powers of ten as 64 bits, to read and write numbers. Any thread may use them: they never change. */
#pragma once

#include <stdint.h>

enum { MM_TEN_MIN = -65, MM_TEN_MAX = 53 };

/* 10^power is (mm_tens[power − MM_TEN_MIN] + d)·2^mm_ten_exponent(power), for d from 0 to below 1. The
 * highest bit is set; d is 0 for powers from 0 to 27, because 5²⁷ < 2⁶⁴. */
extern const uint64_t mm_tens[MM_TEN_MAX - MM_TEN_MIN + 1];

/* floor(power·log2(10)) − 63. 217706/2¹⁶ is precise enough for powers to 300 and more. */
static inline int mm_ten_exponent(int power) {
    return (power * 217706 >> 16) - 63;
}
