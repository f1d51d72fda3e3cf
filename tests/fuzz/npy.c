/* Fuzzes the .npy parser. The input is a file. A header that is written and read again must be equal. */
#include "tests/fuzz/fuzz.h"

#include "api/npy/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUNDARY "----------fuzz"

static void require_header(const struct mm_npy_header *header, size_t bytes) {
    REQUIRE(header->bytes <= bytes);
    REQUIRE(header->dtype < MM_DTYPE_COUNT);
    char head[MM_NPY_HEAD_BYTES_MAX];
    struct mm_npy_header again;
    const size_t head_bytes = mm_npy_write_head(&header->shape, header->dtype, head);
    REQUIRE(mm_npy_read_header("a", head, head_bytes, &again, NULL) == MM_OK);
    REQUIRE(again.bytes == head_bytes && again.dtype == header->dtype && again.is_void == header->is_void);
    fuzz_require_same_shape(&again.shape, &header->shape);
    REQUIRE(!again.is_fortran);
}

/* Returns a form with this file as matrix a, and for products also as matrix b. The caller frees it. */
static char *make_form(enum mm_op op, struct slice file, size_t *bytes) {
    static const char begin[] = "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n";
    static const char end[] = "--" BOUNDARY "--\r\n";
    char *form = NULL;
    FILE *stream = open_memstream(&form, bytes);
    REQUIRE(stream != NULL);
    for (const char *name = op == MM_MATMUL ? "ab" : "a"; *name != '\0'; name++) {
        fprintf(stream, begin, (const char[]){*name, '\0'});
        if (file.bytes > 0)
            fwrite(file.text, 1, file.bytes, stream);
        fputs("\r\n", stream);
    }
    fputs(end, stream);
    REQUIRE(fclose(stream) == 0);
    return form;
}

static void decode(struct decoding *decoding, enum mm_op op, struct slice file) {
    size_t bytes;
    char *form = make_form(op, file, &bytes);
    mm_call_init(&decoding->call, op);
    fuzz_decode(decoding, fuzz_codec("multipart/form-data"), "multipart/form-data; boundary=" BOUNDARY,
                (struct slice){form, bytes});
    free(form);
}

/* Returns whether the codec must accept a file with this header. */
static bool is_good(enum mm_op op, const struct mm_npy_header *header, size_t bytes) {
    struct mm_call call;
    size_t sizes[MM_OPERANDS_MAX];
    mm_call_init(&call, op);
    if (header->is_void)
        return false; /* the form does not name the element type */
    call.operands.dtype = header->dtype;
    call.operands.of[0].shape = header->shape;
    call.operands.of[1].shape = op == MM_MATMUL ? header->shape : mm_shape_of_matrix(0, 0);
    mm_operands_view(&call.operands);
    return mm_call_sizes(&call.operands, &fuzz_limits, sizes, NULL) == MM_OK &&
           bytes - header->bytes == sizes[0];
}

static void check(enum mm_op op, struct slice input, char *file) {
    const size_t bytes = input.bytes;
    struct mm_npy_header header;
    struct mm_error error = {0};
    enum mm_status status = mm_npy_read_header("a", file, bytes, &header, &error);
    if (status == MM_OK)
        require_header(&header, bytes);
    else
        fuzz_require_error(status, &error);
    /* A boundary within the file would end the file early. */
    if (bytes > 0 && memmem(file, bytes, BOUNDARY, sizeof BOUNDARY - 1) != NULL)
        return;
    struct decoding decoding;
    decode(&decoding, op, input);
    bool good = status == MM_OK && is_good(op, &header, bytes);
    REQUIRE(good == (decoding.status == MM_OK));
    if (good) {
        const struct mm_call *call = &decoding.call;
        const bool is_copied = header.is_fortran && header.shape.rank > 2;
        REQUIRE(call->operands.of[0].column_major == (header.is_fortran && header.shape.rank == 2));
        REQUIRE(call->operands.views_body == !is_copied);
        fuzz_require_same_shape(&call->operands.of[0].shape, &header.shape);
        if (bytes > header.bytes && !is_copied)
            REQUIRE(memcmp(call->operands.of[0].view.data, file + header.bytes, bytes - header.bytes) == 0);
        if (op == MM_MATMUL && bytes > header.bytes)
            REQUIRE(memcmp(call->operands.of[0].view.data, call->operands.of[1].view.data,
                           bytes - header.bytes) == 0);
    }
    fuzz_release(&decoding);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const struct slice input = {(const char *)data, bytes};
    char *file = fuzz_copy_bytes(input);
    FUZZ_EACH_OP(op) {
        check(op, input, file);
    }
    free(file);
    return 0;
}
