/* Tests which results a benchmark finds wrong, and that its check can be cancelled between slices. */
#include "tests/kernels/benchmark_wrong.h"
#include "gpu/matrix/random.h"
#include "gpu/store/store.h"
#include "lab.h"

#include <math.h>

/* Upper estimate of the error of a float32 sum of k random terms. Each addition has a random rounding error,
 * so the error grows like √k. */
static double error_of_float32(size_t k) {
    return 0x1p-24 * sqrt((double)k / 6.0);
}

static bool is_between(double low, double value, double high) {
    return low < value && value < high;
}

/* With such a large k, zeros are within the error bound. Only the relative error shows that C is wrong. */
static void useless_error_bounds_are_not_reported(void **state) {
    const size_t k = (size_t)1 << 18;
    const struct mm_benchmark_request request = lab_product(2, k, 20, 1, "naive no_slab nothing");
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_int_equal(rows[0].error.status, MM_OK);
    assert_true(isnan(rows[0].max_error) && isnan(rows[1].max_error));
    assert_true(is_between(0.0, rows[0].relative_error, 3.0 * error_of_float32(k)));
    assert_true(rows[1].relative_error > 1e-4);
    assert_true(isinf(rows[2].max_error) && isinf(rows[2].relative_error));
}

/* With such a large k, an element of float16 that is not finite could have overflowed. Random sums are
 * smaller, so C is wrong. */
static void random_sums_never_overflow(void **state) {
    struct mm_benchmark_request request = lab_product(2, (size_t)1 << 18, 2, 1, "naive nothing");
    request.dtype = request.c_dtype = MM_FLOAT16;
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_true(rows[0].relative_error < 1e-3 && isinf(rows[1].relative_error));
}

/* The correct row runs first, so its result is in memory when the wrong rows run. */
static void wrong_results_are_found(void **state) {
    static const size_t shapes[][3] = {{16, 16, 16}, {33, 7, 65}, {300, 200, 400}, {1, 64, 1}};
    for (size_t shape = 0; shape < COUNT(shapes); shape++) {
        const struct mm_benchmark_request request = lab_product(
            shapes[shape][0], shapes[shape][1], shapes[shape][2], 1, "naive no_corner no_slab nothing naive");
        const struct mm_benchmark_row *rows = lab_run(&request);
        for (size_t row = 0; row < 5; row++)
            assert_true((row == 0 || row == 4) == (rows[row].max_error <= 1.0) &&
                        (row == 0 || row == 4) == (rows[row].relative_error < 1e-6));
        assert_true(isinf(rows[1].max_error) && isinf(rows[3].max_error));
        assert_true(isinf(rows[1].relative_error) && isinf(rows[3].relative_error));
    }
}

/* Elements that no kernel wrote are found in every type. If a kernel ignores only the last element of each
 * sum, the error may be within the bound of tensor cores. */
static void wrong_results_of_every_type_are_found(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT; c_dtype++) {
            if ((mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0)
                continue;
            struct mm_benchmark_request request =
                lab_product(33, 37, 65, 1, "naive no_corner no_slab nothing naive");
            request.dtype = dtype;
            request.c_dtype = c_dtype;
            request.transpose_a = (dtype + c_dtype) % 2 == 1;
            request.transpose_b = !request.transpose_a;
            const struct mm_benchmark_row *rows = lab_run(&request);
            const double small = 2.0 * mm_dtype_precision(c_dtype).unit + 1e-14;
            for (size_t row = 0; row < 5; row++) {
                assert_int_equal(rows[row].error.status, MM_OK);
                assert_true((row == 0 || row == 4) == (rows[row].relative_error < small + 1e-6));
                assert_int_equal(benchmark_is_wrong(benchmark, &rows[row]), row != 0 && row != 4);
            }
            assert_true(rows[0].max_error <= 1.0 && isinf(rows[1].max_error) && isinf(rows[3].max_error));
            assert_true(rows[2].max_error > 1.0 || mm_dtype_bytes(dtype) <= 2);
        }
}

/* Sums of uint8 are about 16256·k, which overflows int32. */
static void sums_that_wrap_around_are_right(void **state) {
    static const size_t depths[] = {140000, 1000000};
    for (size_t index = 0; index < COUNT(depths); index++) {
        struct mm_benchmark_request request = lab_product(3, depths[index], 5, 1, "naive no_corner no_slab");
        request.dtype = MM_UINT8;
        request.c_dtype = MM_INT32;
        const struct mm_benchmark_row *rows = lab_run(&request);
        assert_true(rows[0].max_error == 0.0 && rows[0].relative_error < 1e-12);
        for (size_t row = 1; row < 3; row++)
            assert_true(isinf(rows[row].max_error) && isinf(rows[row].relative_error));
    }
}

