/* Tests operands generated in host memory, at once and in parts. */
#include "gpu/matrix/random.h"
#include "gpu/matrix/source.h"
#include "tests/unit/unit.h"

enum { ELEMENTS_MAX = 1000 };

static uint64_t memory[ELEMENTS_MAX + 1];

static void expect_operand(const struct mm_source *source, enum mm_dtype dtype, size_t rows, size_t cols,
                           size_t piece) {
    const struct mm_matrix view = mm_matrix_dense(dtype, rows, cols, memory);
    const size_t bytes = mm_matrix_bytes(&view);
    memset(memory, 0xa5, sizeof memory);
    for (size_t first = 0; first < rows * cols; first += piece)
        (void)mm_source_generate(source, &view, first, mm_size_min(piece, rows * cols - first), NULL);
    for (size_t index = 0; index < rows * cols; index++) {
        const bool is_one = index / cols % source->rows == index % cols;
        const double expected =
            source->kind == MM_SOURCE_UNIFORM ? mm_random_number(dtype, source->seed, index) : is_one;
        if (mm_dtype_get(dtype, memory, index) != expected)
            fail_msg("element %zu of %zux%zu %s", index, rows, cols, mm_dtype_name(dtype));
    }
    assert_int_equal(((unsigned char *)memory)[bytes], 0xa5);
}

static void each_element_depends_only_on_its_position(void **state) {
    static const size_t shapes[][2] = {{4, 5}, {10, 3}, {2, 1}, {6, 100}, {0, 7}};
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < COUNT(shapes); index++)
            for (size_t piece = 1; piece < 1000; piece = piece * 3 + 1) {
                const size_t rows = shapes[index][0], cols = shapes[index][1];
                struct mm_source source = {MM_SOURCE_UNIFORM, UINT64_MAX - index, rows / 2};
                expect_operand(&source, dtype, rows, cols, piece);
                source.kind = MM_SOURCE_IDENTITY;
                expect_operand(&source, dtype, rows, cols, piece);
            }
}

RUN_TESTS(each_element_depends_only_on_its_position)
