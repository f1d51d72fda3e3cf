/* Runs every variant of products with all shapes, families of data, layouts and result types. */
#include "tests/kernels/harness.h"

/* The operands and the expected C of a shape, which are computed only if a layout needs them. */
struct data {
    struct operands operands;
    struct reference reference;
    struct one_case one;
};

static void data_make(struct data *data, enum mm_dtype dtype, struct shape shape, const struct family *family,
                      uint64_t seed) {
    operands_make(&data->operands, dtype, shape, family, seed);
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

/* Chooses the layout and the type of C. C usually has the usual result type. One float32 case in USUAL_OF,
 * and half of the cases of other types, get a random type of C. */
static void set_layout(struct one_case *one, unsigned index, uint64_t seed) {
    enum { USUAL_OF = 8 };
    struct random random = {random_mix(seed, 0xd7e + index)};
    one->layout = layout_make(index, seed);
    one->c_dtype = mm_dtype_result(one->dtype);
    if (random_below(&random, USUAL_OF) < USUAL_OF - (one->dtype == MM_FLOAT32 ? 1 : 4))
        return;
    do
        one->c_dtype = (enum mm_dtype)random_below(&random, MM_DTYPE_COUNT);
    while ((mm_dtype_results(one->dtype) & MM_DTYPE_BIT(one->c_dtype)) == 0);
}

/* Lists the families that suit the plan. Returns their number. */
static size_t families_of(const struct plan *plan, const struct family *chosen[FAMILY_COUNT]) {
    size_t count = 0;
    for (size_t index = 0; index < FAMILY_COUNT; index++)
        if (family_is_of(&families[index], plan->dtype) &&
            (!plan->has_epilogues || epilogue_suits(&families[index])))
            chosen[count++] = &families[index];
    return count;
}

/* Runs a case with one of the layouts, and with one of the epilogues if the plan has them. */
static void run_case(struct subject *subjects, size_t count, const struct plan *plan, struct data *data,
                     const struct family *family, unsigned index, uint64_t seed,
                     void (*run)(struct subject *subjects, size_t count, const struct plan *plan,
                                 const struct one_case *one)) {
    set_layout(&data->one, plan->has_epilogues ? (unsigned)(random_mix(seed, index) % LAYOUT_COUNT) : index,
               seed);
    if (plan->has_epilogues && !epilogue_make(&data->one, index % EPILOGUE_COUNT, family, seed))
        return;
    run(subjects, count, plan, &data->one);
    if (plan->has_epilogues)
        epilogue_free(&data->one);
}

void products_check(struct subject *subjects, size_t count, const struct plan *plan) {
    const struct family *chosen[FAMILY_COUNT];
    const size_t family_count = families_of(plan, chosen);
    const size_t pieces = plan->shapes.count * family_count;
    for (size_t piece = plan_next_unit(plan); piece < pieces; piece = plan_next_unit(plan)) {
        const size_t which = piece / family_count;
        const size_t family = piece % family_count;
        const size_t sure = random_mix(plan->seed, 0x5afe + which) % (family_count * LAYOUT_COUNT);
        const uint64_t seed = random_mix(plan->seed, piece);
        struct data data = {0};
        for (unsigned layout = 0; layout < LAYOUT_COUNT; layout++) {
            if (family * LAYOUT_COUNT + layout != sure && is_thinned_out(plan, seed, layout))
                continue;
            if (data.reference.expected == NULL)
                data_make(&data, plan->dtype, plan->shapes.shapes[which], chosen[family], seed);
            run_case(subjects, count, plan, &data, chosen[family], layout, seed, check_case);
        }
        data_free(&data);
    }
}

void products_run_jobs(struct subject *subjects, size_t count, const struct plan *plan) {
    const struct family *chosen[FAMILY_COUNT];
    const size_t family_count = families_of(plan, chosen);
    struct shape_list shapes = {0};
    shapes_named(MM_MATMUL, "tiny", plan->seed, &shapes);
    for (size_t which = 0; which < shapes.count; which++) {
        const uint64_t seed = random_mix(plan->seed, 0x10b5 + which);
        struct data data;
        data_make(&data, plan->dtype, shapes.shapes[which], chosen[which % family_count], seed);
        for (unsigned layout = which % 3; layout < LAYOUT_COUNT; layout += 3) {
            if (layout >= 3 && is_thinned_out(plan, seed, layout))
                continue;
            run_case(subjects, count, plan, &data, chosen[which % family_count], layout, seed, jobs_case);
        }
        data_free(&data);
    }
    shapes_free(&shapes);
}
