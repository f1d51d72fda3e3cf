/* Reads the memory limits of control groups. A container shows its own group as the root of
 * /sys/fs/cgroup; outside one, the limit can stand at any ancestor. */
#include "server/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* The limit in a file, or SIZE_MAX where there is none ("max", a missing file). */
static size_t read_limit(const char *path) {
    char text[32] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return (size_t)-1;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    char *end;
    unsigned long long limit = strtoull(text, &end, 10);
    return end == text ? (size_t)-1 : (size_t)limit;
}

/* The lowest limit from the group at `path` up to the hierarchy's root. Cuts `path` on its way. */
static size_t lowest_limit(const char *root, char *path, const char *name) {
    size_t lowest = (size_t)-1;
    for (;;) {
        char file[PATH_BYTES + 128];
        snprintf(file, sizeof file, "%s%s/%s", root, path, name);
        size_t limit = read_limit(file);
        if (limit < lowest)
            lowest = limit;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return lowest;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup: "0::/path" is version 2, "N:memory:/path" the memory controller of 1. */
static size_t group_limit(void) {
    char line[PATH_BYTES];
    size_t lowest = (size_t)-1;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return lowest;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
            continue;
        *path++ = '\0';
        size_t limit = (size_t)-1;
        if (controllers[1] == '\0')
            limit = lowest_limit("/sys/fs/cgroup", path, "memory.max");
        else if (strcmp(controllers + 1, "memory") == 0)
            limit = lowest_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
        if (limit < lowest)
            lowest = limit;
    }
    fclose(file);
    return lowest;
}

size_t mm_budget_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    size_t ram = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : (size_t)1 << 30;
    size_t limit = group_limit();
    return limit < ram ? limit : ram;
}
