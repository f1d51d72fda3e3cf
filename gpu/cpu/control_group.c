/* Reads the limits from files in /sys/fs/cgroup. */
#include "gpu/cpu/control_group.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

static double read_limit(const char *path, double (*read)(const char *text)) {
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return (double)INFINITY;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    return read(text);
}

/* Returns the lowest limit of the group at `path` and the group's ancestors. Changes `path`. */
static double lowest_limit(const char *root, char *path, const char *name, double (*read)(const char *text)) {
    double lowest = (double)INFINITY;
    for (;;) {
        char file[PATH_BYTES + 128];
        snprintf(file, sizeof file, "%s%s/%s", root, path, name);
        lowest = fmin(lowest, read_limit(file, read));
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return lowest;
        *slash = '\0';
    }
}

/* Whether the name is in a list such as "cpu,memory". Changes the list. */
static bool has_name(char *list, const char *name) {
    const char *word;
    while ((word = strsep(&list, ",")) != NULL)
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

/* Reads lines of /proc/self/cgroup: "0::/path" in version 2, and for example "4:memory:/path" in version
 * 1. */
double mm_control_group_lowest(const struct mm_control *control) {
    char line[PATH_BYTES];
    char root[64];
    double lowest = (double)INFINITY;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return lowest;
    snprintf(root, sizeof root, "/sys/fs/cgroup/%s", control->controller);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
            continue;
        *path++ = '\0';
        if (controllers[1] == '\0')
            lowest = fmin(lowest, lowest_limit("/sys/fs/cgroup", path, control->file, control->read));
        else if (has_name(controllers + 1, control->controller))
            lowest = fmin(lowest, lowest_limit(root, path, control->controller_file, control->read));
    }
    fclose(file);
    return lowest;
}
