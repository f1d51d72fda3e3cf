/* Reads /proc/self and what the C library asks of the system. */
#include "server/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0.0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
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

/* But for the one that looking takes. */
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
