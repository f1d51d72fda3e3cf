/* Tests which benchmark requests are accepted. The tests in tests/http check the replies. */
#include "api/call.h"
#include "api/lab/benchmark.h"
#include "tests/unit/unit.h"

static const struct mm_limits limits = {
    .dimension_max = 100000, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 30};

/* The result or the error of the last request that was decoded. */
static struct mm_benchmark_call call;
static struct mm_error told;

static enum mm_status decode(const char *text) {
    text = quoted(text);
    memset(&told, 0, sizeof told);
    return mm_benchmark_decode(text, strlen(text), &limits, NULL, &call, &told);
}

static void expect_shape(enum mm_op op, size_t m, size_t k, size_t n) {
    assert_int_equal(call.request.op, op);
    assert_true(call.request.m == m && call.request.k == k && call.request.n == n);
}

static void defaults(void **state) {
    assert_int_equal(decode("{`m`: 3, `k`: 100000, `n`: 1}"), MM_OK);
    expect_shape(MM_MATMUL, 3, 100000, 1);
    assert_int_equal(call.request.dtype, MM_FLOAT32);
    assert_int_equal(call.request.repeats, 20);
    assert_int_equal(call.timeout_ms + call.name_count, 0);
    assert_true(!call.request.transpose_a && !call.request.transpose_b);
    assert_int_equal(decode("{`op`: `transpose`, `m`: 3, `n`: 7}"), MM_OK);
    expect_shape(MM_TRANSPOSE, 3, 0, 7);
}

static void all_members(void **state) {
    static const struct mm_benchmark_name expected[] = {
        {"auto", "naive", 0}, {"cpu", "tiled_8", 0}, {"auto", "dynamic", 64}, {"cuda", "dynamic", 999999999}};
    assert_int_equal(decode("{`repeats`: 7, `variants`: [`naive`, `cpu:tiled_8`, `dynamic/64`, "
                            "`cuda:dynamic/999999999`], `timeout_ms`: 5000000000, `dtype`: `int64`, "
                            "`n`: 4e1, `m`: 2.0, `op`: `transpose`}"),
                     MM_OK);
    expect_shape(MM_TRANSPOSE, 2, 0, 40);
    assert_int_equal(call.request.dtype, MM_INT64);
    assert_int_equal(call.request.repeats, 7);
    assert_true(call.timeout_ms == 5000000000);
    assert_int_equal(call.name_count, 4);
    for (size_t index = 0; index < 4; index++) {
        assert_string_equal(call.names[index].backend, expected[index].backend);
        assert_string_equal(call.names[index].variant, expected[index].variant);
        assert_int_equal(call.names[index].tile, expected[index].tile);
    }
}

/* An operand that the request does not name is uniform(0). */
static void operands(void **state) {
    assert_int_equal(decode("{`b`: {`from`: `identity()`}, `m`: 2, `k`: 3, `n`: 4, `transpose_b`: true}"),
                     MM_OK);
    expect_shape(MM_MATMUL, 2, 3, 4);
    assert_int_equal(call.request.sources[MM_OPERAND_A].kind, MM_SOURCE_UNIFORM);
    assert_int_equal(call.request.sources[MM_OPERAND_A].seed, 0);
    assert_int_equal(call.request.sources[MM_OPERAND_B].kind, MM_SOURCE_IDENTITY);
    assert_int_equal(call.request.sources[MM_OPERAND_B].rows, 4); /* b is stored transposed, as 4×3 */
    assert_int_equal(decode("{`a`: {`from`: `uniform(7)`}, `m`: 2, `n`: 4, `op`: `transpose`}"), MM_OK);
    expect_shape(MM_TRANSPOSE, 2, 0, 4);
    assert_int_equal(call.request.sources[MM_OPERAND_A].seed, 7);
    assert_int_equal(decode("{`m`: 2, `k`: 3, `n`: 4}"), MM_OK);
    assert_true(call.request.sources[MM_OPERAND_A].kind == MM_SOURCE_HOST &&
                call.request.sources[MM_OPERAND_B].kind == MM_SOURCE_HOST);
}

/* Operands that the request does not name have different seeds. If beta is 0 or missing, there is no
 * addend. */
