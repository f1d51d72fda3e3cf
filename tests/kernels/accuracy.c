/* The harness's accuracy mode: which variants are how exact on which data, on one device, beside its library
 * and its plain reference. It judges, but nothing fails: check.c is what tests. The data, the reference and
 * the bound are check.c's as well; here every element of C counts, and every C is of the same few shapes. */
#include "tests/kernels/accuracy.h"
#include "tests/kernels/options.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The host takes as long for a C of its edge as a GPU for one of the other, or longer. */
enum { EDGE_OF_HOST = 64, EDGE_OF_GPU = 256 };

static const size_t usual_depths[] = {64, 1024, 4096, 16384, 131072};

/* What is measured, and what came of it so far. */
struct survey {
    const struct options *options;
    struct mm_device *device;
    struct subject *subjects; /* owned */
    size_t count;
    struct subject naive;
    struct subject blas; /* its variant is NULL where the device cannot run it */
    size_t edge;
    FILE *csv; /* NULL: none */
    size_t rows;
    size_t outside;
    size_t left_out; /* shapes that a variant does not do */
};

double accuracy_norm(const struct accuracy_row *row) {
    return row->error.status == MM_OK ? exactness_norm(&row->exactness) : -1.0;
}

double accuracy_norm_allowed(const struct accuracy_set *set) {
    return norms_allowed(accuracy_norm(&set->naive), set->shape.m * set->shape.n);
}

bool accuracy_is_within(const struct accuracy_row *row, const struct accuracy_set *set) {
    const double allowed = accuracy_norm_allowed(set);
    return row->error.status == MM_OK && row->exactness.wrong == 0 &&
           !(allowed >= 0.0 && accuracy_norm(row) > allowed);
}

/* (Σx)² / Σx² of the squares x: as many as there are where they are equal. */
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

/* A data set in memory. */
struct data {
    struct operands operands;
    struct reference reference;
    struct one_case one; /* dense */
    struct image a;
    struct image b;
    struct image c;
};

static void data_make(struct data *data, const struct survey *survey, const struct accuracy_set *set) {
    *data = (struct data){0};
    operands_make(&data->operands, set->shape, set->family, set->seed);
    reference_make_whole(&data->reference, &data->operands, survey->options->threads);
    data->one = operands_case(&data->operands, set->family, &data->reference);
    image_make_operands(&data->a, &data->b, &data->one);
    image_make_result(&data->c, &data->one);
}

static void data_free(struct data *data) {
    image_free(&data->c);
    image_free(&data->b);
    image_free(&data->a);
    reference_free(&data->reference);
    operands_free(&data->operands);
}

/* Runs a subject as the service would, as a whole job. An element that is not written stays a NaN. */
static void run(struct accuracy_row *row, const struct subject *subject, struct data *data) {
    struct mm_job job;
    const struct mm_product product = image_product(&data->a, &data->b, &data->c, &data->one, false);
    image_poison(&data->c, 0);
    job_prepare(&job, subject, &product);
    *row = (struct accuracy_row){.subject = subject, .ran = job.ran};
    (void)mm_device_run(subject->device, &job);
    row->error = job.error;
    if (row->error.status == MM_OK)
        reference_compare(&data->reference, &data->c, &row->exactness);
}

static void add_row(struct survey *survey, const struct accuracy_row *row, const struct accuracy_set *set) {
    accuracy_table_row(stdout, row, set);
    if (survey->csv != NULL)
        accuracy_csv_row(survey->csv, row, set);
    survey->rows++;
    if (row->error.status == MM_UNSUPPORTED)
        survey->left_out++;
    else if (!accuracy_is_within(row, set))
        survey->outside++;
}

/* The yardsticks are run in any case, and not again where they are among the subjects. */
static void run_set(struct survey *survey, struct accuracy_set *set) {
    struct data data;
    data_make(&data, survey, set);
    set->norm_elements = count_norm_elements(&data.reference);
    run(&set->naive, &survey->naive, &data);
    set->blas = (struct accuracy_row){.error.status = MM_UNSUPPORTED};
    if (survey->blas.variant != NULL)
        run(&set->blas, &survey->blas, &data);
    for (size_t index = 0; index < survey->count; index++) {
        const struct subject *subject = &survey->subjects[index];
        struct accuracy_row row;
        if (subject->variant == survey->naive.variant)
            row = set->naive;
        else if (subject->variant == survey->blas.variant)
            row = set->blas;
        else
            run(&row, subject, &data);
        add_row(survey, &row, set);
    }
    fflush(stdout);
    data_free(&data);
}

