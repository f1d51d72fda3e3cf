/* What outsiders get wrong, and the contract's codes. */
#include "tests/load/refusals.h"

#include <string.h>

#define MATMUL "/v1/matmul"
#define JSON "application/json"
#define RAW "application/octet-stream"
#define BYTES_16 "0123456789abcdef"

static const struct mm_load_refusal refusals[] = {
    {"a and b do not conform", "POST", MATMUL, JSON, NULL, "{\"a\": [[1,2,3]], \"b\": [[1,2,3]]}",
     "bad_shape"},
    {"JSON that is cut off", "POST", MATMUL, JSON, NULL, "{\"a\": [[1,2],[3,4]], \"b\": [[5,6],[7,",
     "bad_request"},
    {"an empty body", "POST", MATMUL, JSON, NULL, "", "bad_request"},
    {"ragged rows", "POST", MATMUL, JSON, NULL, "{\"a\": [[1,2],[3]], \"b\": [[5,6],[7,8]]}", "bad_request"},
    {"a member twice", "POST", MATMUL, JSON, NULL, "{\"a\": [[1]], \"a\": [[1]], \"b\": [[1]]}",
     "bad_request"},
    {"an unknown parameter", "POST", MATMUL "?colour=1", JSON, NULL, "{\"a\": [[1]], \"b\": [[1]]}",
     "bad_request"},
    {"an unknown variant", "POST", MATMUL, JSON, NULL, "{\"a\": [[1]], \"b\": [[1]], \"variant\": \"magic\"}",
     "unsupported"},
    {"an unknown dtype", "POST", MATMUL "?m=2&k=1&n=2&dtype=float31", RAW, NULL, BYTES_16, "unsupported"},
    {"too few bytes", "POST", MATMUL "?m=2&k=2&n=2", RAW, NULL, BYTES_16, "bad_request"},
    {"too many bytes", "POST", MATMUL "?m=1&k=1&n=1", RAW, NULL, BYTES_16, "bad_request"},
    {"rows longer than lda", "POST", MATMUL "?m=1&k=2&n=1&lda=1", RAW, NULL, BYTES_16, "bad_request"},
    {"a dimension past all limits", "POST", MATMUL "?m=99999999999999999999&k=1&n=1", RAW, NULL, BYTES_16,
     "too_large"},
    {"a product past all memory", "POST", MATMUL "?m=2000000000&k=1&n=2000000000", RAW, NULL, BYTES_16,
     "too_large"},
    {"a picture", "POST", MATMUL, "image/png", NULL, BYTES_16, "unsupported_media_type"},
    {"wants a page", "POST", MATMUL, JSON, "text/html", "{\"a\": [[1]], \"b\": [[1]]}", "not_acceptable"},
    {"no such path", "POST", "/v1/matmull", JSON, NULL, "{\"a\": [[1]], \"b\": [[1]]}", "not_found"},
    {"not by PUT", "PUT", MATMUL, JSON, NULL, "{\"a\": [[1]], \"b\": [[1]]}", "method_not_allowed"},
};

/* Of tests/http/faulty, which calls itself cuda: its variants fail where the product has one row. */
static const struct mm_load_refusal faults[] = {
    {"a launch that fails", "POST", MATMUL "?m=1&k=2&n=1&backend=cuda&variant=fails", RAW, NULL, BYTES_16,
     "internal"},
    {"a device without memory", "POST", MATMUL "?m=1&k=2&n=1&backend=cuda&variant=needs_memory", RAW, NULL,
     BYTES_16, "no_device_memory"},
};

const struct mm_load_code mm_load_codes[MM_LOAD_CODE_COUNT] = {
    {"ok", 200},
    {"bad_request", 400},
    {"unauthorized", 401},
    {"forbidden", 403},
    {"not_found", 404},
    {"method_not_allowed", 405},
    {"not_acceptable", 406},
    {"request_timeout", 408},
    {"length_required", 411},
    {"too_large", 413},
    {"unsupported_media_type", 415},
    {"bad_shape", 422},
    {"unsupported", 422},
    {"busy", 429},
    {"internal", 500},
    {"device_failed", 500},
    {"stopping", 503},
    {"not_ready", 503},
    {"timeout", 504},
    {"no_device_memory", 507},
};

const struct mm_load_refusals mm_load_refusals = {refusals, sizeof refusals / sizeof refusals[0]};
const struct mm_load_refusals mm_load_faults = {faults, sizeof faults / sizeof faults[0]};

size_t mm_load_code_find(const char *name) {
    size_t index = 0;
    while (index < MM_LOAD_CODE_COUNT && strcmp(mm_load_codes[index].name, name) != 0)
        index++;
    return index;
}
