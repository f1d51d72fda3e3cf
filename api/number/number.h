/* Reads JSON numbers as elements. The locale does not matter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the number at `text`, before `end`, and writes the nearest value of the type to *element. Returns the
 * end of the number. Returns NULL if there is no JSON number, or if `end` may cut the number off. A number
 * that ends exactly at `end` may have more digits in the next chunk.
 *
 * If the type cannot represent the number, *fits becomes false. *element is then infinity for a float type,
 * and undefined for other types. Otherwise *fits does not change. Any thread may call a reader. */
typedef const char *mm_number_reader(const char *text, const char *end, void *element, bool *fits);

/* Rounds ties to even, as strtof does; -0 keeps its sign. A number that rounds to infinity does not fit. */
mm_number_reader mm_number_float32;

/* Rounds as strtod does. A number that rounds to infinity does not fit. */
mm_number_reader mm_number_float64;

/* Read elements of a narrow float type (gpu/matrix/narrow.h). A number does not fit if it rounds to infinity,
 * or, in a type without infinity, beyond the largest number. */
mm_number_reader mm_number_float16, mm_number_bfloat16, mm_number_float8_e4m3fn, mm_number_float8_e5m2;

/* Read whole numbers exactly. A number with a point or an exponent fits if it is whole and exact as a
 * float64. A number of more than 19 significant digits does not fit. */
mm_number_reader mm_number_int8, mm_number_uint8, mm_number_bool, mm_number_int32, mm_number_int64;
