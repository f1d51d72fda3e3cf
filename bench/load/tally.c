/* Each thread has a tally of its own, and they are merged at the end. */
#include "bench/load/tally.h"

#include "bench/load/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const mm_load_span_names[MM_LOAD_SPANS] = {"receive", "decode",   "queue",  "upload",
                                                       "kernel",  "download", "encode", "total"};

uint64_t mm_load_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void add_times(struct mm_load_times *times, const double *ms, size_t count) {
    if (count > times->capacity - times->count) {
        times->capacity = 2 * times->capacity + count + 1024;
        times->ms = mm_load_resize(times->ms, times->capacity * sizeof *times->ms);
    }
    if (count > 0)
        memcpy(times->ms + times->count, ms, count * sizeof *ms);
    times->count += count;
}

/* Adds up the spans of a reply, and returns the kernel's milliseconds. */
static double read_spans(struct mm_load_tally *tally, const char *timing) {
    double kernel_ms = 0;
    for (size_t span = 0; span < MM_LOAD_SPANS; span++) {
        char name[32];
        snprintf(name, sizeof name, "%s;dur=", mm_load_span_names[span]);
        const char *at = strstr(timing, name);
        const double ms = at == NULL ? 0 : strtod(at + strlen(name), NULL);
        tally->span_ms[span] += ms;
        if (span == MM_LOAD_SPAN_KERNEL)
            kernel_ms = ms;
    }
    return kernel_ms;
}

void mm_load_tally_add(struct mm_load_tally *tally, enum mm_load_fate fate, uint64_t begun_ns,
                       const char *timing) {
    const uint64_t now_ns = mm_load_clock();
    const double ms = (double)(now_ns - begun_ns) / 1e6;
    add_times(&tally->fates[fate], &ms, 1);
    if (fate != MM_LOAD_OK)
        return;
    tally->ended_ns = now_ns;
    if (timing != NULL) {
        const double outside_ms = ms - read_spans(tally, timing);
        add_times(&tally->outside, &outside_ms, 1);
    }
}

void mm_load_tally_merge(struct mm_load_tally *tally, const struct mm_load_tally *other) {
    for (size_t fate = 0; fate < MM_LOAD_FATES; fate++)
        add_times(&tally->fates[fate], other->fates[fate].ms, other->fates[fate].count);
    add_times(&tally->outside, other->outside.ms, other->outside.count);
    for (size_t span = 0; span < MM_LOAD_SPANS; span++)
        tally->span_ms[span] += other->span_ms[span];
    tally->unsent += other->unsent;
    tally->begun_ns =
        tally->begun_ns == 0 || other->begun_ns < tally->begun_ns ? other->begun_ns : tally->begun_ns;
    tally->ended_ns = other->ended_ns > tally->ended_ns ? other->ended_ns : tally->ended_ns;
    if (tally->trouble[0] == '\0')
        memcpy(tally->trouble, other->trouble, sizeof tally->trouble);
}

static int compare(const void *one, const void *other) {
    const double *a = one;
    const double *b = other;
    return (*a > *b) - (*a < *b);
}

static void sort(struct mm_load_times *times) {
    if (times->count > 0)
        qsort(times->ms, times->count, sizeof *times->ms, compare);
}

void mm_load_tally_sort(struct mm_load_tally *tally) {
    for (size_t fate = 0; fate < MM_LOAD_FATES; fate++)
        sort(&tally->fates[fate]);
    sort(&tally->outside);
}

double mm_load_tally_seconds(const struct mm_load_tally *tally) {
    return (double)(tally->ended_ns - tally->begun_ns) / 1e9;
}

double mm_load_percentile(const struct mm_load_times *times, size_t hundredths) {
    return times->count == 0 ? 0 : times->ms[(times->count * hundredths + 99) / 100 - 1];
}
