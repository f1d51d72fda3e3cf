/* Matrices between guard regions, which show whether a kernel writes or reads outside. */
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 4096, PATTERN_BYTES = 4 };

/* The patterns for C are a NaN that no computation produces, and an ordinary number. Guards of operands have
 * all bits set. Such an element is NaN in every floating-point type, and -1 as an integer. */
static const unsigned char poisons[POISON_COUNT][PATTERN_BYTES] = {{0xfb, 0x7f, 0xfb, 0x7f},
                                                                   {0x00, 0xe4, 0x40, 0x46}};
static const unsigned char operand_guard[PATTERN_BYTES] = {0xff, 0xff, 0xff, 0xff};

struct layout layout_make(unsigned index, uint64_t seed) {
    /* Odd numbers of extra elements break the alignment of rows. Multiples of 4 keep 16-byte alignment. */
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
    layout.transpose_addend = random_below(&random, 2) == 0;
    layout.addend_extra =
        random_below(&random, 2) * extras[random_below(&random, sizeof extras / sizeof *extras)];
    layout.addend_shift = random_below(&random, 2) * random_below(&random, 4);
    layout.bias_shift = random_below(&random, 2) * random_below(&random, 4);
    return layout;
}

static void fill_pattern(const struct image *image, const unsigned char *pattern) {
    memcpy(image->host, pattern, PATTERN_BYTES);
    for (size_t filled = PATTERN_BYTES; filled < image->bytes; filled *= 2)
        memcpy(image->host + filled, image->host, mm_size_min(filled, image->bytes - filled));
}

/* Allocates rows of cols + extra elements. The first row is `shift` elements after a 64-byte boundary. */
static void image_make(struct image *image, enum mm_dtype dtype, size_t rows, size_t cols, size_t extra,
                       size_t shift) {
    *image = (struct image){0};
    image->view = mm_matrix_dense(dtype, rows, cols, NULL);
    image->view.ld = cols + extra;
    image->before = GUARD_BYTES + shift * mm_dtype_bytes(dtype);
    image->bytes = image->before + mm_matrix_bytes(&image->view) + GUARD_BYTES;
    image->host = harness_allocate(image->bytes);
    image->view.data = image->host + image->before;
}

/* Stores x, which is dense and row-major, in a new image. Stores the transpose of x if `transpose`. */
static void pack(struct image *image, enum mm_dtype dtype, const unsigned char *x, size_t rows, size_t cols,
                 bool transpose, size_t extra, size_t shift) {
    image_make(image, dtype, transpose ? cols : rows, transpose ? rows : cols, extra, shift);
    fill_pattern(image, operand_guard);
    const size_t element_bytes = mm_dtype_bytes(dtype);
    unsigned char *stored = image->view.data;
    size_t row_bytes = (transpose ? 1 : image->view.ld) * element_bytes;
    size_t col_bytes = (transpose ? image->view.ld : 1) * element_bytes;
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++, x += element_bytes)
            memcpy(stored + row * row_bytes + col * col_bytes, x, element_bytes);
}

void image_make_operands(struct image operands[MM_OPERANDS_MAX], const struct one_case *one) {
    const struct shape shape = one->shape;
    const struct layout *layout = &one->layout;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        operands[index] = (struct image){0};
    pack(&operands[MM_OPERAND_A], one->dtype, one->a, shape.m, one->b == NULL ? shape.n : shape.k,
         layout->transpose_a, layout->a_extra, layout->a_shift);
    if (one->b != NULL)
        pack(&operands[MM_OPERAND_B], one->dtype, one->b, shape.k, shape.n, layout->transpose_b,
             layout->b_extra, layout->b_shift);
    if (one->addend.elements != NULL)
        pack(&operands[MM_OPERAND_ADDEND], one->c_dtype, one->addend.elements, shape.m, shape.n,
             layout->transpose_addend, layout->addend_extra, layout->addend_shift);
    if (one->bias.elements != NULL)
        pack(&operands[MM_OPERAND_BIAS], one->c_dtype, one->bias.elements, 1, shape.n, false, 0,
             layout->bias_shift);
}

