/* Generates operands in host memory, or copies stored operands there. */
#include "gpu/matrix/source.h"

#include "gpu/matrix/random.h"
#include "gpu/store/store.h"

#include <assert.h>
#include <string.h>

bool mm_source_is_off_host(const struct mm_source *source) {
    return mm_source_is_generated(source) ||
           (source->kind == MM_SOURCE_STORED && source->stored->only_copy != NULL);
}

const char *mm_source_word(enum mm_source_kind kind) {
    static const char *const words[] = {[MM_SOURCE_HOST] = "inline",
                                        [MM_SOURCE_UNIFORM] = "generated",
                                        [MM_SOURCE_IDENTITY] = "generated",
                                        [MM_SOURCE_STORED] = "stored"};
    return words[kind];
}

static void make_uniform(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                         size_t count) {
#define X(constant, name, type, ...)                                                                         \
    case constant:                                                                                           \
        for (size_t index = first; index < first + count; index++)                                           \
            ((type *)view->data)[index] = mm_random_##constant(                                              \
                source->seed, mm_source_index(source->first, source->gap, view->cols, index));               \
        break;
    MM_DTYPE_SWITCH(view->dtype, X)
#undef X
}

/* The rows of all matrices of the stack are numbered in sequence. Each row contains at most one 1. */
static void make_identity(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                          size_t count) {
    const size_t element_bytes = mm_dtype_bytes(view->dtype), end = first + count;
    const size_t all_cols = view->cols + source->gap;
    memset((char *)view->data + first * element_bytes, 0, count * element_bytes);
    for (size_t row = first / view->cols; row * view->cols < end; row++) {
        const size_t all_row = source->first / all_cols + row;
        const size_t col = all_row % source->rows - source->first % all_cols; /* wraps if left of the part */
        const size_t index = row * view->cols + col;
        if (col < view->cols && index >= first && index < end)
            mm_dtype_put(view->dtype, view->data, index, 1.0);
    }
}

static enum mm_status read(const struct mm_stored *value, const struct mm_matrix *view, size_t first,
                           size_t count, struct mm_error *error) {
    const struct mm_window part = {.count = 1,
                                   .all_rows = 1,
                                   .all_cols = view->rows * view->cols,
                                   .rows = 1,
                                   .col = first,
                                   .cols = count};
    return mm_stored_read(value, &part, (char *)view->data + first * mm_dtype_bytes(view->dtype), error);
}

enum mm_status mm_source_generate(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                                  size_t count, struct mm_error *error) {
    assert(source->kind != MM_SOURCE_HOST && view->ld == view->cols);
    if (count == 0)
        return MM_OK;
    if (source->kind == MM_SOURCE_STORED)
        return read(source->stored, view, first, count, error);
    if (source->kind == MM_SOURCE_UNIFORM)
        make_uniform(source, view, first, count);
    else
        make_identity(source, view, first, count);
    return MM_OK;
}
