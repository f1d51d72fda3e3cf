/* Fuzzes the CSV codec. The input is the name of an element type, a line end, and a CSV file. */
#include "tests/fuzz/fuzz.h"

#include "api/csv/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUNDARY "----------fuzz"

static enum mm_status read(struct slice file, enum mm_dtype dtype, struct mm_matrix *matrix) {
    struct mm_csv csv;
    struct mm_error error = {0};
    enum mm_status status = mm_csv_open("a", file.text, file.bytes, dtype, &csv, &error);
    *matrix = mm_matrix_dense(dtype, csv.rows, csv.cols, NULL);
    if (status == MM_OK) {
        REQUIRE(csv.rows * csv.cols <= file.bytes + 1);
        matrix->data = malloc(mm_matrix_bytes(matrix) + 1);
        REQUIRE(matrix->data != NULL);
        status = mm_csv_read(&csv, matrix->data, &error);
        REQUIRE(status != MM_OK || csv.rows * csv.cols <= (file.bytes + 1) / 2);
    }
    REQUIRE(status == MM_OK || (status == MM_BAD_REQUEST && error.line > 0 && error.column > 0));
    if (status != MM_OK)
        fuzz_require_error(status, &error);
    return status;
}

static void require_round_trip(const struct mm_matrix *matrix) {
    const struct mm_shape shape = mm_shape_of_matrix(matrix->rows, matrix->cols);
    const struct mm_answer answer = {.matrix = *matrix, .has_matrix = true, .shape = &shape};
    struct mm_reply_body body = {0};
    struct mm_matrix again;
    size_t bytes;
    REQUIRE(mm_csv_codec.reply_bytes_max(&shape, matrix->dtype, &bytes));
    body.buffer = (struct mm_buffer){.data = malloc(bytes), .bytes = bytes};
    REQUIRE(body.buffer.data != NULL);
    mm_csv_codec.encode(&answer, &body);
    REQUIRE(body.bytes <= bytes);
    REQUIRE(read((struct slice){body.buffer.data, body.bytes}, matrix->dtype, &again) == MM_OK);
    fuzz_require_same(matrix, &again);
    free(again.data);
    free(body.buffer.data);
}

/* Returns a form with this file as matrix a, and for products also as matrix b. The caller frees it. */
static char *make_form(enum mm_op op, enum mm_dtype dtype, struct slice file, size_t *bytes) {
    static const char begin[] =
        "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; filename=x.csv\r\n\r\n";
    char *form = NULL;
    FILE *stream = open_memstream(&form, bytes);
    REQUIRE(stream != NULL);
    for (const char *name = op == MM_MATMUL ? "ab" : "a"; *name != '\0'; name++) {
        fprintf(stream, begin, (const char[]){*name, '\0'});
        if (file.bytes > 0)
            fwrite(file.text, 1, file.bytes, stream);
        fputs("\r\n", stream);
    }
    fprintf(stream,
            "--" BOUNDARY "\r\nContent-Disposition: form-data; name=dtype\r\n\r\n%s\r\n--" BOUNDARY "--",
            mm_dtype_name(dtype));
    REQUIRE(fclose(stream) == 0);
    return form;
}

/* The file in a form must give the same matrix or error. Only limits on size may reject the form instead. */
static void check(enum mm_op op, struct slice file, enum mm_status status, const struct mm_matrix *matrix) {
    struct decoding decoding;
    size_t bytes;
    char *form = make_form(op, matrix->dtype, file, &bytes);
    mm_call_init(&decoding.call, op);
    fuzz_decode(&decoding, fuzz_codec("multipart/form-data"), "multipart/form-data; boundary=" BOUNDARY,
                (struct slice){form, bytes});
    REQUIRE(decoding.status == status || decoding.status == MM_TOO_LARGE || decoding.status == MM_BUSY);
    if (decoding.status == MM_OK) {
        REQUIRE(!decoding.call.operands.views_body);
        fuzz_require_same(matrix, &decoding.call.operands.of[0].view);
        if (op == MM_MATMUL)
            fuzz_require_same(matrix, &decoding.call.operands.of[1].view);
    }
    fuzz_release(&decoding);
    free(form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct slice file = {(const char *)data, bytes};
    const struct slice name = fuzz_split(&file, '\n');
    unsigned dtype = 0;
    while (dtype < MM_DTYPE_COUNT &&
           (strlen(mm_dtype_name((enum mm_dtype)dtype)) != name.bytes ||
            memcmp(mm_dtype_name((enum mm_dtype)dtype), name.text, name.bytes) != 0))
        dtype++;
    if (dtype == MM_DTYPE_COUNT)
        return 0;
    struct mm_matrix matrix;
    char *copy = fuzz_copy_bytes(file);
    const enum mm_status status =
        read((struct slice){copy == NULL ? "" : copy, file.bytes}, (enum mm_dtype)dtype, &matrix);
    if (status == MM_OK)
        require_round_trip(&matrix);
    /* A boundary within the file would end the file early. */
    if (file.bytes == 0 || memmem(file.text, file.bytes, BOUNDARY, sizeof BOUNDARY - 1) == NULL)
        FUZZ_EACH_OP(op) {
            check(op, file, status, &matrix);
        }
    free(matrix.data);
    free(copy);
    return 0;
}