/* The error is between the elements that the check samples. */
static void errors_between_samples_are_found(void **state) {
    enum { EDGE = 512, K = 48 };
    const struct mm_benchmark_request request = lab_product(EDGE, K, EDGE, 1, "no_tile naive");
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_true(rows[0].max_error < 1.0); /* the sample finds nothing */
    assert_true(isinf(rows[0].relative_error));
    assert_true(is_between(1e-9, rows[1].relative_error, 2.0 * error_of_float32(K)));
}

/* Misplaced elements of small types may be right by chance, so the check finds fewer of them. */
static void misplaced_elements_are_found(void **state) {
    enum { M = 300, N = 200 };
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_benchmark_request request =
            lab_transposition(M, N, (enum mm_dtype)dtype, "naive misplaces nothing naive");
        const struct mm_benchmark_row *rows = lab_run(&request);
        for (size_t row = 0; row < 4; row++)
            assert_true(rows[row].relative_error == 0.0);
        assert_true(rows[0].max_error == 0.0 && rows[3].max_error == 0.0);
        const bool is_small = mm_dtype_bytes((enum mm_dtype)dtype) < 4;
        assert_true(rows[1].max_error == 2.0 / (M * N) || (is_small && rows[1].max_error < 2.0 / (M * N)));
        assert_true(rows[2].max_error == 1.0 || (is_small && rows[2].max_error > 0.5));
    }
}

/* If a copy between parts of C fails, the next row begins with the first part again. */
static void failed_copy_fails_its_row(void **state) {
    const struct mm_benchmark_request request = lab_product(512, 4, 512, 1, "naive naive naive");
    lab.failing_copy = 2;
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_int_equal(rows[0].error.status, MM_INTERNAL); /* upload 2 fails before the run */
    assert_int_equal(rows[1].error.status, MM_INTERNAL); /* download 2 fails after the run */
    assert_int_equal(lab.uploads, 2 + 4 + 4);
    assert_int_equal(rows[2].error.status, MM_OK);
    assert_true(rows[2].relative_error < 1e-6);
    assert_int_equal(lab.runs, 1 + 6);
}

/* Each copy takes longer than a slice, so each slice makes one copy. */
static void check_can_be_cancelled_at_any_copy(void **state) {
    enum { PIECES = 4 }; /* parts of 512 · 512 · 4 bytes */
    const struct mm_benchmark_request request = lab_product(512, 4, 512, 1, "naive");
    for (unsigned last = 1; last < 2 * PIECES; last += 2) {
        struct mm_task task = {.work.error.status = MM_STOPPING};
        lab_reset(state);
        lab.copy_ns = (long)MM_TASK_SLICE_NS + 5000000;
        lab_open(&request);
        assert_true(mm_benchmark_next_task(benchmark, &task));
        for (unsigned copies = 0; copies < last; copies = lab.uploads + lab.downloads) {
            assert_int_equal(task.run(&task, &lab_device, false), MM_TASK_AGAIN);
            assert_in_range(lab.uploads + lab.downloads, copies, copies + 1);
        }
        assert_int_equal(lab.uploads, last < PIECES ? last : PIECES);
        assert_int_equal(lab.runs, last > PIECES);
        assert_int_equal(lab.held, 1);
        assert_int_equal(task.run(&task, &lab_device, true), MM_TASK_OVER);
        assert_int_equal(lab.held, 0);
    }
}

/* A stored operand, in host memory or only on a device. */
static struct mm_stored value;
static int unreadable; /* number of reads that will fail */

static enum mm_status read_copy(struct mm_device_copy *copy, const struct mm_window *part,
                                enum mm_dtype dtype, void *to, struct mm_error *error) {
    if (unreadable > 0 && unreadable-- > 0)
        return mm_fail(error, MM_DEVICE_FAILED, "simulated device failure");
    mm_window_pack(part, dtype, copy->data, to);
    return MM_OK;
}

/* Operand A becomes the value, and operand B gets random numbers. */
static void give(struct mm_benchmark_request *request, void *elements, bool is_only_copy) {
    static struct mm_device owner;
    static struct mm_device_copy copy;
    const bool is_turned = request->transpose_a && request->op == MM_MATMUL;
    const size_t depth = request->op == MM_MATMUL ? request->k : request->n;
    copy = (struct mm_device_copy){.device = &owner, .data = elements, .read = read_copy};
    value = (struct mm_stored){.shape = is_turned ? mm_shape_of_matrix(depth, request->m)
                                                  : mm_shape_of_matrix(request->m, depth),
                               .dtype = request->dtype,
                               .data = is_only_copy ? NULL : elements,
                               .only_copy = is_only_copy ? &copy : NULL};
    request->sources[MM_OPERAND_A] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value};
    if (request->op == MM_MATMUL)
        request->sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_UNIFORM, .seed = 7};
    lab.a = elements;
}

