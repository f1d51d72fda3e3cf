#include "tests/fuzz/fuzz.h"

#include "api/problem.h"
#include "tests/decode.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET_BYTES = 8 << 10, ALIGNMENT = 64 };

const struct mm_limits fuzz_limits = {
    .dimension_max = 1 << 20, .body_bytes_max = 32 << 10, .memory_bytes_max = 64 << 10};

const struct mm_codec *fuzz_codec(const char *media_type) {
    const struct mm_codec *const codecs[] = {&mm_json_codec, &mm_raw_codec, &mm_form_codec};
    for (size_t index = 0; index < sizeof codecs / sizeof codecs[0]; index++)
        if (strcmp(codecs[index]->media_type, media_type) == 0)
            return codecs[index];
    abort();
}

#define REQUIRE_ENDED(text) REQUIRE(memchr(text, '\0', sizeof(text)) != NULL)

void fuzz_require_error(enum mm_status status, const struct mm_error *error) {
    REQUIRE(status != MM_OK && error->status == status);
    REQUIRE(error->detail[0] != '\0');
    REQUIRE_ENDED(error->detail);
    REQUIRE_ENDED(error->field);
    REQUIRE_ENDED(error->expected);
    REQUIRE_ENDED(error->got);
    size_t length = 0;
    char *text = mm_problem_json(error, "fuzz", &length);
    REQUIRE(text != NULL);
    json_t *problem = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(json_is_object(problem));
    REQUIRE(json_integer_value(json_object_get(problem, "status")) >= 400);
    REQUIRE(json_string_length(json_object_get(problem, "detail")) > 0);
    json_decref(problem);
    free(text);
}

/* Reads every element, so a sanitizer reports invalid memory. */
static void touch(const struct mm_matrix *matrix) {
    const size_t element_bytes = mm_dtype_bytes(matrix->dtype);
    const unsigned char *bytes = matrix->data;
    volatile unsigned char last;
    for (size_t row = 0; bytes != NULL && row < matrix->rows && matrix->cols > 0; row++)
        for (size_t byte = 0; byte < matrix->cols * element_bytes; byte++)
            last = bytes[row * matrix->ld * element_bytes + byte];
    (void)last;
}

static bool lies_in(const void *data, size_t bytes, const void *memory, size_t memory_bytes) {
    uintptr_t start = (uintptr_t)data;
    uintptr_t begin = (uintptr_t)memory;
    return memory != NULL && start >= begin && bytes <= memory_bytes && start - begin <= memory_bytes - bytes;
}

static void require_view(const struct mm_call *call, const struct mm_operand *operand, size_t bytes,
                         const struct mm_body *body) {
    const struct mm_buffer *storage = &call->operands.storage;
    const struct mm_shape *shape = &operand->shape;
    const struct mm_matrix *view = &operand->view;
    const bool column_major = operand->column_major;
    const enum mm_dtype dtype = mm_operand_dtype(&call->operands, operand);
    const struct mm_matrix dense = mm_shape_view(shape, operand->role.is_column, dtype);
    REQUIRE(view->dtype == dtype);
    REQUIRE(shape->rank <= MM_RANK_MAX);
    for (unsigned dim = 0; dim < shape->rank; dim++)
        REQUIRE(shape->dims[dim] <= fuzz_limits.dimension_max);
    REQUIRE(view->rows == dense.rows && view->cols == dense.cols && view->ld >= view->cols);
    REQUIRE(shape->rank == 2 || (view->ld == view->cols && !column_major));
    REQUIRE(!column_major || view->ld == view->cols);
    if (!mm_operand_is_inline(operand)) {
        REQUIRE(bytes == 0 && view->data == NULL && view->ld == view->cols && !column_major);
        return;
    }
    REQUIRE(bytes == mm_matrix_bytes(view) && bytes <= fuzz_limits.memory_bytes_max);
    if (bytes == 0)
        return;
    REQUIRE(view->data != NULL);
    REQUIRE((uintptr_t)view->data % mm_dtype_bytes(view->dtype) == 0 || operand->role.is_optional);
    REQUIRE(lies_in(view->data, bytes, body->data, body->bytes) ||
            lies_in(view->data, bytes, storage->data, storage->bytes));
    if (!call->operands.views_body)
        REQUIRE(!lies_in(view->data, bytes, body->data, body->bytes));
    touch(view);
}

