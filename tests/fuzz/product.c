/* The tables. Each row's result is [[19,22,2],[43,50,4]]. */
#include "tests/fuzz/product.h"

#include <string.h>

#define JSON "application/json"
#define RAW "application/octet-stream"
#define NPY "application/x-npy"
#define FORM "multipart/form-data; boundary=fuzz"

/* Floats as they are stored, little-endian. */
#define F0 "\0\0\0\0"
#define F1 "\0\0\x80\x3f"
#define F2 "\0\0\0\x40"
#define F3 "\0\0\x40\x40"
#define F4 "\0\0\x80\x40"
#define F5 "\0\0\xa0\x40"
#define F6 "\0\0\xc0\x40"
#define F7 "\0\0\xe0\x40"
#define F8 "\0\0\0\x41"
#define F19 "\0\0\x98\x41"
#define F22 "\0\0\xb0\x41"
#define F43 "\0\0\x2c\x42"
#define F50 "\0\0\x48\x42"
#define A F1 F2 F3 F4
#define A_TURNED F1 F3 F2 F4
#define B F5 F6 F0 F7 F8 F1
#define B_TURNED F5 F7 F6 F8 F0 F1
#define C F19 F22 F2 F43 F50 F4
#define C_TURNED F19 F43 F22 F50 F2 F4

#define FIELD(name, value) "--fuzz\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
/* NumPy's format 1.0, with a header of 60 bytes. */
#define FILE_OF(order, shape, elements)                                                                      \
    "\x93NUMPY\x01\0\x3c\0{'descr': '<f4', 'shape': " shape ", 'fortran_order': " order " \n" elements
#define FORM_END "--fuzz--\r\n"

#define ROW(target, type, natural, variant, body)                                                            \
    { target, type, natural, variant, body, sizeof(body) - 1 }
static const struct product products[] = {
    ROW("/v1/matmul", JSON, JSON, "naive",
        "{\"a\":[[1,2],[3,4]], \"b\":[[5,6,0],[7,8,1.0]],\"variant\":\"naive\"}"),
    ROW("/v1/matmul", JSON, JSON, "tiled_8",
        "{\"variant\":\"tiled_8\",\"transpose_a\":true,\"transpose_b\":true,\"b\":[[5,7],[6,8],[0,1]],"
        "\"a\":[[1,3],[2,4]]}"),
    ROW("/v1/matmul?m=2&k=2&n=3&variant=tiled_16", RAW, RAW, "tiled_16", A B),
    ROW("/v1/matmul?m=2&k=2&n=3&transpose_a=1&transpose_b=true", RAW, RAW, NULL, A_TURNED B_TURNED),
    ROW("/v1/matmul", FORM, NPY, "naive",
        FIELD("variant", "naive") FIELD("a", FILE_OF("False,}", "(2, 2)", A))
            FIELD("b", FILE_OF("False,}", "(2, 3)", B)) FIELD("transpose_a", "0") FORM_END),
    ROW("/v1/matmul", FORM, NPY, NULL,
        FIELD("a", FILE_OF("True, }", "(2, 2)", A_TURNED)) FIELD("transpose_b", "true")
            FIELD("b", FILE_OF("True, }", "(3, 2)", B)) FORM_END),
    ROW("/v1/transpose", JSON, JSON, "naive", "{\"a\":[[19,43],[22,50],[2,4]],\"variant\":\"naive\"}"),
    ROW("/v1/transpose?m=3&n=2", RAW, RAW, NULL, C_TURNED),
    ROW("/v1/transpose", FORM, NPY, NULL, FIELD("a", FILE_OF("True, }", "(3, 2)", C)) FORM_END),
};

static const struct product_accept accepts[] = {
    {NULL, NULL},
    {JSON, JSON},
    {RAW, RAW},
    {NPY, NPY},
    {"*/*", NULL},
    {"text/html, application/x-npy;q=0.2, application/json;q=0.1", NPY},
    {"application/*", NULL},
};

const struct product *product_take(struct input *input) {
    return &products[input_byte(input) % (sizeof products / sizeof products[0])];
}

const struct product_accept *product_take_accept(struct input *input) {
    return &accepts[input_byte(input) % (sizeof accepts / sizeof accepts[0])];
}

static void judge_elements(struct piece bytes) {
    REQUIRE(bytes.bytes == sizeof C - 1 && memcmp(bytes.text, C, sizeof C - 1) == 0);
}

static struct piece skip_header(struct piece file) {
    REQUIRE(file.bytes >= 10 && memcmp(file.text, "\x93NUMPY\x01\x00", 8) == 0);
    const size_t header = 10 + (unsigned char)file.text[8] + 256 * (size_t)(unsigned char)file.text[9];
    REQUIRE(header <= file.bytes && header % 64 == 0);
    return (struct piece){file.text + header, file.bytes - header};
}

void product_judge(const struct product *product, const struct product_accept *accept,
                   const struct reply *reply) {
    static const char in_json[] = "\"c\": [[19,22,2],[43,50,4]]";
    const char *type = accept->type != NULL ? accept->type : product->natural_type;
    REQUIRE(piece_is(reply_header(reply, "Content-Type"), type));
    REQUIRE(piece_is(reply_header(reply, "Matmul-Shape"), "2, 3"));
    REQUIRE(piece_is(reply_header(reply, "Matmul-Dtype"), "float32"));
    REQUIRE(product->variant == NULL || piece_is(reply_header(reply, "Matmul-Variant"), product->variant));
    if (strcmp(type, JSON) == 0)
        REQUIRE(memmem(reply->body.text, reply->body.bytes, in_json, sizeof in_json - 1) != NULL);
    else
        judge_elements(strcmp(type, NPY) == 0 ? skip_header(reply->body) : reply->body);
}
