/* Tests batches of small jobs, which share one kernel launch. Each job of a batch must give the same bits as
 * when it runs alone, and must write only its own C. Other tests check the values. */
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

enum { JOBS = MM_BATCH_MAX, GUARD_WORDS = 64, ALIGNMENT_WORDS = 64 };

static const uint32_t poison = 0x7fc5a5a5; /* a NaN that no computation produces */

/* Sizes next to multiples of the block size. In some jobs, the operands are about as large as a batch
 * allows. */
static const struct shape shapes[] = {
    {1, 1, 1},     {8, 8, 8},       {16, 16, 16},  {17, 15, 16},  {32, 32, 32},   {33, 31, 34},
    {2, 3, 0},     {40, 50, 0},     {64, 64, 64},  {5, 90, 7},    {90, 5, 7},     {31, 33, 100},
    {96, 96, 96},  {290, 300, 280}, {1, 200, 64},  {200, 1, 64},  {1, 262000, 0}, {262000, 1, 0},
    {65, 63, 250}, {228, 112, 240}, {16, 900, 70}, {900, 16, 70}, {500, 480, 20}, {256, 250, 200},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct kind {
    enum mm_op op;
    enum mm_dtype dtype; /* type of operands of products; transpositions use a type of the plan */
    bool transpose_a;
    bool transpose_b;
};

static const struct kind kinds[] = {
    {MM_MATMUL, MM_FLOAT32, false, false},   {MM_MATMUL, MM_FLOAT32, true, false},
    {MM_MATMUL, MM_FLOAT32, false, true},    {MM_MATMUL, MM_FLOAT32, true, true},
    {MM_TRANSPOSE, MM_FLOAT32, true, false}, {MM_TRANSPOSE, MM_INT64, true, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A job and its expected result. Guard words lie before and behind C. */
struct member {
    struct mm_job job;
    uint32_t *storage;
    uint32_t *alone; /* expected words of C and its guards; owned */
    size_t words;    /* number of words of C and its guards */
    bool is_done;
};

struct set {
    uint32_t *pool; /* the page-locked memory that all jobs use */
    size_t pool_bytes;
    size_t used_words;
    struct member members[JOBS];
    uint32_t beside[1 << 19]; /* C of the job that runs while a batch runs */
};

static uint32_t *cut(struct set *set, size_t words) {
    uint32_t *piece = set->pool + set->used_words;
    set->used_words += (words + ALIGNMENT_WORDS - 1) / ALIGNMENT_WORDS * ALIGNMENT_WORDS;
    return piece;
}

static size_t words_of(enum mm_dtype dtype, size_t elements) {
    return mm_size_divide_up(elements * mm_dtype_bytes(dtype), sizeof(uint32_t));
}

/* Returns a matrix of random numbers. A matrix to transpose gets random bits. */
static struct mm_matrix operand(struct set *set, size_t rows, size_t cols, bool transposed,
                                const struct kind *kind, struct random *random) {
    const size_t words = words_of(kind->dtype, rows * cols);
    uint32_t *storage = cut(set, words);
    for (size_t index = 0; index < words; index++)
        storage[index] = (uint32_t)random_next(random);
    for (size_t index = 0; index < rows * cols && kind->op == MM_MATMUL; index++) {
        if (mm_dtype_is_float(kind->dtype))
            mm_dtype_put(kind->dtype, storage, index, (double)(int64_t)random_next(random) * 0x1p-63);
        else if (kind->dtype == MM_BOOL)
            mm_dtype_put(kind->dtype, storage, index, (double)(random_next(random) & 1));
    }
    return transposed ? mm_matrix_dense(kind->dtype, cols, rows, storage)
                      : mm_matrix_dense(kind->dtype, rows, cols, storage);
}

static void fill_poison(uint32_t *words, size_t count) {
    for (size_t index = 0; index < count; index++)
        words[index] = poison;
}

/* Sets an epilogue, except for every fifth product. Some epilogues have no addend or no bias. */
static void set_epilogue(struct set *set, unsigned index, const struct kind *kind, struct mm_product *product,
                         struct random *random) {
    const enum mm_dtype sum = mm_dtype_sum(kind->dtype);
    const struct kind of_c = {MM_MATMUL, mm_dtype_result(kind->dtype), false, false};
    const unsigned activations =
        mm_dtype_is_float(kind->dtype) ? MM_ACTIVATION_COUNT : MM_ACTIVATION_RELU + 1;
    if (index % 5 == 0)
        return;
    product->epilogue = (struct mm_epilogue){.is_set = true,
                                             .activation = (enum mm_activation)(index % activations),
                                             .alpha = mm_scale_of(sum, (int)(index % 7) - 3),
                                             .beta = mm_scale_of(sum, (int)(index % 4) - 5)};
    product->transpose_addend = index % 2 == 0;
    if (index % 3 != 0)
        product->addend = operand(set, product->m, product->n, product->transpose_addend, &of_c, random);
    if (index % 4 != 0)
        product->bias = operand(set, 1, product->n, false, &of_c, random);
    mm_product_drop_unread(product);
}

static void make_job(struct set *set, unsigned index, const struct subject *subject, const struct plan *plan,
                     const struct kind *kind, struct random *random) {
    const struct shape *shape = &shapes[index % SHAPES];
    struct member *member = &set->members[index];
    struct mm_product product = {
        .m = shape->m, .n = shape->n, .transpose_a = kind->transpose_a, .transpose_b = kind->transpose_b};
    if (kind->op == MM_MATMUL) {
        product.k = shape->k;
        product.a = operand(set, shape->m, shape->k, product.transpose_a, kind, random);
        product.b = operand(set, shape->k, shape->n, product.transpose_b, kind, random);
    } else {
        product.a = operand(set, shape->m, shape->n, product.transpose_a, kind, random);
    }
    const enum mm_dtype c_dtype = kind->op == MM_MATMUL ? mm_dtype_result(kind->dtype) : kind->dtype;
    member->words = words_of(c_dtype, shape->m * shape->n) + 2 * GUARD_WORDS;
    member->storage = cut(set, member->words);
    member->alone = harness_allocate(member->words * sizeof(uint32_t));
    product.c = mm_matrix_dense(c_dtype, shape->m, shape->n, member->storage + GUARD_WORDS);
    if (plan->has_epilogues)
        set_epilogue(set, index, kind, &product, random);
    fill_poison(member->storage, member->words);
    fill_poison(member->alone, member->words);
    job_prepare(&member->job, subject, &product);
    member->job.work.bytes = mm_product_bytes(&product);
}

static void report(struct subject *subject, const struct plan *plan, const struct mm_job *job,
                   const char *what) {
    const struct mm_product *product = &job->product;
    const struct one_case one = {
        .data = what,
        .shape = {product->m, product->n, product->k},
        .dtype = product->a.dtype,
        .c_dtype = product->c.dtype,
        .layout = {.transpose_a = product->transpose_a, .transpose_b = product->transpose_b}};
    subject_fail(subject, plan, &one, "in a batch of %u", job->outcome.batched);
}

/* Runs the job alone and without page-locked memory, to get its expected result. */
static void run_alone(struct member *member, struct subject *subject, const struct plan *plan) {
    struct mm_job *job = &member->job;
    member->is_done = true;
    if (!mm_variant_supports_shape(job->outcome.ran, &job->product))
        return;
    if (mm_device_run(subject->device, job) != MM_OK) {
        report(subject, plan, job, job->work.error.detail);
        return;
    }
    memcpy(member->alone + GUARD_WORDS, job->product.c.data, mm_matrix_bytes(&job->product.c));
    fill_poison(member->storage, member->words);
    memset(job->outcome.span_ns, 0xff, sizeof job->outcome.span_ns);
    job->is_locked = true;
    if (mm_job_plan(job, subject->device, &job->work.error) != MM_OK)
        report(subject, plan, job, job->work.error.detail);
    member->is_done = job->work.error.status != MM_OK || job->work.batch_key == 0;
}

/* Returns a checksum of all operands, to show that no job writes them. */
static uint64_t sum_operands(const struct set *set) {
    uint64_t sum = 0;
    for (unsigned index = 0; index < JOBS; index++) {
        const struct mm_product *product = &set->members[index].job.product;
        for (unsigned which = 0; which < MM_OPERANDS_MAX; which++) {
            const struct mm_matrix *matrix = mm_product_operand(product, which);
            for (size_t word = 0; word < words_of(matrix->dtype, matrix->rows * matrix->cols); word++)
                sum = random_mix(sum, ((const uint32_t *)matrix->data)[word]);
        }
    }
    return sum;
}

static void check(const struct mm_job *job, const uint32_t *got, const uint32_t *alone, size_t bytes,
                  struct subject *subject, const struct plan *plan) {
    subject->cases++;
    if (job->work.error.status != MM_OK)
        report(subject, plan, job, job->work.error.detail);
    else if (memcmp(got, alone, bytes) != 0)
        report(subject, plan, job, "result differs from a run alone, or memory outside C changed");
}

/* Runs job `first` in a batch, with all later jobs that may share this batch. Meanwhile a copy of job `first`
 * runs alone in another lane, to test that both lanes can run at once. */
static void run_together(struct set *set, unsigned first, struct subject *subject, const struct plan *plan) {
    struct mm_device *device = subject->device;
    const struct member *const leader = &set->members[first];
    const struct member *which[JOBS];
    struct mm_job *jobs[JOBS];
    unsigned count = 0;
    for (unsigned index = first; index < JOBS; index++) {
        struct member *member = &set->members[index];
        if (member->is_done || member->job.work.batch_key != leader->job.work.batch_key)
            continue;
        member->is_done = true;
        which[count] = member;
        jobs[count++] = &member->job;
    }
    struct mm_job beside;
    struct mm_job *other = &beside;
    struct mm_product product = leader->job.product;
    product.c.data = set->beside;
    job_prepare(&beside, subject, &product);
    const bool has_other = device->lane_count > 1;
    device->backend->begin(device, 0, jobs, count);
    if (has_other)
        device->backend->begin(device, 1, &other, 1);
    bool begun = false;
    for (unsigned index = 0; index < count; index++)
        begun = begun || jobs[index]->work.error.status == MM_OK;
    if (begun)
        device->backend->end(device, 0, jobs, count);
    if (has_other && beside.work.error.status == MM_OK)
        device->backend->end(device, 1, &other, 1);
    if (has_other)
        check(&beside, set->beside, leader->alone + GUARD_WORDS, mm_matrix_bytes(&product.c), subject, plan);
    for (unsigned index = 0; index < count; index++) {
        const struct member *member = which[index];
        check(&member->job, member->storage, member->alone, member->words * sizeof(uint32_t), subject, plan);
        if (member->job.work.error.status == MM_OK &&
            (member->job.outcome.batched != count || !job_reports_all(&member->job)))
            report(subject, plan, &member->job, "times or batch size are missing");
    }
}

static void run_kind(struct set *set, struct subject *subject, const struct plan *plan,
                     const struct kind *kind, size_t number) {
    struct random random = {random_mix(plan->seed, 0xba7c + number)};
    set->used_words = 0;
    for (unsigned index = 0; index < JOBS; index++) {
        make_job(set, index, subject, plan, kind, &random);
        run_alone(&set->members[index], subject, plan);
    }
    const uint64_t sum = sum_operands(set);
    for (unsigned index = 0; index < JOBS; index++)
        if (!set->members[index].is_done)
            run_together(set, index, subject, plan);
    if (sum_operands(set) != sum)
        report(subject, plan, &set->members[0].job, "changed an operand");
    for (unsigned index = 0; index < JOBS; index++)
        free(set->members[index].alone);
}

static size_t pool_bytes(void) {
    size_t words = 0;
    for (unsigned index = 0; index < JOBS; index++) {
        const struct shape *shape = &shapes[index % SHAPES];
        const size_t product = words_of(MM_INT64, shape->m * shape->k + shape->k * shape->n +
                                                      2 * shape->m * shape->n + shape->n);
        const size_t transposition = 2 * words_of(MM_INT64, shape->m * shape->n);
        words += (product > transposition ? product : transposition) + 2 * GUARD_WORDS + 5 * ALIGNMENT_WORDS;
    }
    return words * sizeof(uint32_t);
}

void batches_run(struct subject *subjects, size_t count, const struct plan *plan) {
    const struct mm_backend *backend = subjects[0].device->backend;
    if (backend->page_locking == NULL) /* the host's backend has no batches */
        return;
    struct set *set = harness_allocate(sizeof *set);
    set->pool_bytes = pool_bytes();
    set->pool = mm_pages_map(set->pool_bytes);
    if (set->pool == NULL || !backend->page_locking->lock(set->pool, set->pool_bytes)) {
        subject_print(&subjects[0], "no locked pages for batches");
    } else {
        for (size_t index = 0; index < count; index++) {
            const size_t cases = subjects[index].cases;
            const enum mm_op op = subjects[index].variant->op;
            for (size_t number = 0; number < KINDS; number++) {
                struct kind kind = kinds[number];
                if (kind.op != op)
                    continue;
                if (op == MM_MATMUL)
                    kind.dtype = plan->dtype;
                run_kind(set, &subjects[index], plan, &kind, number);
            }
            const bool must = op == MM_TRANSPOSE ||
                              (subjects[index].variant == &backend->variants[0] && plan->dtype == MM_FLOAT32);
            if (must && subjects[index].cases == cases)
                subject_print(&subjects[index], "goes together with no other");
        }
        backend->page_locking->unlock(set->pool);
    }
    if (set->pool != NULL)
        mm_pages_unmap(set->pool, set->pool_bytes);
    free(set);
}
