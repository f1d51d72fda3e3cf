/* Reads JSON numbers into elements. The results depend on the text alone, not on the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the number that begins at `text` and lies before `end`. Writes the value, rounded to nearest, to
 * *element. Returns the end of the number; NULL if there is no number of JSON, perhaps because `end` cuts it
 * off. If the number ends at `end`, more digits may be missing.
 *
 * If the type cannot represent the number, *fits becomes false, and *element becomes infinity for a float
 * type and is undefined for other types. Otherwise *fits does not change. Any thread may call a reader. */
typedef const char *mm_number_reader(const char *text, const char *end, void *element, bool *fits);

/* Reads the nearest float32, ties to even, as strtof does; -0 keeps its sign. A number that rounds to
 * infinity does not fit. */
mm_number_reader mm_number_float32;

/* Reads the nearest float64, as strtod does. A number that rounds to infinity does not fit. */
mm_number_reader mm_number_float64;

/* Read the nearest element of a narrow float type (gpu/matrix/narrow.h). A number does not fit if it rounds
 * to infinity, or past the largest number of a type without infinity. */
mm_number_reader mm_number_float16, mm_number_bfloat16, mm_number_float8_e4m3fn, mm_number_float8_e5m2;

/* Read whole numbers exactly. A number with a point or an exponent fits if it is whole and a float64 can
 * represent it. A number of more than 19 significant digits does not fit. */
mm_number_reader mm_number_int8, mm_number_uint8, mm_number_bool, mm_number_int32, mm_number_int64;
