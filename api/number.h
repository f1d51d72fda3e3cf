/* Numbers of JSON, read into elements. Pure functions of the text: neither the locale nor memory matters. */
#ifndef MM_API_NUMBER_H
#define MM_API_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the number that begins at `text`, of which nothing from `end` on is looked at, writes its value to
 * *element and returns where the number ends; NULL where there is no number by JSON's grammar, which may be
 * because it is cut off. A number that ends at `end` may be cut off as well.
 *
 * *held becomes false, and *element is undefined, where the type does not hold the number, or where that
 * takes more than this file to tell; else it stays as it is. The rounding mode is to nearest. Any thread. */
typedef const char *mm_number_reader(const char *text, const char *end, void *element, bool *held);

/* The float32 nearest to the number, ties to even, as strtof finds it, -0 with its sign. Not held: what
 * rounds to infinity. */
mm_number_reader mm_number_float32;

/* The nearest float64, as strtod finds it. Not held: from the largest one on. */
mm_number_reader mm_number_float64;

/* Whole numbers, exactly. One with a point or an exponent is held where it is whole and float64 holds it
 * too; one of more than 19 significant digits is not held. */
mm_number_reader mm_number_int32;
mm_number_reader mm_number_int64;

#ifdef __cplusplus
}
#endif
#endif