void image_make_result(struct image *c, const struct one_case *one) {
    image_make(c, one->c_dtype, one->shape.m, one->shape.n, one->layout.c_extra, one->layout.c_shift);
}

void image_free(struct image *image) {
    if (image->memory != NULL)
        image->device->backend->release(image->device, image->memory);
    free(image->host);
    *image = (struct image){0};
}

void image_poison(const struct image *c, unsigned poison) {
    fill_pattern(c, poisons[poison]);
}

/* Checks the first pattern, then compares each byte with the byte one pattern length before. memcmp does this
 * fast. */
static bool has_pattern(const struct image *image, size_t start, size_t end, const unsigned char *pattern,
                        ptrdiff_t *byte) {
    const size_t sure = mm_size_min(end, start + PATTERN_BYTES);
    size_t at = start;
    while (at < sure && image->host[at] == pattern[at % PATTERN_BYTES])
        at++;
    if (at == sure && memcmp(image->host + start, image->host + at, end - at) == 0)
        return true;
    while (image->host[at] == pattern[at % PATTERN_BYTES])
        at++;
    *byte = (ptrdiff_t)at - (ptrdiff_t)image->before;
    return false;
}

bool image_surroundings_intact(const struct image *c, unsigned poison, ptrdiff_t *byte) {
    const unsigned char *pattern = poisons[poison];
    const size_t storage_end = c->before + mm_matrix_bytes(&c->view);
    const size_t row_bytes = c->view.ld * mm_dtype_bytes(c->view.dtype);
    const size_t cols_bytes = c->view.cols * mm_dtype_bytes(c->view.dtype);
    bool intact = has_pattern(c, 0, c->before, pattern, byte);
    for (size_t start = c->before; start < storage_end && intact; start += row_bytes)
        intact = has_pattern(c, start + cols_bytes, start + row_bytes, pattern, byte);
    return intact && has_pattern(c, storage_end, c->bytes, pattern, byte);
}

/* Returns the matrix with the address of its copy on the host or on the device. The address is NULL if the
 * matrix has no elements. */
static struct mm_matrix view_of(const struct image *image, bool on_device) {
    struct mm_matrix view = image->view;
    if (view.rows * view.cols == 0)
        view.data = NULL;
    else if (on_device)
        view.data = (unsigned char *)image->memory + image->before;
    return view;
}

struct mm_product image_product(const struct image operands[MM_OPERANDS_MAX], const struct image *c,
                                const struct one_case *one, bool on_device) {
    struct mm_product product = {
        .m = one->shape.m,
        .n = one->shape.n,
        .k = one->shape.k,
        .a = view_of(&operands[MM_OPERAND_A], on_device),
        .b = view_of(&operands[MM_OPERAND_B], on_device),
        .c = view_of(c, on_device),
        .addend = view_of(&operands[MM_OPERAND_ADDEND], on_device),
        .bias = view_of(&operands[MM_OPERAND_BIAS], on_device),
        .epilogue = one->epilogue,
        .transpose_a = one->layout.transpose_a,
        .transpose_b = one->layout.transpose_b,
        .transpose_addend = one->layout.transpose_addend,
    };
    if (one->b == NULL)
        (void)mm_product_conform(MM_TRANSPOSE, &product, NULL);
    else
        mm_product_drop_unread(&product);
    return product;
}

enum mm_status image_to_device(struct image *image, struct mm_device *device, struct mm_error *error) {
    image->device = device;
    return image->host == NULL ? MM_OK
                               : device->backend->acquire(device, image->bytes, &image->memory, error);
}

enum mm_status image_upload(const struct image *image, struct mm_error *error) {
    struct mm_device *device = image->device;
    return image->host == NULL
               ? MM_OK
               : device->backend->upload(device, image->memory, image->host, image->bytes, error);
}

bool image_unchanged(const struct image *image, unsigned char *scratch) {
    struct mm_device *device = image->device;
    struct mm_error error;
    return image->host == NULL ||
           (device->backend->download(device, scratch, image->memory, image->bytes, &error) == MM_OK &&
            memcmp(scratch, image->host, image->bytes) == 0);
}