static bool is_wanted(const struct options *options, const struct family *family) {
    for (unsigned index = 0; index < options->family_count; index++)
        if (options->families[index] == family)
            return true;
    return options->family_count == 0;
}

static void run_depth(struct survey *survey, size_t depth) {
    const struct shape shape = {survey->edge, survey->edge, depth};
    accuracy_table_head(stdout, shape);
    for (size_t index = 0; index < FAMILY_COUNT; index++) {
        struct accuracy_set set = {.family = &families[index], .shape = shape};
        set.seed = random_mix(survey->options->seed, depth * FAMILY_COUNT + index);
        if (is_wanted(survey->options, set.family))
            run_set(survey, &set);
    }
}

static struct subject yardstick(struct mm_device *device, const struct mm_variant *variant) {
    struct subject subject = {.device = device, .variant = variant};
    if (variant != NULL && mm_variant_missing(variant, device) != NULL)
        subject.variant = NULL;
    if (subject.variant != NULL)
        snprintf(subject.name, sizeof subject.name, "%s", variant->name);
    return subject;
}

static void survey_make(struct survey *survey, const struct options *options, struct mm_device *device) {
    const struct mm_backend *backend = device->backend;
    survey->options = options;
    survey->device = device;
    survey->subjects = subjects_choose(options, device, MM_MATMUL, &survey->count);
    survey->naive = yardstick(device, &backend->variants[0]);
    survey->blas = yardstick(device, mm_backend_variant(backend, MM_MATMUL, "blas"));
    survey->edge = backend->is_host ? EDGE_OF_HOST : EDGE_OF_GPU;
    if (options->edge > 0)
        survey->edge = options->edge;
}

static int run_all(struct survey *survey) {
    const struct options *options = survey->options;
    const bool usual = options->depth_count == 0;
    const size_t *depths = usual ? usual_depths : options->depths;
    const size_t count = usual ? sizeof usual_depths / sizeof *usual_depths : options->depth_count;
    if (survey->count == 0) {
        printf("FAIL: no variant was run\n");
        return EXIT_FAILURE;
    }
    accuracy_table_legend(stdout);
    if (survey->csv != NULL)
        accuracy_csv_head(survey->csv);
    for (size_t index = 0; index < count; index++)
        run_depth(survey, depths[index]);
    printf("\n%zu rows, %zu of shapes that the variant does not do, %zu outside\n", survey->rows,
           survey->left_out, survey->outside);
    return EXIT_SUCCESS;
}

/* The preferred backend with a device, of those that were asked for. */
static struct mm_device *open_preferred(const struct options *options) {
    struct mm_device *device = NULL;
    for (const struct mm_backend *const *backend = mm_backends(); *backend != NULL && device == NULL;
         backend++)
        if (options->backend == NULL || strcmp(options->backend, (*backend)->name) == 0)
            device = device_open_first(*backend);
    return device;
}

int accuracy_run(const struct options *options) {
    struct survey survey = {0};
    survey.csv = options->csv == NULL ? NULL : fopen(options->csv, "we");
    if (options->csv != NULL && survey.csv == NULL) {
        fprintf(stderr, "kernels: cannot write %s: %s\n", options->csv, strerror(errno));
        return EXIT_FAILURE;
    }
    int code = EXIT_SKIPPED;
    struct mm_device *device = open_preferred(options);
    if (device == NULL) {
        printf("no backend opens here\n");
    } else {
        survey_make(&survey, options, device);
        code = run_all(&survey);
        free(survey.subjects);
        device->backend->close(device);
    }
    if (survey.csv != NULL && fclose(survey.csv) != 0) {
        fprintf(stderr, "kernels: cannot write %s: %s\n", options->csv, strerror(errno));
        code = EXIT_FAILURE;
    }
    return code;
}
