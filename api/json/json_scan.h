/* Reads a JSON request while it arrives: elements go straight into memory of their type, all other members
 * into the endpoint's struct. Finds what is wrong with the body, and where. */
#pragma once

#include "api/codec.h"
#include "api/json/json_store.h"
#include "api/json/json_text.h"

/* The first fault in an operand's shape: it is no array; an array is not as long as the first one of its
 * depth; a number and an array are beside each other; arrays are too deep. */
enum mm_json_wrong { MM_JSON_RIGHT, MM_JSON_NO_ARRAY, MM_JSON_RAGGED, MM_JSON_MIXED, MM_JSON_DEEP };

/* A place in an operand: a[1][0] has two indices. */
struct mm_json_indices {
    unsigned count;
    size_t of[MM_RANK_MAX];
};

enum { MM_JSON_LIST_MAX = 200 };

struct mm_json_scanned {
    bool seen;
    bool has_source; /* it is an object: generated or stored */
    bool has_from;   /* the object has the member `from` */
    size_t offset;   /* of its elements in the store */

    /* The rank is 0 until the first element, or the first empty array, sets it. Dimensions are counted from
     * 1, and those from `known` on are known: the first array of each depth sets its dimension. */
    struct mm_shape shape;
    unsigned known;

    enum mm_json_wrong wrong;
    struct mm_json_indices wrong_at;
    size_t wrong_length;              /* with MM_JSON_RAGGED */
    struct mm_json_token wrong_token; /* the token there, or the end of the array */

    bool has_refused; /* the type does not hold an element; the first such one */
    struct mm_json_indices refused_at;
    struct mm_json_token refused;
};

/* One thread at a time may use a scan. */
struct mm_json_scan {
    struct mm_operands *into; /* copy behind this struct, with all parameters so far */
    struct mm_error error;    /* of the first member with a wrong name or value; MM_OK: none */
    bool is_over;             /* all was read; `event` says how it ended */
    enum mm_json_event event;

    enum mm_dtype dtype; /* type that the elements are read as */
    struct mm_json_store store;
    struct mm_json_scanned operands[MM_OPERANDS_MAX];
    struct mm_json_scanned *last; /* operand whose elements come last in the store; NULL: none yet */

    /* How far the text was read. */
    uint64_t body_bytes;
    struct mm_json_reader reader;
    uint64_t members; /* members so far; bits as in struct mm_parameters */
    struct mm_json_token name;
    const struct mm_parameter *row;   /* of the current member; NULL: unknown name */
    struct mm_json_scanned *operand;  /* of the current member; NULL: no operand */
    bool in_list;                     /* the current member's value is a list */
    char list_text[MM_JSON_LIST_MAX]; /* its items with commas between them, as in a query */
    size_t list_length;
    unsigned level;             /* open arrays of the operand, without those that count as elements */
    size_t counts[MM_RANK_MAX]; /* how many items each open array has so far */
    bool is_again;              /* second scan: the members are known */
};

/* Reads JSON bodies; each `reading` is a struct mm_json_scan. Elements are read as the operands' dtype,
 * unless the body names another before its first matrix. They are stored in memory of the reservation: at
 * most limits->memory_bytes_max, and 64 bytes to align the second matrix.
 *
 * `finish` reports malformed elements before exceeded limits. It scans the body a second time, into memory of
 * the right size, if the body names the type behind the elements, or if memory was short. */
extern const struct mm_body_reader mm_json_reader;

/* --- what json_decode.c uses */

void *mm_json_scan_begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                         const struct mm_limits *limits, struct mm_reservation *memory);
size_t mm_json_scan_feed(void *reading, void *body, size_t body_bytes);
void mm_json_scan_yield(void *reading);
bool mm_json_scan_is_quick(const void *reading);
void mm_json_scan_cancel(void *reading);

/* Reads the rest of the text, which is complete now. */
void mm_json_scan_complete(struct mm_json_scan *scan, const struct mm_body *body);

/* Scans a complete body again, with elements of this type. The scan takes over the storage; if the storage
 * has no data, the elements are only checked. */
void mm_json_scan_again(struct mm_json_scan *scan, enum mm_dtype dtype, struct mm_buffer storage,
                        const struct mm_body *body);

/* --- what json_scan.c uses of json_parameter.c */

/* Finds which member the current name is. MM_JSON_NAME, or MM_JSON_FAULT if the member came before. */
enum mm_json_event mm_json_read_name(struct mm_json_scan *scan, const char *text);

/* Reads a value within `depth` arrays and objects; is_open: only its beginning. False if it is no parameter,
 * list or source. */
bool mm_json_read_parameter(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text);

/* Sets a parameter whose list ends. */
void mm_json_end_list(struct mm_json_scan *scan, const char *text);
