#include "tests/kernels/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSION_MAX = 1 << 24, EDGE_MAX = 1024, COUNT_MAX = 1000000 };

struct option {
    const char *name;
    const char *value; /* name of the value in the help text; "" if the option has no value */
    const char *help;
    bool (*read)(const struct option *option, char ***next, struct options *options);
    size_t offset; /* offset in struct options; unused if `read` does not need it */
    uint64_t min;
    uint64_t max;
};

static void *target(const struct option *option, struct options *options) {
    return (char *)options + option->offset;
}

/* Returns the next argument and advances *next. Returns "" if there is none. */
static const char *take(char ***next) {
    return **next != NULL ? *(*next)++ : "";
}

static bool number(const char *text, uint64_t min, uint64_t max, char end, uint64_t *value) {
    char *rest;
    errno = 0;
    *value = strtoull(text, &rest, 10);
    return *text >= '0' && *text <= '9' && (*rest == '\0' || *rest == end) && errno == 0 && *value >= min &&
           *value <= max;
}

static bool read_flag(const struct option *option, char ***next, struct options *options) {
    (void)next;
    return *(bool *)target(option, options) = true;
}

static bool read_text(const struct option *option, char ***next, struct options *options) {
    const char **text = target(option, options);
    *text = take(next);
    return **text != '\0';
}

static bool read_number(const struct option *option, char ***next, struct options *options) {
    uint64_t value;
    const bool is_good = number(take(next), option->min, option->max, '\0', &value);
    *(unsigned *)target(option, options) = (unsigned)value;
    return is_good;
}

/* Reads three numbers M K N: A is M×K, B is K×N. */
static bool read_shape(const struct option *option, char ***next, struct options *options) {
    uint64_t m, k, n;
    if (!number(take(next), 1, DIMENSION_MAX, '\0', &m) ||
        !number(take(next), option->min, DIMENSION_MAX, '\0', &k) ||
        !number(take(next), 1, DIMENSION_MAX, '\0', &n))
        return false;
    shapes_add(target(option, options), (size_t)m, (size_t)n, (size_t)k);
    return true;
}

static bool read_backend(const struct option *option, char ***next, struct options *options) {
    return read_text(option, next, options) && mm_backend_find(options->backend) != NULL;
}

static bool read_set(const struct option *option, char ***next, struct options *options) {
    struct shape_list shapes = {0};
    const bool is_good =
        read_text(option, next, options) && shapes_named(MM_MATMUL, options->set, options->seed, &shapes);
    shapes_free(&shapes);
    return is_good;
}

static bool read_variant(const struct option *option, char ***next, struct options *options) {
    (void)option;
    if (options->variant_count == OPTION_VARIANTS_MAX)
        return false;
    options->variants[options->variant_count++] = take(next);
    return true;
}

static bool read_dtype(const struct option *option, char ***next, struct options *options) {
    (void)option;
    if (mm_dtype_find("dtype", take(next), MM_DTYPE_ALL, &options->timing.dtype, NULL) != MM_OK)
        return false;
    options->dtypes |= MM_DTYPE_BIT(options->timing.dtype);
    return true;
}

static bool read_transpose(const struct option *option, char ***next, struct options *options) {
    options->timing.op = MM_TRANSPOSE;
    return read_dtype(option, next, options);
}

static bool read_family(const struct option *option, char ***next, struct options *options) {
    const struct family *family = family_find(take(next));
    (void)option;
    if (family == NULL || options->family_count == FAMILY_COUNT)
        return false;
    options->families[options->family_count++] = family;
    return true;
}

static bool read_depths(const struct option *option, char ***next, struct options *options) {
    const char *text = take(next);
    (void)option;
    while (text != NULL) {
        uint64_t depth;
        if (!number(text, 1, DIMENSION_MAX, ',', &depth) || options->depth_count == OPTION_DEPTHS_MAX)
            return false;
        options->depths[options->depth_count++] = (size_t)depth;
        text = strchr(text, ',');
        text = text == NULL ? NULL : text + 1;
    }
    return true;
}

#define AT(member) offsetof(struct options, member)

