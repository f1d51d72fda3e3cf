/* Matrices in guarded memory: packed as a layout says, surrounded by words whose change shows. */
#include "tests/kernels/harness.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 4096 };

/* A quiet NaN with a payload that no computation makes, and a number that is exact in float32. */
static const uint32_t poisons[POISON_COUNT] = {UINT32_C(0x7fdeadbe), UINT32_C(0x4640e400)};
static const uint32_t operand_guard = UINT32_C(0x7fc0ffee);

struct layout layout_make(unsigned index, uint64_t seed) {
    /* Odd ones break every alignment, multiples of 4 keep that of 16-byte accesses. */
    static const size_t extras[] = {1, 2, 3, 4, 5, 8, 16, 31};
    struct random random = {random_mix(seed, index)};
    struct layout layout = {.transpose_a = index & 1, .transpose_b = index & 2};
    size_t *const each[] = {&layout.a_extra, &layout.b_extra, &layout.c_extra};
    for (unsigned which = 0; which < 3; which++)
        if (index & (4U << which))
            *each[which] = extras[random_below(&random, sizeof extras / sizeof *extras)];
    size_t *const shifts[] = {&layout.a_shift, &layout.b_shift, &layout.c_shift};
    for (unsigned which = 0; which < 3; which++)
        if (random_below(&random, 4) == 0)
            *shifts[which] = 1 + random_below(&random, 3);
    return layout;
}

static void fill_words(unsigned char *bytes, size_t count, uint32_t word) {
    for (size_t index = 0; index < count; index++)
        memcpy(bytes + index * sizeof word, &word, sizeof word);
}

void image_make(struct image *image, enum mm_dtype dtype, size_t rows, size_t cols, size_t extra,
                size_t shift) {
    image->view = mm_matrix_dense(dtype, rows, cols, NULL);
    image->view.ld = cols + extra;
    image->before = GUARD_BYTES + shift * mm_dtype_bytes(dtype);
    image->bytes = image->before + mm_matrix_bytes(&image->view) + GUARD_BYTES;
    image->host = harness_allocate(image->bytes);
    image->view.data = image->host + image->before;
    image->device = NULL;
}

void image_guard(struct image *operand) {
    fill_words(operand->host, operand->bytes / sizeof operand_guard, operand_guard);
}

/* Packs op(X), which is rows × cols and dense, as X or as its transpose. */
static void pack(struct image *image, const float *x, size_t rows, size_t cols, bool transpose, size_t extra,
                 size_t shift) {
    image_make(image, MM_FLOAT32, transpose ? cols : rows, transpose ? rows : cols, extra, shift);
    image_guard(image);
    float *stored = image->view.data;
    size_t row_step = transpose ? 1 : image->view.ld;
    size_t col_step = transpose ? image->view.ld : 1;
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++)
            stored[row * row_step + col * col_step] = x[row * cols + col];
}

void image_make_operands(struct image *a, struct image *b, const struct operands *operands,
                         const struct layout *layout) {
    struct shape shape = operands->shape;
    pack(a, operands->a, shape.m, shape.k, layout->transpose_a, layout->a_extra, layout->a_shift);
    pack(b, operands->b, shape.k, shape.n, layout->transpose_b, layout->b_extra, layout->b_shift);
}

void image_make_result(struct image *c, struct shape shape, const struct layout *layout) {
    image_make(c, MM_FLOAT32, shape.m, shape.n, layout->c_extra, layout->c_shift);
}

void image_free(struct image *image) {
    assert(image->device == NULL);
    free(image->host);
    *image = (struct image){0};
}

void image_poison(struct image *c, unsigned poison) {
    fill_words(c->host, c->bytes / sizeof poisons[poison], poisons[poison]);
}

static bool words_are(const unsigned char *bytes, size_t count, uint32_t word, size_t *first) {
    for (size_t index = 0; index < count; index++) {
        if (memcmp(bytes + index * sizeof word, &word, sizeof word) != 0) {
            *first = index * sizeof word;
            return false;
        }
    }
    return true;
}

bool image_surroundings_intact(const struct image *c, unsigned poison, ptrdiff_t *byte) {
    uint32_t word = poisons[poison];
    const unsigned char *storage = c->host + c->before;
    size_t storage_bytes = mm_matrix_bytes(&c->view);
    size_t row_bytes = c->view.ld * mm_dtype_bytes(c->view.dtype);
    size_t cols_bytes = c->view.cols * mm_dtype_bytes(c->view.dtype);
    size_t first = 0;
    size_t base = 0;
    bool before = words_are(c->host, c->before / sizeof word, word, &first);
    if (!before) {
        *byte = (ptrdiff_t)first - (ptrdiff_t)c->before;
        return false;
    }
    bool intact = true;
    for (size_t row = 0; row < c->view.rows && intact; row++) {
        base = row * row_bytes + cols_bytes;
        intact = words_are(storage + base, (row_bytes - cols_bytes) / sizeof word, word, &first);
    }
    if (intact) {
        base = storage_bytes;
        intact = words_are(storage + base, GUARD_BYTES / sizeof word, word, &first);
    }
    *byte = (ptrdiff_t)(base + first);
    return intact;
}

struct mm_matrix image_view(const struct image *image, bool on_device) {
    struct mm_matrix view = image->view;
    if (on_device)
        view.data = (unsigned char *)image->device + image->before;
    if (view.rows * view.cols == 0)
        view.data = NULL;
    return view;
}

struct mm_product image_product(const struct image *a, const struct image *b, const struct image *c,
                                struct shape shape, const struct layout *layout, bool on_device) {
    return (struct mm_product){
        .m = shape.m,
        .n = shape.n,
        .k = shape.k,
        .a = image_view(a, on_device),
        .b = image_view(b, on_device),
        .c = image_view(c, on_device),
        .transpose_a = layout->transpose_a,
        .transpose_b = layout->transpose_b,
    };
}

enum mm_status image_to_device(struct image *image, struct mm_device *device, struct mm_error *error) {
    return device->backend->acquire(device, image->bytes, &image->device, error);
}

enum mm_status image_upload(const struct image *image, struct mm_device *device, struct mm_error *error) {
    return device->backend->upload(device, image->device, image->host, image->bytes, error);
}

bool image_unchanged(const struct image *image, struct mm_device *device, unsigned char *scratch) {
    struct mm_error error;
    enum mm_status status = device->backend->download(device, scratch, image->device, image->bytes, &error);
    return status == MM_OK && memcmp(scratch, image->host, image->bytes) == 0;
}

void image_leave_device(struct image *image, struct mm_device *device) {
    if (image->device != NULL)
        device->backend->release(device, image->device);
    image->device = NULL;
}
