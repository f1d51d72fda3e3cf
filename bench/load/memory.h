/* Memory allocation for the benchmark servers. Their buffers live as long as the process. */
#pragma once

#include <stddef.h>

/* realloc that ends the process if memory runs out, so it never returns NULL. The caller owns the result. */
void *mm_load_resize(void *memory, size_t bytes);
