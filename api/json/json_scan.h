/* Reads a JSON request while it arrives: elements into a store, parameters into the endpoint's struct. */
#pragma once

#include "api/codec.h"
#include "api/json/json_store.h"
#include "api/json/json_text.h"

/* The first fault that the scan found in an operand's shape. */
enum mm_json_wrong {
    MM_JSON_RIGHT,
    MM_JSON_NO_ARRAY, /* the operand's value is not an array */
    MM_JSON_RAGGED,   /* arrays at one depth differ in length */
    MM_JSON_MIXED,    /* an array contains both numbers and arrays */
    MM_JSON_DEEP      /* arrays are nested more than MM_RANK_MAX deep */
};

/* The indices of an element or array in an operand: a[1][0] has two. */
struct mm_json_indices {
    unsigned count;
    size_t of[MM_RANK_MAX];
};

enum { MM_JSON_LIST_MAX = 200 }; /* bytes of a list parameter as text, with the NUL */

struct mm_json_scanned {
    bool seen;
    bool has_elements;   /* the operand is an array, or a number */
    enum mm_dtype dtype; /* type as which the elements were read */
    bool has_source;     /* the operand is an object such as {"from": "uniform(7)"} */
    bool has_from;       /* the operand's object has the member "from" */
    size_t offset;       /* where the elements begin in the store, in bytes */

    /* The rank is 0 until the first element or the first empty array has been read. A dimension becomes known
     * when the first array at its depth ends, so the last dimension is known first. dims[known - 1] and all
     * later dimensions are known. */
    struct mm_shape shape;
    unsigned known;

    enum mm_json_wrong wrong;
    struct mm_json_indices wrong_at;
    size_t wrong_length;              /* length of the array that differs */
    struct mm_json_token wrong_token; /* the wrong token, or the end of an array of wrong length */

    bool has_refused; /* an element does not fit in the type; `refused` is the first such element */
    struct mm_json_indices refused_at;
    struct mm_json_token refused;
};

/* The state of reading one body. One thread at a time may use it. */
struct mm_json_scan {
    struct mm_operands *into; /* copy of the endpoint's struct, allocated after this struct */
    struct mm_error
        error;    /* error of the first wrong parameter; its status is MM_OK if no parameter was wrong */
    bool is_over; /* nothing more will be read; `event` is final */
    enum mm_json_event event;

    struct mm_json_store store;
    struct mm_json_scanned operands[MM_OPERANDS_MAX];
    struct mm_json_scanned *last; /* operand stored last; NULL if the store is empty */

    uint64_t body_bytes; /* or MM_LENGTH_UNKNOWN */
    struct mm_json_reader reader;
    uint64_t members;                 /* names that were read; bit i is row i of the parameter table */
    struct mm_json_token name;        /* place of the current member's name in the text */
    const struct mm_parameter *row;   /* NULL if the current member's name is unknown */
    struct mm_json_scanned *operand;  /* NULL if the current member is a parameter */
    bool in_list;                     /* the reader is inside a parameter's list */
    char list_text[MM_JSON_LIST_MAX]; /* the list as the query would write it: "2,3" */
    size_t list_length;
    unsigned level;             /* number of open arrays of the current operand */
    size_t counts[MM_RANK_MAX]; /* items read so far in each open array */
    bool is_again;              /* second scan: parameters are already set, so only elements are read */
};

/* Reads JSON bodies. Each `reading` is a struct mm_json_scan. Elements are first stored as the types that the
 * query or earlier members name, otherwise as float32. The reservation provides the memory of the elements:
 * at most limits->memory_bytes_max bytes, plus MM_JSON_PADDING_MAX bytes of padding.
 *
 * `finish` reports malformed elements before exceeded limits. It scans the complete body again if the body
 * names a type after the elements, or if memory was short. The second scan uses memory of the right size. */
extern const struct mm_body_reader mm_json_reader;

/* --- functions of json_scan.c for json_decode.c, most of them for mm_json_reader */

void *mm_json_scan_begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                         const struct mm_limits *limits, struct mm_reservation *memory);
size_t mm_json_scan_feed(void *reading, void *body, size_t body_bytes);

/* For `yield` of mm_json_reader: frees the memory of decoded elements. */
void mm_json_scan_yield(void *reading);

bool mm_json_scan_is_quick(const void *reading);
void mm_json_scan_cancel(void *reading);

/* Reads the rest of a body that has arrived completely. */
void mm_json_scan_complete(struct mm_json_scan *scan, const struct mm_body *body);

/* Whether all elements were read as the types that are known now. */
bool mm_json_scan_is_typed(const struct mm_json_scan *scan);

/* Scans a complete body again, and stores the elements in `storage`, which the scan then owns. Call this
 * after the types are resolved. If storage.data is NULL, the elements are checked but not stored. */
void mm_json_scan_again(struct mm_json_scan *scan, struct mm_buffer storage, const struct mm_body *body);

/* --- functions of json_parameter.c for json_scan.c */

/* Reads the member name that was just scanned: sets scan->row and scan->operand. Returns MM_JSON_NAME, or
 * MM_JSON_FAULT if the body has the member twice. */
enum mm_json_event mm_json_read_name(struct mm_json_scan *scan, const char *text);

/* Reads the current value if it is a parameter, an item of a list, or an operand's source. Returns false for
 * other values. `depth` counts the arrays and objects around the value. is_open: the value is an array or
 * object, and only its opening bracket was read. */
bool mm_json_read_parameter(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text);

/* Ends a list, and sets the parameter to its items. */
void mm_json_end_list(struct mm_json_scan *scan, const char *text);
