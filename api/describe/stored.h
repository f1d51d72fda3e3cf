/* Stored matrices as JSON. Any thread may call these functions. */
#pragma once

#include "gpu/store/store.h"

/* Each function here returns malloc'ed text, which the caller frees, or NULL if memory runs out. Adding
 * epoch_ns to a time of mm_clock_ns gives nanoseconds since 1970. */

/* Writes one matrix: {"name": …, "shape": …, …}. */
char *mm_stored_json(const struct mm_stored *value, uint64_t epoch_ns, size_t *length);

/* Writes a list: {"matrices": […], "bytes": …, "limit": …}. If has_more, the list also has "next". */
char *mm_stored_list_json(struct mm_stored *const *values, size_t count, bool has_more,
                          const struct mm_store_usage *usage, uint64_t epoch_ns, size_t *length);
