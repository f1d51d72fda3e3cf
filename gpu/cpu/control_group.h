/* What the process's control groups limit. A container shows its own group as the root of /sys/fs/cgroup;
 * outside a container, any ancestor can have the limit. Any thread may call these functions. */
#pragma once

/* A limit: its file in version 2, its controller and file in version 1, both in the group's folder; and the
 * function that reads the limit from a file's text, INFINITY if there is none. */
struct mm_control {
    const char *file;
    const char *controller;
    const char *controller_file;
    double (*read)(const char *text);
};

/* The lowest value of the limit in the process's control group and its ancestors; INFINITY if there is none.
 */
double mm_control_group_lowest(const struct mm_control *control);
