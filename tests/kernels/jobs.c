/* Whole jobs on host memory: begin and end, on every lane at once, as the queue's workers use them.
 * It looks at what check.c cannot see: that C outside its m×n stays as it is on the host, and what a
 * finished job tells. */
#include "tests/kernels/harness.h"

#include <string.h>

/* One case, begun on every lane with a C of its own. */
struct jobs {
    struct image a;
    struct image b;
    struct image c[LANES_MAX];
    struct mm_job job[LANES_MAX];
    bool begun[LANES_MAX];
    unsigned count;
};

void job_prepare(struct mm_job *job, const struct subject *subject, const struct mm_product *product) {
    *job = (struct mm_job){
        .product = *product,
        .backend = subject->device->backend,
        .variant = subject->variant,
        .device = subject->device,
    };
    memset(job->span_ns, 0xff, sizeof job->span_ns);
    (void)mm_job_plan(job, subject->device, &job->error); /* of one that fails, no more is asked */
    job->ran = job->plan.variant;
}

bool job_told(const struct mm_job *job) {
    static const enum mm_span spans[] = {MM_SPAN_UPLOAD, MM_SPAN_KERNEL, MM_SPAN_DOWNLOAD};
    for (unsigned index = 0; index < 3; index++)
        if (job->span_ns[spans[index]] == UINT64_MAX)
            return false;
    return job->batched > 0;
}

static void prepare(struct jobs *jobs, const struct subject *subject, const struct one_case *one) {
    unsigned lanes = subject->device->lane_count;
    *jobs = (struct jobs){.count = lanes < LANES_MAX ? lanes : LANES_MAX};
    image_make_operands(&jobs->a, &jobs->b, one->operands, &one->layout);
    for (unsigned lane = 0; lane < jobs->count; lane++) {
        struct image *c = &jobs->c[lane];
        image_make_result(c, one->operands->shape, &one->layout);
        image_poison(c, lane % POISON_COUNT);
        struct mm_product product =
            image_product(&jobs->a, &jobs->b, c, one->operands->shape, &one->layout, false);
        product.tile = subject->tile;
        job_prepare(&jobs->job[lane], subject, &product);
    }
}

static void judge(struct subject *subject, const struct plan *plan, const struct one_case *one,
                  const struct jobs *jobs, unsigned lane) {
    const struct mm_job *job = &jobs->job[lane];
    const struct image *c = &jobs->c[lane];
    ptrdiff_t byte;
    double frobenius;
    if (job->error.status != MM_OK)
        subject_fail(subject, plan, one, "job: %s: %s", mm_status_name(job->error.status), job->error.detail);
    else if (!job_told(job))
        subject_fail(subject, plan, one, "job: its spans or its batch are not told");
    else if (!image_surroundings_intact(c, lane % POISON_COUNT, &byte))
        subject_fail(subject, plan, one, "job: wrote outside C, at byte %td from its start", byte);
    else
        subject_judge(subject, plan, one, c, &frobenius);
    subject->cases++;
}

static void run_jobs(struct subject *subject, const struct plan *plan, const struct one_case *one) {
    struct jobs jobs;
    struct mm_device *device = subject->device;
    prepare(&jobs, subject, one);
    for (unsigned lane = 0; lane < jobs.count; lane++) {
        struct mm_job *job = &jobs.job[lane];
        if (job->error.status == MM_OK)
            device->backend->begin(device, lane, &job, 1);
        const enum mm_status status = job->error.status;
        jobs.begun[lane] = status == MM_OK;
        if (!subject_refuses(subject, plan, one, status, &job->error) && status != MM_OK)
            subject_fail(subject, plan, one, "job: begin: %s: %s", mm_status_name(status), job->error.detail);
    }
    for (unsigned lane = 0; lane < jobs.count; lane++) {
        if (jobs.begun[lane]) {
            struct mm_job *job = &jobs.job[lane];
            device->backend->end(device, lane, &job, 1);
            judge(subject, plan, one, &jobs, lane);
        }
        image_free(&jobs.c[lane]);
    }
    image_free(&jobs.b);
    image_free(&jobs.a);
}

void jobs_run(struct subject *subjects, size_t count, const struct plan *plan) {
    struct shape_list shapes = {0};
    shapes_named(MM_MATMUL, "tiny", plan->seed, &shapes);
    for (size_t which = 0; which < shapes.count; which++) {
        const struct family *family = &families[which % FAMILY_COUNT];
        uint64_t seed = random_mix(plan->seed, 0x10b5 + which);
        struct operands operands;
        struct reference reference;
        operands_make(&operands, shapes.shapes[which], family, seed);
        reference_make(&reference, &operands, seed);
        for (unsigned layout = which % 3; layout < LAYOUT_COUNT; layout += 3) {
            if (layout >= 3 && random_mix(seed, 0x7417 + layout) % plan->thin != 0)
                continue;
            struct one_case one = {&operands, &reference, family, layout_make(layout, seed)};
            for (size_t index = 0; index < count; index++)
                run_jobs(&subjects[index], plan, &one);
        }
        reference_free(&reference);
        operands_free(&operands);
    }
    shapes_free(&shapes);
}
