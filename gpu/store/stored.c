/* Makes stored values, finds their device copies, and reads their elements. */
#include "gpu/store/stored.h"

#include "gpu/device/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Makes a random ETag, so no client can guess the ETag of another client's value. */
static bool make_etag(char etag[MM_ETAG_MAX + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char random[(MM_ETAG_MAX - 2) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    *etag++ = '"';
    for (size_t index = 0; index < sizeof random; index++) {
        *etag++ = digits[random[index] >> 4];
        *etag++ = digits[random[index] & 15];
    }
    *etag++ = '"';
    *etag = '\0';
    return true;
}

struct mm_stored *mm_stored_make(const struct mm_shape *shape, enum mm_dtype dtype, void *data,
                                 struct mm_device_copy *only_copy) {
    const struct mm_matrix view = mm_shape_view(shape, false, dtype);
    struct mm_stored *value = calloc(1, sizeof *value);
    if (value == NULL || !make_etag(value->etag)) {
        free(value);
        return NULL;
    }
    value->shape = *shape;
    value->dtype = dtype;
    value->data = data;
    value->bytes = mm_matrix_bytes(&view);
    value->only_copy = only_copy;
    return value;
}

void mm_stored_free(struct mm_stored *value) {
    struct mm_device_copy *copy;
    while ((copy = value->copies) != NULL) {
        value->copies = copy->next;
        copy->release(copy);
    }
    free(value);
}

void mm_stored_add_copy(struct mm_stored *value, struct mm_device_copy *copy) {
    copy->next = __atomic_load_n(&value->copies, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&value->copies, &copy->next, copy, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

static bool is_part(const struct mm_device_copy *copy) {
    return copy->first > 0 || copy->next_part != NULL;
}

struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device) {
    struct mm_device_copy *copy = __atomic_load_n(&value->copies, __ATOMIC_ACQUIRE);
    while (copy != NULL && (copy->device != device || is_part(copy)))
        copy = copy->next;
    return copy;
}

enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error) {
    while (copy != NULL && !mm_device_has_failed(copy->device))
        copy = copy->next_part;
    if (copy == NULL)
        return MM_OK;
    return mm_fail(error, MM_DEVICE_FAILED,
                   "%s was only in the memory of %s:%u, which has failed; store the matrix again",
                   is_part(copy) ? "a part of the matrix" : "the matrix", copy->device->backend->name,
                   copy->device->index);
}

void mm_device_copy_release(struct mm_device_copy *copy) {
    while (copy != NULL) {
        struct mm_device_copy *next = copy->next_part;
        copy->release(copy);
        copy = next;
    }
}

/* Returns the end of a part, in bytes of the value. */
static size_t end_of(const struct mm_stored *value, const struct mm_device_copy *part) {
    return part->next_part != NULL ? part->next_part->first : value->bytes;
}

bool mm_stored_next_block(const struct mm_stored *value, size_t first, size_t pitch, size_t rows,
                          size_t row_bytes, struct mm_stored_block *block) {
    block->byte += block->row_bytes;
    if (block->byte == row_bytes) {
        block->row += block->rows;
        block->byte = 0;
    }
    if (block->row == rows || row_bytes == 0)
        return false;
    const size_t begin = first + block->row * pitch + block->byte;
    for (block->part = value->only_copy; end_of(value, block->part) <= begin;)
        block->part = block->part->next_part;
    const size_t left = end_of(value, block->part) - begin;
    block->at = begin - block->part->first;
    block->row_bytes = mm_size_min(left, row_bytes - block->byte);
    block->rows =
        block->row_bytes < row_bytes ? 1 : mm_size_min(rows - block->row, (left - row_bytes) / pitch + 1);
    return true;
}

void *mm_stored_find_part(const struct mm_stored *value, struct mm_stored_range range,
                          const struct mm_device *device) {
    struct mm_stored_block block = {.part = NULL};
    const size_t bytes = range.end - range.first;
    const bool is_here = value->only_copy != NULL &&
                         mm_stored_next_block(value, range.first, bytes, 1, bytes, &block) &&
                         block.row_bytes == bytes && block.part->device == device;
    return is_here ? (void *)((uintptr_t)block.part->data - block.part->first) : NULL;
}

size_t mm_stored_absent_bytes(const struct mm_stored *value, struct mm_stored_range range,
                              const struct mm_device *device) {
    struct mm_stored_block block = {.part = NULL};
    const size_t bytes = range.end - range.first;
    size_t absent = bytes;
    while (value->only_copy != NULL && mm_stored_next_block(value, range.first, bytes, 1, bytes, &block))
        absent -= block.part->device == device ? block.row_bytes : 0;
    const struct mm_device_copy *copy = mm_stored_find_copy(value, device);
    if (copy == NULL)
        return absent;
    const size_t from = __atomic_load_n(&copy->filled.first, __ATOMIC_RELAXED);
    const size_t end = mm_size_min(__atomic_load_n(&copy->filled.end, __ATOMIC_RELAXED), range.end);
    const size_t begin = mm_size_max(from, range.first);
    return mm_size_min(absent, bytes - (end > begin ? end - begin : 0));
}

/* Copies the part's elements of one matrix of the value. */
static enum mm_status read_matrix(const struct mm_stored *value, const struct mm_window *part, size_t index,
                                  char *to, struct mm_error *error) {
    const size_t element_bytes = mm_dtype_bytes(value->dtype), row_bytes = part->cols * element_bytes;
    const size_t pitch = part->all_cols * element_bytes, to_pitch = mm_window_to_ld(part) * element_bytes;
    const size_t first = (index * part->all_rows + part->row) * pitch + part->col * element_bytes;
    struct mm_stored_block block = {.part = NULL};
    enum mm_status status = MM_OK;
    while (status == MM_OK && mm_stored_next_block(value, first, pitch, part->rows, row_bytes, &block)) {
        const struct mm_window here = {.count = 1,
                                       .all_rows = block.rows,
                                       .all_cols = part->all_cols,
                                       .rows = block.rows,
                                       .col = block.at / element_bytes,
                                       .cols = block.row_bytes / element_bytes,
                                       .to_ld = mm_window_to_ld(part)};
        status =
            block.part->read(block.part, &here, value->dtype, to + block.row * to_pitch + block.byte, error);
    }
    return status;
}

/* Copies elements of a value that lies in parts. All rows of a stack are like those of one matrix. */
static enum mm_status read_parts(const struct mm_stored *value, struct mm_window part, char *to,
                                 struct mm_error *error) {
    enum mm_status status = MM_OK;
    if (part.rows == part.all_rows) {
        part.rows *= part.count;
        part.count = 1;
    }
    const size_t bytes = part.rows * mm_window_to_ld(&part) * mm_dtype_bytes(value->dtype);
    for (size_t index = 0; index < part.count && status == MM_OK; index++)
        status = read_matrix(value, &part, index, to + index * bytes, error);
    return status;
}

enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error) {
    const enum mm_status status = mm_device_copy_check(value->only_copy, error);
    if (status != MM_OK || mm_window_elements(part) == 0)
        return status;
    if (value->only_copy != NULL && value->only_copy->next_part != NULL)
        return read_parts(value, *part, to, error);
    if (value->only_copy != NULL)
        return value->only_copy->read(value->only_copy, part, value->dtype, to, error);
    mm_window_pack(part, value->dtype, value->data, to);
    return MM_OK;
}
