/* The element types: one row of a table each, from which all else about a type follows. For C and for CUDA;
 * it knows no matrix. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"
#include "gpu/matrix/narrow.h"
#include "gpu/status.h"

__BEGIN_DECLS

/* One row a type:
 *     constant, wire name
 *     type     in C
 *     word     the unsigned word of its size, by which transposes move it
 *     sum      what products add up in; integers modulo 2³² or 2⁶⁴, as NumPy's wrap around
 *     value    the function that gives an element's value, which converts to `sum` exactly
 *     result   the type of a product, unless the client asks for another
 *     others   the types that a client may ask for instead, as bits
 *     unit     the most that rounding to the type is off by, as a fraction of the value
 *     least    the smallest number above 0
 *     largest  the largest that is finite
 * The last three are 0 for whole numbers. float32 comes first, because it is the default. */
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

/* A set of element types, as a variant's table row states it. */
#define MM_DTYPE_BIT(dtype) (1u << (dtype))
#define MM_DTYPE_ALL (MM_DTYPE_BIT(MM_DTYPE_COUNT) - 1)

const char *mm_dtype_name(enum mm_dtype dtype);
size_t mm_dtype_bytes(enum mm_dtype dtype);

/* Whether it is a floating-point type; if not, its elements are whole numbers. */
bool mm_dtype_is_float(enum mm_dtype dtype);

/* The precision of a floating-point type: the table's unit, least and largest. */
struct mm_precision {
    double unit;
    double least;
    double largest;
};

struct mm_precision mm_dtype_precision(enum mm_dtype dtype);

/* The type in which products of such operands are added up: MM_FLOAT32, MM_FLOAT64, MM_INT32 or MM_INT64. The
 * last two mean the unsigned types of their size. */
enum mm_dtype mm_dtype_sum(enum mm_dtype operand);

/* The default type of a product of such operands. */
enum mm_dtype mm_dtype_result(enum mm_dtype operand);

/* All types that a product of such operands may have: MM_DTYPE_BIT of each. */
unsigned mm_dtype_results(enum mm_dtype operand);

/* Finds a type by its wire name in a set of types. MM_UNSUPPORTED, with the names of the set, if it is none
 * of them. `field` names the parameter. */
enum mm_status mm_dtype_find(const char *field, const char *name, unsigned dtypes, enum mm_dtype *dtype,
                             struct mm_error *error);

/* Element `index` as a float64. It is exact, except for an int64 past 2⁵³, which is rounded. */
double mm_dtype_get(enum mm_dtype dtype, const void *elements, size_t index);

/* Sets element `index` to the nearest value of the type, ties to even. For an integer type `value` must be a
 * whole number that fits. */
void mm_dtype_put(enum mm_dtype dtype, void *elements, size_t index, double value);

__END_DECLS
