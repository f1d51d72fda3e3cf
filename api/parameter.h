/* The parameters of an endpoint: a table, and the reader that sets values by the table. The values are
 * members of the endpoint's struct, which begins with struct mm_parameters. A struct belongs to one request,
 * and one thread at a time uses it. */
#pragma once

#include "api/parameter_value.h"

#include <stddef.h>

/* Where a client may give a parameter. */
enum mm_parameter_place {
    MM_IN_QUERY = 1,
    MM_IN_JSON = 2,
    MM_IN_FORM = 4,
    MM_IN_ANY = 7,
    MM_IN_OBJECT = 8 /* in an object that is a member of the JSON */
};

struct mm_parameters;
struct mm_parameter;

/* Reads a value and stores it. May fail with any status. */
typedef enum mm_status mm_parameter_reader(struct mm_parameters *values, const struct mm_parameter *row,
                                           const struct mm_value *given, struct mm_error *error);

struct mm_parameter {
    const char *name;
    enum mm_kind kind;
    unsigned places;           /* bits of enum mm_parameter_place */
    size_t offset, bytes;      /* place and size of the value in the endpoint's struct */
    mm_parameter_reader *read; /* NULL if mm_kind_read reads the value, or the endpoint does (MM_KIND_OWN) */
};

struct mm_parameter_table {
    const struct mm_parameter *rows;
    unsigned count; /* at most 64, because a set of rows is a uint64_t */
};

/* For a query that takes no parameters. */
extern const struct mm_parameter_table mm_parameters_none;

/* MM_PARAMETER is a row whose `read` is NULL. MM_PARAMETER_TABLE makes a table from an array of rows. */
#define MM_PARAMETER(name, kind, places, type, member)                                                       \
    MM_PARAMETER_READ(name, kind, places, type, member, NULL)
#define MM_PARAMETER_READ(name, kind, places, type, member, read)                                            \
    { name, MM_KIND_##kind, places, offsetof(type, member), sizeof((type *)NULL)->member, read }
#define MM_PARAMETER_TABLE(rows)                                                                             \
    { rows, sizeof(rows) / sizeof(rows)[0] }

/* The first member of each endpoint's struct. In the sets of parameters, bit i stands for row i. */
struct mm_parameters {
    const struct mm_parameter_table *table;
    uint64_t named;   /* the request has the parameter, perhaps with a wrong value */
    uint64_t given;   /* the client gave a valid value */
    uint64_t derived; /* the value follows from an operand, not from the client */
};

/* Returns the parameter that a client may give by this name at this place, or NULL. */
const struct mm_parameter *mm_parameter_find(const struct mm_parameters *values,
                                             enum mm_parameter_place place, const char *name,
                                             size_t name_length);

/* Sets the parameter with this name from text of the query or of a form's field. Fails with MM_BAD_REQUEST if
 * the name is unknown, the value is malformed, or the client gave a different value before. Fails with
 * MM_TOO_LARGE if a dimension exceeds limits->dimension_max. The row's own reader may return another status.
 * name and text may have any bytes; a text of NULL is empty. */
enum mm_status mm_parameter_set_text(struct mm_parameters *values, enum mm_parameter_place place,
                                     const char *name, size_t name_length, const char *text, size_t length,
                                     const struct mm_limits *limits, struct mm_error *error);

/* Sets the parameter with this name from a JSON value at this place, and fails as mm_parameter_set_text does.
 * `limits` may be NULL if no row is a dimension. */
enum mm_status mm_parameter_set_value(struct mm_parameters *values, enum mm_parameter_place place,
                                      const char *name, size_t name_length, const struct mm_value *given,
                                      const struct mm_limits *limits, struct mm_error *error);

/* Stores a value. Bytes of *value that the row's kind does not use must be 0. Fails with MM_BAD_REQUEST if
 * the client gave a different value before. */
enum mm_status mm_parameter_set(struct mm_parameters *values, const struct mm_parameter *row,
                                const union mm_parameter_value *value, struct mm_error *error);

/* Returns the row of the parameter table that describes `value`, a member of the endpoint's struct. NULL if
 * the endpoint does not take the parameter. */
const struct mm_parameter *mm_parameter_of(const struct mm_parameters *values, const void *value);

/* Returns the bit of the row that describes `value`; 0 if the endpoint does not take the parameter. */
uint64_t mm_parameter_bit(const struct mm_parameters *values, const void *value);

static inline bool mm_parameter_is_set(const struct mm_parameters *values, const void *value) {
    return ((values->given | values->derived) & mm_parameter_bit(values, value)) != 0;
}
