/* What the process's control groups limit. A container shows its own group as the root of /sys/fs/cgroup;
 * outside one, the limit can stand at any ancestor. Any thread may call these functions. */
#pragma once

/* One limit: the file that tells it in version 2, and the controller with its file in version 1, both in
 * folders of groups; and how a file's text is read, INFINITY where it tells of none. */
struct mm_control {
    const char *file;
    const char *controller;
    const char *controller_file;
    double (*read)(const char *text);
};

/* The least such limit of the process's control group and its ancestors; INFINITY where there is none. */
double mm_control_group_lowest(const struct mm_control *control);
