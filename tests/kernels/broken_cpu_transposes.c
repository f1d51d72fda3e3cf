/* Transpositions that are wrong on purpose: each is the plain loop with one fault that real kernels have had.
 * The harness must find every one. */
#include "tests/kernels/broken.h"

#include <stdint.h>
#include <string.h>

/* One row a fault. */
#define BROKEN_CPU_TRANSPOSES(X)                                                                             \
    X(dropped_bound, "writes columns up to a multiple of 8, whatever n is")                                  \
    X(wrong_stride, "takes n for the stride of C")                                                           \
    X(wrong_operand_stride, "takes its columns for the stride of A")                                         \
    X(lost_last_tile, "leaves out what n has over a multiple of 8")                                          \
    X(unwritten_element, "leaves the last element of C as it was")                                           \
    X(mirrored, "gives C's rows in reverse where m is a multiple of 32")                                     \
    X(never_turned, "gives A as it is stored, as far as that has the shape")                                 \
    X(always_turned, "turns an A that lies there as op(A), too")                                             \
    X(half_moved, "moves the first 4 bytes of each element")                                                 \
    X(moved_as_number, "adds 0 to each element on its way")                                                  \
    X(aligned_operand, "takes A's address for a multiple of 16")                                             \
    X(aligned_result, "takes C's address for a multiple of 16")                                              \
    X(wrote_behind_operand, "writes a word behind A")                                                        \
    X(wrote_before, "writes a word in front of C")                                                           \
    X(unsteady, "changes the last bit of the first element from run to run")                                 \
    X(refused, "refuses an m over 8, which its row does not say")

enum fault {
#define X(name, summary) FAULT_##name,
    BROKEN_CPU_TRANSPOSES(X)
#undef X
};

enum { EDGE = 8, MIRRORED_EDGE = 32, ALIGNMENT = 16 };

static char *align_down(char *address) {
    return address - (uintptr_t)address % ALIGNMENT;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The address of element (row, col) of op(A), as the fault sees it; of a stored element in any case. */
static const char *element(const struct mm_product *product, enum fault fault, size_t row, size_t col) {
    const struct mm_matrix *a = &product->a;
    const size_t element_bytes = mm_dtype_bytes(a->dtype);
    size_t ld = fault == FAULT_wrong_operand_stride ? a->cols : a->ld;
    bool turned = (product->transpose_a && fault != FAULT_never_turned) || fault == FAULT_always_turned;
    size_t stored_row = smaller(turned ? col : row, a->rows - 1);
    size_t stored_col = smaller(turned ? row : col, a->cols - 1);
    char *data = fault == FAULT_aligned_operand ? align_down(a->data) : a->data;
    return data + (stored_row * ld + stored_col) * element_bytes;
}

static void move(char *to, const char *from, size_t element_bytes, enum fault fault) {
    double number;
    float narrow;
    if (fault != FAULT_moved_as_number) {
        memcpy(to, from, fault == FAULT_half_moved ? sizeof narrow : element_bytes);
    } else if (element_bytes == sizeof number) {
        memcpy(&number, from, sizeof number);
        number += 0.0;
        memcpy(to, &number, sizeof number);
    } else {
        memcpy(&narrow, from, sizeof narrow);
        narrow += 0.0F;
        memcpy(to, &narrow, sizeof narrow);
    }
}

static void move_all(const struct mm_product *product, enum fault fault) {
    const size_t element_bytes = mm_dtype_bytes(product->c.dtype);
    const size_t m = product->m;
    const size_t n = product->n;
    char *c = fault == FAULT_aligned_result ? align_down(product->c.data) : product->c.data;
    size_t ld = fault == FAULT_wrong_stride ? n : product->c.ld;
    size_t cols = n;
    if (fault == FAULT_dropped_bound)
        cols = (n + EDGE - 1) / EDGE * EDGE;
    if (fault == FAULT_lost_last_tile)
        cols = n / EDGE * EDGE;
    for (size_t row = 0; row < m; row++) {
        size_t from = fault == FAULT_mirrored && m % MIRRORED_EDGE == 0 ? m - 1 - row : row;
        for (size_t col = 0; col < cols; col++)
            if (fault != FAULT_unwritten_element || row + 1 < m || col + 1 < n)
                move(c + (row * ld + col) * element_bytes, element(product, fault, from, smaller(col, n - 1)),
                     element_bytes, fault);
    }
}

static enum mm_status transpose(const struct mm_product *product, enum fault fault, struct mm_error *error) {
    if (fault == FAULT_refused && product->m > EDGE)
        return mm_fail(error, MM_UNSUPPORTED, "m is %zu", product->m);
    move_all(product, fault);
    if (fault == FAULT_wrote_behind_operand)
        memset((char *)product->a.data + mm_matrix_bytes(&product->a), 0, 4);
    if (fault == FAULT_wrote_before)
        memset((char *)product->c.data - 4, 0, 4);
    static unsigned runs;
    if (fault == FAULT_unsteady && runs++ % 2 == 1)
        *(unsigned char *)product->c.data ^= 1;
    return MM_OK;
}

#define X(name, summary)                                                                                     \
    static enum mm_status launch_##name(const struct mm_product *product, struct mm_lane *lane,              \
                                        struct mm_error *error) {                                            \
        (void)lane;                                                                                          \
        return transpose(product, FAULT_##name, error);                                                      \
    }
BROKEN_CPU_TRANSPOSES(X)
#undef X

const struct mm_variant mm_broken_cpu_transposes[] = {
#define X(row, row_summary)                                                                                  \
    {.name = #row,                                                                                           \
     .summary = row_summary,                                                                                 \
     .op = MM_TRANSPOSE,                                                                                     \
     .dtypes = MM_DTYPES_MOVED,                                                                              \
     .launch = launch_##row},
    BROKEN_CPU_TRANSPOSES(X)
#undef X
};
const size_t mm_broken_cpu_transpose_count =
    sizeof mm_broken_cpu_transposes / sizeof *mm_broken_cpu_transposes;
