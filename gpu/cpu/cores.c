/* Counts the cores that the scheduler and the control group allow. */
#include "gpu/cpu/cores.h"

#include "gpu/cpu/control_group.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static double allowed_cores(void) {
    cpu_set_t allowed;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
        return (double)CPU_COUNT(&allowed);
    return online < 1 ? 1.0 : (double)online;
}

/* Reads a quota. "50000 100000" is 50000 µs in each period of 100000 µs, and "max 100000" is no limit. In
 * version 1 of control groups the file has only the quota, or -1 for no limit. The period is then assumed to
 * be the usual 100 ms. */
static double read_quota(const char *text) {
    double quota = 0.0;
    double period = 100000.0;
    if (sscanf(text, "%lf %lf", &quota, &period) < 1 || quota <= 0.0 || period <= 0.0)
        return (double)INFINITY;
    return quota / period;
}

unsigned mm_cores(void) {
    static const struct mm_control quota = {"cpu.max", "cpu", "cpu.cfs_quota_us", read_quota};
    return (unsigned)fmin(allowed_cores(), fmax(1.0, ceil(mm_control_group_lowest(&quota))));
}