static bool overlap(const struct mm_matrix *a, size_t a_bytes, const struct mm_matrix *b, size_t b_bytes) {
    if (a_bytes == 0 || b_bytes == 0)
        return false;
    return (uintptr_t)a->data < (uintptr_t)b->data + b_bytes &&
           (uintptr_t)b->data < (uintptr_t)a->data + a_bytes;
}

static size_t elements_of(const struct mm_shape *shape) {
    size_t count = 1;
    for (unsigned dim = 0; dim < shape->rank; dim++)
        count *= shape->dims[dim];
    return count;
}

/* Checks that the last product of a stack lies within the matrices and has matching dimensions. */
static void require_last_item(enum mm_op op, const struct mm_product *product) {
    struct mm_product item = mm_product_item(product, mm_product_count(product) - 1);
    REQUIRE(lies_in(item.a.data, mm_matrix_bytes(&item.a), product->a.data, mm_matrix_bytes(&product->a)) ||
            mm_matrix_bytes(&item.a) == 0 || product->a.data == NULL);
    REQUIRE(lies_in(item.b.data, mm_matrix_bytes(&item.b), product->b.data, mm_matrix_bytes(&product->b)) ||
            mm_matrix_bytes(&item.b) == 0 || product->b.data == NULL);
    REQUIRE(lies_in(item.addend.data, mm_matrix_bytes(&item.addend), product->addend.data,
                    mm_matrix_bytes(&product->addend)) ||
            mm_matrix_bytes(&item.addend) == 0 || product->addend.data == NULL);
    REQUIRE(mm_product_conform(op, &item, NULL) == MM_OK);
    REQUIRE(item.m == product->m && item.n == product->n);
    REQUIRE(item.k == product->k || product->k == 0); /* k is 0 if alpha is 0 */
}

/* Checks that swapping and transposing the operands keeps the product's dimensions. */
static void require_turnable(const struct mm_call *call) {
    struct mm_error error = {0};
    struct mm_product product = mm_call_product(call);
    struct mm_stack stack;
    const struct mm_shape shape = mm_operands_result(&call->operands);
    const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
    for (unsigned index = 0; index < call->operands.count; index++)
        if (!mm_operand_is_absent(&call->operands.of[index]))
            shapes[index] = &call->operands.of[index].shape;
    enum mm_status status = mm_call_epilogue(call, &product, &error);
    if (status == MM_OK)
        status = mm_shape_conform(call->operands.kind->op, shapes, &product, &stack, &error);
    if (status != MM_OK) {
        REQUIRE(status == MM_BAD_SHAPE || status == MM_BAD_REQUEST || status == MM_UNSUPPORTED);
        fuzz_require_error(status, &error);
        return;
    }
    REQUIRE(product.m * mm_product_count(&product) == product.c.rows && product.n == product.c.cols);
    REQUIRE(elements_of(&shape) == product.c.rows * product.c.cols);
    struct mm_product turned = product;
    mm_call_apply_layout(call, &turned);
    if (product.stack == NULL && stack.count == 1) {
        REQUIRE(mm_product_conform(call->operands.kind->op, &turned, NULL) == MM_OK);
        REQUIRE(turned.m == product.m && turned.n == product.n);
        REQUIRE(turned.k == product.k || product.k == 0); /* k is 0 if alpha is 0 */
    } else if (product.m * product.n > 0) {
        require_last_item(call->operands.kind->op, &turned);
    }
    touch(&turned.a);
    touch(&turned.b);
    touch(&turned.addend);
    touch(&turned.bias);
}

