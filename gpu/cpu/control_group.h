/* Finds limits of the process's control groups, such as the memory of a container. Inside a container, the
 * root of /sys/fs/cgroup is the container's group. Outside a container, the limit can be in any ancestor of
 * the process's group. Any thread. */
#pragma once

/* Where to find a limit in the folder of a group. */
struct mm_control {
    const char *file;                 /* file in version 2 of control groups */
    const char *controller;           /* controller in version 1 */
    const char *controller_file;      /* file in version 1 */
    double (*read)(const char *text); /* parses the file; INFINITY if there is no limit */
};

/* Returns the lowest limit of the process's group and its ancestors; INFINITY if there is none. */
double mm_control_group_lowest(const struct mm_control *control);
