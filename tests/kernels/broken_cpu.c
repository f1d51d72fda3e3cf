/* Rows that are wrong on purpose: each is the triple loop with one fault that real kernels have had.
 * The harness must find every one. */
#include "tests/kernels/broken.h"

#include <math.h>
#include <string.h>

/* One row a fault. */
#define BROKEN_CPU_ROWS(X)                                                                                   \
    X(dropped_bound, "writes columns up to a multiple of 8, whatever n is")                                  \
    X(wrong_stride, "takes n for the stride of C")                                                           \
    X(wrong_operand_stride, "takes its columns for the stride of A")                                         \
    X(aligned_operand, "takes B's address for a multiple of 16")                                             \
    X(aligned_result, "takes C's address for a multiple of 16")                                              \
    X(lost_last_slab, "leaves out what k has over a multiple of 8")                                          \
    X(lost_last_tile, "leaves out what k has over a multiple of the tile that was chosen")                   \
    X(zero_skipped, "skips zeros of A, so that NaN and Inf of B do not propagate")                           \
    X(half_zero_fill, "goes one step past k, with a zero for A and whatever lies behind B")                  \
    X(unwritten_element, "leaves the last element of C as it was")                                           \
    X(added, "adds to what C held")                                                                          \
    X(narrow_operand, "rounds the elements of A to bfloat16")                                                \
    X(flushed, "takes subnormal elements for zeros")                                                         \
    X(clamped, "gives the largest float where the result is infinite")                                       \
    X(wrote_behind_operand, "writes a word behind A")                                                        \
    X(wrote_before, "writes a word in front of C")                                                           \
    X(unsteady, "changes the last bit of the first element from run to run")                                 \
    X(refused, "refuses a k over 8, which its row does not say")                                             \
    X(not_refused, "takes every shape, though its row says multiples of 8 only")

enum fault {
#define X(name, summary) FAULT_##name,
    BROKEN_CPU_ROWS(X)
#undef X
};

enum { SLAB = 8 };

static size_t round_up(size_t value) {
    return (value + SLAB - 1) / SLAB * SLAB;
}

static float element(const struct mm_matrix *x, bool transpose, size_t row, size_t col, size_t ld) {
    const float *data = x->data;
    return transpose ? data[col * ld + row] : data[row * ld + col];
}

/* To 8 bits of mantissa, by Veltkamp's splitting. (Masking the low half of a float that sits under an
 * `if` is dropped by gcc 12.2 at -O1 and up on x86-64.) */
static float to_bfloat16(float value) {
    float scaled = value * 65537.0F;
    return scaled - (scaled - value);
}

/* Within the guards: at most 12 bytes lower. */
static struct mm_matrix align_down(const struct mm_matrix *x) {
    struct mm_matrix down = *x;
    down.data = (char *)x->data - (uintptr_t)x->data % 16;
    return down;
}

static float dot(const struct mm_product *product, enum fault fault, size_t row, size_t col) {
    size_t a_ld = fault == FAULT_wrong_operand_stride ? product->a.cols : product->a.ld;
    const struct mm_matrix b_matrix = fault == FAULT_aligned_operand ? align_down(&product->b) : product->b;
    size_t depth_end = product->k;
    if (fault == FAULT_lost_last_slab)
        depth_end = product->k / SLAB * SLAB;
    if (fault == FAULT_lost_last_tile && product->tile != 0)
        depth_end = product->k / product->tile * product->tile;
    if (fault == FAULT_half_zero_fill && !product->transpose_b && product->k > 0)
        depth_end = product->k + 1;
    float sum = 0.0F;
    for (size_t depth = 0; depth < depth_end; depth++) {
        float a = depth < product->k ? element(&product->a, product->transpose_a, row, depth, a_ld) : 0.0F;
        float b = element(&b_matrix, product->transpose_b, depth, col, product->b.ld);
        if (fault == FAULT_zero_skipped && a == 0.0F)
            continue;
        if (fault == FAULT_narrow_operand)
            a = to_bfloat16(a);
        if (fault == FAULT_flushed && fpclassify(a) == FP_SUBNORMAL)
            a = 0.0F;
        sum += a * b;
    }
    if (fault == FAULT_clamped && isinf(sum))
        sum = copysignf(3.402823466e+38F, sum);
    return sum;
}

static enum mm_status multiply(const struct mm_product *product, enum fault fault, struct mm_error *error) {
    if (fault == FAULT_refused && product->k > SLAB)
        return mm_fail(error, MM_UNSUPPORTED, "k is %zu", product->k);
    float *c = fault == FAULT_aligned_result ? align_down(&product->c).data : product->c.data;
    size_t ld = fault == FAULT_wrong_stride ? product->n : product->c.ld;
    size_t cols = fault == FAULT_dropped_bound ? round_up(product->n) : product->n;
    for (size_t row = 0; row < product->m; row++) {
        for (size_t col = 0; col < cols; col++) {
            if (fault == FAULT_unwritten_element && row + 1 == product->m && col + 1 == product->n)
                continue;
            float sum = dot(product, fault, row, col < product->n ? col : product->n - 1);
            c[row * ld + col] = fault == FAULT_added ? c[row * ld + col] + sum : sum;
        }
    }
    if (fault == FAULT_wrote_behind_operand && product->k > 0)
        ((float *)product->a.data)[product->a.rows * product->a.ld] = 0.0F;
    if (fault == FAULT_wrote_before)
        c[-1] = 0.0F;
    static unsigned runs;
    if (fault == FAULT_unsteady && runs++ % 2 == 1)
        c[0] = nextafterf(c[0], 0.0F);
    return MM_OK;
}

#define X(name, summary)                                                                                     \
    static enum mm_status launch_##name(const struct mm_product *product, struct mm_lane *lane,              \
                                        struct mm_error *error) {                                            \
        (void)lane;                                                                                          \
        return multiply(product, FAULT_##name, error);                                                       \
    }
BROKEN_CPU_ROWS(X)
#undef X

static const unsigned tiles[] = {4, 8, 0};

const struct mm_variant mm_broken_cpu[] = {
#define X(row, row_summary)                                                                                  \
    {.name = #row,                                                                                           \
     .summary = row_summary,                                                                                 \
     .dtypes = MM_DTYPE_BIT(MM_FLOAT32),                                                                     \
     .tile = FAULT_##row == FAULT_lost_last_tile ? 8 : 0,                                                    \
     .tiles = FAULT_##row == FAULT_lost_last_tile ? tiles : NULL,                                            \
     .multiple_of = FAULT_##row == FAULT_not_refused ? SLAB : 0,                                             \
     .launch = launch_##row},
    BROKEN_CPU_ROWS(X)
#undef X
};
const size_t mm_broken_cpu_count = sizeof mm_broken_cpu / sizeof *mm_broken_cpu;
