/* The harness's command line, and the devices and variants that it selects. */
#pragma once

#include "tests/kernels/harness.h"

enum { OPTION_VARIANTS_MAX = 32, OPTION_DEPTHS_MAX = 16 };

struct options {
    const char *backend;                       /* NULL: every backend that opens */
    const char *variants[OPTION_VARIANTS_MAX]; /* none: all variants */
    unsigned variant_count;
    const char *set;          /* name of a list of shapes; NULL if only --shape was given */
    struct shape_list shapes; /* shapes given by --shape; owned */
    unsigned seed;
    unsigned repeat;
    unsigned thin; /* run one case in this many; 0: the set's default */
    unsigned threads;
    unsigned dtypes; /* bit set of the element types to check; 0: all */
    bool help;
    struct shape_list times; /* shapes given by --time; owned; empty if cases are checked */
    struct timing timing;
    bool slow;                                   /* also time products that take the CPU long */
    const char *csv;                             /* path of the CSV file; NULL: none */
    bool accuracy;                               /* measure accuracy, and neither check nor time */
    const struct family *families[FAMILY_COUNT]; /* none: all families */
    unsigned family_count;
    size_t depths[OPTION_DEPTHS_MAX]; /* depths k of the accuracy mode; none: the default */
    unsigned depth_count;
    unsigned edge; /* rows and columns of C in the accuracy mode; 0: the device's default */
};

/* Reads the arguments of main. Returns false and prints a line to stderr if they are invalid. */
bool options_read(struct options *options, char **arguments);
void options_free(struct options *options);
void options_help(void);

/* --- subjects.c ----------------------------------------------------------------------------------- */

/* Opens the first device of each backend that the options select, and prints why others do not open. The
 * preferred backend comes first and the host last. Returns how many are open; the caller closes them. */
enum { DEVICES_MAX = 8 };
size_t devices_open(const struct options *options, struct mm_device *devices[DEVICES_MAX]);

/* Returns the variants that the options select and the device can run, one subject for each tile that the
 * caller may choose. Prints what the device cannot run. The caller frees the array. */
struct subject *subjects_choose(const struct options *options, struct mm_device *device, enum mm_op op,
                                enum mm_dtype dtype, size_t *count);

/* --- bench.c and accuracy.c: what is measured instead of checked ---------------------------------- */

/* Print Markdown tables of times, or of one device's accuracy, and write CSV to `csv` unless it is NULL.
 * Return the exit status. Inexact results are printed but do not fail. */
int bench_run(const struct options *options, struct mm_device *const *devices, size_t count, FILE *csv);
int accuracy_run(const struct options *options, struct mm_device *device, FILE *csv);
