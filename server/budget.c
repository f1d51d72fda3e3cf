/* Reads the memory limits of control groups. */
#include "server/budget.h"

#include "gpu/control_group.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* "max" is none. */
static double read_bytes(const char *text) {
    char *end;
    const double limit = strtod(text, &end);
    return end == text ? (double)INFINITY : limit;
}

size_t mm_budget_memory(void) {
    static const struct mm_control memory = {"memory.max", "memory", "memory.limit_in_bytes", read_bytes};
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    size_t ram = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : (size_t)1 << 30;
    const double limit = mm_control_group_lowest(&memory);
    return limit < (double)ram ? (size_t)limit : ram;
}
