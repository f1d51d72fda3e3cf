/* JSON numbers, read into elements. The results depend on the text alone, not on the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the number that begins at `text` and lies before `end`. Writes its value, rounded to nearest, to
 * *element, and returns where the number ends; NULL if JSON's grammar allows no number here, perhaps because
 * it is cut off. A number that ends at `end` may be cut off as well.
 *
 * *held becomes false if the type does not hold the number; else it does not change. *element is then
 * infinity for a float type, else undefined. Any thread may call a reader. */
typedef const char *mm_number_reader(const char *text, const char *end, void *element, bool *held);

/* The nearest float32, ties to even, as strtof finds it; -0 keeps its sign. Not held: what rounds to
 * infinity. */
mm_number_reader mm_number_float32;

/* The nearest float64, as strtod finds it. Not held: what rounds to infinity. */
mm_number_reader mm_number_float64;

/* The nearest element of a narrower float (gpu/matrix/narrow.h). Not held: what rounds to infinity, or past
 * the largest number of a type without infinity. */
mm_number_reader mm_number_float16, mm_number_bfloat16, mm_number_float8_e4m3fn, mm_number_float8_e5m2;

/* Whole numbers, exactly. A number with a point or an exponent is held if it is whole and a float64 holds it
 * too. A number of more than 19 significant digits is not held. */
mm_number_reader mm_number_int8, mm_number_uint8, mm_number_bool, mm_number_int32, mm_number_int64;