static void epilogues(void **state) {
    const struct mm_benchmark_request *request = &call.request;
    assert_int_equal(decode("{`epilogue`: {`alpha`: -2, `beta`: 0.5, `bias`: true, `activation`: `silu`}, "
                            "`m`: 2, `k`: 3, `n`: 4, `dtype`: `float16`, `transpose_b`: true}"),
                     MM_OK);
    expect_shape(MM_MATMUL, 2, 3, 4);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        assert_true(request->sources[index].kind == MM_SOURCE_UNIFORM &&
                    request->sources[index].seed == index);
    assert_true(request->epilogue.is_set && request->epilogue.activation == MM_ACTIVATION_SILU);
    assert_true(request->epilogue.alpha.of_float == -2.0F && request->epilogue.beta.of_float == 0.5F);
    assert_int_equal(decode("{`epilogue`: {`beta`: 0, `alpha`: 3}, `a`: {`from`: `identity()`}, "
                            "`m`: 2, `k`: 3, `n`: 4, `dtype`: `int64`}"),
                     MM_OK);
    assert_true(request->epilogue.is_set && request->epilogue.alpha.of_uint64_t == 3);
    assert_true(request->sources[MM_OPERAND_B].kind == MM_SOURCE_UNIFORM &&
                request->sources[MM_OPERAND_B].seed == 0 &&
                request->sources[MM_OPERAND_ADDEND].kind == MM_SOURCE_HOST &&
                request->sources[MM_OPERAND_BIAS].kind == MM_SOURCE_HOST);
    assert_int_equal(decode("{`epilogue`: {}, `m`: 2, `k`: 3, `n`: 4}"), MM_OK);
    assert_false(request->epilogue.is_set);
}

static void types_of_products(void **state) {
    assert_int_equal(decode("{`m`: 2, `k`: 3, `n`: 4, `dtype`: `uint8`}"), MM_OK);
    assert_true(call.request.dtype == MM_UINT8 && call.request.c_dtype == MM_INT32);
    assert_int_equal(decode("{`m`: 2, `k`: 3, `n`: 4, `dtype`: `float16`, `result_dtype`: `float32`}"),
                     MM_OK);
    assert_true(call.request.dtype == MM_FLOAT16 && call.request.c_dtype == MM_FLOAT32);
}

#define ONES "{`m`: 1, `k`: 1, `n`: 1, "

/* The error quotes a large number unchanged. */
static void large_repeats(void **state) {
    assert_int_equal(decode(ONES "`repeats`: 4294967297}"), MM_OK);
    assert_true(call.request.repeats == 4294967297);
    assert_int_equal(decode(ONES "`repeats`: 1e300}"), MM_OK);
    assert_true(call.request.repeats == MM_PARAMETER_WHOLE_MAX);
    assert_int_equal(decode(ONES "`repeats`: 1e999}"), MM_OK);
    assert_true(call.request.repeats == MM_PARAMETER_WHOLE_MAX);
}

#define ACCESS "{`op`: `shared_access`, "
#define OCCUPANCY "{`op`: `occupancy`, "

