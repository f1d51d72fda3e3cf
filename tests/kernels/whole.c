/* The reference of a whole product, however large: every element in float64, by several threads.
 *
 * A thread takes strips of a few columns. Of each it goes through the depth in chunks, packs that part of B,
 * and adds it up for all rows, so that what is read again and again stays in the cache. Sums of chunks are
 * added in turn, which also keeps float64's own error to some 2^-40 of |A|·|B| at most, for every k that the
 * harness takes. */
#include "tests/kernels/harness.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP = 8, CHUNK = 4096 };

/* What the threads share: each takes the next strip, and writes its columns' elements. */
struct whole {
    const struct operands *operands;
    struct expected *expected;
    atomic_size_t taken;
};

/* Sums over a part of the depth, for each column of a strip. */
struct sums {
    double sum[STRIP];
    double magnitude[STRIP];
};

/* B's rows from `first` on as the strip sees them, with zeros past B's last column. */
static void pack(const struct operands *operands, size_t first, size_t depth, size_t col, double *packed) {
    const size_t n = operands->shape.n;
    for (size_t index = 0; index < depth; index++)
        for (size_t lane = 0; lane < STRIP; lane++)
            packed[index * STRIP + lane] =
                col + lane < n ? (double)operands->b[(first + index) * n + col + lane] : 0.0;
}

static void add_chunk(struct sums *sums, const float *a, const double *packed, size_t depth) {
    struct sums part = {0};
    for (size_t index = 0; index < depth; index++) {
        const double x = (double)a[index];
        for (size_t lane = 0; lane < STRIP; lane++) {
            const double product = x * packed[index * STRIP + lane];
            part.sum[lane] += product;
            part.magnitude[lane] += fabs(product);
        }
    }
    for (size_t lane = 0; lane < STRIP; lane++) {
        sums->sum[lane] += part.sum[lane];
        sums->magnitude[lane] += part.magnitude[lane];
    }
}

static void keep(const struct whole *whole, size_t col, const struct sums *rows) {
    const struct shape shape = whole->operands->shape;
    for (size_t row = 0; row < shape.m; row++)
        for (size_t lane = 0; lane < STRIP && col + lane < shape.n; lane++)
            whole->expected[row * shape.n + col + lane] =
                (struct expected){row, col + lane, rows[row].sum[lane], rows[row].magnitude[lane]};
}

static void *run(void *data) {
    struct whole *whole = data;
    const struct operands *operands = whole->operands;
    const struct shape shape = operands->shape;
    double *packed = harness_allocate((size_t)CHUNK * STRIP * sizeof *packed);
    struct sums *rows = harness_allocate(shape.m * sizeof *rows);
    size_t col;
    while ((col = STRIP * atomic_fetch_add_explicit(&whole->taken, 1, memory_order_relaxed)) < shape.n) {
        memset(rows, 0, shape.m * sizeof *rows);
        for (size_t first = 0; first < shape.k; first += CHUNK) {
            const size_t depth = shape.k - first < CHUNK ? shape.k - first : CHUNK;
            pack(operands, first, depth, col, packed);
            for (size_t row = 0; row < shape.m; row++)
                add_chunk(&rows[row], operands->a + row * shape.k + first, packed, depth);
        }
        keep(whole, col, rows);
    }
    free(rows);
    free(packed);
    return NULL;
}

void reference_make_whole(struct reference *reference, const struct operands *operands, unsigned threads) {
    const struct shape shape = operands->shape;
    *reference = (struct reference){.shape = shape, .count = shape.m * shape.n, .whole = true};
    reference->expected = harness_allocate(reference->count * sizeof *reference->expected);
    struct whole whole = {.operands = operands, .expected = reference->expected};
    pthread_t others[SHARE_THREADS_MAX];
    unsigned started = 0;
    /* A thread that does not start leaves its strips to the rest. */
    while (started + 1 < threads && pthread_create(&others[started], NULL, run, &whole) == 0)
        started++;
    run(&whole);
    for (unsigned index = 0; index < started; index++)
        pthread_join(others[index], NULL);
}
