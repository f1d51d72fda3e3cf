/* Names of paths, and their texts for responses. */
#include "gpu/product/path.h"

#include "gpu/names.h"

#include <inttypes.h>
#include <stdio.h>

MM_DEFINE_NAMES(mm_path_name, mm_path_kind, MM_PATH_COUNT, MM_PATH_TABLE)

void mm_path_text(const struct mm_path *path, char text[MM_PATH_TEXT_MAX]) {
    if (path->kind == MM_PATH_REPAIRED || path->kind == MM_PATH_MODULI)
        snprintf(text, MM_PATH_TEXT_MAX, "%s:%" PRIu64, mm_path_name(path->kind), path->repaired);
    else
        snprintf(text, MM_PATH_TEXT_MAX, "%s", mm_path_name(path->kind));
}
