/* Memory for the benchmark servers. */
#pragma once

#include <stddef.h>

/* Calls realloc, and ends the process if memory runs out. The caller owns the result. */
void *mm_load_resize(void *memory, size_t bytes);
