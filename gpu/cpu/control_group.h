/* Limits of the process's control groups. In a container, the root of /sys/fs/cgroup is the container's
 * own group. Outside a container any ancestor may have the limit. Any thread may call these functions. */
#pragma once

/* A limit, which is in a file in the group's folder. */
struct mm_control {
    const char *file;                 /* file in version 2 */
    const char *controller;           /* controller in version 1 */
    const char *controller_file;      /* file in version 1 */
    double (*read)(const char *text); /* reads the limit from the file's text; INFINITY: no limit */
};

/* Returns the lowest limit of the process's control group and its ancestors; INFINITY if there is none. */
double mm_control_group_lowest(const struct mm_control *control);
