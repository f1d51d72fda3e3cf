/* Reads a JSON request while it arrives. Stores elements in memory of their type, and all other members in
 * the endpoint's struct. Finds what is wrong with the body, and where. */
#pragma once

#include "api/codec.h"
#include "api/json/json_store.h"
#include "api/json/json_text.h"

/* The first fault in an operand's shape. */
enum mm_json_wrong {
    MM_JSON_RIGHT,    /* no fault */
    MM_JSON_NO_ARRAY, /* the operand is no array */
    MM_JSON_RAGGED,   /* an array is not as long as the first array of its depth */
    MM_JSON_MIXED,    /* an array contains both numbers and arrays */
    MM_JSON_DEEP      /* arrays are nested too deep */
};

/* The place of an element or array in an operand: a[1][0] has two indices. */
struct mm_json_indices {
    unsigned count;
    size_t of[MM_RANK_MAX];
};

enum { MM_JSON_LIST_MAX = 200 }; /* bytes of a parameter's list as text, with a NUL */

/* What the scan found of one operand. */

struct mm_json_scanned {
    bool seen;
    bool has_source; /* the operand is an object: generated or stored */
    bool has_from;   /* the object has the member `from` */
    size_t offset;   /* offset in bytes of the operand's elements in the store */

    /* The rank is 0 until the first element or the first empty array. The first array of each depth sets its
     * dimension when it ends, so inner dimensions are known first: dims[known - 1] and those after it. */
    struct mm_shape shape;
    unsigned known;

    enum mm_json_wrong wrong;
    struct mm_json_indices wrong_at;
    size_t wrong_length;              /* with MM_JSON_RAGGED */
    struct mm_json_token wrong_token; /* the token at wrong_at, or the end of the array */

    bool has_refused; /* the type cannot represent an element; `refused` is the first such element */
    struct mm_json_indices refused_at;
    struct mm_json_token refused;
};

/* One thread at a time may use a scan. */
struct mm_json_scan {
    struct mm_operands *into; /* a copy that lies behind this struct, with all parameters read so far */
    struct mm_error error;    /* the error of the first member with a wrong name or value; MM_OK: none */
    bool is_over;             /* the reading has ended with `event` */
    enum mm_json_event event;

    enum mm_dtype dtype; /* type of the elements in the store */
    struct mm_json_store store;
    struct mm_json_scanned operands[MM_OPERANDS_MAX];
    struct mm_json_scanned
        *last; /* the operand whose elements are last in the store; NULL: the store is empty */

    /* The position in the text. */
    uint64_t body_bytes; /* length of the body, or MM_LENGTH_UNKNOWN */
    struct mm_json_reader reader;
    uint64_t members;                 /* the members that were read; bits as in struct mm_parameters */
    struct mm_json_token name;        /* name of the current member */
    const struct mm_parameter *row;   /* the current member's row; NULL: unknown name */
    struct mm_json_scanned *operand;  /* the current member's operand; NULL: the member is no operand */
    bool in_list;                     /* the current member's value is a list */
    char list_text[MM_JSON_LIST_MAX]; /* the list's items with commas between them, as in a query */
    size_t list_length;
    unsigned level;             /* how many arrays of the operand are open, up to its rank */
    size_t counts[MM_RANK_MAX]; /* how many items of each open array were read */
    bool is_again;              /* this is the second scan: only elements are read */
};

/* Reads JSON bodies; each `reading` is a struct mm_json_scan. Elements get the operands' dtype, unless the
 * body names another one before its first matrix. Their memory comes from the reservation: at most
 * limits->memory_bytes_max, and 64 bytes to align the second matrix.
 *
 * `finish` reports malformed elements before exceeded limits. If the body names the type after the elements,
 * or memory was short, it scans the body again, into memory of the right size. */
extern const struct mm_body_reader mm_json_reader;

/* --- what json_decode.c uses */

void *mm_json_scan_begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                         const struct mm_limits *limits, struct mm_reservation *memory);
size_t mm_json_scan_feed(void *reading, void *body, size_t body_bytes);
void mm_json_scan_yield(void *reading);
bool mm_json_scan_is_quick(const void *reading);
void mm_json_scan_cancel(void *reading);

/* Reads the rest of a complete body. */
void mm_json_scan_complete(struct mm_json_scan *scan, const struct mm_body *body);

/* Scans a complete body again, with elements of this type. The scan then owns the storage. If the storage
 * has no data, the elements are only checked. */
void mm_json_scan_again(struct mm_json_scan *scan, enum mm_dtype dtype, struct mm_buffer storage,
                        const struct mm_body *body);

/* --- what json_scan.c uses of json_parameter.c */

/* Sets scan->row and scan->operand for the current name. Returns MM_JSON_NAME, or MM_JSON_FAULT if the body
 * has the member twice. */
enum mm_json_event mm_json_read_name(struct mm_json_scan *scan, const char *text);

/* Reads the value of a parameter, of a list's item, or of a source. False if the current value is none of
 * these. The value lies within `depth` arrays and objects. is_open: it is an array or object, of which only
 * the bracket was read. */
bool mm_json_read_parameter(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text);

/* Ends a list, and sets its parameter. */
void mm_json_end_list(struct mm_json_scan *scan, const char *text);
