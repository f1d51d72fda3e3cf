/* The path by which a result came about, of a variant that has several: a fast one whose result it judges,
 * repairs or repeats. It knows no variant. */
#pragma once

#include <stdint.h>

#include "gpu/names.h"

/* One row a way: constant, wire name. The first is that of variants that have one way only, of which nothing
 * is told. */
#define MM_PATH_TABLE(X)                                                                                     \
    X(MM_PATH_NONE, "none")                                                                                  \
    X(MM_PATH_CERTIFIED, "certified") /* the fast way, and all of it was found good */                       \
    X(MM_PATH_REPAIRED, "repaired")   /* the fast way, but for `repaired` pieces, computed again */          \
    X(MM_PATH_SIMT, "simt")           /* the slow way, all of it */

enum mm_path_kind { MM_PATH_TABLE(MM_CONSTANT) MM_PATH_COUNT };

struct mm_path {
    enum mm_path_kind kind;
    uint64_t repaired; /* of MM_PATH_REPAIRED alone: pieces of the variant's own size */
};

/* "certified", "repaired", ... Any thread. */
const char *mm_path_name(enum mm_path_kind kind);

enum { MM_PATH_TEXT_MAX = 32 };

/* The path as callers are told it: its name, and behind a colon how much was repaired. "repaired:3". */
void mm_path_text(const struct mm_path *path, char text[MM_PATH_TEXT_MAX]);
