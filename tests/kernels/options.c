/* Reads the harness's command line. */
#include "tests/kernels/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arguments that are not read yet. */
struct arguments {
    char **next;
    char **end;
};

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *value) {
    char *rest;
    errno = 0;
    unsigned long long parsed = strtoull(text, &rest, 10);
    if (*text < '0' || *text > '9' || *rest != '\0' || errno != 0 || parsed < min || parsed > max)
        return false;
    *value = parsed;
    return true;
}

static const char *take(struct arguments *arguments) {
    return arguments->next < arguments->end ? *arguments->next++ : NULL;
}

static bool take_number(struct arguments *arguments, uint64_t min, uint64_t max, uint64_t *value) {
    const char *text = take(arguments);
    return text != NULL && number(text, min, max, value);
}

enum { DIMENSION_MAX = 1 << 24, EDGE_MAX = 1024 };

/* M K N, in the order in which the operands are written: M×K times K×N. */
static bool take_shape(struct arguments *arguments, uint64_t k_min, struct shape *shape) {
    uint64_t m;
    uint64_t k;
    uint64_t n;
    if (!take_number(arguments, 1, DIMENSION_MAX, &m) || !take_number(arguments, k_min, DIMENSION_MAX, &k) ||
        !take_number(arguments, 1, DIMENSION_MAX, &n))
        return false;
    *shape = (struct shape){(size_t)m, (size_t)n, (size_t)k};
    return true;
}

static bool take_variant(struct arguments *arguments, struct options *options) {
    const char *text = take(arguments);
    if (text == NULL || options->variant_count == OPTION_VARIANTS_MAX)
        return false;
    options->variants[options->variant_count++] = text;
    return true;
}

static bool add_shape(struct arguments *arguments, uint64_t k_min, struct shape_list *list) {
    struct shape shape;
    if (!take_shape(arguments, k_min, &shape))
        return false;
    shapes_add(list, shape.m, shape.n, shape.k);
    return true;
}

static bool take_dtype(struct arguments *arguments, struct options *options) {
    const char *text = take(arguments);
    options->timing.op = MM_TRANSPOSE;
    return text != NULL &&
           mm_dtype_find(text, mm_op_dtypes(MM_TRANSPOSE), &options->timing.dtype, NULL) == MM_OK;
}

static bool take_family(struct arguments *arguments, struct options *options) {
    const char *text = take(arguments);
    const struct family *family = text != NULL ? family_find(text) : NULL;
    if (family == NULL) {
        fputs("kernels: --family takes one of:", stderr);
        for (size_t index = 0; index < FAMILY_COUNT; index++)
            fprintf(stderr, " %s", families[index].key);
        fputs("\n", stderr);
    } else if (options->family_count < FAMILY_COUNT) {
        options->families[options->family_count++] = family;
    }
    return family != NULL;
}

/* Numbers with commas between them. */
static bool take_depths(struct arguments *arguments, struct options *options) {
    const char *text = take(arguments);
    while (text != NULL) {
        const size_t length = strcspn(text, ",");
        char digits[16];
        uint64_t depth;
        snprintf(digits, sizeof digits, "%.*s", (int)(length < sizeof digits ? length : sizeof digits), text);
        if (length >= sizeof digits || !number(digits, 1, DIMENSION_MAX, &depth) ||
            options->depth_count == OPTION_DEPTHS_MAX)
            return false;
        options->depths[options->depth_count++] = (size_t)depth;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return options->depth_count > 0;
}

static bool read_option(struct options *options, const char *name, struct arguments *arguments) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--slow", &options->slow},
                 {"--transpose-a", &options->timing.transpose_a},
                 {"--transpose-b", &options->timing.transpose_b},
                 {"--accuracy", &options->accuracy},
                 {"--list", &options->list},
                 {"--help", &options->help}};
    for (size_t index = 0; index < sizeof flags / sizeof *flags; index++)
        if (strcmp(name, flags[index].name) == 0)
            return *flags[index].flag = true;

    const struct {
        const char *name;
        uint64_t min;
        uint64_t max;
        unsigned *value;
    } numbers[] = {{"--repeat", 2, 1000000, &options->repeat},
                   {"--thin", 1, 1000000, &options->thin},
                   {"--threads", 1, SHARE_THREADS_MAX, &options->threads},
                   {"--repeats", 1, 1000000, &options->timing.repeats},
                   {"--seconds", 1, 1000000, &options->timing.seconds},
                   {"--edge", 1, EDGE_MAX, &options->edge}};
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
        uint64_t value;
        if (strcmp(name, numbers[index].name) != 0)
            continue;
        if (!take_number(arguments, numbers[index].min, numbers[index].max, &value))
            return false;
        *numbers[index].value = (unsigned)value;
        return true;
    }

    if (strcmp(name, "--backend") == 0)
        return (options->backend = take(arguments)) != NULL;
    if (strcmp(name, "--variant") == 0)
        return take_variant(arguments, options);
    if (strcmp(name, "--shapes") == 0)
        return (options->set = take(arguments)) != NULL;
    if (strcmp(name, "--shape") == 0)
        return add_shape(arguments, 0, &options->shapes);
    if (strcmp(name, "--seed") == 0)
        return take_number(arguments, 0, UINT64_MAX, &options->seed);
    if (strcmp(name, "--time") == 0)
        return add_shape(arguments, 1, &options->times);
    if (strcmp(name, "--transpose") == 0)
        return take_dtype(arguments, options);
    if (strcmp(name, "--family") == 0)
        return take_family(arguments, options);
    if (strcmp(name, "--depths") == 0)
        return take_depths(arguments, options);
    if (strcmp(name, "--csv") == 0)
        return (options->csv = take(arguments)) != NULL;
    return false;
}