static void malformed_requests_are_refused(void **state) {
    static const struct {
        const char *text, *field, *words;
        enum mm_status status; /* expected status; if omitted, MM_BAD_REQUEST */
    } cases[] = {
        {"", "", "the body is empty"},
        {"[]", "", "has '[' at line 1, column 1, but must have an object like {"},
        {"{`m`: 1,\n `k` 1}", "", "line 2"},
        {"{`m`: 1, `m`: 1, `k`: 1, `n`: 1}", "m", "m is given twice"},
        {"{}", "m", "m is missing"},
        {"{`m`: 1, `n`: 1}", "k", "k is missing"},
        {"{`op`: `transpose`, `m`: 1}", "n", "n is missing"},
        {"{`op`: `transpose`, `m`: 1, `n`: 1, `k`: 1}", "k",
         "'k' is unknown in the body, which takes: a, dtype, timeout_ms, op, m, n, repeats, variants"},
        {"{`op`: `transpose`, `m`: 1, `n`: 1, `transpose_a`: false}", "transpose_a",
         "'transpose_a' is unknown in the body, which takes: a, dtype,"},
        {"{`op`: `shared_access`, `transpose_b`: true}", "transpose_b", "'transpose_b'"},
        {ONES "`transpose_a`: 1}", "transpose_a", "transpose_a is 1, but must be true or false"},
        {ONES "`transpose_b`: `true`}", "transpose_b", "is the string \"true\""},
        {ONES "`colour`: `red`}", "colour",
         "which takes: a, b, dtype, result_dtype, transpose_a, transpose_b, timeout_ms, op, m, k, n, "
         "repeats, "
         "variants, epilogue"},
        {ONES "`epilogue`: []}", "epilogue", "epilogue is an empty array, but must be an object, like {"},
        {ONES "`epilogue`: {`gamma`: 1}}", "gamma", "takes: alpha, beta, bias, activation"},
        {ONES "`epilogue`: {`bias`: false, `bias`: false}}", "bias", "bias is given twice"},
        {ONES "`epilogue`: {`alpha`: `1`}}", "alpha", "alpha is the string \"1\", but must be a number"},
        {ONES "`epilogue`: {`beta`: 1e39}}", "beta", "a finite number of type float32"},
        {ONES "`dtype`: `int8`, `epilogue`: {`beta`: 0.5}}", "beta", "a whole number of type int32"},
        {ONES "`dtype`: `int8`, `epilogue`: {`activation`: `tanh`}}", "activation", "only none and relu",
         MM_UNSUPPORTED},
        {ONES "`alpha`: 2}", "alpha", "'alpha' is unknown in the body"},
        {"{`op`: `transpose`, `m`: 1, `n`: 1, `epilogue`: {}}", "epilogue", "'epilogue' is unknown"},
        {ONES "`a`: [[1]]}", "a", "a is an array, but must be an object with 'from' alone"},
        {ONES "`b`: {}}", "b", "b is an object, but must be an object with 'from' alone"},
        {ONES "`a`: {`from`: `identity()`, `x`: 1}}", "a", "an object with 'from' alone"},
        {ONES "`a`: {`from`: `identity()`, `from`: `identity()`}}", "a", "an object with 'from' alone"},
        {ONES "`a`: {`of`: `identity()`}}", "a", "an object with 'from' alone"},
        {ONES "`a`: {`from`: [`identity()`]}}", "a.from", "a.from is an array, but must be a string"},
        {ONES "`a`: {`from`: `identity()`}, `a`: {`from`: `identity()`}}", "a", "a is given twice"},
        {"{`a`: {`from`: `identity()`}, `n`: 1}", "m", "m is missing; send"},
        {"{`b`: {`from`: `identity()`}, `m`: 1, `k`: 1}", "n", "n is missing; send"},
        {"{`a`: {`from`: `nothing`}, `m`: 1, `k`: 1}", "n", "n is missing"},
        {"{`op`: `transpose`, `m`: 1, `n`: 1, `b`: {`from`: `identity()`}}", "b", "'b' is unknown"},
        {"{`b`: {`from`: `nothing`}, `m`: 1}", "b.from", "stores no matrices (--store-memory 0)",
         MM_UNSUPPORTED},
        {ONES "`b`: {`from`: `uniform(x)`}}", "b.from", "b.from is 'uniform(x)', but must be",
         MM_UNSUPPORTED},
        {"{`m`: 0, `k`: 1, `n`: 1}", "m", "m is 0, but must be a whole number of at least 1"},
        {"{`m`: 1.5, `k`: 1, `n`: 1}", "m", "is 1.5"},
        {"{`m`: `1`, `k`: 1, `n`: 1}", "m", "the string \"1\""},
        {"{`m`: -1e999, `k`: 1, `n`: 1}", "m", "beyond -1.79769313e+308"},
        {ONES "`repeats`: 0}", "repeats", "at least 1"},
        {ONES "`timeout_ms`: 0.5}", "timeout_ms", "0.5"},
        {ONES "`dtype`: 32}", "dtype", "a string"},
        {ONES "`op`: 1}", "op", "a string"},
        {ONES "`variants`: []}", "variants", "a list of names"},
        {ONES "`variants`: `naive`}", "variants", "the string"},
        {ONES "`variants`: [`naive`, 1]}", "variants", "variants[1] is 1, but must be a name"},
        {ONES "`variants`: [``]}", "variants", "variants[0]"},
        {ONES "`variants`: [`:naive`]}", "variants", "\":naive\""},
        {ONES "`variants`: [`cpu:`]}", "variants", "\"cpu:\""},
        {ONES "`variants`: [`/8`]}", "variants", "\"/8\""},
        {ONES "`variants`: [`a/`]}", "variants", "\"a/\""},
        {ONES "`variants`: [`a/0`]}", "variants", "\"a/0\""},
        {ONES "`variants`: [`a/8x`]}", "variants", "\"a/8x\""},
        {ONES "`variants`: [`a/1234567890`]}", "variants", "\"a/"},
        {"{`m`: 100001, `k`: 1, `n`: 1}", "m", "m is 100001, but the limit is 100000 (--max-dimension)",
         MM_TOO_LARGE},
        {"{`m`: 4294967297, `k`: 1, `n`: 1}", "m", "m is 4294967297, but", MM_TOO_LARGE},
        {"{`m`: -4294967297, `k`: 1, `n`: 1}", "m", "is -4294967297"},
        {"{`m`: 1, `k`: 1, `n`: 1e999}", "n",
         "n is beyond 1.79769313e+308 (overflow), but the limit is 100000 (--max-dimension)", MM_TOO_LARGE},
        {"{`m`: 100001, `k`: 1, `n`: 0}", "n", "at least 1"},
        {ONES "`op`: `add`}", "op",
         "op is 'add', but must be one of: matmul, transpose, shared_access, occupancy", MM_UNSUPPORTED},
        {ONES "`dtype`: `int3`}", "dtype", "one of: float32, float64, ", MM_UNSUPPORTED},
        {ONES "`dtype`: `float64`, `result_dtype`: `float16`}", "result_dtype",
         "must be one of: float32, float64", MM_UNSUPPORTED},
        {"{`op`: `transpose`, `m`: 3, `n`: 7, `result_dtype`: `float32`}", "result_dtype", "is unknown"},
        {"{`op`: `shared_access`, `m`: 1}", "m", "'m'"},
        {"{`op`: `shared_access`, `timeout_ms`: 0}", "timeout_ms", "0"},
        {ONES "`patterns`: `linear`}", "patterns", "'patterns'"},
        {OCCUPANCY "`registers_per_thread`: 1}", "threads_per_block", "threads_per_block is missing; send"},
        {OCCUPANCY "`threads_per_block`: 1}", "registers_per_thread",
         "registers_per_thread is missing; send"},
        {OCCUPANCY "`threads_per_block`: 0}", "threads_per_block",
         "is 0, but must be whole numbers from 1 to 1024"},
        {OCCUPANCY "`threads_per_block`: [32, 1025]}", "threads_per_block", "has 1025"},
        {OCCUPANCY "`threads_per_block`: []}", "threads_per_block", "is an empty array"},
        {OCCUPANCY "`registers_per_thread`: 0}", "registers_per_thread", "is 0"},
        {OCCUPANCY "`registers_per_thread`: 256}", "registers_per_thread", "is 256"},
        {OCCUPANCY "`registers_per_thread`: `32`}", "registers_per_thread", "is the string `32`"},
        {OCCUPANCY "`shared_bytes`: -1}", "shared_bytes", "is -1"},
        {OCCUPANCY "`shared_bytes`: 1048577}", "shared_bytes", "is 1048577"},
        {OCCUPANCY "`shared_bytes`: 0.5}", "shared_bytes", "is 0.5"},
        {OCCUPANCY "`compute_capability`: 9.0}", "compute_capability",
         "is 9, but must be a string like `9.0`"},
        {OCCUPANCY "`compute_capability`: [`9.0`, null]}", "compute_capability", "has null"},
        {OCCUPANCY "`compute_capability`: `9`}", "compute_capability",
         "is '9', but must be one of: 7.0, 7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0", MM_UNSUPPORTED},
        {OCCUPANCY "`timeout_ms`: 1}", "timeout_ms",
         "which takes: op, compute_capability, threads_per_block, registers_per_thread, shared_bytes"},
        {ACCESS "`pattern`: `linear`}", "pattern",
         "'pattern' is unknown in the body, which takes: backend, timeout_ms, op, patterns, strides, "
         "word_bytes, "
         "padded, bank_bytes, access, offsets, offset"},
        {ACCESS "`variant`: `tiled_16`}", "variant", "'variant' is unknown in the body"},
        {ACCESS "`patterns`: `Linear`}", "patterns", "is the string `Linear`"},
        {ACCESS "`patterns`: []}", "patterns", "is an empty array"},
        {ACCESS "`patterns`: [`linear`, 5]}", "patterns", "has 5"},
        {ACCESS "`patterns`: [`stride`, `linear`, `stride`]}", "patterns", "has the string `stride` twice"},
        {ACCESS "`patterns`: [`0123456789012345678901234567890123`]}", "patterns",
         "has the string `01234567890123456789012345678901...`"},
        {ACCESS "`strides`: 0}", "strides", "strides is 0, but must be whole numbers from 1 to 32"},
        {ACCESS "`strides`: 33}", "strides", "is 33"},
        {ACCESS "`strides`: 1e300}", "strides", "is 1e+300"},
        {ACCESS "`strides`: `4`}", "strides", "is the string `4`"},
        {ACCESS "`strides`: [4, 8, 4.0]}", "strides", "has 4 twice"},
        {ACCESS "`strides`: [3], `patterns`: [`linear`]}", "strides", "needs the pattern 'stride'"},
        {ACCESS "`word_bytes`: 16}", "word_bytes", "word_bytes is 16, but must be 4, 8 or a list of both"},
        {ACCESS "`word_bytes`: [4, 6]}", "word_bytes", "has 6"},
        {ACCESS "`padded`: 1}", "padded", "padded is 1, but must be true, false or a list of both"},
        {ACCESS "`padded`: [true, true]}", "padded", "has true twice"},
        {ACCESS "`bank_bytes`: 16}", "bank_bytes", "bank_bytes is 16, but must be 4 or 8"},
        {ACCESS "`bank_bytes`: [4, 8]}", "bank_bytes", "is an array, but must be 4 or 8"},
        {ACCESS "`access`: `copy`}", "access", "is the string `copy`, but must be read or write"},
        {ACCESS "`access`: [`read`]}", "access", "is an array"},
        {ACCESS "`backend`: 1}", "backend", "a string"},
        {ACCESS "`offsets`: 1}", "offsets", "is 1, but must be a list of 1 to 32 numbers or nulls"},
        {ACCESS "`offsets`: []}", "offsets", "has no number"},
        {ACCESS "`offsets`: [null, null]}", "offsets", "has no number"},
        {ACCESS "`offsets`: [0, -1]}", "offsets",
         "has -1, but must be whole numbers from 0 to 2047, or null"},
        {ACCESS "`offsets`: [2048]}", "offsets", "has 2048"},
        {ACCESS "`offsets`: [0.5]}", "offsets", "has 0.5"},
        {ACCESS "`offsets`: [[0]]}", "offsets", "has an array"},
        {ACCESS "`offset`: 32}", "offset", "is 32, but must be a whole number from 0 to 31"},
        {ACCESS "`offset`: 1, `offsets`: [0]}", "offsets", "offsets and offset both"},
        {ACCESS "`offsets`: [0], `patterns`: `linear`}", "offsets", "offsets and patterns both"},
        {ACCESS "`strides`: 1, `offsets`: [0]}", "offsets", "offsets and strides both"},
        {ACCESS "`offsets`: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,null]}",
         "offsets", "has more than 32 entries"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const enum mm_status expected = cases[index].status == MM_OK ? MM_BAD_REQUEST : cases[index].status;
        const enum mm_status status = decode(cases[index].text);
        if (status != expected || told.status != status || strcmp(told.field, cases[index].field) != 0 ||
            strstr(told.detail, quoted(cases[index].words)) == NULL)
            fail_msg("%s: %s of '%s': %s", cases[index].text, mm_status_name(status), told.field,
                     told.detail);
        assert_int_equal(told.has_limit, status == MM_TOO_LARGE);
        const char *text = quoted(cases[index].text);
        assert_int_equal(mm_benchmark_decode(text, strlen(text), &limits, NULL, &call, NULL), status);
    }
    static const char zero[] = "{\"m\": 1, \"k\": 1, \"n\": 1\0}";
    assert_int_equal(mm_benchmark_decode(zero, sizeof zero - 1, &limits, NULL, &call, &told), MM_BAD_REQUEST);
}

/* A request without members measures all accesses. */
static void accesses_of_all_patterns(void **state) {
    assert_int_equal(decode("{`op`: `shared_access`}"), MM_OK);
    assert_int_equal(call.probe.count, MM_PROBE_ACCESSES_MAX);
    assert_int_equal(decode(ACCESS "`patterns`: 0}"), MM_BAD_REQUEST);
    for (unsigned pattern = 0; pattern < MM_PATTERN_OFFSETS; pattern++)
        assert_non_null(strstr(told.expected, mm_pattern_name((enum mm_pattern)pattern)));
    assert_string_equal(told.got, "0");
}

/* Lanes whose offset is null or missing are inactive. */
static void accesses_of_offsets(void **state) {
    assert_int_equal(decode(ACCESS "`offsets`: [2047, null, 0]}"), MM_OK);
    assert_int_equal(call.probe.count, 4);
    for (size_t index = 0; index < 4; index++) {
        const struct mm_access *access = &call.probe.accesses[index];
        assert_int_equal(access->pattern, MM_PATTERN_OFFSETS);
        assert_int_equal(access->word_bytes, index < 2 ? 4 : 8);
        assert_int_equal(access->padded, index % 2);
        for (unsigned lane = 0; lane < MM_WARP_LANES; lane++)
            assert_int_equal(access->words[lane], lane == 0 ? 2047 : lane == 2 ? 0 : MM_LANE_INACTIVE);
    }
    assert_true(!call.probe.writes && call.probe.bank_bytes == 0);
    assert_string_equal(call.backend, "auto");
    assert_int_equal(decode(ACCESS "`access`: `write`, `bank_bytes`: 8, `backend`: `cpu`}"), MM_OK);
    assert_true(call.probe.writes && call.probe.bank_bytes == 8);
    assert_string_equal(call.backend, "cpu");
}

/* A request makes a row for each combination of its lists. Exactly MM_OCCUPANCY_ROWS_MAX rows are allowed. */
static void occupancy_is_bounded(void **state) {
    static const char sixteen[] = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]";
    char text[256 + 4 * MM_OCCUPANCY_ROWS_MAX];
    snprintf(text, sizeof text, OCCUPANCY "`threads_per_block`: %s, `registers_per_thread`: %s}", sixteen,
             sixteen);
    assert_int_equal(decode(text), MM_OK);
    assert_int_equal(call.occupancy.counts[MM_OCCUPANCY_THREADS], 16);
    assert_int_equal(call.occupancy.values[MM_OCCUPANCY_REGISTERS][15], 16);
    assert_int_equal(call.occupancy.counts[MM_OCCUPANCY_SHARED], 1);
    assert_int_equal(call.occupancy.counts[MM_OCCUPANCY_CAPABILITY], 0);
    snprintf(text, sizeof text,
             OCCUPANCY "`threads_per_block`: %s, `registers_per_thread`: %s, `shared_bytes`: [0, 1]}",
             sixteen, sixteen);
    assert_int_equal(decode(text), MM_TOO_LARGE);
    assert_int_equal(told.limit, MM_OCCUPANCY_ROWS_MAX);
    for (unsigned count = MM_OCCUPANCY_ROWS_MAX; count <= MM_OCCUPANCY_ROWS_MAX + 1; count++) {
        strcpy(text, OCCUPANCY "`threads_per_block`: 1, `registers_per_thread`: [1");
        for (unsigned index = 1; index < count; index++)
            strcat(text, ",1");
        strcat(text, "]}");
        assert_int_equal(decode(text), count == MM_OCCUPANCY_ROWS_MAX ? MM_OK : MM_TOO_LARGE);
    }
    assert_string_equal(told.field, "registers_per_thread");
}

