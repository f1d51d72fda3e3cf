/* Small products that go together, and small transpositions, in locked pages of the host: whatever the batch,
 * each gives the very bits that it gives alone and by copies, and writes nothing but its C. Their values are
 * judged elsewhere. */
#include "tests/kernels/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = MM_BATCH_MAX, GUARD_WORDS = 64, ALIGNMENT_WORDS = 64 };

static const uint32_t poison = 0x7fc5a5a5; /* a NaN that no computation makes */

/* Around the blocks' edges, so that some are read where they lie and some are gathered, without depth too;
 * and the most bytes that may go together, about. */
static const struct shape shapes[] = {
    {1, 1, 1},     {8, 8, 8},       {16, 16, 16},  {17, 15, 16},  {32, 32, 32},   {33, 31, 34},
    {2, 3, 0},     {40, 50, 0},     {64, 64, 64},  {5, 90, 7},    {90, 5, 7},     {31, 33, 100},
    {96, 96, 96},  {290, 300, 280}, {1, 200, 64},  {200, 1, 64},  {1, 262000, 0}, {262000, 1, 0},
    {65, 63, 250}, {228, 112, 240}, {16, 900, 70}, {900, 16, 70}, {500, 480, 20}, {256, 250, 200},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* All that is locked, and what is cut from it. */
struct pool {
    uint32_t *words;
    size_t bytes;
    size_t used_words;
};

static uint32_t *cut(struct pool *pool, size_t words) {
    uint32_t *piece = pool->words + pool->used_words;
    pool->used_words += (words + ALIGNMENT_WORDS - 1) / ALIGNMENT_WORDS * ALIGNMENT_WORDS;
    return piece;
}

struct set {
    struct pool pool;
    struct mm_job jobs[JOBS];
    uint32_t *alone[JOBS];   /* C of each by itself; owned */
    uint32_t *storage[JOBS]; /* of C, between two guards */
    size_t words[JOBS];      /* of C */
    bool is_done[JOBS];
    uint32_t beside[1 << 18]; /* C of one that is run beside a batch */
};

/* What all jobs of a set have in common. */
struct kind {
    enum mm_op op;
    enum mm_dtype dtype;
    bool transpose_a;
    bool transpose_b;
};

static const struct kind kinds[] = {
    {MM_MATMUL, MM_FLOAT32, false, false},   {MM_MATMUL, MM_FLOAT32, true, false},
    {MM_MATMUL, MM_FLOAT32, false, true},    {MM_MATMUL, MM_FLOAT32, true, true},
    {MM_TRANSPOSE, MM_FLOAT32, true, false}, {MM_TRANSPOSE, MM_INT64, true, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static size_t words_of(enum mm_dtype dtype, size_t elements) {
    return elements * mm_dtype_bytes(dtype) / sizeof(uint32_t);
}

/* Numbers from −1 to 1; of a transposition, any bits. */
static void fill_operand(uint32_t *words, size_t count, const struct kind *kind, struct random *random) {
    for (size_t index = 0; index < count; index++) {
        const float number = (float)((double)(int64_t)random_next(random) * 0x1p-63);
        if (kind->op == MM_MATMUL)
            memcpy(&words[index], &number, sizeof number);
        else
            words[index] = (uint32_t)random_next(random);
    }
}

static struct mm_matrix operand(struct pool *pool, size_t rows, size_t cols, bool transposed,
                                const struct kind *kind, struct random *random) {
    const size_t words = words_of(kind->dtype, rows * cols);
    uint32_t *storage = cut(pool, words);
    fill_operand(storage, words, kind, random);
    return transposed ? mm_matrix_dense(kind->dtype, cols, rows, storage)
                      : mm_matrix_dense(kind->dtype, rows, cols, storage);
}

static void fill_poison(uint32_t *words, size_t count) {
    for (size_t index = 0; index < count; index++)
        words[index] = poison;
}

static void make_job(struct set *set, unsigned index, const struct subject *subject, const struct kind *kind,
                     struct random *random) {
    const struct shape *shape = &shapes[index % SHAPES];
    struct mm_product product = {.m = shape->m, .n = shape->n};
    const size_t words = words_of(kind->dtype, shape->m * shape->n);
    product.transpose_a = kind->transpose_a;
    product.transpose_b = kind->transpose_b;
    if (kind->op == MM_MATMUL) {
        product.k = shape->k;
        product.a = operand(&set->pool, shape->m, shape->k, product.transpose_a, kind, random);
        product.b = operand(&set->pool, shape->k, shape->n, product.transpose_b, kind, random);
    } else {
        product.a = operand(&set->pool, shape->m, shape->n, product.transpose_a, kind, random);
    }
    set->words[index] = words;
    set->storage[index] = cut(&set->pool, words + 2 * GUARD_WORDS);
    product.c = mm_matrix_dense(kind->dtype, shape->m, shape->n, set->storage[index] + GUARD_WORDS);
    fill_poison(set->storage[index], words + 2 * GUARD_WORDS);
    job_prepare(&set->jobs[index], subject, &product);
    set->jobs[index].queued_bytes =
        mm_matrix_bytes(&product.a) + mm_matrix_bytes(&product.b) + mm_matrix_bytes(&product.c);
}

static void tell(struct subject *subject, const struct plan *plan, const struct mm_job *job,
                 const char *what) {
    char text[FAILURE_BYTES];
    const struct mm_product *product = &job->product;
    snprintf(text, sizeof text, "batch of %u: %.200s (%s, %zux%zux%zu%s%s, seed %" PRIu64 ")", job->batched,
             what, mm_dtype_name(product->c.dtype), product->m, product->k, product->n,
             product->transpose_a ? ", a transposed" : "", product->transpose_b ? ", b transposed" : "",
             plan->seed);
    subject_tell(subject, text);
}

/* By itself, and by copies: what the others are held to. */
static void run_alone(struct set *set, unsigned index, struct subject *subject, const struct plan *plan) {
    struct mm_job *job = &set->jobs[index];
    const size_t bytes = set->words[index] * sizeof(uint32_t);
    set->alone[index] = harness_allocate(bytes);
    set->is_done[index] = !mm_variant_takes(job->ran, &job->product);
    if (set->is_done[index])
        return;
    if (mm_device_run(subject->device, job) != MM_OK) {
        tell(subject, plan, job, job->error.detail);
        set->is_done[index] = true;
        return;
    }
    memcpy(set->alone[index], job->product.c.data, bytes);
    fill_poison(set->storage[index], set->words[index] + 2 * GUARD_WORDS);
    memset(job->span_ns, 0xff, sizeof job->span_ns);
    job->is_locked = true;
    if (mm_job_plan(job, subject->device, &job->error) != MM_OK)
        tell(subject, plan, job, job->error.detail);
    set->is_done[index] = job->error.status != MM_OK || job->plan.batch_key == 0;
}

/* A sum of all that was locked and is only read. */
static uint64_t sum_operands(const struct set *set) {
    uint64_t sum = 0;
    for (unsigned index = 0; index < JOBS; index++) {
        const struct mm_product *product = &set->jobs[index].product;
        const struct mm_matrix *operands[] = {&product->a, &product->b};
        for (unsigned which = 0; which < 2; which++)
            for (size_t word = 0; word < mm_matrix_bytes(operands[which]) / sizeof(uint32_t); word++)
                sum = random_mix(sum, ((const uint32_t *)operands[which]->data)[word]);
    }
    return sum;
}

static bool is_intact(const uint32_t *guard) {
    for (size_t index = 0; index < GUARD_WORDS; index++)
        if (guard[index] != poison)
            return false;
    return true;
}

static void judge(const struct set *set, unsigned index, unsigned count, struct subject *subject,
                  const struct plan *plan) {
    const struct mm_job *job = &set->jobs[index];
    const uint32_t *storage = set->storage[index];
    const size_t words = set->words[index];
    subject->cases++;
    if (job->error.status != MM_OK)
        tell(subject, plan, job, job->error.detail);
    else if (job->batched != count || !job_told(job))
        tell(subject, plan, job, "its spans or its batch are not told");
    else if (memcmp(storage + GUARD_WORDS, set->alone[index], words * sizeof(uint32_t)) != 0)
        tell(subject, plan, job, "other bits than alone");
    else if (!is_intact(storage) || !is_intact(storage + GUARD_WORDS + words))
        tell(subject, plan, job, "wrote outside C");
}

/* The first once more, by copies, to be begun beside the others in a lane of its own. */
static struct mm_job beside_of(struct set *set, unsigned first, const struct subject *subject) {
    struct mm_job job;
    struct mm_product product = set->jobs[first].product;
    product.c.data = set->beside;
    job_prepare(&job, subject, &product);
    return job;
}

static void judge_beside(const struct set *set, unsigned first, const struct mm_job *job,
                         struct subject *subject, const struct plan *plan) {
    subject->cases++;
    if (job->error.status != MM_OK)
        tell(subject, plan, job, job->error.detail);
    else if (memcmp(set->beside, set->alone[first], set->words[first] * sizeof(uint32_t)) != 0)
        tell(subject, plan, job, "other bits beside a batch");
}

/* All that share the first's key go together. */
static void run_together(struct set *set, unsigned first, struct subject *subject, const struct plan *plan) {
    struct mm_device *device = subject->device;
    struct mm_job *jobs[JOBS];
    unsigned which[JOBS];
    unsigned count = 1;
    jobs[0] = &set->jobs[first];
    which[0] = first;
    for (unsigned index = first + 1; index < JOBS; index++) {
        if (set->is_done[index] || set->jobs[index].plan.batch_key != set->jobs[first].plan.batch_key)
            continue;
        set->is_done[index] = true;
        which[count] = index;
        jobs[count++] = &set->jobs[index];
    }
    struct mm_job beside = beside_of(set, first, subject);
    struct mm_job *other = &beside;
    const bool has_other = device->lane_count > 1;
    device->backend->begin(device, 0, jobs, count);
    if (has_other)
        device->backend->begin(device, 1, &other, 1);
    bool begun = false;
    for (unsigned index = 0; index < count; index++)
        begun = begun || jobs[index]->error.status == MM_OK;
    if (begun)
        device->backend->end(device, 0, jobs, count);
    if (has_other && beside.error.status == MM_OK)
        device->backend->end(device, 1, &other, 1);
    if (has_other)
        judge_beside(set, first, &beside, subject, plan);
    for (unsigned index = 0; index < count; index++)
        judge(set, which[index], count, subject, plan);
}

static void run_kind(struct set *set, struct subject *subject, const struct plan *plan,
                     const struct kind *kind) {
    struct random random = {random_mix(plan->seed, 0xba7c + (uint64_t)(kind - kinds))};
    const struct pool pool = set->pool;
    memset(set, 0, sizeof *set);
    set->pool = pool;
    set->pool.used_words = 0;
    for (unsigned index = 0; index < JOBS; index++) {
        make_job(set, index, subject, kind, &random);
        run_alone(set, index, subject, plan);
    }
    const uint64_t sum = sum_operands(set);
    for (unsigned index = 0; index < JOBS; index++)
        if (!set->is_done[index])
            run_together(set, index, subject, plan);
    if (sum_operands(set) != sum)
        tell(subject, plan, &set->jobs[0], "changed an operand");
    for (unsigned index = 0; index < JOBS; index++)
        free(set->alone[index]);
}

static size_t pool_bytes(void) {
    size_t words = 0;
    for (unsigned index = 0; index < JOBS; index++) {
        const struct shape *shape = &shapes[index % SHAPES];
        const size_t product = shape->m * shape->k + shape->k * shape->n + shape->m * shape->n;
        const size_t transposition = 2 * words_of(MM_INT64, shape->m * shape->n);
        words += (product > transposition ? product : transposition) + 2 * GUARD_WORDS + 3 * ALIGNMENT_WORDS;
    }
    return words * sizeof(uint32_t);
}

void batches_run(struct subject *subjects, size_t count, const struct plan *plan) {
    const struct mm_backend *backend = subjects[0].device->backend;
    struct set *set = harness_allocate(sizeof *set);
    if (backend->page_locking == NULL) { /* the host's: each goes alone */
        free(set);
        return;
    }
    set->pool.bytes = pool_bytes();
    set->pool.words = mm_pages_map(set->pool.bytes);
    if (set->pool.words == NULL || !backend->page_locking->lock(set->pool.words, set->pool.bytes)) {
        subject_tell(&subjects[0], "no locked pages for batches");
    } else {
        for (size_t index = 0; index < count; index++) {
            const size_t cases = subjects[index].cases;
            const enum mm_op op = subjects[index].variant->op;
            for (size_t kind = 0; kind < KINDS; kind++)
                if (kinds[kind].op == op)
                    run_kind(set, &subjects[index], plan, &kinds[kind]);
            const bool must = op == MM_TRANSPOSE || subjects[index].variant == &backend->variants[0];
            if (must && subjects[index].cases == cases)
                subject_tell(&subjects[index], "goes together with no other");
        }
        backend->page_locking->unlock(set->pool.words);
    }
    if (set->pool.words != NULL)
        mm_pages_unmap(set->pool.words, set->pool.bytes);
    free(set);
}
