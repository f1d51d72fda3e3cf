#include "server/machine.h"

#include "gpu/cpu/control_group.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double cpu_seconds(void) {
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void look_at_memory(struct mm_process *process) {
    uint64_t pages = 0;
    uint64_t resident_pages = 0;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return;
    if (fscanf(file, "%" SCNu64 " %" SCNu64, &pages, &resident_pages) == 2) {
        process->virtual_bytes = pages * page_bytes;
        process->resident_bytes = resident_pages * page_bytes;
    }
    fclose(file);
}

static uint64_t count_descriptors(void) {
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (entry->d_name[0] != '.')
            count++;
    closedir(folder);
    return count > 0 ? count - 1 : 0;
}

void mm_process_look(struct mm_process *process) {
    struct rlimit limit;
    *process = (struct mm_process){.cpu_seconds = cpu_seconds(), .descriptors = count_descriptors()};
    look_at_memory(process);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        process->descriptors_max = limit.rlim_cur;
}

/* The text is a number, or "max" if there is no limit. */
static double read_bytes(const char *text) {
    char *end;
    const double limit = strtod(text, &end);
    return end == text ? (double)INFINITY : limit;
}

size_t mm_machine_memory(void) {
    static const struct mm_control memory = {"memory.max", "memory", "memory.limit_in_bytes", read_bytes};
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    size_t ram = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : (size_t)1 << 30;
    const double limit = mm_control_group_lowest(&memory);
    return limit < (double)ram ? (size_t)limit : ram;
}
