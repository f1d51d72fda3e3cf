/* A JSON body, decoded while it arrives. The scanner takes the body in pieces of any size, reads the elements
 * of the operands straight into memory of their type, and keeps the rest of the document with an empty array
 * in their place, for Jansson. Whatever is unusual or wrong it leaves alone: then the whole body is decoded
 * by its tree. */
#ifndef MM_API_JSON_SCAN_H
#define MM_API_JSON_SCAN_H

#include "api/json_store.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MM_JSON_OPERANDS = 2,
    MM_JSON_REST_MAX = 1024, /* of the document without its matrices; a longer one goes to the tree */
    MM_JSON_CARRY_MAX = 128  /* of an element that two pieces share; likewise */
};

/* Where in a document the next character stands. */
enum mm_json_place {
    MM_JSON_REST,         /* outside of the matrices */
    MM_JSON_MATRIX_OPEN,  /* behind the [ of a matrix */
    MM_JSON_ROW_EXPECTED, /* behind the comma between rows */
    MM_JSON_ROW_OPEN,     /* behind the [ of a row */
    MM_JSON_ELEMENT,      /* behind the comma between elements */
    MM_JSON_ELEMENT_ENDED,
    MM_JSON_ROW_ENDED
};

/* Where among the members of the outermost object it stands. */
enum mm_json_member {
    MM_JSON_BEFORE, /* the object */
    MM_JSON_KEY_EXPECTED,
    MM_JSON_KEY,
    MM_JSON_KEY_ENDED,
    MM_JSON_VALUE_EXPECTED,
    MM_JSON_VALUE,
    MM_JSON_BEHIND /* the object */
};

/* A matrix as it was scanned; its elements lie `offset` bytes into the storage. */
struct mm_json_scanned {
    bool seen;
    size_t rows;
    size_t cols;
    size_t offset;
};

/* Owned by the caller, of fixed size; begins with mm_json_scan_begin. One thread at a time, but not always
 * the same one. What is not said to be read is for json_scan.c. */
struct mm_json_scan {
    enum mm_op op;
    unsigned operands;

    /* To be read when all was fed, if mm_json_scan_is_whole: of which type the elements were taken for, and
     * whether that holds them; whether and where they were kept; and what remains. */
    enum mm_dtype dtype;
    bool held;
    struct mm_json_store store;
    struct mm_json_scanned matrices[MM_JSON_OPERANDS];
    struct mm_json_scanned *matrix; /* the last one, or the one at hand; NULL: none has come */
    char rest[MM_JSON_REST_MAX];
    size_t rest_bytes;

    bool gave_up;
    enum mm_json_place place;
    bool in_string;
    bool escaped;
    enum mm_json_member member;
    char key[8]; /* the member's name, as far as it fits */
    size_t key_bytes;
    size_t value_start;
    size_t col;
    char carry[MM_JSON_CARRY_MAX];
    size_t carry_bytes;
};

/* Begins a document for this operation: elements are of call->names' dtype, as the query may have told it,
 * until the document tells another before its first matrix. body_bytes is the length of the whole, or
 * MM_LENGTH_UNKNOWN. limits and buffers are kept until the scan ends.
 *
 * Memory is taken of `buffers` when the first element comes, and later only where the pieces before
 * have not foretold what follows: for each element that commas announce, of which one takes two bytes of text
 * at least, and never for more than limits->memory_bytes_max. While it grows, the old is held beside the new.
 * Where there is no room the elements are read all the same, and not kept: it is mm_json_scan_finish that
 * tells. */
void mm_json_scan_begin(struct mm_json_scan *scan, const struct mm_call *call, uint64_t body_bytes,
                        const struct mm_limits *limits, struct mm_buffers *buffers);

/* Takes the next piece, which the caller keeps. false: the scanner has given up, and what follows need not be
 * fed. */
bool mm_json_scan_feed(struct mm_json_scan *scan, const char *piece, size_t bytes);

/* Whether all was fed, and is a document that the scanner has understood as far as it goes. */
bool mm_json_scan_is_whole(const struct mm_json_scan *scan);

/* Ends the scan, whether or not all was fed, and gives back what it holds. Once more does nothing. */
void mm_json_scan_cancel(struct mm_json_scan *scan);

/* Ends the scan when all was fed, or given up, and completes the call as struct mm_codec says of its decode,
 * with its errors: malformed bodies, limits, and memory are judged in this order. `body` is the complete
 * text, for documents that the scanner has left alone (which then take a tree's memory, as json_tree.h says),
 * and for those that tell the type of their elements behind them, or whose elements found no room at first:
 * these are scanned once more, into memory of just their size. Holds nothing afterwards. */
enum mm_status mm_json_scan_finish(struct mm_json_scan *scan, struct mm_call *call,
                                   const struct mm_body *body, struct mm_error *error);

/* Scans a complete document again, for mm_json_scan_finish: elements of this type, and into this storage,
 * which has room for them and becomes the scan's; or, where it holds nothing, only to judge them. */
void mm_json_scan_again(struct mm_json_scan *scan, enum mm_dtype dtype, struct mm_buffer storage,
                        const struct mm_body *body);

#ifdef __cplusplus
}
#endif
#endif
