/* The accuracy mode of the test program: prints the error of each variant for each kind of data, beside the
 * errors of the vendor's library and of the naive kernel. Only check.c decides which errors are failures. */
#include "tests/kernels/options.h"
#include "tests/kernels/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* rows and columns of C by default; the host is slower, so its C is smaller */
enum { EDGE_OF_HOST = 64, EDGE_OF_GPU = 256 };

static const size_t usual_depths[] = {64, 1024, 4096, 16384, 131072};

struct accuracy_row {
    const struct subject *subject;
    const struct mm_variant *ran; /* variant that ran; differs from subject->variant for `auto` */
    struct mm_path path;
    struct mm_error error; /* why there are no results; MM_OK if there are results */
    struct exactness exactness;
};

/* A set of data, with the errors of the naive kernel. Also has the errors of the vendor's library if the
 * library can run. */
struct set {
    const struct family *family;
    struct shape shape;
    uint64_t seed;
    struct operands operands;
    struct reference reference;
    struct one_case one; /* the product of this set, without padding between rows */
    struct image images[MM_OPERANDS_MAX];
    struct image c;

    /* Approximate number of elements that determine ‖R‖. If there are few, the norm depends on chance. */
    double norm_elements;

    struct accuracy_row naive;
    struct accuracy_row blas;
    double allowed; /* largest allowed norm; negative if every norm is allowed */
};

struct survey {
    const struct options *options;
    struct subject *subjects;
    size_t count;
    struct subject naive;
    struct subject blas; /* the vendor's library; `variant` is NULL if the device cannot run the library */
    size_t edge;
    struct table csv; /* `out` is NULL if the user wants no CSV */
    struct table markdown;
    size_t rows;
    size_t outside;
    size_t left_out; /* shapes that were skipped because a variant does not support them */
};

/* Returns ‖C−R‖/‖R‖, or a negative number if C is missing or not finite, or if ‖R‖ is about 0. */
static double norm_of(const struct accuracy_row *row) {
    const struct exactness *exactness = &row->exactness;
    if (row->error.status != MM_OK || !isfinite(exactness->difference_squares) ||
        !(exactness->sum_squares > 0x1p-200))
        return -1.0;
    return sqrt(exactness->difference_squares / exactness->sum_squares);
}

/* Returns the largest norm that counts as accurate: 2.5e-7 for sums in float32, or more if the naive kernel
 * has a larger error. Returns a negative number if the naive kernel has no norm, or if C is so small that the
 * norm depends on chance. */
static double norm_allowed(double naive, enum mm_dtype dtype, size_t elements) {
    enum { ELEMENTS_MIN = 256 };
    if (naive < 0.0 || elements < ELEMENTS_MIN)
        return -1.0;
    return fmax(1.5 * naive, 2.5e-7 * 0x1p24 * mm_dtype_precision(mm_dtype_sum(dtype)).unit);
}

/* Returns whether the norm is too large. No norm of the library is too large, because the library does not
 * promise this accuracy. */
static bool is_over(const struct accuracy_row *row, const struct set *set) {
    return row->ran != set->blas.ran && set->allowed >= 0.0 && norm_of(row) > set->allowed;
}

static bool is_within(const struct accuracy_row *row, const struct set *set) {
    return row->error.status == MM_OK && row->exactness.wrong == 0 && !is_over(row, set);
}

static void print_norm(struct table *table, const char *csv, const char *markdown,
                       const struct accuracy_row *row) {
    const double norm = norm_of(row);
    if (norm >= 0.0 || table->is_csv || row->error.status != MM_OK)
        table_number(table, csv, markdown, -3, table_known(norm, norm >= 0.0));
    else
        table_text(table, csv, markdown,
                   isfinite(row->exactness.difference_squares) ? "near 0" : "not finite");
}

static void print_units(struct table *table, const char *csv, const char *markdown,
                        const struct accuracy_row *row) {
    table_number(table, csv, markdown, -3, table_known(row->exactness.unit_max, row->error.status == MM_OK));
}

