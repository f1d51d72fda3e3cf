/* Memory of the clients and floors, which have nothing to prove without it. What they keep lives as long as
 * their process. */
#pragma once

#include <stddef.h>

/* realloc that ends the process if memory runs out; never NULL. NULL for `memory`: malloc. */
void *mm_load_resize(void *memory, size_t bytes);
