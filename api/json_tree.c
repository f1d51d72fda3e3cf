/* JSON bodies of any kind, by Jansson's tree of the whole: slow, large, and complete. It reads what
 * json_scan.c leaves alone, finds the words for whatever is wrong with a body, and is what tests hold the
 * scanner against. */
#include "api/json_tree.h"

#include "api/json_matrix.h"
#include "api/json_members.h"

enum { STORAGE_ALIGNMENT = 64 };

/* Trees of smaller bodies are not counted: there are never more of them than threads that parse. */
enum { UNCOUNTED_BODY_BYTES = 64 << 10 };

/* Large pieces are whole pages, and of one token there are up to four at a time. */
enum { PIECES_ROUNDED_BYTES = 4 * 4096 };

/* What Jansson takes of memory for a body at most, which is many times the body. With the head that
 * json_value.c puts ahead of each piece, a number behind its comma takes 48 bytes and a place in a growing
 * table, an array 160 and more, an object 256. And of one token, which can be the whole body, it holds twice
 * the length in a buffer that has grown by doubling, a copy, and of a name another one. Measured with
 * Jansson 2.14 and glibc 2.36 over bodies of one kind each, at the size where each takes most, these weights
 * came to 1.002 times what it took (one name), 1.03 (`"",`), 1.22 (`1,`) and up to 2.0 where more is made of
 * the body; of `true`, which is a place in a table alone, to 4.2. */
static size_t tree_bytes_max(const struct mm_body *body) {
    const unsigned char *text = body->data;
    size_t bytes = 4 * body->bytes + PIECES_ROUNDED_BYTES;
    if (body->bytes <= UNCOUNTED_BODY_BYTES)
        return 0;
    for (size_t index = 0; index < body->bytes; index++)
        bytes += (text[index] == ',') * 80u + (text[index] == '[') * 192u + (text[index] == '{') * 384u +
                 (text[index] == ':') * 128u + (text[index] == '"') * 16u;
    return bytes;
}

/* Everything but the elements: the parameters, and the shapes of the operands. */
static enum mm_status read_members(struct mm_call *call, json_t *root, struct mm_error *error) {
    struct mm_matrix *const views[] = {&call->a, &call->b};
    enum mm_status status = mm_json_set_parameters(call, root, error);
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++)
        status = mm_json_matrix_shape(json_object_get(root, mm_json_operands[index]), mm_json_operands[index],
                                      call->dtype, views[index], error);
    return status;
}

/* Finds room for both matrices in one buffer, once their sizes are judged. Empty ones need none. */
static enum mm_status acquire_storage(struct mm_call *call, const struct mm_limits *limits,
                                      struct mm_buffers *buffers, struct mm_error *error) {
    size_t a_bytes, b_bytes;
    enum mm_status status = mm_call_sizes(call, limits, &a_bytes, &b_bytes, error);
    if (status != MM_OK || a_bytes + b_bytes == 0)
        return status;
    size_t b_offset = (a_bytes + STORAGE_ALIGNMENT - 1) / STORAGE_ALIGNMENT * STORAGE_ALIGNMENT;
    status = mm_buffers_acquire(buffers, b_offset + b_bytes, &call->storage, error);
    if (status != MM_OK)
        return status;
    call->a.data = call->storage.data;
    call->b.data = (char *)call->storage.data + b_offset;
    return MM_OK;
}

static enum mm_status read_elements(struct mm_call *call, const json_t *root, enum mm_json_bound bound,
                                    bool *undecided, struct mm_error *error) {
    const struct mm_matrix *const views[] = {&call->a, &call->b};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++)
        status = mm_json_matrix_read(json_object_get(root, mm_json_operands[index]), mm_json_operands[index],
                                     bound, views[index], undecided, error);
    return status;
}

/* The sizes pass a limit; but a body that is malformed besides, as far as its first reading tells, is told
 * that first. */
static enum mm_status judge_elements(struct mm_call *call, const json_t *root, enum mm_json_bound bound,
                                     struct mm_error *error) {
    struct mm_error malformed;
    bool undecided = false;
    if (read_elements(call, root, bound, &undecided, &malformed) == MM_OK)
        return MM_TOO_LARGE;
    if (error != NULL)
        *error = malformed;
    return malformed.status;
}

/* Of float32 the second parse is rare (an element within a double's precision of a midpoint), and there
 * is a third only where parse replaces an integer: hostile numbers cost three times the time, no more. */
static enum mm_status decode_body(struct mm_call *call, const struct mm_body *body,
                                  const struct mm_limits *limits, struct mm_buffers *buffers,
                                  struct mm_error *error) {
    json_t *root = NULL;
    enum mm_json_bound bound = MM_JSON_LOWER;
    bool undecided = false;
    enum mm_status status = mm_json_parse(call, body, &bound, &root, error);
    if (status == MM_OK)
        status = read_members(call, root, error);
    if (status == MM_OK)
        status = acquire_storage(call, limits, buffers, error);
    if (status == MM_TOO_LARGE)
        status = judge_elements(call, root, bound, error);
    if (status == MM_OK)
        status = read_elements(call, root, bound, &undecided, error);
    json_decref(root);
    root = NULL;
    if (status == MM_OK && undecided) {
        bound = mm_json_second_bound(call->dtype);
        status = mm_json_parse(call, body, &bound, &root, error);
        if (status == MM_OK)
            status = read_elements(call, root, bound, &undecided, error);
        json_decref(root);
    }
    if (status == MM_OK)
        status = mm_call_resolve(call, error);
    if (status != MM_OK)
        mm_call_release(call, buffers);
    return status;
}

enum mm_status mm_json_tree_decode(struct mm_call *call, const struct mm_body *body,
                                   const struct mm_limits *limits, struct mm_buffers *buffers,
                                   struct mm_error *error) {
    size_t tree_bytes = tree_bytes_max(body);
    enum mm_status status = tree_bytes == 0 ? MM_OK : mm_buffers_reserve(buffers, tree_bytes, error);
    if (status != MM_OK)
        return status;
    status = decode_body(call, body, limits, buffers, error);
    if (tree_bytes > 0)
        mm_buffers_unreserve(buffers, tree_bytes);
    if (status == MM_BUSY && error != NULL)
        error->needed_bytes += tree_bytes; /* which was held when the matrices found no room */
    return status;
}
