/* Checks the types, shapes and lengths of a form's files, and makes operands of them. A view points into the
 * body if possible; otherwise the elements are copied. */
#include "api/form/form_operands.h"

#include <assert.h>
#include <string.h>

static bool is_npy(const struct mm_form_operand *operand) {
    return operand->seen && !operand->is_csv;
}

/* Lists the .npy files that decide the element type: all except c and the bias. */
static unsigned list_npy_files(const struct mm_form *form,
                               const struct mm_form_operand *files[MM_OPERANDS_MAX]) {
    unsigned count = 0;
    for (unsigned index = 0; index < form->into->count; index++)
        if (is_npy(&form->operands[index]) && !form->into->of[index].role.is_optional)
            files[count++] = &form->operands[index];
    return count;
}

/* Checks that these .npy files have one element type. If the client gave dtype (`asked`), the files must have
 * that type. If NumPy does not know a file's type, the client must give dtype. */
static enum mm_status check_dtypes(const struct mm_form *form, const struct mm_form_operand *const *files,
                                   unsigned count, const char *asked, struct mm_error *error) {
    const struct mm_npy_header *first = &files[0]->header;
    const char *first_name = mm_dtype_name(first->dtype);
    char names[MM_OPERANDS_MAX * MM_PARAMETER_NAME_MAX] = "";
    for (unsigned index = 0; index < count; index++) {
        const struct mm_form_operand *file = files[index];
        strcat(strcat(names, index > 0 ? " and " : ""), file->name);
        if (file->header.dtype != first->dtype)
            return mm_fail_field(error, MM_BAD_REQUEST, file->name,
                                 "%s has elements of type %s ('%s'), but %s of type %s ('%s'); convert one, "
                                 "as NumPy does by %s.astype(%s.dtype)",
                                 file->name, mm_dtype_name(file->header.dtype), file->header.descr,
                                 files[0]->name, first_name, first->descr, file->name, files[0]->name);
    }
    if (first->is_void && asked == NULL)
        return mm_fail_field(error, MM_UNSUPPORTED, "dtype",
                             "the elements of %s are of type '%s', which NumPy writes for types that it does "
                             "not know; if they are %s, add %sdtype=%s",
                             names, first->descr, first_name, form->is_alone ? "?" : "-F ", first_name);
    if (asked != NULL && strcmp(asked, first_name) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, "dtype",
                             "dtype is '%s', but the elements of %s are of type %s ('%s'); %s", asked, names,
                             first_name, first->descr,
                             first->is_void ? "give that type, or convert them"
                                            : "leave dtype out, since a .npy file names its type");
    return MM_OK;
}

/* Sets the element type of all operands: the type of the .npy files, or dtype if all files are CSV. */
static enum mm_status set_dtype(struct mm_form *form, struct mm_error *error) {
    struct mm_operands *into = form->into;
    const struct mm_form_operand *files[MM_OPERANDS_MAX];
    const unsigned count = list_npy_files(form, files);
    const bool is_asked = mm_parameter_is_set(&into->parameters, into->dtype_name);
    enum mm_status status = is_asked || count == 0 ? into->kind->resolve(into, error) : MM_OK;
    if (status != MM_OK || count == 0)
        return status;
    status = check_dtypes(form, files, count, is_asked ? into->dtype_name : NULL, error);
    if (status != MM_OK)
        return status;
    strcpy(into->dtype_name, mm_dtype_name(files[0]->header.dtype));
    /* dtype now counts as set, so a stored operand of another type is an error. */
    into->parameters.derived |= mm_parameter_bit(&into->parameters, into->dtype_name);
    return into->kind->resolve(into, error);
}

/* Checks that the .npy files of optional operands have the result's type. */
static enum mm_status check_optional_types(const struct mm_form *form, struct mm_error *error) {
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < form->into->count && status == MM_OK; index++) {
        const struct mm_operand *operand = &form->into->of[index];
        if (operand->role.is_optional && is_npy(&form->operands[index]))
            status = mm_operand_check_type(form->into, operand, form->operands[index].header.dtype, error);
    }
    return status;
}

/* Returns the shape of a CSV file: a vector if it is a bias of one line or one column, otherwise a matrix. */
static struct mm_shape csv_shape(const struct mm_csv *csv, unsigned index) {
    if (index == MM_OPERAND_BIAS && (csv->rows <= 1 || csv->cols <= 1))
        return (struct mm_shape){.rank = 1, .dims = {csv->rows * csv->cols}};
    return mm_shape_of_matrix(csv->rows, csv->cols);
}

static enum mm_status open_csv(struct mm_form *form, const char *body, struct mm_error *error) {
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < form->into->count && status == MM_OK; index++) {
        struct mm_form_operand *operand = &form->operands[index];
        if (!operand->is_csv)
            continue;
        status = mm_csv_open(operand->name, body + operand->elements, operand->bytes,
                             mm_operand_dtype(form->into, &form->into->of[index]), &operand->csv, error);
        operand->header.shape = csv_shape(&operand->csv, index);
    }
    return status;
}

bool mm_form_is_copied(const struct mm_form *form, const struct mm_form_operand *operand) {
    const struct mm_operand *of = form->into->of;
    const bool is_viewed = !form->into->kind->is_row_major &&
                           (operand != &form->operands[MM_OPERAND_ADDEND] ||
                            (of[MM_OPERAND_A].shape.rank > 1 && of[MM_OPERAND_B].shape.rank > 1));
    const unsigned viewed_rank = is_viewed ? 2 : 1;
    return operand->is_csv || (operand->header.is_fortran && operand->header.shape.rank > viewed_rank);
}

