/* The Open Inference Protocol, version 2 (https://github.com/kserve/open-inference-protocol), with Triton's
 * binary tensor data. This folder reads infer requests, writes their replies, and describes models. Which
 * models exist depends on the devices, which this folder does not know. */
#pragma once

#include "api/call.h"
#include "api/codec.h"
#include "api/json/json_text.h"
#include "api/slice.h"

#include <stdio.h>

#define MM_OIP_VERSION "1" /* the only version of each model */
#define MM_OIP_EXAMPLE                                                                                       \
    "{\"inputs\": [{\"name\": \"A\", \"shape\": [1, 2], \"datatype\": \"FP32\", \"data\": [1, 2]}, "         \
    "{\"name\": \"B\", \"shape\": [2, 1], \"datatype\": \"FP32\", \"data\": [3, 4]}]}"

enum {
    MM_OIP_ID_MAX = 256,
    MM_OIP_HEAD_MAX = 1 << 20, /* bytes of a request's JSON without the elements */
    MM_OIP_ALIGNMENT = 64      /* the binary data begin at a multiple of this in memory */
};

/* A model: matmul, matmul.VARIANT, matmul.TYPE or matmul.VARIANT.TYPE. */
struct mm_oip_model {
    char variant[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if the name has no variant */
    bool is_typed;                           /* the name has a type */
    enum mm_dtype dtype;                     /* the type of A and B in the metadata */
};

enum { MM_OIP_MODEL_MAX = sizeof "matmul..UINT8" + MM_PARAMETER_NAME_MAX };

/* Writes a model's name without a NUL, and returns the end. */
char *mm_oip_put_model(char *end, const struct mm_oip_model *model);

/* Returns the protocol's name of a type, such as "FP32"; NULL if the protocol lacks the type. */
const char *mm_oip_datatype(enum mm_dtype dtype);

bool mm_oip_find_datatype(struct mm_slice name, enum mm_dtype *dtype);

/* Reads a model's name. The type is float32 if the name has none. False if no model can have this name. Any
 * thread may call it. */
bool mm_oip_model_read(struct mm_slice name, struct mm_oip_model *model);

/* An infer request. One thread at a time uses it. */
struct mm_oip_call {
    struct mm_call call; /* must be first: pointers to it are cast to this struct */
    struct mm_oip_model model;
    size_t json_bytes;          /* length of the JSON before the binary data; SIZE_MAX: all of the body */
    size_t lead_bytes;          /* unused bytes before the JSON in the body's memory */
    bool binary_default;        /* the parameter binary_data_output */
    bool is_binary;             /* C is sent as binary data; set by the codec */
    char id[MM_OIP_ID_MAX + 1]; /* "" if none */
};

/* Initializes a request for a model. `model` is copied. */
void mm_oip_call_init(struct mm_oip_call *call, const struct mm_oip_model *model);

/* Reads the bodies of infer requests. `into` must be the first member of a struct mm_oip_call. */
extern const struct mm_codec mm_oip_codec;

/* Returns the codec that writes the reply to a decoded request. */
const struct mm_codec *mm_oip_reply(const struct mm_oip_call *call);

/* Writes an error as {"error": "…"}. Returns malloc'ed text, which the caller frees, or NULL if memory runs
 * out. */
char *mm_oip_error_json(const struct mm_error *error, const char *request_id, size_t *length);

/* Counts of a model's requests and their times. The counting threads use __atomic access. */
struct mm_oip_stats {
    uint64_t success, success_ns;
    uint64_t queue_ns, upload_ns, kernel_ns, download_ns; /* of the successful requests */
    uint64_t launch_millionths; /* launches; a product in a launch of ten products counts a tenth */
    uint64_t fail, fail_ns;
} __attribute__((aligned(64)));

/* Write a model's name, metadata, configuration, entry in the repository's index, or statistics, as JSON. */
typedef void mm_oip_writer(FILE *out, const struct mm_oip_model *model, const struct mm_oip_stats *stats);
mm_oip_writer mm_oip_put_name, mm_oip_put_metadata, mm_oip_put_config, mm_oip_put_index, mm_oip_put_stats;

/* --- for the files of this folder */

struct mm_oip_head;

/* An input of a request, as its JSON describes it. */
struct mm_oip_input {
    struct mm_parameters parameters; /* must be first: pointers to it are cast to this struct */
    struct mm_oip_head *head;        /* must be second */
    char name[MM_JSON_TEXT_MAX];
    unsigned operand; /* index in operands.of */
    struct mm_shape shape;
    enum mm_dtype dtype;
    bool is_binary;
    size_t binary_bytes;
    char from[MM_JSON_TEXT_MAX]; /* source of the elements; "" if the request has the elements */
    struct mm_slice data;        /* JSON array of the elements, in the body; start is NULL if there is none */
};

struct mm_oip_head {
    struct mm_parameters parameters; /* must be first: pointers to it are cast to this struct */
    struct mm_slice json;
    struct mm_json_reader reader;
    struct mm_oip_call *call;
    char id[MM_OIP_ID_MAX + 1];
    bool has_format; /* the output says whether it is binary */
    unsigned seen;   /* set of operands that are inputs */
    unsigned count;
    struct mm_oip_input inputs[MM_OPERANDS_MAX];
};

/* Names of the inputs, by the operands' indices. */
extern const char *const mm_oip_inputs[MM_OPERANDS_MAX];

/* Reads the JSON of a request: sets *head and `call`, except its operands. Does not read the elements, but
 * finds their places. */
enum mm_status mm_oip_read_head(struct mm_slice json, struct mm_oip_call *call, struct mm_oip_head *head,
                                struct mm_error *error);
