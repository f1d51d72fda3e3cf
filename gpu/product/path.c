/* Names of paths, and their texts for responses. */
#include "gpu/product/path.h"

#include "gpu/names.h"

#include <inttypes.h>
#include <stdio.h>

MM_DEFINE_NAMES(mm_path_name, mm_path_kind, MM_PATH_COUNT, MM_PATH_TABLE)

void mm_path_merge(struct mm_path *into, const struct mm_path *part) {
    into->kind = part->kind > into->kind ? part->kind : into->kind;
    into->repaired += part->repaired;
    into->repaired_max = part->repaired_max > into->repaired_max ? part->repaired_max : into->repaired_max;
    into->cost += part->cost;
}

bool mm_path_falls_back(const struct mm_path *all) {
    return all->kind == MM_PATH_SIMT || all->cost > 0.0 ||
           (all->repaired_max > 0 && all->repaired > all->repaired_max);
}

void mm_path_text(const struct mm_path *path, char text[MM_PATH_TEXT_MAX]) {
    if (path->kind == MM_PATH_REPAIRED || path->kind == MM_PATH_MODULI)
        snprintf(text, MM_PATH_TEXT_MAX, "%s:%" PRIu64, mm_path_name(path->kind), path->repaired);
    else
        snprintf(text, MM_PATH_TEXT_MAX, "%s", mm_path_name(path->kind));
}
