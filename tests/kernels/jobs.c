/* Runs whole jobs in host memory on every lane at once, as the service does. Checks C, the memory around C,
 * and what each job reports. */
#include "tests/kernels/harness.h"

#include <string.h>

enum { LANES_MAX = 4 };

void job_prepare(struct mm_job *job, const struct subject *subject, const struct mm_product *product) {
    *job = (struct mm_job){
        .product = *product,
        .work.backend = subject->device->backend,
        .variant = subject->variant,
        .work.device = subject->device,
    };
    job->product.tile = subject->tile;
    memset(job->outcome.span_ns, 0xff, sizeof job->outcome.span_ns);
    if (mm_job_plan(job, subject->device, &job->work.error) == MM_OK)
        mm_job_begin(job, subject->device);
    job->outcome.ran = job->plan.variant; /* also of a job whose shape the variant does not take */
}

bool job_reports_all(const struct mm_job *job) {
    static const enum mm_span spans[] = {MM_SPAN_UPLOAD, MM_SPAN_KERNEL, MM_SPAN_DOWNLOAD};
    for (unsigned index = 0; index < 3; index++)
        if (job->outcome.span_ns[spans[index]] == UINT64_MAX)
            return false;
    return job->outcome.batched > 0;
}

static void check(struct subject *subject, const struct plan *plan, const struct one_case *one,
                  const struct mm_job *job, const struct image *c, unsigned poison) {
    ptrdiff_t byte;
    if (job->work.error.status != MM_OK)
        subject_fail(subject, plan, one, "job: %s: %s", mm_status_name(job->work.error.status),
                     job->work.error.detail);
    else if (!job_reports_all(job))
        subject_fail(subject, plan, one, "job: times or batch size are missing");
    else if (!image_surroundings_intact(c, poison, &byte))
        subject_fail(subject, plan, one, "job: wrote outside C, at byte %td from its start", byte);
    else
        subject_check(subject, plan, one, c);
    subject->cases++;
}

/* Runs one case on every lane at once. Each lane has its own C. */
static void run_jobs(struct subject *subject, const struct plan *plan, const struct one_case *one) {
    struct mm_device *device = subject->device;
    const unsigned lanes = device->lane_count < LANES_MAX ? device->lane_count : LANES_MAX;
    struct image operands[MM_OPERANDS_MAX], c[LANES_MAX];
    struct mm_job jobs[LANES_MAX];
    bool begun[LANES_MAX] = {false};
    image_make_operands(operands, one);
    for (unsigned lane = 0; lane < lanes; lane++) {
        image_make_result(&c[lane], one);
        image_poison(&c[lane], lane % POISON_COUNT);
        const struct mm_product product = image_product(operands, &c[lane], one, false);
        job_prepare(&jobs[lane], subject, &product);
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        struct mm_job *job = &jobs[lane];
        if (job->work.error.status == MM_OK)
            device->backend->begin(device, lane, &job, 1);
        const enum mm_status status = job->work.error.status;
        begun[lane] = status == MM_OK;
        if (!subject_refuses(subject, plan, one, status, &job->work.error) && status != MM_OK)
            subject_fail(subject, plan, one, "job: begin: %s: %s", mm_status_name(status),
                         job->work.error.detail);
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        struct mm_job *job = &jobs[lane];
        if (begun[lane]) {
            device->backend->end(device, lane, &job, 1);
            check(subject, plan, one, job, &c[lane], lane % POISON_COUNT);
        }
        image_free(&c[lane]);
    }
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        image_free(&operands[index]);
}

void jobs_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one) {
    for (size_t index = 0; index < count; index++)
        run_jobs(&subjects[index], plan, one);
}