static void print_verdict(struct table *table, const struct accuracy_row *row, const struct set *set) {
    char text[sizeof row->error.detail + 80];
    const bool is_wrong = row->exactness.wrong > 0;
    int length = 0;
    if (row->error.status != MM_OK)
        snprintf(text, sizeof text, "%s: %s", mm_status_name(row->error.status), row->error.detail);
    else
        length = snprintf(text, sizeof text, is_within(row, set) ? "yes" : "**no**:");
    if (is_wrong)
        length += snprintf(text + length, sizeof text - (size_t)length, " %zu of %zu elements",
                           row->exactness.wrong, set->shape.m * set->shape.n);
    if (is_over(row, set))
        snprintf(text + length, sizeof text - (size_t)length,
                 "%s error over %.2e, by a norm that rests on %.1f elements", is_wrong ? "," : "",
                 set->allowed, set->norm_elements);
    table_text(table, NULL, "within", text);
}

static void print_row(struct table *table, const struct accuracy_row *row, const struct set *set) {
    const struct mm_device *device = row->subject->device;
    const bool ran = row->error.status == MM_OK;
    char seed[24], path[MM_PATH_TEXT_MAX] = "";
    if (row->path.kind != MM_PATH_NONE)
        mm_path_text(&row->path, path);
    snprintf(seed, sizeof seed, "%" PRIu64, set->seed);
    do {
        table_text(table, "data", NULL, set->family->key);
        table_text(table, NULL, "data", set->family->name);
        table_number(table, "m", NULL, 0, (double)set->shape.m);
        table_number(table, "k", NULL, 0, (double)set->shape.k);
        table_number(table, "n", NULL, 0, (double)set->shape.n);
        table_text(table, "seed", NULL, seed);
        table_text(table, "dtype", NULL, mm_dtype_name(set->operands.dtype));
        table_text(table, "backend", NULL, device->backend->name);
        table_text(table, "variant", "variant", row->subject->name);
        table_text(table, "ran", "ran", row->ran->name);
        table_text(table, "path", "path", path);
        table_text(table, "status", NULL, mm_status_name(row->error.status));
        print_norm(table, "relative_error", "error", row);
        print_norm(table, "blas_relative_error", "blas", &set->blas);
        print_norm(table, "naive_relative_error", "naive", &set->naive);
        table_number(table, "relative_error_allowed", NULL, -3,
                     table_known(set->allowed, set->allowed >= 0.0));
        table_number(table, "norm_elements", NULL, -3,
                     table_known(set->norm_elements, set->norm_elements > 0.0));
        print_units(table, "element_error_u", "element error, u", row);
        print_units(table, "blas_element_error_u", "blas", &set->blas);
        print_units(table, "naive_element_error_u", "naive", &set->naive);
        table_number(table, "of_bound", "of the bound", -3, table_known(row->exactness.fraction_max, ran));
        table_number(table, "elements", NULL, 0, (double)(set->shape.m * set->shape.n));
        table_number(table, "elements_wrong", NULL, 0, table_known((double)row->exactness.wrong, ran));
        table_text(table, "within", NULL, !ran ? "" : is_within(row, set) ? "yes" : "no");
        print_verdict(table, row, set);
        table_text(table, "device", NULL, device->name);
    } while (table_end(table));
}

/* Estimates how many elements of R determine ‖R‖. Returns (Σx)² / Σ(x²), where x runs over the squares of R's
 * elements. If all squares are equal, the result is the number of elements. */
static double count_norm_elements(const struct reference *reference) {
    double sum = 0.0;
    double sum_squares = 0.0;
    for (size_t index = 0; index < reference->count; index++) {
        const double square = reference->expected[index].sum * reference->expected[index].sum;
        if (isfinite(square)) {
            sum += square;
            sum_squares += square * square;
        }
    }
    return sum_squares > 0.0 ? sum * sum / sum_squares : 0.0;
}

/* Runs a whole job, like the service. C is filled with NaN first, so a missing element shows. */
static struct accuracy_row run(const struct subject *subject, struct set *set) {
    struct mm_job job;
    const struct mm_product product = image_product(set->images, &set->c, &set->one, false);
    image_poison(&set->c, 0);
    job_prepare(&job, subject, &product);
    struct accuracy_row row = {.subject = subject, .ran = job.outcome.ran};
    (void)mm_device_run(subject->device, &job);
    row.error = job.work.error;
    row.path = job.outcome.path;
    if (row.error.status == MM_OK)
        reference_compare(&set->one, &set->c, subject_arithmetic(subject, set->one.dtype), &row.exactness);
    return row;
}