/* Fills with elements of any size: random bits for integers, any exponent for floats. */
static void fill_all_bits(uint64_t *elements, enum mm_dtype dtype, size_t count) {
    for (size_t index = 0; index < count; index++) {
        const uint64_t bits = mm_random_bits(99, index);
        if (mm_dtype_is_float(dtype))
            mm_dtype_put(dtype, elements, index, (index % 3 + 1) * mm_random_number(dtype, 98, index));
        else if (dtype == MM_BOOL)
            ((unsigned char *)elements)[index] = bits >> 63;
        else
            memcpy((char *)elements + index * mm_dtype_bytes(dtype), &bits, mm_dtype_bytes(dtype));
    }
}

static void wrong_results_of_given_operands_are_found(void **state) {
    enum { M = 33, K = 37, N = 65 };
    static uint64_t elements[M * K];
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT; c_dtype++) {
            if ((mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0)
                continue;
            for (int layout = 0; layout < 4; layout++) {
                struct mm_benchmark_request request =
                    lab_product(M, K, N, 1, "naive no_corner nothing naive");
                request.dtype = dtype;
                request.c_dtype = c_dtype;
                request.transpose_a = layout % 2 == 1;
                request.transpose_b = layout / 2 == 1;
                fill_all_bits(elements, dtype, M * K);
                give(&request, elements, layout == 3);
                lab_device.l2_bytes = 100000; /* several sets, all with the same A */
                const struct mm_benchmark_row *rows = lab_run(&request);
                for (size_t row = 0; row < 4; row++) {
                    assert_int_equal(rows[row].error.status, MM_OK);
                    assert_true(rows[row].set_count > 1);
                    assert_int_equal(benchmark_is_wrong(benchmark, &rows[row]), row == 1 || row == 2);
                }
                assert_true(rows[0].max_error <= 1.0 && isinf(rows[1].max_error));
            }
        }
}

static struct mm_benchmark_request product_with_epilogue(enum mm_dtype dtype, enum mm_dtype c_dtype,
                                                         enum mm_activation activation) {
    struct mm_benchmark_request request = lab_product(9, 37, 33, 1, "naive no_corner no_bias naive");
    const enum mm_dtype sum = mm_dtype_sum(dtype);
    request.dtype = dtype;
    request.c_dtype = c_dtype;
    request.transpose_a = activation % 2 == 1;
    request.transpose_b = !request.transpose_a;
    request.epilogue = (struct mm_epilogue){
        .is_set = true, .activation = activation, .alpha = mm_scale_of(sum, 2), .beta = mm_scale_of(sum, -3)};
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        request.sources[index] = (struct mm_source){.kind = MM_SOURCE_UNIFORM, .seed = index};
    return request;
}

/* Skips activations that integers lack. If a kernel ignores the bias, the error may be within the wide bounds
 * of float8. */
static void wrong_results_of_epilogues_are_found(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT; c_dtype++)
            for (enum mm_activation activation = 0; activation < MM_ACTIVATION_COUNT; activation++) {
                if ((mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0 ||
                    (activation > MM_ACTIVATION_RELU && !mm_dtype_is_float(dtype)))
                    continue;
                const struct mm_benchmark_request request = product_with_epilogue(dtype, c_dtype, activation);
                const struct mm_benchmark_row *rows = lab_run(&request);
                for (size_t row = 0; row < 4; row++) {
                    assert_int_equal(rows[row].error.status, MM_OK);
                    assert_int_equal(isnan(rows[row].relative_error), activation != MM_ACTIVATION_NONE);
                    if (row != 2 || mm_dtype_bytes(dtype) > 1 || !mm_dtype_is_float(dtype))
                        assert_int_equal(rows[row].max_error > 1.0, row == 1 || row == 2);
                }
            }
}

/* Removes each operand of the epilogue, then sets an element of it to infinity. With an activation, sums that
 * are not finite are not checked. */
static void epilogues_may_lack_operands(void **state) {
    static float elements[9 * 37];
    for (enum mm_activation activation = 0; activation < MM_ACTIVATION_COUNT; activation++)
        for (unsigned index = MM_OPERAND_ADDEND; index < MM_OPERANDS_MAX; index++) {
            struct mm_benchmark_request request = product_with_epilogue(MM_FLOAT32, MM_FLOAT32, activation);
            lab.a = NULL;
            request.sources[index].kind = MM_SOURCE_HOST;
            const struct mm_benchmark_row *rows = lab_run(&request);
            assert_true(rows[0].max_error < 1.0 && rows[1].max_error > 1.0);
            elements[0] = INFINITY;
            give(&request, elements, false);
            rows = lab_run(&request);
            assert_int_equal(isnan(rows[0].max_error), activation != MM_ACTIVATION_NONE);
        }
}

