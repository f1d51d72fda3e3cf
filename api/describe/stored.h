/* What is stored, as JSON. Any thread may call these functions. */
#pragma once

#include "gpu/store/store.h"

/* Both return malloc'ed text, or NULL if memory runs out. epoch_ns: what mm_clock_ns lacks to nanoseconds
 * since the epoch. */

/* {"name": …, "shape": …, …} of one value. */
char *mm_stored_json(const struct mm_stored *value, uint64_t epoch_ns, size_t *length);

/* {"matrices": […], "bytes": …, "limit": …}, with "next" if more values follow the last one. */
char *mm_stored_list_json(struct mm_stored *const *values, size_t count, bool has_more,
                          const struct mm_store_usage *usage, uint64_t epoch_ns, size_t *length);
