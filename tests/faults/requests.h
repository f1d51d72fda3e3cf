/* The requests that are made while memory runs out: one for every path that a request can take through the
 * service, in groups that share a server. */
#ifndef MM_TESTS_FAULTS_REQUESTS_H
#define MM_TESTS_FAULTS_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>

enum framing { NO_BODY, WITH_LENGTH, CHUNKED };

/* How many bytes a body of zeros has, and which matrices of ones a written one is of. */
struct body {
    const char *text;
    size_t zeros; /* where text is NULL; */
    size_t edge;  /* else JSON, "a" and "b" being square */
    bool is_npy;  /* a form with two files of square matrices of ones, each of `edge` rows */
};

enum request_flag {
    STEADY = 1,         /* the body is the same each time */
    SHORT_OF_LARGE = 2, /* all allocations of 256 KiB and more fail, none of the others */
    SECOND = 4,         /* it comes on a connection that has had the same before, when nothing failed */
    MAPPED = 8          /* its memory is to be mapped anew: request_of_all_memory comes before */
};

struct request {
    const char *group;
    const char *name;
    const char *line;    /* the method and the target */
    const char *headers; /* each with its end; NULL: none */
    enum framing framing;
    struct body body;
    unsigned status;
    const char *expected; /* in the body; NULL: nothing in particular */
    unsigned flags;       /* of enum request_flag */
};

/* A row without a name ends it. */
extern const struct request requests[];

/* Needs so much of a budget of 3 MiB that nothing is kept of what was before. */
extern const struct request request_of_all_memory;

/* The request as it is sent, to be freed; NULL where memory is out. */
char *request_text(const struct request *request, size_t *bytes);

#endif