static const struct option rows[] = {
    {"--backend", "NAME", "only this backend; without a device for it: exit status 77", read_backend,
     AT(backend), 0, 0},
    {"--variant", "NAME", "only this variant (may be given again); NAME/TILE: by this tile alone",
     read_variant, 0, 0, 0},
    {"--dtype", "NAME",
     "only this element type (may be given again); with --time and --accuracy products of it (default "
     "float32)",
     read_dtype, 0, 0, 0},
    {"--shapes", "SET",
     "tiny or small (default), with whole jobs unless --repeat is given; or large; or epilogues", read_set,
     AT(set), 0, 0},
    {"--shape", "M K N",
     "this shape (may be given again), M×N of a transposition; without --shapes no whole jobs", read_shape,
     AT(shapes), 0, 0},
    {"--epilogues", "", "products with an epilogue alone; without --shapes these of the set epilogues",
     read_flag, AT(epilogues), 0, 0},
    {"--seed", "N", "of the cases' data (default 1)", read_number, AT(seed), 0, UINT32_MAX},
    {"--repeat", "N", "runs of each case, all of which must give the same bits (default and least: 2)",
     read_number, AT(repeat), 2, COUNT_MAX},
    {"--thin", "N", "one case in N, and of every shape at least one (default: tiny 1, small 4, large 64)",
     read_number, AT(thin), 1, COUNT_MAX},
    {"--threads", "N", "share the cases, each with a device of its own (default 1)", read_number, AT(threads),
     1, SHARE_THREADS_MAX},
    {"--time", "M K N", "times the variants instead (may be given again)", read_shape, AT(times), 1, 0},
    {"--repeats", "N", "of the timing (default 20)", read_number, AT(timing.repeats), 1, COUNT_MAX},
    {"--seconds", "N", "a row that has used so many is not repeated again (default 10)", read_number,
     AT(timing.seconds), 1, COUNT_MAX},
    {"--transpose", "DTYPE", "times transpositions of this type instead: M×N is the result, K is ignored",
     read_transpose, 0, 0, 0},
    {"--transpose-a", "", "times products of an A that is stored transposed", read_flag,
     AT(timing.transpose_a), 0, 0},
    {"--transpose-b", "", "likewise", read_flag, AT(timing.transpose_b), 0, 0},
    {"--slow", "", "times products that take the CPU long, too", read_flag, AT(slow), 0, 0},
    {"--csv", "FILE", "writes the figures there as well", read_text, AT(csv), 0, 0},
    {"--accuracy", "", "tells how exact the variants of the preferred backend are instead", read_flag,
     AT(accuracy), 0, 0},
    {"--family", "NAME", "... on this data alone (may be given again): data.c has the names", read_family, 0,
     0, 0},
    {"--depths", "K,K...", "... for these k (default 64,1024,4096,16384,131072)", read_depths, 0, 0, 0},
    {"--edge", "N", "... and a C of N×N (default 256, on the CPU 64); --threads computes what is right",
     read_number, AT(edge), 1, EDGE_MAX},
    {"--help", "", "these lines", read_flag, AT(help), 0, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool read_option(struct options *options, const char *name, char ***next) {
    for (size_t index = 0; index < ROWS; index++)
        if (strcmp(name, rows[index].name) == 0)
            return rows[index].read(&rows[index], next, options);
    return false;
}

bool options_read(struct options *options, char **arguments) {
    *options =
        (struct options){.seed = 1, .repeat = 2, .threads = 1, .timing = {.repeats = 20, .seconds = 10}};
    for (char **next = arguments + 1; *next != NULL;) {
        const char *name = *next++;
        if (!read_option(options, name, &next)) {
            fprintf(stderr, "kernels: unknown option, or a bad value: %s (see --help)\n", name);
            return false;
        }
    }
    if (options->set == NULL && options->shapes.count == 0)
        options->set = options->epilogues ? "epilogues" : "small";
    return true;
}

void options_free(struct options *options) {
    shapes_free(&options->shapes);
    shapes_free(&options->times);
}

void options_help(void) {
    puts("usage: kernels [option...]\n"
         "Checks every variant of every backend: products of every element type against a reference\n"
         "that is more exact, with the bounds of the type, transpositions bit for bit.");
    for (size_t index = 0; index < ROWS; index++)
        printf("  %-13s %-6s %s\n", rows[index].name, rows[index].value, rows[index].help);
}