bool options_read(struct options *options, int count, char **arguments_given) {
    *options =
        (struct options){.seed = 1, .repeat = 2, .threads = 1, .timing = {.repeats = 20, .seconds = 10}};
    struct arguments arguments = {arguments_given + 1, arguments_given + count};
    while (arguments.next < arguments.end) {
        const char *name = take(&arguments);
        if (!read_option(options, name, &arguments)) {
            fprintf(stderr, "kernels: unknown option, or a bad value: %s (see --help)\n", name);
            return false;
        }
    }
    const struct timing *timing = &options->timing;
    const bool transposes = timing->op == MM_TRANSPOSE;
    if (transposes && (options->times.count == 0 || timing->transpose_a || timing->transpose_b)) {
        fprintf(stderr,
                "kernels: --transpose goes with --time, and not with --transpose-a or --transpose-b\n");
        return false;
    }
    if (options->accuracy &&
        (options->times.count > 0 || options->set != NULL || options->shapes.count > 0 || options->list)) {
        fprintf(stderr,
                "kernels: --accuracy takes its shapes from --depths and --edge, and checks, times and "
                "lists nothing\n");
        return false;
    }
    if (!options->accuracy && (options->family_count > 0 || options->depth_count > 0 || options->edge > 0)) {
        fprintf(stderr, "kernels: --family, --depths and --edge go with --accuracy\n");
        return false;
    }
    if (options->set == NULL && options->shapes.count == 0)
        options->set = "small";
    return true;
}

void options_free(struct options *options) {
    shapes_free(&options->shapes);
    shapes_free(&options->times);
}

void options_help(void) {
    puts("usage: kernels [option...]\n"
         "Checks every variant of every backend: products against float64, with the bounds of float32,\n"
         "transpositions bit for bit.\n"
         "  --backend NAME     only this backend; without a device for it: exit status 77\n"
         "  --variant NAME     only this variant (may be given again); NAME/TILE: by this tile alone\n"
         "  --shapes SET       tiny, small (default) or large\n"
         "  --shape M K N      this shape (may be given again), M×N of a transposition; alone (and then "
         "without "
         "whole\n                     jobs) or besides --shapes\n"
         "  --seed N           of the cases' data (default 1)\n"
         "  --repeat N         runs of each case, all of which must give the same bits (default and least: "
         "2)\n"
         "  --thin N           one case in N, and of every shape at least one (default: tiny 1, small 4, "
         "large 64)\n"
         "  --threads N        share the cases, each with a device of its own (default 1)\n"
         "  --time M K N       times the variants instead (may be given again)\n"
         "  --repeats N        of the timing (default 20)\n"
         "  --seconds N        a row that has used so many is not repeated again (default 10)\n"
         "  --transpose DTYPE  times transpositions of this type instead: M×N is the result, K is ignored\n"
         "  --transpose-a      times products of an A that is stored transposed; --transpose-b likewise\n"
         "  --slow             times products that take the CPU long, too\n"
         "  --csv FILE         writes the times there as well\n"
         "  --accuracy         tells how exact the variants of one backend are instead, the preferred one's "
         "by default\n"
         "  --family NAME      ... on this data alone (may be given again)\n"
         "  --depths K,K...    ... for these k (default 64,1024,4096,16384,131072)\n"
         "  --edge N           ... and a C of N×N (default 256, on the CPU 64); --threads computes what is "
         "right\n"
         "  --list             what there is");
}
