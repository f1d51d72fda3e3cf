/* The path by which a variant computed a result. Some variants compute on a fast path and check the result.
 * If the check fails, such a variant repairs or repeats the result on a slow path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/names.h"

/* One row for each path: constant, name in the API. MM_PATH_NONE is for variants with only one path. The
 * response then shows no path. */
#define MM_PATH_TABLE(X)                                                                                     \
    X(MM_PATH_NONE, "none")                                                                                  \
    X(MM_PATH_CERTIFIED, "certified") /* fast path; the check accepted every element */                      \
    X(MM_PATH_REPAIRED, "repaired")   /* fast path; some elements were computed again */                     \
    X(MM_PATH_SIMT, "simt")           /* slow path only */                                                   \
    X(MM_PATH_MODULI, "moduli")       /* fast path of fp64_tensor; the count says how many moduli */         \
    X(MM_PATH_NATIVE, "native")       /* the kernel that `tensor` has for the type */

enum mm_path_kind { MM_PATH_TABLE(MM_CONSTANT) MM_PATH_COUNT };

struct mm_path {
    enum mm_path_kind kind;
    uint64_t repaired; /* MM_PATH_REPAIRED: elements that were computed again; MM_PATH_MODULI: moduli */

    /* A share of a product does not know the other shares. So a share only reports these two members, and
     * mm_path_falls_back decides for all shares together. Both are 0 if the share does not report them. */
    uint64_t repaired_max; /* the whole product falls back if more elements are computed again */
    double cost;           /* the whole product falls back if the sum over all shares is positive */
};

/* Adds the path of a part of C. The kind becomes the later of both kinds in MM_PATH_TABLE. */
void mm_path_merge(struct mm_path *into, const struct mm_path *part);

/* Whether a product with this merged path must be computed on the slow path, MM_PATH_SIMT. */
bool mm_path_falls_back(const struct mm_path *all);

const char *mm_path_name(enum mm_path_kind kind);

enum { MM_PATH_TEXT_MAX = 32 };

/* Writes the name of the path. For MM_PATH_REPAIRED and MM_PATH_MODULI, appends the number: "repaired:3". Any
 * thread. */
void mm_path_text(const struct mm_path *path, char text[MM_PATH_TEXT_MAX]);