static void add_row(struct survey *survey, const struct accuracy_row *row, const struct set *set) {
    print_row(&survey->markdown, row, set);
    if (survey->csv.out != NULL)
        print_row(&survey->csv, row, set);
    survey->rows++;
    if (row->error.status == MM_UNSUPPORTED)
        survey->left_out++;
    else if (!is_within(row, set))
        survey->outside++;
}

/* Always runs the naive kernel and the library, because the other variants are compared with them. */
static void run_set(struct survey *survey, struct set *set) {
    operands_make(&set->operands, survey->options->timing.dtype, set->shape, set->family, set->seed);
    reference_make_whole(&set->reference, &set->operands, survey->options->threads);
    set->one = operands_case(&set->operands, set->family, &set->reference);
    image_make_operands(set->images, &set->one);
    image_make_result(&set->c, &set->one);
    set->norm_elements = count_norm_elements(&set->reference);
    set->naive = run(&survey->naive, set);
    set->blas = (struct accuracy_row){.error.status = MM_UNSUPPORTED};
    if (survey->blas.variant != NULL)
        set->blas = run(&survey->blas, set);
    set->allowed = norm_allowed(norm_of(&set->naive), set->operands.dtype, set->shape.m * set->shape.n);
    for (size_t index = 0; index < survey->count; index++) {
        const struct subject *subject = &survey->subjects[index];
        const bool is_blas = set->blas.subject != NULL && subject->variant == survey->blas.variant;
        const struct accuracy_row row = subject->variant == survey->naive.variant ? set->naive
                                        : is_blas                                 ? set->blas
                                                                                  : run(subject, set);
        add_row(survey, &row, set);
    }
    fflush(stdout);
    image_free(&set->c);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        image_free(&set->images[index]);
    reference_free(&set->reference);
    operands_free(&set->operands);
}

static bool is_wanted(const struct options *options, const struct family *family) {
    for (unsigned index = 0; index < options->family_count; index++)
        if (options->families[index] == family)
            return true;
    return options->family_count == 0 && family_is_of(family, options->timing.dtype);
}

static void run_depth(struct survey *survey, size_t depth) {
    const struct shape shape = {survey->edge, survey->edge, depth};
    printf("\n## A %zu×%zu · B %zu×%zu\n\n", shape.m, shape.k, shape.k, shape.n);
    survey->markdown = (struct table){.out = stdout, .is_head = true};
    for (size_t index = 0; index < FAMILY_COUNT; index++) {
        struct set set = {.family = &families[index], .shape = shape};
        set.seed = random_mix(survey->options->seed, depth * FAMILY_COUNT + index);
        if (is_wanted(survey->options, set.family))
            run_set(survey, &set);
    }
}

static struct subject yardstick(struct mm_device *device, const struct mm_variant *variant,
                                enum mm_dtype dtype) {
    struct subject subject = {.device = device, .variant = variant};
    if (variant != NULL && (mm_variant_dtypes_on(variant, device) & MM_DTYPE_BIT(dtype)) == 0)
        subject.variant = NULL;
    if (subject.variant != NULL)
        snprintf(subject.name, sizeof subject.name, "%s", variant->name);
    return subject;
}

int accuracy_run(const struct options *options, struct mm_device *device, FILE *csv) {
    const struct mm_backend *backend = device->backend;
    struct survey survey = {
        .options = options,
        .naive = yardstick(device, &backend->variants[0], options->timing.dtype),
        .blas = yardstick(device, mm_backend_variant(backend, MM_MATMUL, "blas"), options->timing.dtype),
        .edge = options->edge > 0  ? options->edge
                : backend->is_host ? EDGE_OF_HOST
                                   : EDGE_OF_GPU,
        .csv = {.out = csv, .is_csv = true, .is_head = true}};
    const bool usual = options->depth_count == 0;
    const size_t *depths = usual ? usual_depths : options->depths;
    const size_t count = usual ? sizeof usual_depths / sizeof *usual_depths : options->depth_count;
    survey.subjects = subjects_choose(options, device, MM_MATMUL, options->timing.dtype, &survey.count);
    printf("- docs/accuracy.md says what the columns are\n");
    for (size_t index = 0; index < count && survey.count > 0; index++)
        run_depth(&survey, depths[index]);
    printf("\n%zu rows, %zu of shapes that the variant does not do, %zu outside\n", survey.rows,
           survey.left_out, survey.outside);
    free(survey.subjects);
    return survey.count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
