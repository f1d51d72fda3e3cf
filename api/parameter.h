/* The parameters of an endpoint: a table of rows, and the reader that sets values by the table. The values
 * lie in the endpoint's struct, which begins with struct mm_parameters. Knows no endpoint and no parameter by
 * name. A struct belongs to one request, and one thread at a time uses it. */
#pragma once

#include "api/parameter_value.h"

#include <stddef.h>

/* The places where a client may give a parameter. */
enum mm_parameter_place { MM_IN_QUERY = 1, MM_IN_JSON = 2, MM_IN_FORM = 4, MM_IN_ANY = 7 };

struct mm_parameters;
struct mm_parameter;

/* Reads a value and stores it. Fails with a status of mm_parameter_set_value, or with one of its own. */
typedef enum mm_status mm_parameter_reader(struct mm_parameters *values, const struct mm_parameter *row,
                                           const struct mm_value *given, struct mm_error *error);

/* A row of a table: a parameter that an endpoint takes. */
struct mm_parameter {
    const char *name; /* on the wire */
    enum mm_kind kind;
    unsigned places;           /* bits of enum mm_parameter_place */
    size_t offset, bytes;      /* of the value in the endpoint's struct; the kind sets its type */
    mm_parameter_reader *read; /* NULL: mm_kind_read reads the value, or the endpoint itself for kind OWN */
};

struct mm_parameter_table {
    const struct mm_parameter *rows;
    unsigned count; /* at most 64 */
};

/* MM_PARAMETER is a row without a reader of its own. MM_PARAMETER_TABLE makes a table of an array of rows. */
#define MM_PARAMETER(name, kind, places, type, member)                                                       \
    MM_PARAMETER_READ(name, kind, places, type, member, NULL)
#define MM_PARAMETER_READ(name, kind, places, type, member, read)                                            \
    { name, MM_KIND_##kind, places, offsetof(type, member), sizeof((type *)NULL)->member, read }
#define MM_PARAMETER_TABLE(rows)                                                                             \
    { rows, sizeof(rows) / sizeof(rows)[0] }

/* The first member of each endpoint's struct. Bit i of a set is row i. */
struct mm_parameters {
    const struct mm_parameter_table *table;
    uint64_t named;   /* rows that the request names, perhaps with a wrong value */
    uint64_t given;   /* rows for which the client gave a valid value */
    uint64_t derived; /* rows whose value follows from an operand, not from the client */
};

/* Finds the row with this name that a client may give at this place. NULL: there is none. */
const struct mm_parameter *mm_parameter_find(const struct mm_parameters *values,
                                             enum mm_parameter_place place, const char *name,
                                             size_t name_length);

/* Sets the parameter with this name from text of the query or of a form's field. MM_BAD_REQUEST names the
 * parameter: it is unknown or malformed, or the client gave another value before. MM_TOO_LARGE: a dimension
 * exceeds limits->dimension_max. name and text may hold any bytes. If text is NULL, it is empty. */
enum mm_status mm_parameter_set_text(struct mm_parameters *values, enum mm_parameter_place place,
                                     const char *name, size_t name_length, const char *text, size_t length,
                                     const struct mm_limits *limits, struct mm_error *error);

/* Sets the parameter with this name from a JSON value. `limits` may be NULL if no row is a dimension.
 * MM_BAD_REQUEST names the parameter: it is unknown or malformed, or the client gave another value before.
 * MM_TOO_LARGE: a dimension exceeds limits->dimension_max. */
enum mm_status mm_parameter_set_value(struct mm_parameters *values, const char *name, size_t name_length,
                                      const struct mm_value *given, const struct mm_limits *limits,
                                      struct mm_error *error);

/* Stores a value. All bytes of *value that its member does not use must be zeros. MM_BAD_REQUEST: the client
 * gave another value before. */
enum mm_status mm_parameter_set(struct mm_parameters *values, const struct mm_parameter *row,
                                const union mm_parameter_value *value, struct mm_error *error);

/* Finds the row of a value, which is a member of the endpoint's struct. NULL: the endpoint does not take the
 * parameter. */
const struct mm_parameter *mm_parameter_of(const struct mm_parameters *values, const void *value);

/* The bit of a value's row; 0: the endpoint does not take the parameter. */
uint64_t mm_parameter_bit(const struct mm_parameters *values, const void *value);

/* Whether the client gave the value, or the value follows from an operand. */
static inline bool mm_parameter_is_set(const struct mm_parameters *values, const void *value) {
    return ((values->given | values->derived) & mm_parameter_bit(values, value)) != 0;
}
