/* What a path is called. */
#include "gpu/path.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const names[MM_PATH_COUNT] = {
#define X(constant, name) [constant] = name,
    MM_PATH_TABLE(X)
#undef X
};

const char *mm_path_name(enum mm_path_kind kind) {
    assert(kind < MM_PATH_COUNT);
    return names[kind];
}

void mm_path_text(const struct mm_path *path, char text[MM_PATH_TEXT_MAX]) {
    if (path->kind == MM_PATH_REPAIRED)
        snprintf(text, MM_PATH_TEXT_MAX, "%s:%" PRIu64, mm_path_name(path->kind), path->repaired);
    else
        snprintf(text, MM_PATH_TEXT_MAX, "%s", mm_path_name(path->kind));
}
