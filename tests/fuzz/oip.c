/* Fuzzes infer requests of the Open Inference Protocol. The first line of the input is the length of the JSON
 * as a decimal number, or empty if the whole body is JSON. The other lines are the body. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const struct mm_oip_model model = {.variant = "auto"};
    struct slice text = {(const char *)data, bytes};
    const struct slice length = fuzz_split(&text, '\n');
    struct decoding decoding;
    mm_oip_call_init(&decoding.infer, &model);
    decoding.infer.json_bytes = length.bytes == 0 ? SIZE_MAX : 0;
    for (size_t index = 0; index < length.bytes && index < 6; index++)
        decoding.infer.json_bytes =
            decoding.infer.json_bytes * 10 + (unsigned char)(length.text[index] - '0');
    fuzz_decode(&decoding, &mm_oip_codec, NULL, text);
    REQUIRE(strlen(decoding.infer.id) <= MM_OIP_ID_MAX);
    fuzz_release(&decoding);
    return 0;
}
