/* The command line of the kernel test program, and the devices and variants that it selects. */
#pragma once

#include "tests/kernels/harness.h"

enum { OPTION_VARIANTS_MAX = 32, OPTION_DEPTHS_MAX = 16 };

struct options {
    const char *backend;                       /* NULL for every backend with a device */
    const char *variants[OPTION_VARIANTS_MAX]; /* all variants if variant_count is 0 */
    unsigned variant_count;
    const char *set;          /* name of a list of shapes; NULL if only --shape was given */
    struct shape_list shapes; /* from --shape; owned */
    unsigned seed;
    unsigned repeat;
    unsigned thin; /* run one in `thin` cases; 0 for the set's default */
    unsigned threads;
    unsigned dtypes; /* set of MM_DTYPE_BIT; 0 for all types */
    bool epilogues;  /* check products with epilogues */
    bool help;
    struct shape_list times; /* from --time; owned; if empty, results are checked instead */
    struct timing timing;
    bool slow;                                   /* also time products that take the CPU very long */
    const char *csv;                             /* path of the CSV file; NULL for no file */
    bool accuracy;                               /* measure accuracy instead of checking or timing */
    const struct family *families[FAMILY_COUNT]; /* all families if family_count is 0 */
    unsigned family_count;
    size_t depths[OPTION_DEPTHS_MAX]; /* values of k for --accuracy; default values if depth_count is 0 */
    unsigned depth_count;
    unsigned edge; /* rows and columns of C for --accuracy; 0 for the default */
};

/* Reads the arguments of main. Prints a line to stderr and returns false if they are invalid. */
bool options_read(struct options *options, char **arguments);
void options_free(struct options *options);
void options_help(void);

/* Opens the first device of each selected backend, and prints why a device cannot be opened. The preferred
 * backend comes first and the host last. Returns the number of open devices, which the caller closes. */
enum { DEVICES_MAX = 8 };
size_t devices_open(const struct options *options, struct mm_device *devices[DEVICES_MAX]);

/* Returns the selected variants that the device can run, and prints the selected variants that it cannot run.
 * The result has one subject for each tile of a variant. The caller frees the array. */
struct subject *subjects_choose(const struct options *options, struct mm_device *device, enum mm_op op,
                                enum mm_dtype dtype, size_t *count);

/* bench_run prints tables of times. accuracy_run prints tables of one device's accuracy, and inexact results
 * are no failure. Both functions return the exit status of the program. They also write to `csv` if it is not
 * NULL. */
int bench_run(const struct options *options, struct mm_device *const *devices, size_t count, FILE *csv);
int accuracy_run(const struct options *options, struct mm_device *device, FILE *csv);
