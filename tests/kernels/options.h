/* The harness's command line, and what follows from it at once: which devices and which of their rows. */
#pragma once

#include "tests/kernels/harness.h"

enum { OPTION_VARIANTS_MAX = 32, OPTION_DEPTHS_MAX = 16 };

struct options {
    const char *backend;                       /* NULL: every one that opens */
    const char *variants[OPTION_VARIANTS_MAX]; /* none: all */
    unsigned variant_count;
    const char *set;          /* a named list of shapes; NULL where only --shape was given */
    struct shape_list shapes; /* of --shape, owned */
    unsigned seed;
    unsigned repeat;
    unsigned thin; /* 0: the set's own */
    unsigned threads;
    unsigned dtypes; /* as bits: the element types that are checked; 0: all */
    bool help;
    struct shape_list times; /* of --time, owned: what is to be timed; empty where cases are to be checked */
    struct timing timing;
    bool slow;       /* time products that take the CPU long */
    const char *csv; /* where the figures are written to; NULL: nowhere */
    bool accuracy;   /* tell how exact the variants are, and neither check nor time them */
    const struct family *families[FAMILY_COUNT]; /* none: all */
    unsigned family_count;
    size_t depths[OPTION_DEPTHS_MAX]; /* none: the usual ones */
    unsigned depth_count;
    unsigned edge; /* of C, in elements; 0: what suits the device */
};

/* Reads the arguments of main; false, with a line on stderr, where they are wrong. */
bool options_read(struct options *options, char **arguments);
void options_free(struct options *options);
void options_help(void);

/* --- subjects.c ----------------------------------------------------------------------------------- */

/* Opens the first device of each backend that the options select, the preferred one first and the host last,
 * and says why of those that do not open. How many are open; the caller closes them. */
enum { DEVICES_MAX = 8 };
size_t devices_open(const struct options *options, struct mm_device *devices[DEVICES_MAX]);

/* The op's rows of this element type that the options select and the device can run, those that leave their
 * tile open once with each tile. What the device cannot run is told on stdout. The caller frees. */
struct subject *subjects_choose(const struct options *options, struct mm_device *device, enum mm_op op,
                                enum mm_dtype dtype, size_t *count);

/* --- bench.c and accuracy.c: what is measured instead of checked ---------------------------------- */

/* Time all that the options select, or measure how exact it is on a device, and print Markdown; `csv` may be
 * NULL. They return the exit status; that something is not exact is told, and no failure. */
int bench_run(const struct options *options, struct mm_device *const *devices, size_t count, FILE *csv);
int accuracy_run(const struct options *options, struct mm_device *device, FILE *csv);