/* Deep nesting must not overflow the stack. */
static void nesting_is_bounded(void **state) {
    static char deep[MM_BENCHMARK_BODY_BYTES_MAX];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"m\":", 5);
    assert_int_equal(mm_benchmark_decode(deep, sizeof deep, &limits, NULL, &call, &told), MM_BAD_REQUEST);
    assert_non_null(strstr(told.detail, "no more than 64 arrays"));
}

static void rows_are_bounded(void **state) {
    for (unsigned count = MM_BENCHMARK_ROWS_MAX; count <= MM_BENCHMARK_ROWS_MAX + 1; count++) {
        char text[64 + 16 * (MM_BENCHMARK_ROWS_MAX + 1)] = ONES "`variants`: [`naive`";
        for (unsigned index = 1; index < count; index++)
            strcat(text, ", `naive`");
        strcat(text, "]}");
        assert_int_equal(decode(text), count == MM_BENCHMARK_ROWS_MAX ? MM_OK : MM_TOO_LARGE);
        assert_true(count > MM_BENCHMARK_ROWS_MAX || call.name_count == count);
    }
    assert_string_equal(told.field, "variants");
    assert_int_equal(told.limit, MM_BENCHMARK_ROWS_MAX);
}

RUN_TESTS(defaults, all_members, operands, epilogues, types_of_products, large_repeats,
          malformed_requests_are_refused, accesses_of_all_patterns, accesses_of_offsets, occupancy_is_bounded,
          nesting_is_bounded, rows_are_bounded)
