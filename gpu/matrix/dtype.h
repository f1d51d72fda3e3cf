/* The element types, one row of a table for each. For host and device code; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"
#include "gpu/matrix/narrow.h"
#include "gpu/status.h"

__BEGIN_DECLS

/* One row for each type:
 *     constant, name in the API
 *     type     the C type
 *     word     the unsigned type of the same size, which transpose kernels copy
 *     sum      the type of sums; integer sums wrap around modulo 2³² or 2⁶⁴, as in NumPy
 *     value    the function that converts an element to a number, which `sum` represents exactly
 *     result   the default type of a product
 *     others   the other types of a product that a client may choose, as bits
 *     unit     the largest relative error of rounding to the type
 *     least    the smallest positive number
 *     largest  the largest finite number
 * unit, least and largest are 0 for integers. float32 is the first row, because it is the default. */
#define MM_DTYPE_TABLE(X)                                                                                    \
    X(MM_FLOAT32, "float32", float, uint32_t, float, MM_ITSELF, MM_FLOAT32, MM_16_BITS, 0x1p-24, 0x1p-149,   \
      0x1.fffffep127)                                                                                        \
    X(MM_FLOAT64, "float64", double, uint64_t, double, MM_ITSELF, MM_FLOAT64, MM_32_BITS, 0x1p-53,           \
      0x1p-1074, 0x1.fffffffffffffp1023)                                                                     \
    X(MM_FLOAT16, "float16", mm_float16, uint16_t, float, mm_float16_value, MM_FLOAT16, MM_32_BITS, 0x1p-11, \
      0x1p-24, 65504.0)                                                                                      \
    X(MM_BFLOAT16, "bfloat16", mm_bfloat16, uint16_t, float, mm_bfloat16_value, MM_BFLOAT16, MM_32_BITS,     \
      0x1p-8, 0x1p-133, 0x1.fep127)                                                                          \
    X(MM_FLOAT8_E4M3FN, "float8_e4m3fn", mm_float8_e4m3fn, uint8_t, float, mm_float8_e4m3fn_value,           \
      MM_FLOAT32, MM_16_BITS, 0x1p-4, 0x1p-9, 448.0)                                                         \
    X(MM_FLOAT8_E5M2, "float8_e5m2", mm_float8_e5m2, uint8_t, float, mm_float8_e5m2_value, MM_FLOAT32,       \
      MM_16_BITS, 0x1p-3, 0x1p-16, 57344.0)                                                                  \
    X(MM_INT8, "int8", int8_t, uint8_t, uint32_t, MM_ITSELF, MM_INT32, 0, 0.0, 0.0, 0.0)                     \
    X(MM_UINT8, "uint8", uint8_t, uint8_t, uint32_t, MM_ITSELF, MM_INT32, 0, 0.0, 0.0, 0.0)                  \
    X(MM_BOOL, "bool", mm_bool, uint8_t, uint32_t, MM_ITSELF, MM_INT32, 0, 0.0, 0.0, 0.0)                    \
    X(MM_INT32, "int32", int32_t, uint32_t, uint32_t, MM_ITSELF, MM_INT32, 0, 0.0, 0.0, 0.0)                 \
    X(MM_INT64, "int64", int64_t, uint64_t, uint64_t, MM_ITSELF, MM_INT64, 0, 0.0, 0.0, 0.0)

#define MM_32_BITS MM_DTYPE_BIT(MM_FLOAT32)
#define MM_16_BITS (MM_DTYPE_BIT(MM_FLOAT16) | MM_DTYPE_BIT(MM_BFLOAT16))
#define MM_ITSELF(x) (x)

typedef uint8_t mm_bool; /* 0 or 1 */

enum mm_dtype { MM_DTYPE_TABLE(MM_CONSTANT) MM_DTYPE_COUNT };

/* Runs the case of an element type. X makes a case of a row of the table. */
#define MM_DTYPE_SWITCH(dtype, X)                                                                            \
    switch (dtype) {                                                                                         \
        MM_DTYPE_TABLE(X)                                                                                    \
    case MM_DTYPE_COUNT:                                                                                     \
        break;                                                                                               \
    }

/* A set of element types is an `unsigned` with one bit for each type. */
#define MM_DTYPE_BIT(dtype) (1u << (dtype))
#define MM_DTYPE_ALL (MM_DTYPE_BIT(MM_DTYPE_COUNT) - 1)

const char *mm_dtype_name(enum mm_dtype dtype);
size_t mm_dtype_bytes(enum mm_dtype dtype);

/* Returns true for floating-point types, and false for integers and bool. */
bool mm_dtype_is_float(enum mm_dtype dtype);

/* All members are 0 for integer types. */
struct mm_precision {
    double unit;    /* the largest relative error of rounding to the type */
    double least;   /* the smallest positive number */
    double largest; /* the largest finite number */
};

struct mm_precision mm_dtype_precision(enum mm_dtype dtype);

/* Returns the type of the sums in a product of these operands: MM_FLOAT32, MM_FLOAT64, MM_INT32 or MM_INT64.
 * Kernels add integers as unsigned numbers of this size. */
enum mm_dtype mm_dtype_sum(enum mm_dtype operand);

/* Returns the default type of a product of these operands. */
enum mm_dtype mm_dtype_result(enum mm_dtype operand);

/* Returns MM_DTYPE_BIT of each type that a product of these operands may have. */
unsigned mm_dtype_results(enum mm_dtype operand);

/* Finds a type by its name in a set of types. If the set does not contain the type, returns MM_UNSUPPORTED
 * with the names of all types in the set. `field` is the name of the client's parameter. */
enum mm_status mm_dtype_find(const char *field, const char *name, unsigned dtypes, enum mm_dtype *dtype,
                             struct mm_error *error);

/* Returns element `index` as a float64. This is exact, except for an int64 above 2⁵³. */
double mm_dtype_get(enum mm_dtype dtype, const void *elements, size_t index);

/* Sets element `index` to the nearest number of the type, ties to even. For an integer type, `value` must be
 * an integer within range. */
void mm_dtype_put(enum mm_dtype dtype, void *elements, size_t index, double value);

__END_DECLS