static void require_decoded(const struct decoding *decoding) {
    const struct mm_call *call = &decoding->call;
    const struct mm_body *body = &decoding->body;
    size_t bytes[MM_OPERANDS_MAX];
    REQUIRE(decoding->error.status == MM_OK);
    REQUIRE(mm_call_sizes(&call->operands, &fuzz_limits, bytes, NULL) == MM_OK);
    size_t all_bytes = 0;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_operand *operand = &call->operands.of[index];
        require_view(call, operand, bytes[index], body);
        REQUIRE(index < call->operands.count || (operand->view.rows == 0 && operand->view.cols == 0));
        for (unsigned other = 0; other < index; other++)
            REQUIRE(!overlap(&operand->view, bytes[index], &call->operands.of[other].view, bytes[other]));
        all_bytes += bytes[index];
    }
    REQUIRE(all_bytes <= fuzz_limits.memory_bytes_max);
    REQUIRE(decoding->memory.used_bytes == call->operands.storage.bytes);
    REQUIRE_ENDED(call->variant);
    REQUIRE_ENDED(call->backend);
    REQUIRE_ENDED(call->operands.dtype_name);
    REQUIRE_ENDED(call->result_dtype_name);
    require_turnable(call);
}

/* All decodings share one pool, because opening a pool takes longer than most decodings. */
static void begin_memory(struct decoding *decoding) {
    static struct mm_budget empty;
    if (empty.buffers == NULL)
        REQUIRE(mm_budget_open(&empty, BUDGET_BYTES));
    decoding->budget = empty;
    decoding->memory = (struct mm_reservation){.budget = &decoding->budget};
}

void fuzz_release(struct decoding *decoding) {
    mm_operands_release(&decoding->call.operands, &decoding->memory);
    free(decoding->body.data);
    REQUIRE(decoding->memory.used_bytes == 0);
    mm_reservation_close(&decoding->memory);
    REQUIRE(mm_budget_used(&decoding->budget) == 0);
}

void fuzz_decode(struct decoding *decoding, const struct mm_codec *codec, const char *content_type,
                 struct slice text) {
    decoding->error = (struct mm_error){0};
    begin_memory(decoding);
    decoding->content_type = content_type;
    decoding->body = (struct mm_body){.data = fuzz_copy_bytes(text), .bytes = text.bytes};
    decoding->status = decode_whole(codec, content_type, &decoding->call.operands, &decoding->body,
                                    &fuzz_limits, &decoding->memory, &decoding->error);
    if (decoding->status == MM_OK) {
        require_decoded(decoding);
        return;
    }
    /* MM_BUSY is possible because the budget is small. MM_INTERNAL would need a failed malloc. */
    REQUIRE(decoding->status == MM_BAD_REQUEST || decoding->status == MM_TOO_LARGE ||
            decoding->status == MM_UNSUPPORTED || decoding->status == MM_BAD_SHAPE ||
            (decoding->status == MM_BUSY &&
             decoding->error.needed_bytes > decoding->budget.part_bytes[MM_BUDGET_MAIN]));
    fuzz_require_error(decoding->status, &decoding->error);
    REQUIRE(decoding->call.operands.storage.data == NULL);
    REQUIRE(decoding->memory.used_bytes == 0);
}

/* Appends a chunk by moving the body to memory of exactly the new size. */
static void extend(struct mm_body *body, struct slice slice) {
    void *copy = NULL;
    REQUIRE(posix_memalign(&copy, ALIGNMENT, body->bytes + slice.bytes) == 0);
    if (body->bytes > 0)
        memcpy(copy, body->data, body->bytes);
    if (slice.bytes > 0)
        memcpy((char *)copy + body->bytes, slice.text, slice.bytes);
    free(body->data);
    body->data = copy;
    body->bytes += slice.bytes;
}

