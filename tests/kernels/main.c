/* The main function of the kernel test program: runs the cases on every backend and prints totals. Exit
 * status: 0 if all is right, 1 after a failure, 2 for a bad command line, 77 if the requested backend has no
 * device. */
#include "tests/kernels/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On the CPU, shapes of the named lists are skipped if their cost is higher, because they take minutes. */
static const double cpu_cost_max = 4e8;
static const double moved_cost = 100.0;

struct totals {
    size_t cases;
    size_t variants;
    size_t failures;
};

static double cost_of(enum mm_op op, const struct shape *shape) {
    return (double)shape->m * (double)shape->n * (op == MM_MATMUL ? (double)shape->k : moved_cost);
}

/* float32 is checked with all shapes. Other types share most code with float32, so each of them gets one
 * shape in SHAPES_SHARE. A type that --dtype names gets all shapes. */
enum { SHAPES_SHARE = 8, CASES_SHARE = 16 };

static bool is_left_to_others(const struct options *options, enum mm_op op, enum mm_dtype dtype,
                              size_t shape) {
    return op == MM_MATMUL && dtype != MM_FLOAT32 && options->dtypes == 0 && !options->epilogues &&
           shape % SHAPES_SHARE != dtype % SHAPES_SHARE;
}

/* Whole jobs do not depend on the list of shapes, so only one run of the program checks them. */
static bool has_jobs(const struct options *options) {
    return options->set != NULL && strcmp(options->set, "large") != 0 && options->repeat == 2;
}

static void plan_make(struct plan *plan, const struct options *options, const struct mm_device *device,
                      enum mm_op op, enum mm_dtype dtype) {
    *plan = (struct plan){.dtype = dtype,
                          .dtypes = options->dtypes == 0 ? ~0U : options->dtypes,
                          .seed = options->seed,
                          .repeat = options->repeat,
                          .thin = options->thin,
                          .has_jobs = has_jobs(options),
                          .has_epilogues = options->epilogues};
    struct shape_list named = {0};
    if (options->set != NULL)
        shapes_named(op, options->set, options->seed, &named);
    for (size_t index = 0; index < named.count; index++) {
        const struct shape *shape = &named.shapes[index];
        if (is_left_to_others(options, op, dtype, index))
            continue;
        if (device->backend->is_host && cost_of(op, shape) > cpu_cost_max)
            printf("%s %zux%zux%zu: left out on the CPU; give it by --shape\n", mm_op_name(op), shape->m,
                   shape->k, shape->n);
        else
            shapes_add(&plan->shapes, shape->m, shape->n, shape->k);
    }
    shapes_free(&named);
    for (size_t index = 0; index < options->shapes.count; index++)
        shapes_add(&plan->shapes, options->shapes.shapes[index].m, options->shapes.shapes[index].n,
                   options->shapes.shapes[index].k);
    if (plan->thin == 0)
        plan->thin = options->set == NULL || strcmp(options->set, "tiny") == 0 || options->epilogues ? 1
                     : strcmp(options->set, "large") == 0                                            ? 64
                                                                                                     : 4;
    if (op == MM_MATMUL && dtype != MM_FLOAT32 && options->dtypes == 0 && !options->epilogues)
        plan->thin *= CASES_SHARE;
}

static bool must_run(const struct plan *plan, const struct subject *subject) {
    return plan->has_jobs && (subject->device->backend->is_host || mm_dtype_bytes(plan->dtype) > 1);
}

/* Adds up the subjects' results. A subject that neither ran nor refused a case has failed. If the plan has
 * whole jobs, most variants must run at least one case. Only variants of 1-byte types on a GPU may refuse all
 * cases. */
static void add_up(const struct plan *plan, const struct subject *subjects, size_t count,
                   struct totals *totals) {
    for (size_t index = 0; index < count; index++) {
        const struct subject *subject = &subjects[index];
        totals->cases += subject->cases;
        totals->failures += subject->failures;
        totals->variants++;
        if (subject->cases == 0 && (subject->unsupported == 0 || must_run(plan, subject))) {
            printf("FAIL %s %s:%s: no case was run\n", mm_op_name(subject->variant->op),
                   subject->device->backend->name, subject->name);
            totals->failures++;
        }
    }
}