/* Copies into one block all elements that no view can describe. bytes[i] is the size of operand i. */
static enum mm_status copy_files(struct mm_form *form, const char *body, const size_t *bytes,
                                 struct mm_error *error) {
    struct mm_operands *into = form->into;
    const struct mm_form_operand *operands = form->operands;
    size_t places[MM_OPERANDS_MAX], all_bytes = 0;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < into->count; index++) {
        places[index] = mm_size_round_up(all_bytes, MM_FORM_ALIGNMENT);
        if (mm_form_is_copied(form, &operands[index]) && bytes[index] > 0)
            all_bytes = places[index] + bytes[index];
    }
    if (all_bytes > 0)
        status = mm_reservation_acquire(form->memory, all_bytes, &into->storage, error);
    for (unsigned index = 0; index < into->count && status == MM_OK; index++) {
        const struct mm_form_operand *operand = &operands[index];
        if (!mm_form_is_copied(form, operand) || bytes[index] == 0)
            continue;
        void *data = into->of[index].view.data = (char *)into->storage.data + places[index];
        if (operand->is_csv)
            status = mm_csv_read(&operand->csv, data, error);
        else
            mm_npy_reorder(&operand->header.shape, into->of[index].view.dtype, body + operand->elements,
                           data);
    }
    if (status != MM_OK)
        mm_operands_release(into, form->memory);
    return status;
}

static enum mm_status check_length(const struct mm_form_operand *operand, size_t bytes,
                                   struct mm_error *error) {
    char shape[MM_NPY_SHAPE_TEXT_MAX];
    const char *name = operand->name;
    const size_t got = operand->bytes;
    if (got == bytes)
        return MM_OK;
    mm_npy_shape_text(&operand->header.shape, shape);
    mm_fail_field(error, MM_BAD_REQUEST, name,
                  "%s has the shape %s of %s by its header, which takes %zu bytes, but %zu bytes follow",
                  name, shape, mm_dtype_name(operand->header.dtype), bytes, got);
    mm_fail_expected(error, "%zu bytes", bytes);
    mm_fail_got(error, "%zu bytes", got);
    return MM_BAD_REQUEST;
}

/* Returns the elements, aligned to `alignment`. Moves unaligned elements down over the end of the header. */
static void *align_elements(const struct mm_form_operand *operand, char *body, size_t bytes,
                            size_t alignment) {
    char *data = body + operand->elements;
    size_t past = (uintptr_t)data % alignment;
    if (bytes == 0)
        return NULL;
    assert(past <= operand->header.bytes);
    return past == 0 ? data : memmove(data - past, data, bytes);
}

static bool is_column_major(const struct mm_form *form, const struct mm_form_operand *operand) {
    return operand->header.is_fortran && operand->header.shape.rank == 2 && !mm_form_is_copied(form, operand);
}

/* Checks that each operand has a file, or is generated or stored. */
static enum mm_status check_parts(const struct mm_form *form, struct mm_error *error) {
    const struct mm_form_operand *operands = form->operands;
    for (unsigned index = 0; index < form->into->count; index++)
        if (!operands[index].seen && mm_operand_is_inline(&form->into->of[index]))
            return mm_fail_field(
                error, MM_BAD_REQUEST, operands[index].name,
                "the form has no part named %s; add a .npy or .csv file, as curl does by -F %s=@%s.npy",
                operands[index].name, operands[index].name, operands[index].name);
    return MM_OK;
}

static enum mm_status set_shapes(struct mm_form *form, size_t *bytes, struct mm_error *error) {
    struct mm_operands *into = form->into;
    const struct mm_form_operand *operands = form->operands;
    const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
    for (unsigned index = 0; index < into->count; index++)
        if (operands[index].seen)
            shapes[index] = &operands[index].header.shape;
    enum mm_status status = mm_operands_set_shapes(into, shapes, error);
    if (status != MM_OK)
        return status;
    if (operands[MM_OPERAND_ADDEND].is_csv)
        mm_operands_reshape_addend(into);
    mm_operands_view(into);
    status = into->kind->sizes(into, form->limits, bytes, error);
    for (unsigned index = 0; index < into->count && status == MM_OK; index++)
        if (operands[index].seen && !operands[index].is_csv)
            status = check_length(&operands[index], bytes[index], error);
    return status;
}

/* Points views into the body, except the views of operands that are copied. */
static void point_views(struct mm_form *form, char *body, const size_t *bytes) {
    struct mm_operands *into = form->into;
    const struct mm_form_operand *operands = form->operands;
    for (unsigned index = 0; index < into->count; index++) {
        into->of[index].column_major = is_column_major(form, &operands[index]);
        if (mm_form_is_copied(form, &operands[index]) || !operands[index].seen)
            continue;
        into->views_body = true;
        into->of[index].view.data =
            align_elements(&operands[index], body, bytes[index], mm_dtype_bytes(into->of[index].view.dtype));
    }
}

enum mm_status mm_form_complete(struct mm_form *form, char *body, struct mm_error *error) {
    size_t bytes[MM_OPERANDS_MAX];
    enum mm_status status = check_parts(form, error);
    if (status == MM_OK)
        status = set_dtype(form, error);
    if (status == MM_OK)
        status = check_optional_types(form, error);
    if (status == MM_OK)
        status = open_csv(form, body, error);
    if (status == MM_OK)
        status = set_shapes(form, bytes, error);
    if (status == MM_OK)
        status = copy_files(form, body, bytes, error);
    if (status == MM_OK)
        point_views(form, body, bytes);
    return status;
}
