/* A JSON request, read while it arrives: elements go straight into memory of their type, all other members
 * into the endpoint's struct. It finds what is wrong with the body, and where. */
#pragma once

#include "api/codec.h"
#include "api/json/json_store.h"
#include "api/json/json_text.h"

/* The first fault in the shape of an operand: it is no array; an array has another length than the first one
 * of its depth; a number and an array stand beside each other; arrays are too deep. */
enum mm_json_wrong { MM_JSON_RIGHT, MM_JSON_NO_ARRAY, MM_JSON_RAGGED, MM_JSON_MIXED, MM_JSON_DEEP };

/* A place in an operand: a[1][0] has two indices. */
struct mm_json_indices {
    unsigned count;
    size_t of[MM_RANK_MAX];
};

enum { MM_JSON_LIST_MAX = 200 };

struct mm_json_scanned {
    bool seen;
    bool has_source; /* it is an object that says how the server makes it */
    bool has_from;   /* by this member */
    size_t offset;   /* of its elements in the store */

    /* The rank is 0 until the first element, or the first array without any, has told it. Of the dimensions,
     * those from `known` on are known, counted from 1: the first array of each depth has told them. */
    struct mm_shape shape;
    unsigned known;

    enum mm_json_wrong wrong;
    struct mm_json_indices wrong_at;
    size_t wrong_length;              /* with MM_JSON_RAGGED */
    struct mm_json_token wrong_token; /* what stands there, or the end of the array */

    bool has_refused; /* an element that the type does not hold: the first one */
    struct mm_json_indices refused_at;
    struct mm_json_token refused;
};

/* One thread at a time, but not always the same one. */
struct mm_json_scan {
    struct mm_operands *into; /* a copy, behind this struct: the query and the members read so far */
    struct mm_error error;    /* of the first member with a wrong name or value; else MM_OK */
    bool is_over;             /* all was read, and `event` tells how it ended */
    enum mm_json_event event;

    enum mm_dtype dtype; /* what the elements are taken for */
    struct mm_json_store store;
    struct mm_json_scanned operands[MM_OPERANDS_MAX];
    struct mm_json_scanned *last; /* the operand whose elements lie last in the store; or NULL */

    /* Where the reading stands. */
    uint64_t body_bytes;
    struct mm_json_reader reader;
    uint64_t members; /* the rows that were members: bits as in struct mm_parameters */
    struct mm_json_token name;
    const struct mm_parameter *row;   /* of the current member; NULL: the name is unknown */
    struct mm_json_scanned *operand;  /* of the current member; NULL: it is no operand */
    bool in_list;                     /* the parameter's value is an array, which is being read */
    char list_text[MM_JSON_LIST_MAX]; /* its items, as the query has them, with commas between */
    size_t list_length;
    unsigned level;             /* how many of its arrays are open, without those that count as elements */
    size_t counts[MM_RANK_MAX]; /* how many elements, or arrays, each of those has by now */
    bool is_again;              /* the members are known */
};

/* Reads bodies into operands; each `reading` is a struct mm_json_scan. Elements are of their dtype, unless
 * the body names another before its first matrix. They are stored in memory of the reservation, of no more
 * than limits->memory_bytes_max, and 64 bytes that align the second matrix.
 *
 * `finish` reports malformed elements before passed limits. It scans the body once more, into memory of the
 * right size, if the body names the type behind the elements, or if memory was short. */
extern const struct mm_body_reader mm_json_reader;

/* --- what json_decode.c makes the reader of */

void *mm_json_scan_begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                         const struct mm_limits *limits, struct mm_reservation *memory);
size_t mm_json_scan_feed(void *reading, void *body, size_t body_bytes);
void mm_json_scan_yield(void *reading);
bool mm_json_scan_is_quick(const void *reading);
void mm_json_scan_cancel(void *reading);

/* Reads the complete text, or what is left of it. */
void mm_json_scan_complete(struct mm_json_scan *scan, const struct mm_body *body);

/* Scans a complete body again, with elements of this type, into this storage, which becomes the scan's; if it
 * holds nothing, only to check them. */
void mm_json_scan_again(struct mm_json_scan *scan, enum mm_dtype dtype, struct mm_buffer storage,
                        const struct mm_body *body);

/* --- what json_scan.c makes of json_parameter.c */

/* The reader has a name: finds which member it is. MM_JSON_NAME, or MM_JSON_FAULT if the member was given
 * before. */
enum mm_json_event mm_json_take_name(struct mm_json_scan *scan, const char *text);

/* Takes a value within `depth` arrays and objects, or the beginning of one (is_open); false if it is no
 * parameter, list or source. */
bool mm_json_take_parameter(struct mm_json_scan *scan, unsigned depth, bool is_open, const char *text);

/* The list of a parameter ends. */
void mm_json_end_list(struct mm_json_scan *scan, const char *text);