static void print_figures(const struct subject *subjects, size_t count) {
    printf("\n| variant | cases | unsupported | failed | largest error / bound |\n|---|--:|--:|--:|--:|\n");
    for (size_t index = 0; index < count; index++) {
        const struct subject *subject = &subjects[index];
        printf("| %s:%s | %zu | %zu | %zu | %.3f |\n", subject->device->backend->name, subject->name,
               subject->cases, subject->unsupported, subject->failures, subject->fraction_max);
    }
}

static void check_op(const struct options *options, struct mm_device *device, enum mm_op op,
                     enum mm_dtype dtype, struct totals *totals) {
    static const struct {
        cases_function *check;
        cases_function *run_jobs;
    } functions[] = {[MM_MATMUL] = {products_check, products_run_jobs},
                     [MM_TRANSPOSE] = {transposes_check, transposes_run_jobs}};
    struct plan plan;
    size_t count;
    struct subject *subjects = subjects_choose(options, device, op, dtype, &count);
    if (count == 0) {
        free(subjects);
        return;
    }
    plan_make(&plan, options, device, op, dtype);
    printf("%s%s%s: %zu shapes, one case in %u, %u runs each, seed %" PRIu64
           "; references of large products are samples of 4609 elements\n",
           mm_op_name(op), op == MM_MATMUL ? " of " : "", op == MM_MATMUL ? mm_dtype_name(dtype) : "",
           plan.shapes.count, plan.thin, plan.repeat, plan.seed);
    if (!share_check(functions[op].check, options->threads, subjects, count, &plan))
        totals->failures++;
    if (plan.has_jobs) {
        functions[op].run_jobs(subjects, count, &plan);
        batches_run(subjects, count, &plan);
        stacks_run(subjects, count, &plan);
    }
    print_figures(subjects, count);
    add_up(&plan, subjects, count, totals);
    printf("\n");
    shapes_free(&plan.shapes);
    free(subjects);
}

static int check_all(const struct options *options, struct mm_device *const *devices, size_t count) {
    struct totals totals = {0};
    for (size_t index = 0; index < count; index++) {
        for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
            if (options->dtypes == 0 || (options->dtypes & MM_DTYPE_BIT(dtype)) != 0)
                check_op(options, devices[index], MM_MATMUL, dtype, &totals);
        /* This call tests transpositions of all element types. */
        if (!options->epilogues)
            check_op(options, devices[index], MM_TRANSPOSE, MM_FLOAT32, &totals);
    }
    if (totals.variants == 0) {
        printf("FAIL: no variant was run\n");
        totals.failures++;
    }
    printf("%zu cases, %zu variants by type, %zu failures\n", totals.cases, totals.variants, totals.failures);
    return totals.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int measure(const struct options *options, struct mm_device *const *devices, size_t count) {
    FILE *csv = options->csv == NULL ? NULL : fopen(options->csv, "we");
    int code = EXIT_FAILURE;
    if (options->csv == NULL || csv != NULL)
        code = options->accuracy ? accuracy_run(options, devices[0], csv)
                                 : bench_run(options, devices, count, csv);
    if (options->csv != NULL && (csv == NULL || fclose(csv) != 0)) {
        perror(options->csv);
        code = EXIT_FAILURE;
    }
    return code;
}

static int run(const struct options *options) {
    struct mm_device *devices[DEVICES_MAX];
    const size_t count = devices_open(options, devices);
    int code;
    if (count == 0) {
        printf("no backend can be opened\n");
        code = EXIT_SKIPPED;
    } else if (options->accuracy || options->times.count > 0) {
        code = measure(options, devices, count);
    } else {
        code = check_all(options, devices, count);
    }
    for (size_t index = 0; index < count; index++)
        devices[index]->backend->close(devices[index]);
    return code;
}

int main(int count, char **arguments) {
    struct options options;
    int code = EXIT_SUCCESS;
    (void)count;
    if (!options_read(&options, arguments)) {
        code = EXIT_USAGE;
    } else if (options.help) {
        options_help();
    } else {
        code = run(&options);
    }
    options_free(&options);
    return code;
}
