/* The harness's command line, and what it selects. */
#ifndef MM_TESTS_KERNELS_OPTIONS_H
#define MM_TESTS_KERNELS_OPTIONS_H

#include "tests/kernels/harness.h"

enum { OPTION_VARIANTS_MAX = 32 };

struct options {
    const char *backend;                       /* NULL: every one that opens */
    const char *variants[OPTION_VARIANTS_MAX]; /* none: all */
    unsigned variant_count;
    const char *set;          /* a named list of shapes; NULL where only --shape was given */
    struct shape_list shapes; /* of --shape, owned */
    uint64_t seed;
    unsigned repeat;
    unsigned thin; /* 0: the set's own */
    bool all;
    bool broken;
    bool list;
    bool help;
    bool time;
    struct timing timing;
};

/* Reads the arguments; false, with a line on stderr, where they are wrong. */
bool options_read(struct options *options, int count, char **arguments);
void options_free(struct options *options);
void options_help(void);

/* The rows that the options select and the device can run, those that leave their tile open once with each
 * tile. What the device cannot run is told on stdout. The caller frees. subjects.c. */
struct subject *subjects_choose(const struct options *options, struct mm_device *device,
                                const struct mm_variant *rows, size_t row_count, size_t *count);

#endif