static void require_same_decoding(const struct decoding *x, const struct decoding *y) {
    REQUIRE(x->status == y->status);
    if (x->status != MM_OK) {
        REQUIRE(strcmp(x->error.detail, y->error.detail) == 0 && strcmp(x->error.field, y->error.field) == 0);
        REQUIRE(strcmp(x->error.expected, y->error.expected) == 0 && strcmp(x->error.got, y->error.got) == 0);
        REQUIRE(x->error.line == y->error.line && x->error.column == y->error.column);
        REQUIRE(x->error.has_limit == y->error.has_limit && x->error.limit == y->error.limit);
        return;
    }
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_operand *of_x = &x->call.operands.of[index], *of_y = &y->call.operands.of[index];
        fuzz_require_same_shape(&of_x->shape, &of_y->shape);
        fuzz_require_same(&of_x->view, &of_y->view);
        REQUIRE(of_x->column_major == of_y->column_major);
    }
    const struct mm_parameters *values = &x->call.operands.parameters, *others = &y->call.operands.parameters;
    REQUIRE(values->given == others->given && values->derived == others->derived);
    REQUIRE(x->call.operands.dtype == y->call.operands.dtype);
    for (unsigned index = 0; index < values->table->count; index++) {
        const struct mm_parameter *row = &values->table->rows[index];
        if (row->kind != MM_KIND_OPERAND && !mm_kind_is_list(row->kind))
            REQUIRE(memcmp((const char *)values + row->offset, (const char *)others + row->offset,
                           row->bytes) == 0);
    }
}

void fuzz_require_read(const struct decoding *whole, const struct mm_codec *codec, uint64_t announced,
                       struct slice text, struct slice lengths) {
    struct decoding read = {.status = MM_OK};
    struct mm_body *body = &read.body;
    begin_memory(&read);
    mm_call_init(&read.call, whole->call.operands.kind->op);
    void *reading =
        codec->reader->begin(&read.call.operands, whole->content_type, announced, &fuzz_limits, &read.memory);
    if (reading == NULL) {
        REQUIRE(whole->status != MM_OK); /* begin rejected the Content-Type */
        fuzz_release(&read);
        return;
    }
    for (size_t at = 0, turn = 0; at < text.bytes; turn++) {
        size_t length = lengths.bytes == 0 ? text.bytes : (unsigned char)lengths.text[turn % lengths.bytes];
        length = length < text.bytes - at ? length + (length == 0) : text.bytes - at;
        extend(body, (struct slice){text.text + at, length});
        at += length;
        body->bytes = codec->reader->feed(reading, body->data, body->bytes);
        REQUIRE(body->bytes <= at);
    }
    REQUIRE(read.memory.used_bytes <= fuzz_limits.memory_bytes_max + ALIGNMENT);
    if (body->data == NULL)
        extend(body, (struct slice){NULL, 0});
    read.status = codec->reader->finish(reading, &read.call.operands, body, &read.error);
    if (read.status != MM_OK)
        fuzz_require_error(read.status, &read.error);
    if (read.status == MM_BUSY)
        codec->reader->cancel(reading);
    REQUIRE(read.memory.used_bytes == read.call.operands.storage.bytes);
    REQUIRE(read.status == MM_OK || read.call.operands.storage.bytes == 0);
    require_same_decoding(whole, &read);
    fuzz_release(&read);
}

void fuzz_require_same_shape(const struct mm_shape *x, const struct mm_shape *y) {
    REQUIRE(x->rank == y->rank && memcmp(x->dims, y->dims, x->rank * sizeof x->dims[0]) == 0);
}

void fuzz_require_same(const struct mm_matrix *x, const struct mm_matrix *y) {
    REQUIRE(x->dtype == y->dtype && x->rows == y->rows && x->cols == y->cols);
    const size_t element_bytes = mm_dtype_bytes(x->dtype);
    const char *x_bytes = x->data;
    const char *y_bytes = y->data;
    for (size_t row = 0; row < x->rows && x->cols > 0; row++)
        REQUIRE(memcmp(x_bytes + row * x->ld * element_bytes, y_bytes + row * y->ld * element_bytes,
                       x->cols * element_bytes) == 0);
}