/* A and B are so large that the check needs many steps. Either C has rows longer than a part, or C has many
 * parts. */
static void given_operands_are_checked_in_steps(void **state) {
    enum { FEW = 2, K = 5, MANY = 100000 };
    static float elements[MANY * K];
    for (unsigned layout = 0; layout < 8; layout++) {
        const bool is_wide = layout / 4 == 0;
        struct mm_benchmark_request request =
            lab_product(is_wide ? FEW : MANY, K, is_wide ? MANY : FEW, 1, "naive no_corner");
        request.transpose_a = layout % 2 == 1;
        request.transpose_b = layout / 2 % 2 == 1;
        for (size_t index = 0; index < MANY * K; index++)
            elements[index] = (float)(index % 100);
        give(&request, elements, false);
        lab.uploads = 0;
        const struct mm_benchmark_row *rows = lab_run(&request);
        assert_true(rows[0].max_error < 1.0 && rows[0].relative_error < 1e-6);
        assert_true(isinf(rows[1].max_error) && isinf(rows[1].relative_error));
        /* One upload for the set, and one for each part of C in each row. A part has at most 32768 rows. */
        assert_int_equal(lab.uploads, 1 + 2 * (is_wide ? FEW : 4));
    }
}

/* A row of A with NaN or Inf cannot be checked. If A has only such rows, the product is not checked. */
static void rows_that_are_not_finite_are_not_checked(void **state) {
    float elements[] = {INFINITY, 1.0F, 2.0F, NAN, 3.0F, 4.0F};
    struct mm_benchmark_request request = lab_product(2, 3, 40, 1, "naive no_corner");
    give(&request, elements, false);
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_true(isnan(rows[0].max_error) && isnan(rows[0].relative_error));
    elements[3] = 5.0F;
    rows = lab_run(&request);
    assert_true(rows[0].max_error < 1.0 && rows[0].relative_error < 1e-6);
    assert_true(isinf(rows[1].max_error));
}

/* Also tests operands in which all bits are set. */
static void misplaced_elements_of_given_operands_are_found(void **state) {
    enum { M = 30, N = 20 };
    static uint64_t elements[M * N];
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (int is_ones = 0; is_ones < 2; is_ones++) {
            struct mm_benchmark_request request = lab_transposition(M, N, dtype, "naive misplaces nothing");
            fill_all_bits(elements, dtype, M * N);
            if (is_ones)
                memset(elements, 0xff, sizeof elements);
            give(&request, elements, is_ones);
            const struct mm_benchmark_row *rows = lab_run(&request);
            assert_true(rows[0].error.status == MM_OK && rows[0].max_error == 0.0);
            assert_true(is_ones || dtype == MM_BOOL || rows[1].max_error > 0.0);
            assert_true(rows[2].max_error > 0.9);
        }
}

/* If a backend cannot read the operand, only the rows of this backend fail. The next backend reads the
 * operand again. */
static void unreadable_operands_are_read_again(void **state) {
    float elements[16 * 16];
    struct mm_benchmark_request request = lab_product(16, 16, 16, 1, "naive naive");
    request.subjects[0].backend = &lab_host_backend;
    fill_all_bits((uint64_t *)(void *)elements, MM_FLOAT32, COUNT(elements));
    give(&request, elements, true);
    lab_open(&request);
    unreadable = 1;
    assert_true(lab_run_next(&lab_host));
    assert_true(lab_run_next(&lab_device));
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].error.status, MM_DEVICE_FAILED);
    assert_true(rows[1].error.status == MM_OK && rows[1].max_error < 1.0);
}

RUN_TESTS_BETWEEN(lab_reset, lab_close, wrong_results_are_found, wrong_results_of_every_type_are_found,
                  sums_that_wrap_around_are_right, errors_between_samples_are_found,
                  wrong_results_of_given_operands_are_found, wrong_results_of_epilogues_are_found,
                  epilogues_may_lack_operands, given_operands_are_checked_in_steps,
                  rows_that_are_not_finite_are_not_checked, misplaced_elements_of_given_operands_are_found,
                  unreadable_operands_are_read_again, useless_error_bounds_are_not_reported,
                  random_sums_never_overflow, misplaced_elements_are_found, failed_copy_fails_its_row,
                  check_can_be_cancelled_at_any_copy)
