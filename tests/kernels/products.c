/* The cases of products: every row over shapes, families of data and layouts. */
#include "tests/kernels/harness.h"

/* A family's data for a shape, made for the first layout that is tried. */
struct data {
    struct operands operands;
    struct reference reference;
    struct one_case one;
};

static void data_make(struct data *data, struct shape shape, const struct family *family, uint64_t seed) {
    operands_make(&data->operands, shape, family, seed);
    reference_make(&data->reference, &data->operands, seed);
    data->one = operands_case(&data->operands, family, &data->reference);
}

static void data_free(struct data *data) {
    reference_free(&data->reference);
    operands_free(&data->operands);
}

static bool is_thinned_out(const struct plan *plan, uint64_t seed, unsigned layout) {
    return random_mix(seed, 0x7417 + layout) % plan->thin != 0;
}

void products_check(struct subject *subjects, size_t count, const struct plan *plan) {
    const size_t pieces = plan->shapes.count * FAMILY_COUNT;
    for (size_t piece = plan_take(plan); piece < pieces; piece = plan_take(plan)) {
        const size_t which = piece / FAMILY_COUNT;
        const size_t family = piece % FAMILY_COUNT;
        /* However few are tried, one of every shape is. */
        const size_t sure = random_mix(plan->seed, 0x5afe + which) % (FAMILY_COUNT * LAYOUT_COUNT);
        const uint64_t seed = random_mix(plan->seed, piece);
        struct data data = {0};
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
            if (family * LAYOUT_COUNT + layout != sure && is_thinned_out(plan, seed, layout))
                continue;
            if (data.reference.expected == NULL)
                data_make(&data, plan->shapes.shapes[which], &families[family], seed);
            data.one.layout = layout_make(layout, seed);
            check_case(subjects, count, plan, &data.one);
        }
        data_free(&data);
    }
}

void products_run_jobs(struct subject *subjects, size_t count, const struct plan *plan) {
    struct shape_list shapes = {0};
    shapes_named(MM_MATMUL, "tiny", plan->seed, &shapes);
    for (size_t which = 0; which < shapes.count; which++) {
        const uint64_t seed = random_mix(plan->seed, 0x10b5 + which);
        struct data data;
        data_make(&data, shapes.shapes[which], &families[which % FAMILY_COUNT], seed);
        for (unsigned layout = which % 3; layout < LAYOUT_COUNT; layout += 3) {
            if (layout >= 3 && is_thinned_out(plan, seed, layout))
                continue;
            data.one.layout = layout_make(layout, seed);
            jobs_case(subjects, count, plan, &data.one);
        }
        data_free(&data);
    }
    shapes_free(&shapes);
}
